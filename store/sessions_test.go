package store

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"velo/bench"
	"velo/store/internal/sample"
)

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
	if err := s.SetSummaryTokens("bb", 7, "server"); err != nil {
		t.Fatal(err)
	}
	sum, err := s.Summary("b")
	if err != nil || sum.Title != "Another <title>" || !reflect.DeepEqual(sum.Metrics, map[string]float64{"ttft": 0.25}) || sum.Source != "server" || sum.Tokens != 7 {
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

// A summary that cannot be read does not hide the other sessions, nor its own events.
func TestDamagedSummary(t *testing.T) {
	s := open(t, t.TempDir())
	record(t, s, "session-0001", small(true))
	record(t, s, "session-0002", small(true))
	err := s.update(func(tx *bolt.Tx) error { return tx.Bucket(bucketSessions).Put([]byte("session-0002"), []byte("{")) })
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Sessions()
	if err != nil || len(list) != 2 || list[0].State != StateDone || !reflect.DeepEqual(list[1], Summary{ID: "session-0002", State: StateDamaged}) {
		t.Fatalf("%+v, %v", list, err)
	}
	if got, err := s.Session("session-0002"); err != nil || got.Header.Title != "Sanity & arithmetic" {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := s.Delete("session-0002"); err != nil {
		t.Fatal(err)
	}
}
