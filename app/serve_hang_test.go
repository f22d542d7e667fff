package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		got, err := stepLimit(c.flag, c.on)
		if got != c.want || (err != nil) != c.err {
			t.Errorf("%s on %s: %v, %v", c.flag, c.on, got, err)
		}
	}
}

// TestFailuresAreTold: memory that a GPU did not have, at the start or later, is told as that, with the flags to
// lower; a GPU that failed as that.
func TestFailuresAreTold(t *testing.T) {
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
		{errors.New("it is broken"), (*service).ended, exitAbort, codePanic},
		{fmt.Errorf("step 3 failed: %w", &ops.Fault{Err: errors.New("it trapped")}), (*service).ended, exitAbort, codeDriver},
		{fmt.Errorf("cannot load x: %w", &ops.Fault{Err: errors.New("it is gone")}), (*service).notLoaded, exitLoad, codeDriver},
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

// onHollow is the environment of a process whose GPU is a driver that computes nothing
// (cuda/testdata/hollow.c), and a function that makes the GPU hang, or go on.
func onHollow(t *testing.T) (env []string, hang func(bool)) {
	t.Helper()
	if !slices.Contains(backend.Names(), backend.CUDA) {
		t.Skip("no GPU in this build")
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skip("no C compiler: ", err)
	}
	folder := t.TempDir()
	if out, err := exec.Command(cc, "-O1", "-w", "-shared", "-fPIC", "-o", filepath.Join(folder, "libcuda.so.1"), "../cuda/testdata/hollow.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(folder, "hang")
	return []string{"HOLLOW=" + folder, "LD_LIBRARY_PATH=" + folder, "XDG_CACHE_HOME=" + folder}, func(on bool) {
		var err error
		if on {
			err = os.WriteFile(file, nil, 0o600)
		} else {
			err = os.Remove(file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestServeOnAGPUThatHangs: of a GPU whose kernels do not end any more, `velo serve` names the last ones
// and ends; told to stop meanwhile it stops.
func TestServeOnAGPUThatHangs(t *testing.T) {
	env, hang := onHollow(t)
	model := enginetest.Folder(t, enginetest.Hybrid)
	ask := func(ready told) (done chan string) {
		done = make(chan string, 1)
		go func() {
			resp, err := http.Post(ready.URL+"/v1/chat/completions", "application/json", strings.NewReader(askStream+"50}"))
			if err != nil {
				done <- err.Error()
				return
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body)
			done <- string(b)
		}()
		return done
	}
	p := startChild(t, env, model, "--port", "0", "--device", "cuda", "--step-watchdog-s", "1", "--mem-watchdog-gb", "0")
	ready := p.until("ready")
	if answer := <-ask(ready); !strings.Contains(answer, "[DONE]") || strings.Contains(answer, "error") {
		t.Fatalf("on a GPU that computes nothing: %s\n%s", answer, p.log.String())
	}
	hang(true)
	answer := <-ask(ready)
	for _, want := range []string{"has not ended after", "the device was given last: ", "a graph of ", "generation_failed"} {
		if !strings.Contains(answer, want) {
			t.Errorf("the client is told nothing of %q: %s", want, answer)
		}
	}
	if code := p.exit(30 * time.Second); code != exitHung {
		t.Errorf("it ended with %d\n%s", code, p.log.String())
	}
	hang(false)

	p = startChild(t, env, model, "--port", "0", "--device", "cuda", "--mem-watchdog-gb", "0", "--drain-seconds", "0.2")
	ready = p.until("ready")
	hang(true)
	done := ask(ready)
	time.Sleep(200 * time.Millisecond)
	_ = p.life.Close()
	if code := p.exit(30 * time.Second); code != 0 {
		t.Errorf("told to stop while it hangs it ended with %d\n%s", code, p.log.String())
	}
	<-done
}

// TestServeOnAFullGPU: what does not fit is refused by the plan, and where that is not asked, by the
// driver: both say how much there is, what would be less, and are told to the parent as want of memory.
func TestServeOnAFullGPU(t *testing.T) {
	env, _ := onHollow(t)
	folder := strings.TrimPrefix(env[0], "HOLLOW=")
	if err := os.WriteFile(filepath.Join(folder, "memory"), []byte("700000000"), 0o600); err != nil {
		t.Fatal(err)
	}
	for force, words := range map[string][]string{"off": {"cannot fit the model: it takes ", "the GPU's own ", "are available"}, "on": {"cannot reserve the model's memory on the GPU", "GiB are free", "--max-seq-len", "--kv-type"}} {
		p := startChild(t, env, enginetest.Folder(t, enginetest.Plain), "--port", "0", "--device", "cuda", "--kv-tokens", "8000000", "--load-force", force, "--mem-watchdog-gb", "0")
		var failed told
		for l := range p.lines {
			if l.State == "failed" {
				failed = l
			}
		}
		if failed.Code != codeNoMemory || failed.Advice == "" {
			t.Errorf("--load-force %s: the parent is told %+v", force, failed)
		}
		for _, word := range words {
			if !strings.Contains(failed.Message, word) {
				t.Errorf("--load-force %s: nothing of %q in %q", force, word, failed.Message)
			}
		}
		if code := p.exit(30 * time.Second); code != exitLoad {
			t.Errorf("--load-force %s: it ended with %d\n%s", force, code, p.log.String())
		}
	}
}
