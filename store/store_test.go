package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
	"velo/store/block"
	"velo/store/internal/sample"
)

func open(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(dir, Options{Version: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// small is a session of a few requests.
func small(text bool) sample.Shape {
	shape := sample.Load(2000, text)
	shape.Streams, shape.Tokens = 7, 90
	return shape
}

// want is a session as it is stored.
func want(h *bench.Header, events []bench.Event) *bench.Session {
	s := &bench.Session{}
	s.Append(h)
	for _, e := range events {
		s.Append(block.Stored(e))
	}
	return s
}

func equal(got, want *bench.Session) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	for i := range min(len(got.Exchanges), len(want.Exchanges)) {
		if !reflect.DeepEqual(got.Exchanges[i], want.Exchanges[i]) {
			return fmt.Errorf("exchange %d:\ngot  %+v\nwant %+v", i, got.Exchanges[i], want.Exchanges[i])
		}
	}
	return fmt.Errorf("got  %+v\nwant %+v", got, want)
}

// must be equal: a session as recorded, while it is recorded, in a file, and on its way.
func TestRoundTrip(t *testing.T) {
	s, other := open(t, t.TempDir()), open(t, t.TempDir())
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		h, events := sample.Draw(t, fmt.Sprintf("session-%04d", n))
		w := want(h, events)
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		r, err := s.Record(h)
		must(err)
		path := filepath.Join(dir, h.ID+Extension)
		f, err := Create(path, h)
		must(err)
		for _, e := range events {
			r.Append(e)
			f.Append(e)
			if rapid.IntRange(0, 15).Draw(t, "flush") == 0 {
				must(r.Flush())
				must(f.Flush())
			}
		}
		must(r.Flush())
		must(f.Flush())
		recording, err := s.Session(h.ID)
		must(err)
		must(equal(recording, w))
		cut, err := ReadFile(path)
		must(err)
		must(equal(cut, w))

		must(r.Close())
		must(f.Close())
		sealed, err := s.Session(h.ID)
		must(err)
		must(equal(sealed, w))
		finished, err := ReadFile(path)
		must(err)
		must(equal(finished, w))

		// The file that was recorded, the export, and the export of the import are the same bytes.
		var export, again bytes.Buffer
		must(s.Export(h.ID, &export))
		data, err := os.ReadFile(path)
		must(err)
		if !bytes.Equal(export.Bytes(), data) {
			t.Fatal("the file as recorded and the export differ")
		}
		sum, err := other.Import(bytes.NewReader(data))
		must(err)
		mine, err := s.Summary(h.ID)
		must(err)
		if sum.Bytes, mine.Bytes = 0, 0; !reflect.DeepEqual(sum, mine) {
			t.Fatalf("the summary became\n%+v, was\n%+v", sum, mine)
		}
		imported, err := other.Session(h.ID)
		must(err)
		must(equal(imported, w))
		must(other.Export(h.ID, &again))
		if !bytes.Equal(again.Bytes(), data) {
			t.Fatal("the session changed on its way")
		}
		must(other.Delete(h.ID))
		must(s.Delete(h.ID))
	})
}

