package store

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"velo/bench"
	"velo/store/internal/sample"
)

// The tests of this package start the test binary again as another process: childVariable says what
// that one does.
const childVariable = "VELO_STORE_TEST_CHILD"

var children = map[string]func(dir string) error{
	"record to the database": func(dir string) error { return recordForever(dir, false, true) },
	"record and flush":       func(dir string) error { return recordForever(dir, true, true) },
	"record to a file":       func(dir string) error { return recordForever(dir, false, false) },
	"window":                 window,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		if err := children[name](os.Args[1]); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child starts another process and gives the lines that it prints.
func child(t *testing.T, name, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childVariable+"="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

const killedRequests = 8

// recordForever appends chunks to requests until it is killed, and prints after what was stored how
// many that were: "stored <events>", and with flush how many chunks each request had before.
func recordForever(dir string, flush, database bool) error {
	id := bench.NewID(time.Now())
	var r *Recorder
	if database {
		s, err := Open(dir, Options{})
		if err != nil {
			return err
		}
		if r, err = s.Record(sample.Header(id)); err != nil {
			return err
		}
	} else {
		var err error
		if r, err = Create(InboxPath(dir, id), sample.Header(id)); err != nil {
			return err
		}
	}
	fmt.Println("id", id)
	var appended [killedRequests]atomic.Int64
	for i := range killedRequests {
		go func() {
			r.Append(&bench.Request{Number: i})
			for k := 0; ; k++ {
				now := time.Duration(time.Now().UnixNano())
				r.Append(bench.Chunks{{Request: i, Read: int32(k), User: now, Kernel: bench.Unset, Usage: -1, Exact: -1, Text: fmt.Sprint(k)}})
				appended[i].Add(1)
				time.Sleep(time.Millisecond)
			}
		}()
	}
	for {
		var counts []any
		for i := range appended {
			counts = append(counts, appended[i].Load())
		}
		if !flush {
			fmt.Println("stored", r.Stored())
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err := r.Flush(); err != nil {
			return err
		}
		fmt.Println("flushed", fmt.Sprint(counts...))
	}
}

// A process that is killed at any moment loses nothing that it was told is stored.
func TestKill(t *testing.T) {
	kills := 18
	if testing.Short() {
		kills = 6
	}
	dir := t.TempDir()
	modes := []string{"record to the database", "record and flush", "record to a file"}
	var lag time.Duration
	for n := range kills {
		mode := modes[n%len(modes)]
		cmd, lines := child(t, mode, dir)
		var id string
		stored, flushed := 0, make([]int, killedRequests)
		go func() {
			time.Sleep(time.Duration(20+rand.IntN(1500)) * time.Millisecond)
			_ = cmd.Process.Kill()
		}()
		for lines.Scan() {
			word, rest, _ := strings.Cut(lines.Text(), " ")
			switch word {
			case "id":
				id = rest
			case "stored":
				if _, err := fmt.Sscan(rest, &stored); err != nil {
					stored = 0 // the last line may be cut off
				}
			case "flushed":
				counts := make([]int, killedRequests)
				in := strings.NewReader(rest)
				whole := true
				for i := range counts {
					_, err := fmt.Fscan(in, &counts[i])
					whole = whole && err == nil
				}
				if whole {
					flushed = counts
				}
			default:
				t.Fatalf("%s: the child says %q", mode, lines.Text())
			}
		}
		killed := time.Duration(time.Now().UnixNano())
		_ = cmd.Wait()
		if id == "" {
			continue // it was killed before it began
		}
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("%s, kill %d: %v", mode, n, err)
		}
		if s.Recovered() != "" {
			t.Fatalf("%s, kill %d: %s", mode, n, s.Recovered())
		}
		if mode == "record to a file" {
			if list, err := s.ImportInbox(); err != nil || len(list) != 1 || list[0].ID != id {
				t.Fatalf("%s, kill %d: %v, %v", mode, n, list, err)
			}
		}
		session, err := s.Session(id)
		if err != nil {
			t.Fatalf("%s, kill %d: %v", mode, n, err)
		}
		events := 1 // the header
		var last time.Duration
		for i, x := range session.Exchanges {
			if x.Request == nil {
				continue
			}
			events += 1 + len(x.Chunks)
			for k, c := range x.Chunks {
				if c.Read != int32(k) || c.Text != fmt.Sprint(k) {
					t.Fatalf("%s, kill %d: chunk %d of request %d is %+v", mode, n, k, i, c)
				}
				last = max(last, c.User)
			}
			if len(x.Chunks) < flushed[i] {
				t.Errorf("%s, kill %d: request %d has %d chunks, %d were flushed", mode, n, i, len(x.Chunks), flushed[i])
			}
		}
		if events < stored {
			t.Errorf("%s, kill %d: %d events are there, %d were stored", mode, n, events, stored)
		}
		if last > 0 && mode != "record and flush" {
			lag = max(lag, killed-last)
		}
		if sum, err := s.Summary(id); err != nil || sum.State != StateCutOff {
			t.Errorf("%s, kill %d: %+v, %v", mode, n, sum, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("at most %v of events were lost", lag)
	s := open(t, dir)
	list, err := s.Sessions()
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, sum := range list {
		if _, err := s.Session(sum.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, fileName)); errors.Is(err, os.ErrNotExist) {
		t.Fatal("there is no database")
	}
}
