package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"velo/bench"
	"velo/store/block"
	"velo/store/handoff"
	"velo/store/internal/sample"
)

// window is the process that has the database, as the program's window does. It ends when it is
// asked to open "quit".
func window(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	quit := make(chan struct{})
	l, err := handoff.Listen(dir, func(m handoff.Message) handoff.Reply {
		if len(m.Open) == 1 && filepath.Base(m.Open[0]) == "quit" {
			defer close(quit)
			return handoff.Reply{}
		}
		sum, err := s.ImportFile(m.Session)
		if err != nil {
			return handoff.Reply{Error: err.Error()}
		}
		return handoff.Reply{ID: sum.ID}
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	<-quit
	if err := l.Close(); err != nil {
		return err
	}
	return s.Close()
}

// A measurement beside an open window: it cannot have the database, records to a file, and hands it
// over; when the window has been closed meanwhile, the next start finds the file.
func TestBesideAnOpenWindow(t *testing.T) {
	dir := t.TempDir()
	cmd, lines := child(t, "window", dir)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the window says %q", lines.Text())
	}
	_, err := Open(dir, Options{})
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("(number %d)", cmd.Process.Pid)) {
		t.Fatalf("got %v", err)
	}
	measure := func(id string) (path string, events []bench.Event) {
		path = InboxPath(dir, id)
		r, err := Create(path, sample.Header(id))
		if err != nil {
			t.Fatal(err)
		}
		small(true).Events(func(e bench.Event) {
			events = append(events, e)
			r.Append(e)
		})
		// The window must not take a file that is still written.
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if busy, err := beingWritten(path); err != nil || !busy {
			t.Fatalf("%v, %v", busy, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return path, events
	}
	path, events := measure("session-0001")
	reply, err := handoff.Send(dir, handoff.Message{Session: path})
	if err != nil || reply.ID != "session-0001" {
		t.Fatalf("%+v, %v", reply, err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the file is still there: %v", err)
	}
	later, _ := measure("session-0002")
	if _, err := handoff.Send(dir, handoff.Message{Open: []string{"quit"}}); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := handoff.Send(dir, handoff.Message{Session: later}); !errors.Is(err, handoff.ErrNobody) {
		t.Fatalf("got %v", err)
	}

	s := open(t, dir)
	list, err := s.ImportInbox()
	if err != nil || len(list) != 1 || list[0].ID != "session-0002" {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, id := range []string{"session-0001", "session-0002"} {
		got, err := s.Session(id)
		if err != nil {
			t.Fatal(err)
		}
		w := want(sample.Header(id), events)
		if err := equal(got, w); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := s.ImportInbox(); err != nil || len(list) != 0 {
		t.Fatalf("%+v, %v", list, err)
	}
}

func TestInbox(t *testing.T) {
	s := open(t, t.TempDir())
	good, err := Create(InboxPath(s.Dir(), "session-0001"), sample.Header("session-0001"))
	if err != nil {
		t.Fatal(err)
	}
	if err := good.Close(); err != nil {
		t.Fatal(err)
	}
	busy, err := Create(InboxPath(s.Dir(), "session-0002"), sample.Header("session-0002"))
	if err != nil {
		t.Fatal(err)
	}
	bad := InboxPath(s.Dir(), "session-0000")
	if err := os.WriteFile(bad, []byte("no session"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Inbox(), "readme.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := s.ImportInbox()
	if len(list) != 1 || list[0].ID != "session-0001" || err == nil || !strings.Contains(err.Error(), "session-0000") {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := os.Stat(bad + ".rejected"); err != nil {
		t.Fatal(err)
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err = s.ImportInbox(); err != nil || len(list) != 1 || list[0].ID != "session-0002" {
		t.Fatalf("%+v, %v", list, err)
	}
	// A file elsewhere is left where it is.
	elsewhere := filepath.Join(t.TempDir(), "mine"+Extension)
	f, err := Create(elsewhere, sample.Header("session-0003"))
	if err != nil {
		t.Fatal(err)
	}
	f.Append(block.Stored(&bench.Note{Text: "n"}))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ImportFile(elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(elsewhere, sample.Header("session-0003")); err == nil {
		t.Fatal("a file was written over")
	}
}