// Large blocks replace small ones while a session is recorded, and nothing gets lost or doubled.
func TestLongSession(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	h := sample.Header("session-0001")
	r, err := s.Record(h)
	if err != nil {
		t.Fatal(err)
	}
	w := &bench.Session{}
	w.Append(h)
	n := 0
	shape := sample.Load(150_000, true)
	shape.Events(func(e bench.Event) {
		w.Append(block.Stored(e))
		r.Append(e)
		if n++; n%3000 == 0 {
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := s.Session(h.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := equal(got, w); err != nil {
		t.Fatal("the session changed")
	}
	sum, err := s.Summary(h.ID)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Chunks != 150_000 || r.Stored() != sum.Chunks+sum.Events || sum.State != StateDone || sum.Bytes < 500_000 || sum.Bytes > s.Size() {
		t.Fatalf("got %+v, %d stored", sum, r.Stored())
	}
}

func TestConcurrentAppend(t *testing.T) {
	s := open(t, t.TempDir())
	r, err := s.Record(sample.Header("session-0001"))
	if err != nil {
		t.Fatal(err)
	}
	const requests, chunks = 50, 400
	var all sync.WaitGroup
	for i := range requests {
		all.Go(func() {
			r.Append(&bench.Request{Number: i})
			for k := range chunks {
				r.Append(bench.Chunks{{Request: i, Read: int32(k), Usage: -1, Exact: -1, Text: "x"}})
				if i == 0 && k%100 == 0 {
					if err := r.Flush(); err != nil {
						t.Error(err)
					}
				}
			}
			r.Append(&bench.End{Request: i, Status: bench.OK})
		})
	}
	all.Wait()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r.Append(&bench.Note{Text: "too late"})
	got, err := s.Session("session-0001")
	if err != nil || len(got.Exchanges) != requests || len(got.Notes) != 0 {
		t.Fatalf("%v, %d requests, %d notes", err, len(got.Exchanges), len(got.Notes))
	}
	for i, x := range got.Exchanges {
		if len(x.Chunks) != chunks || x.End == nil {
			t.Fatalf("request %d has %d chunks", i, len(x.Chunks))
		}
		for k, c := range x.Chunks {
			if c.Read != int32(k) {
				t.Fatalf("request %d: chunk %d is read %d", i, k, c.Read)
			}
		}
	}
}

// The program may die without Close at any time after the events were stored.
func TestReopenWithoutClose(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	h := sample.Header("session-0001")
	r, err := s.Record(h)
	if err != nil {
		t.Fatal(err)
	}
	var events []bench.Event
	small(true).Events(func(e bench.Event) {
		if _, ok := e.(*bench.Finish); !ok {
			events = append(events, e)
			r.Append(e)
		}
	})
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	later := t.TempDir()
	copyFile(t, filepath.Join(dir, fileName), filepath.Join(later, fileName))
	again := open(t, later)
	got, err := again.Session(h.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := equal(got, want(h, events)); err != nil {
		t.Fatal(err)
	}
	list, err := again.Sessions()
	if err != nil || len(list) != 1 || list[0].State != StateCutOff || list[0].Duration == 0 || again.Recovered() != "" {
		t.Fatalf("got %+v, %v, %q", list, err, again.Recovered())
	}
	if running, _ := s.Summary(h.ID); running.State != StateRunning {
		t.Fatalf("got %+v", running)
	}
}

func copyFile(tb testing.TB, from, to string) {
	tb.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

func TestSummary(t *testing.T) {
	usage := func(n int) *bench.Usage { return &bench.Usage{Completion: n} }
	s := open(t, t.TempDir())
	h := sample.Header("session-0001")
	r, err := s.Record(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []bench.Event{
		&bench.Request{Number: 0, Warmup: true}, bench.Chunks{{Request: 0, Usage: -1, Exact: -1}}, &bench.End{Request: 0, Status: bench.Failed, Usage: usage(7)},
		&bench.Request{Number: 1}, bench.Chunks{{Request: 1, Usage: -1, Exact: -1}, {Request: 1, Usage: -1, Exact: -1}}, &bench.End{Request: 1, Status: bench.OK, Usage: usage(100)},
		&bench.Request{Number: 2}, bench.Chunks{{Request: 2, Usage: -1, Exact: 3}, {Request: 2, Usage: -1, Exact: 4}}, &bench.End{Request: 2, Status: bench.Truncated},
		&bench.Request{Number: 3}, bench.Chunks{{Request: 3, Usage: -1, Exact: -1}}, &bench.End{Request: 3, Status: bench.Stopped, Usage: usage(-1)},
		&bench.Request{Number: 4}, bench.Chunks{{Request: 4, Usage: -1, Exact: -1, User: 5 * time.Second}},
		&bench.Finish{At: 4 * time.Second, State: bench.Aborted},
	} {
		r.Append(e)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := s.Summary("session")
	if err != nil {
		t.Fatal(err)
	}
	w := Summary{
		ID: h.ID, Title: h.Title, Model: h.Endpoint.Model, Endpoint: "local", Suite: "Sanity & arithmetic", Began: h.Anchor, Duration: 4 * time.Second,
		State: StateStopped, Requests: 4, Failed: 1, Tokens: 100 + 7 + 1 + 1, Workers: 64, Chunks: 7, Events: 11, Bytes: got.Bytes,
	}
	if !reflect.DeepEqual(got, w) || got.Bytes == 0 {
		t.Fatalf("got  %+v\nwant %+v", got, w)
	}
}

func TestList(t *testing.T) {
	s := open(t, t.TempDir())
	for i, id := range []string{"aaaa-0001", "aaaa-0002", "bbbb-0001"} {
		h := sample.Header(id)
		h.Anchor = h.Anchor.Add(time.Duration(i) * time.Hour)
		r, err := s.Record(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(id); !errors.Is(err, ErrRunning) {
			t.Fatalf("a running session was deleted: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Record(h); !errors.Is(err, ErrExists) {
			t.Fatalf("recorded twice: %v", err)
		}
	}
	ids := func() (ids string) {
		list, err := s.Sessions()
		if err != nil {
			t.Fatal(err)
		}
		for _, sum := range list {
			ids += sum.ID + " "
		}
		return ids
	}
	if got := ids(); got != "bbbb-0001 aaaa-0002 aaaa-0001 " {
		t.Fatalf("got %s", got)
	}
	if err := s.Rename("bb", "Another <title>"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSummaryMetrics("bb", map[string]float64{"ttft": 0.25, "rate": nan()}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSummarySource("bb", "server"); err != nil {
		t.Fatal(err)
	}
	sum, err := s.Summary("b")
	if err != nil || sum.Title != "Another <title>" || !reflect.DeepEqual(sum.Metrics, map[string]float64{"ttft": 0.25}) || sum.Source != "server" {
		t.Fatalf("got %+v, %v", sum, err)
	}
	session, err := s.Session("bbbb")
	if err != nil || session.Header.Title != "Another <title>" {
		t.Fatalf("got %+v, %v", session, err)
	}
	for _, c := range []struct {
		id   string
		want error
	}{{"aaaa", ErrAmbiguous}, {"cccc", ErrNotFound}, {"bbbb-00011", ErrNotFound}} {
		if _, err := s.Session(c.id); !errors.Is(err, c.want) {
			t.Fatalf("%s: got %v", c.id, err)
		}
		if err := s.Delete(c.id); !errors.Is(err, c.want) {
			t.Fatalf("%s: got %v", c.id, err)
		}
	}
	if err := s.Delete("aaaa-0001"); err != nil {
		t.Fatal(err)
	}
	if got := ids(); got != "bbbb-0001 aaaa-0002 " {
		t.Fatalf("got %s", got)
	}
	if _, err := s.Session("aaaa"); err != nil {
		t.Fatal(err)
	}
}

func nan() float64 {
	var zero float64
	return zero / zero
}

func TestRecordRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	for name, change := range map[string]func(*bench.Header){
		"no identity":   func(h *bench.Header) { h.ID = "" },
		"path":          func(h *bench.Header) { h.ID = "../../etc/passwd" },
		"later schema":  func(h *bench.Header) { h.Schema++ },
		"long identity": func(h *bench.Header) { h.ID = strings.Repeat("x", 65) },
	} {
		h := sample.Header("session-0001")
		change(h)
		if _, err := s.Record(h); err == nil {
			t.Errorf("%s: recorded", name)
		}
		if _, err := Create(filepath.Join(t.TempDir(), "x"+Extension), h); err == nil {
			t.Errorf("%s: created", name)
		}
	}
}

// An event that cannot be stored is named, and everything else is stored.
func TestEventThatCannotBeStored(t *testing.T) {
	s := open(t, t.TempDir())
	r, err := s.Record(sample.Header("session-0001"))
	if err != nil {
		t.Fatal(err)
	}
	r.Append(&bench.Request{})
	r.Append(&bench.End{Timings: &bench.Timings{PromptMS: nan()}})
	r.Append(bench.Chunks{{Text: "a"}, {Text: strings.Repeat("x", block.MaxRaw)}, {Text: "b"}})
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "*bench.End") {
		t.Fatalf("got %v", err)
	}
	if err := r.Close(); err == nil {
		t.Fatal("Close says nothing about it")
	}
	got, err := s.Session("session-0001")
	if err != nil || len(got.Exchanges) != 1 || len(got.Exchanges[0].Chunks) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
}

// No key leaves with a session, wherever it was put.
func TestNoKeys(t *testing.T) {
	s := open(t, t.TempDir())
	h := sample.Header("session-0001")
	h.Endpoint.URL = "https://me:sk-secret@example.com/v1?api_key=sk-secret&x=1"
	r, err := s.Record(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x"+Extension)
	f, err := Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var export bytes.Buffer
	if err := s.Export(h.ID, &export); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, r := range map[string]io.Reader{"export": &export, "file": file} {
		_, err := readSession(r, func(e bench.Event) error {
			if h, ok := e.(*bench.Header); ok && (strings.Contains(h.Endpoint.URL, "secret") || !strings.Contains(h.Endpoint.URL, "example.com/v1")) {
				t.Errorf("%s: got %s", name, h.Endpoint.URL)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if h.Endpoint.URL != "https://me:sk-secret@example.com/v1?api_key=sk-secret&x=1" {
		t.Error("the caller's header was changed")
	}
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	type look struct {
		Theme string
		Width float32
	}
	v := look{Theme: "dark", Width: 5}
	if found, err := s.Settings("look", 1, &v); found || err != nil || v.Width != 5 {
		t.Fatalf("%v, %v, %+v", found, err, v)
	}
	if err := s.PutSettings("look", 1, map[string]string{"Theme": "light"}); err != nil {
		t.Fatal(err)
	}
	if found, err := s.Settings("look", 2, &v); !found || err != nil || v != (look{"light", 5}) {
		t.Fatalf("%v, %v, %+v", found, err, v)
	}
	if err := s.PutSettings("look", 3, look{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Settings("look", 2, &v); !errors.Is(err, ErrNewer) || v.Theme != "light" {
		t.Fatalf("%v, %+v", err, v)
	}

	e, err := s.PutEndpoint(Endpoint{Name: "b", URL: "http://u:p@x/v1", ThinkTags: true})
	if err != nil || e.ID == "" || e.URL != "http://x/v1" {
		t.Fatalf("%+v, %v", e, err)
	}
	if _, err := s.PutEndpoint(Endpoint{Name: "A", URL: "http://y/v1", ID: "y"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutEndpoint(Endpoint{Name: "z"}); err == nil {
		t.Fatal("an endpoint without URL was kept")
	}
	list, err := s.Endpoints()
	if err != nil || len(list) != 2 || list[0].Name != "A" || list[1] != e {
		t.Fatalf("%+v, %v", list, err)
	}
	if err := s.DeleteEndpoint("y"); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.Endpoints(); len(list) != 1 {
		t.Fatalf("%+v", list)
	}

	text := []byte("{\n  \"title\": \"<Mine>\",   \"steps\": []\n}\n")
	u, err := s.PutSuite(Suite{Title: "Mine", Document: text})
	if err != nil || u.Changed.IsZero() {
		t.Fatal(err)
	}
	if _, err := s.PutSuite(Suite{Document: []byte("{")}); err == nil {
		t.Fatal("a suite that is no JSON was kept")
	}
	suites, err := s.Suites()
	if err != nil || len(suites) != 1 || !bytes.Equal(suites[0].Document, text) || suites[0].ID != u.ID {
		t.Fatalf("%+v, %v", suites, err)
	}

	for i := range 12 {
		if err := s.AddRecent(fmt.Sprintf("/x/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AddRecent("/x/5"); err != nil {
		t.Fatal(err)
	}
	recent, err := s.Recent()
	if err != nil || len(recent) != maxRecent || !slices.Equal(recent[:2], []string{"/x/5", "/x/11"}) {
		t.Fatalf("%v, %v", recent, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recent(); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v", err)
	}
	again := open(t, dir)
	if suites, err = again.Suites(); err != nil || len(suites) != 1 {
		t.Fatalf("%+v, %v", suites, err)
	}
}

// When the disk is full the events stay, and are stored as soon as there is room.
func TestFullDisk(t *testing.T) {
	s, err := Open(t.TempDir(), Options{MaxSize: 200 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	h := sample.Header("session-0001")
	r, err := s.Record(h)
	if err != nil {
		t.Fatal(err)
	}
	w := &bench.Session{}
	w.Append(h)
	var stored int
	shape := sample.Load(60_000, true)
	n := 0
	shape.Events(func(e bench.Event) {
		w.Append(block.Stored(e))
		r.Append(e)
		if n++; n%2000 == 0 && r.Flush() == nil {
			stored = r.Stored()
		}
	})
	if err := r.Flush(); err == nil || r.Err() == nil || !strings.Contains(err.Error(), "tried again") {
		t.Fatalf("got %v, %v", err, r.Err())
	}
	got, err := s.Session(h.ID)
	if err != nil || stored == 0 || r.Stored() != stored {
		t.Fatalf("%v, %d stored, %d before", err, r.Stored(), stored)
	}
	chunks := 0
	for _, x := range got.Exchanges {
		chunks += len(x.Chunks)
	}
	if chunks == 0 || chunks > stored {
		t.Fatalf("got %d chunks of %d events", chunks, stored)
	}
	s.db.MaxSize = 0 // somebody has made room
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err = s.Session(h.ID); err != nil {
		t.Fatal(err)
	}
	if err := equal(got, w); err != nil {
		t.Fatal("the session is not whole")
	}
}

// Close of the store ends what is still recorded.
func TestCloseWhileRecording(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	r, err := s.Record(sample.Header("session-0001"))
	if err != nil {
		t.Fatal(err)
	}
	r.Append(&bench.Note{Text: "n"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Record(sample.Header("session-0002")); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v", err)
	}
	again := open(t, dir)
	got, err := again.Session("session-0001")
	if err != nil || len(got.Notes) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("VELO_DATA", "/a")
	if got := DefaultDir(); got != "/a" {
		t.Errorf("got %s", got)
	}
	t.Setenv("VELO_DATA", "")
	t.Setenv("XDG_DATA_HOME", "/b")
	if got := DefaultDir(); got != filepath.Join("/b", "velo") {
		t.Errorf("got %s", got)
	}
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "/c")
	if got := DefaultDir(); !strings.HasPrefix(got, "/c") || !strings.HasSuffix(got, "velo") {
		t.Errorf("got %s", got)
	}
}
