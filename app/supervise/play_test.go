//go:build unix

package supervise

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The engine of these tests is this test binary, started again with a scene to play.

const (
	sceneEnv  = "VELO_SUPERVISE_SCENE"
	parentEnv = "VELO_SUPERVISE_PARENT" // this process is a window: it supervises a child of this scene
)

func TestMain(m *testing.M) {
	if scene := os.Getenv(parentEnv); scene != "" {
		os.Exit(playParent(scene))
	}
	if scene := os.Getenv(sceneEnv); scene != "" {
		os.Exit(play(scene))
	}
	os.Exit(m.Run())
}

// actor is the engine's side of the protocol.
type actor struct {
	states *os.File
	life   chan struct{} // closed when the parent's pipe has ended
}

func (a *actor) say(v map[string]any) {
	b, _ := json.Marshal(v)
	_, _ = a.states.Write(append(b, '\n'))
}

func (a *actor) load(steps int, pause time.Duration) bool {
	for i := range steps + 1 {
		a.say(map[string]any{"state": "loading", "done": i * 1000, "total": steps * 1000})
		select {
		case <-a.life:
			return false
		case <-time.After(pause):
		}
	}
	return true
}

// serve answers health checks from the healthy-th one on, and counts tokens.
func (a *actor) serve(healthy int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var asked, tokens atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < healthy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, `{"status":"ok","telemetry":{"step_ms_p50":12.5,"step_ms_p90":20}}`)
	})
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		if key := os.Getenv("PLAY_KEY"); key != "" && r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "# TYPE velogb10_requests_running gauge\nvelogb10_requests_running 3\nvelogb10_requests_waiting 2\n"+
			"# TYPE velogb10_generation_tokens_total counter\nvelogb10_generation_tokens_total %d\n"+
			"# TYPE velogb10_scheduler_rows_total counter\nvelogb10_scheduler_rows_total{kind=\"prefill\"} 7\nvelogb10_scheduler_rows_total{kind=\"decode\"} %d\n"+
			"velogb10_prompt_tokens_total 200\nvelogb10_prompt_tokens_cached_total 50\n", tokens.Load(), tokens.Add(100)) // the first is behind: it counts what has ended
	})
	go func() { _ = http.Serve(l, mux) }()
	a.say(map[string]any{"state": "ready", "url": "http://" + l.Addr().String(), "model": "Play", "context": 4096, "lanes": 8})
}

func logLine(level, text string) {
	fmt.Fprintf(os.Stderr, "%s %s %s\n", time.Now().UTC().Format(stamp), level, text)
}

// play is the engine; what it returns is its exit code.
func play(scene string) int {
	a := &actor{life: make(chan struct{})}
	for i, arg := range os.Args {
		if arg == "--status-fd" {
			n, _ := strconv.Atoi(os.Args[i+1])
			a.states = os.NewFile(uintptr(n), "states")
		}
	}
	if a.states == nil {
		return 99
	}
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(a.life) }()
	name, arg, _ := strings.Cut(scene, ":")
	n, _ := strconv.Atoi(arg)
	switch name {
	case "normal", "slow", "late":
		logLine("INFO", "velo serve model=Play")
		steps, pause, healthy := 4, time.Millisecond, int64(1)
		if name == "slow" {
			steps, pause = 3000, 20*time.Millisecond
		}
		if name == "late" {
			healthy = int64(n)
		}
		if a.load(steps, pause) {
			a.serve(healthy)
			<-a.life
		}
		a.say(map[string]any{"state": "stopping"})
		logLine("INFO", "ended")
		return 0
	case "exit":
		logLine("ERROR", "the last words")
		return n
	case "panic":
		a.load(1, 0)
		panic("the engine is broken")
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		time.Sleep(time.Hour)
	case "port":
		a.say(map[string]any{"state": "failed", "code": "port_taken", "message": "cannot listen: address already in use", "advice": "Free it."})
		return 2
	case "failed0": // says that it failed, and leaves with 0
		a.say(map[string]any{"state": "failed", "code": "driver_lost", "message": "The GPU is gone.", "advice": ""})
		return 0
	case "dies": // after it was ready
		a.serve(1)
		time.Sleep(time.Duration(n) * time.Millisecond)
		return 70
	case "hang", "deaf": // deaf does not mind SIGTERM either, and has a child of its own
		if name == "deaf" {
			signal.Ignore(syscall.SIGTERM)
			child := exec.Command("sleep", "3600")
			if child.Start() == nil {
				logLine("INFO", "child="+strconv.Itoa(child.Process.Pid))
			}
		}
		a.serve(1)
		time.Sleep(time.Hour)
	case "garbage":
		for _, l := range []string{"", "\x00\xff", "{", "[]", "null", "7", `{"state":"loading","done":5,"total":1}`, `{"state":"loading","done":-1,"total":0}`,
			`{"state":"loading","done":1e300,"total":1}`, `{"state":"ready","url":"nowhere"}`, `{"state":"ready","url":"file:///etc/passwd"}`, `{"state":"ready"}`, `{"state":"dancing"}`, strings.Repeat("x", 1<<20)} {
			fmt.Fprintln(a.states, l)
		}
		a.load(2, time.Millisecond)
		a.serve(1)
		a.say(map[string]any{"state": "loading", "done": 1, "total": 2}) // too late to mean anything
		fmt.Fprint(a.states, `{"state":"rea`)
		<-a.life
		return 0
	case "flood":
		for i := range n {
			logLine("INFO", "line "+strconv.Itoa(i))
		}
		fmt.Fprintln(os.Stderr, strings.Repeat("long ", 100000))
		fmt.Fprint(os.Stderr, "the end without a newline")
		a.serve(1)
		<-a.life
		return 0
	}
	return 98
}

// playParent is a window that supervises an engine, prints its process id when it has got to a
// state, and is killed then.
func playParent(scene string) int {
	name, state, _ := strings.Cut(scene, "@")
	s := New(Options{Check: 5 * time.Millisecond})
	if err := s.Start(Command{Path: os.Args[0], Env: []string{sceneEnv + "=" + name, parentEnv + "="}}); err != nil {
		return 1
	}
	for s.Status().State.String() != state {
		time.Sleep(time.Millisecond)
	}
	fmt.Println(s.Status().PID)
	time.Sleep(time.Hour)
	return 0
}
