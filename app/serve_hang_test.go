package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/engine/backend"
	"velo/engine/enginetest"
	"velo/engine/host"
	"velo/engine/ops"
	"velo/engine/sched"
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

// TestServeHang: a step that never ends is told to the client that waits for it, to health while the
// process is still there, to the receiver of telemetry and to the parent, and the process ends with a
// code of its own instead of hanging with it.
func TestServeHang(t *testing.T) {
	bodies := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		select {
		case bodies <- string(b):
		default:
		}
	}))
	defer receiver.Close()
	p := startChild(t, nil, enginetest.Folder(t, enginetest.Plain), "--port", "0", "--inject-hang-steps", "3", "--step-watchdog-s", "1", "--loop-detect", "off", "--otel-endpoint", receiver.URL)
	ready := p.until("ready")
	resp, err := http.Post(ready.URL+"/v1/chat/completions", "application/json", strings.NewReader(askStream+"50}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	var failed told
	for l := range p.lines {
		if l.State == "failed" {
			failed = l
		}
	}
	if failed.Code != "hung" || !strings.Contains(failed.Advice, "restart the machine") {
		t.Errorf("the parent is told %+v", failed)
	}
	if code := p.exit(30 * time.Second); code != exitHung {
		t.Errorf("it ended with %d\n%s", code, p.log.String())
	}
	for len(bodies) > 0 {
		b = append(b, []byte("\ntelemetry: ")...)
		b = append(b, <-bodies...)
	}
	for who, said := range map[string]string{"client": string(b), "parent": failed.Message, "log": p.log.String()} {
		if !strings.Contains(said, "step 3 of the engine has not ended after ") {
			t.Errorf("the %s is told %s", who, said)
		}
	}
	if !strings.Contains(string(b), `"velo.engine.fault"`) {
		t.Errorf("the receiver of telemetry is not told: %s", b)
	}
	if n := strings.Count(p.log.String(), "goroutine "); n > 0 {
		t.Errorf("a stack instead of a sentence:\n%s", p.log.String())
	}
}

// TestTellWhenLate: the log says what is waited for, once, and nothing of what came in time.
func TestTellWhenLate(t *testing.T) {
	var log lines
	q := host.NewLog(&log)
	s := &service{queue: q, log: slog.New(q.Handler(slog.LevelInfo))}
	before := latePatience
	defer func() { latePatience = before }()
	latePatience = time.Hour
	s.tellWhenLate("a file").Stop()
	latePatience = time.Millisecond
	defer s.tellWhenLate("the GPU's driver").Stop()
	for limit := time.Now().Add(20 * time.Second); !strings.Contains(log.String(), "waiting for the GPU's driver"); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("the log has %q", log.String())
		}
	}
	if strings.Contains(log.String(), "a file") {
		t.Errorf("the log has %q", log.String())
	}
}

// lines is what was written, from any goroutine.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestStepLimit: the processor is not watched unless it is asked for, a GPU is.
func TestStepLimit(t *testing.T) {
	for _, c := range []struct {
		flag, on string
		want     time.Duration
		err      bool
	}{
		{"auto", backend.CPU, 0, false}, {"auto", backend.CUDA, usualStepLimit, false}, {"off", backend.CUDA, 0, false}, {"0", backend.CUDA, 0, false},
		{"2.5", backend.CPU, 2500 * time.Millisecond, false}, {"-1", backend.CPU, 0, true}, {"soon", backend.CPU, 0, true}, {"NaN", backend.CPU, 0, true},
	} {
		f := &serving{stepWatch: c.flag}
		got, err := f.stepLimit(c.on)
		if got != c.want || (err != nil) != c.err {
			t.Errorf("%s on %s: %v, %v", c.flag, c.on, got, err)
		}
	}
}

// TestNoRoom: memory that a GPU did not have, at the start or later, is told as that, with the flags to
// lower.
func TestNoRoom(t *testing.T) {
	q := host.NewLog(io.Discard)
	cause := fmt.Errorf("cannot load x: %w", &ops.NoRoom{Err: errors.New("cannot allocate 9.00 GiB on a GPU, of which 1.00 GiB are free")})
	for _, c := range []struct {
		err  error
		end  func(*service, error) error
		code int
		kind string
	}{
		{cause, (*service).notLoaded, exitLoad, codeNoMemory},
		{cause, (*service).ended, exitAbort, codeNoMemory},
		{errors.New("cannot read"), (*service).notLoaded, exitLoad, codeModel},
		{errors.New("it trapped"), (*service).ended, exitAbort, codePanic},
		{fmt.Errorf("it hangs: %w", &sched.HangError{Step: 3}), (*service).ended, exitHung, codeHung},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s := &service{f: &serving{}, queue: q, log: slog.New(q.Handler(slog.LevelInfo)), say: tellTo(w), http: &http.Server{}}
		var e exit
		if err := c.end(s, c.err); !errors.As(err, &e) || e.code != c.code {
			t.Errorf("%v ends with %v", c.err, err)
		}
		b, _ := io.ReadAll(r)
		if !strings.Contains(string(b), `"code":"`+c.kind+`"`) || (c.kind == codeNoMemory) != strings.Contains(string(b), "--max-seq-len") {
			t.Errorf("%v is told as %s", c.err, b)
		}
	}
}
