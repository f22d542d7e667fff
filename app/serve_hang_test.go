package app

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"velo/engine/host"
)

// TestServeEndsWhilePlanning: what is asked of files and of a driver before a model is loaded may
// never be answered; a process whose parent has gone then ends all the same.
func TestServeEndsWhilePlanning(t *testing.T) {
	p := startChild(t, []string{hangingFiles + "=1"}, "model", "--port", "0")
	time.Sleep(200 * time.Millisecond)
	_ = p.life.Close()
	if code := p.exit(20 * time.Second); code != 0 {
		t.Errorf("it ended with %d\n%s", code, p.log.String())
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
