//go:build unix

package app

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"velo/engine/host"
)

// TestServeEndsWhilePlanning: what is asked of files and of a driver before a model is loaded may
// never be answered; a process that is told to end then ends all the same.
func TestServeEndsWhilePlanning(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(folder, "config.json"), 0o600); err != nil { // nobody writes to it
		t.Skip(err)
	}
	p := startChild(t, nil, folder, "--port", "0")
	time.Sleep(200 * time.Millisecond)
	_ = p.life.Close()
	if code := p.exit(20 * time.Second); code != 0 {
		t.Errorf("it ended with %d\n%s", code, p.log.String())
	}
}

// TestServeFailureIsOneSentence: what failed is said once to the client and once to the parent.
func TestServeFailureIsOneSentence(t *testing.T) {
	p := startChild(t, nil, tiny(t), "--port", "0", "--inject-panic-steps", "5", "--loop-detect", "off")
	ready := p.until("ready")
	resp, err := http.Post(ready.URL+"/v1/chat/completions", "application/json", strings.NewReader(askStream+"50}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	message := ""
	for l := range p.lines {
		if l.State == "failed" {
			message = l.Message
		}
	}
	for who, said := range map[string]string{"client": string(b), "parent": message} {
		if strings.Count(said, "cannot go on: ") != 1 || !strings.Contains(said, "step 5 of the engine") {
			t.Errorf("the %s is told %s", who, said)
		}
	}
}

// stuck is an engine whose device does not come back.
type stuck struct{ never chan struct{} }

func (s stuck) Close() error { <-s.never; return nil }

func TestReleaseDoesNotWaitForADriver(t *testing.T) {
	q := host.NewLog(io.Discard)
	s := &service{queue: q, log: slog.New(q.Handler(slog.LevelInfo))}
	e := stuck{make(chan struct{})}
	defer close(e.never)
	done := make(chan struct{})
	go func() { s.release(e, 10*time.Millisecond); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for ever")
	}
}
