package handoff

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func listening(t *testing.T, dir string, on func(Message) Reply) {
	t.Helper()
	l, err := Listen(dir, on)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func echo(m Message) Reply {
	b, _ := json.Marshal(m)
	return Reply{ID: string(b)}
}

// shortDir is a folder whose name leaves room for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "velo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestSend(t *testing.T) {
	for name, dir := range map[string]string{
		"short": shortDir(t),
		"long":  filepath.Join(shortDir(t), strings.Repeat("a folder with a long name/", 8)),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := Send(dir, Message{Raise: true}); !errors.Is(err, ErrNobody) {
				t.Fatalf("got %v", err)
			}
			listening(t, dir, echo)
			if _, err := Listen(dir, echo); !errors.Is(err, ErrTaken) {
				t.Fatalf("got %v", err)
			}
			open := []string{"suite.json", "/x/y.velo", "https://example.com/v1"}
			r, err := Send(dir, Message{Open: open, Raise: true, Session: "s.velo"})
			if err != nil {
				t.Fatal(err)
			}
			var got Message
			if err := json.Unmarshal([]byte(r.ID), &got); err != nil {
				t.Fatal(err)
			}
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprint(Message{Open: []string{filepath.Join(here, "suite.json"), "/x/y.velo", "https://example.com/v1"}, Raise: true, Session: filepath.Join(here, "s.velo")})
			if fmt.Sprint(got) != want || open[0] != "suite.json" {
				t.Fatalf("got %v, want %s", got, want)
			}
			path, err := socketPath(dir)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || runtime.GOOS == "linux" && info.Mode().Perm() != 0o600 {
				t.Fatalf("%v, %v", info.Mode(), err)
			}
		})
	}
}

func TestErrorsComeBack(t *testing.T) {
	dir := shortDir(t)
	listening(t, dir, func(m Message) Reply {
		if m.Raise {
			panic("a fault")
		}
		return Reply{Error: "cannot import the session: it is damaged"}
	})
	if _, err := Send(dir, Message{Session: "x"}); err == nil || !strings.Contains(err.Error(), "it is damaged") {
		t.Fatalf("got %v", err)
	}
	if _, err := Send(dir, Message{Raise: true}); err == nil || !strings.Contains(err.Error(), "a fault") {
		t.Fatalf("got %v", err)
	}
	if _, err := Send(dir, Message{}); err == nil {
		t.Fatal("after a fault nobody answers")
	}
}

// A socket that a killed process left behind is taken over.
func TestStaleSocket(t *testing.T) {
	dir := shortDir(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Send(dir, Message{}); !errors.Is(err, ErrNobody) {
		t.Fatalf("got %v", err)
	}
	listening(t, dir, echo)
	if _, err := Send(dir, Message{}); err != nil {
		t.Fatal(err)
	}
}

// Whatever comes over the socket is answered with a reason, and the next message is heard.
func TestBadMessages(t *testing.T) {
	dir := shortDir(t)
	listening(t, dir, echo)
	for name, c := range map[string]struct{ send, want string }{
		"no JSON":       {"hello\n", "cannot understand"},
		"later version": {`{"version":99}` + "\n", "version 99"},
		"no end":        {`{"version":1}`, "ends early"},
		"too long":      {strings.Repeat(" ", maxMessage+10), "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", filepath.Join(dir, socketName))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go func() {
				_, _ = conn.Write([]byte(c.send))
				_ = conn.(*net.UnixConn).CloseWrite()
			}()
			var r Reply
			if err := readLine(conn, &r); err != nil || !strings.Contains(r.Error, c.want) {
				t.Fatalf("got %q, %v", r.Error, err)
			}
		})
	}
	if _, err := Send(dir, Message{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Send(dir, Message{Open: []string{strings.Repeat("x", maxMessage)}}); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Fatalf("got %v", err)
	}
}

// Connections that never say anything hold up neither the others nor the end.
func TestSilentConnections(t *testing.T) {
	defer func(before time.Duration) { lineTimeout = before }(lineTimeout)
	lineTimeout = time.Hour // who waits for them does not end
	dir := shortDir(t)
	l, err := Listen(dir, echo)
	if err != nil {
		t.Fatal(err)
	}
	for range maxTogether - 1 {
		conn, err := net.Dial("unix", filepath.Join(dir, socketName))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := Send(dir, Message{}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, socketName)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the socket is still there: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	dir := shortDir(t)
	listening(t, dir, echo)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			r, err := Send(dir, Message{Open: []string{fmt.Sprintf("/%d", i)}})
			if err != nil || !strings.Contains(r.ID, fmt.Sprintf(`"/%d"`, i)) {
				t.Errorf("%d: %v, %v", i, r, err)
			}
		})
	}
	all.Wait()
}

func TestFolderOfAnother(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders have no mode here")
	}
	t.Setenv("TMPDIR", shortDir(t))
	dir := filepath.Join("/", strings.Repeat("a folder with a long name/", 8))
	path, err := socketPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := socketPath(dir); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Fatalf("got %v", err)
	}
}
