package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

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
	s.db.NoSync, other.db.NoSync = true, true // nothing crashes here
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

// record writes a whole session.
func record(tb testing.TB, s *Store, id string, shape sample.Shape) {
	r, err := s.Record(sample.Header(id))
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	shape.Events(func(e bench.Event) {
		r.Append(e)
		if n++; n%1600 == 0 {
			if err := r.Flush(); err != nil {
				tb.Fatal(err)
			}
		}
	})
	if err := r.Close(); err != nil {
		tb.Fatal(err)
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
