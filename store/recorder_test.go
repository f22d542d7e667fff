package store

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"velo/bench"
	"velo/store/block"
	"velo/store/internal/sample"
)

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
		if n%24_000 == 0 { // what a crash now would leave
			got, err := s.Session(h.ID)
			if err != nil {
				t.Fatal(err)
			}
			if err := equal(got, w); err != nil {
				t.Fatalf("after %d events the session is not whole", n)
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
	err = s.update(func(*bolt.Tx) error { s.db.MaxSize = 0; return nil }) // somebody has made room
	if err != nil {
		t.Fatal(err)
	}
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
