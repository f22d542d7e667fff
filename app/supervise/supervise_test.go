//go:build unix

package supervise

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func scene(name string) Command {
	return Command{Path: os.Args[0], Args: []string{"serve"}, Env: []string{sceneEnv + "=" + name}, Host: "127.0.0.1"}
}

// supervised is a supervisor that is closed, with nothing left behind, at the end of the test.
func supervised(t *testing.T, o Options) *Supervisor {
	t.Helper()
	if o.Check == 0 {
		o.Check = 2 * time.Millisecond
	}
	s := New(o)
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		s.Close()
		eventually(t, "all goroutines end", func() bool { return runtime.NumGoroutine() <= before })
		if s.proc != nil || s.Status().PID != 0 {
			t.Errorf("a process is left: %+v", s.Status())
		}
	})
	return s
}

// eventually waits long: a busy machine is no failure.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("never: %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

func await(t *testing.T, s *Supervisor, want State) Status {
	t.Helper()
	eventually(t, "the engine is "+want.String()+", it is "+s.Status().State.String(), func() bool { return s.Status().State == want })
	return s.Status()
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func begin(t *testing.T, s *Supervisor, c Command) {
	t.Helper()
	if err := s.Start(c); err != nil {
		t.Fatal(err)
	}
}

func TestNormalLife(t *testing.T) {
	var told atomic.Int32
	s := supervised(t, Options{Poll: 5 * time.Millisecond, Changed: func() { told.Add(1) }})
	c := scene("normal")
	c.Key, c.Env = "secret", append(c.Env, "PLAY_KEY=secret")
	begin(t, s, c)
	if err := s.Start(c); err == nil {
		t.Error("a second engine was started beside the first")
	}
	st := await(t, s, Ready)
	pid := st.PID
	if st.Model != "Play" || st.Context != 4096 || st.Lanes != 8 || !strings.HasPrefix(st.URL, "http://127.0.0.1:") || st.Share() != 1 {
		t.Errorf("ready as %+v", st)
	}
	eventually(t, "figures with a rate", func() bool { return s.Status().Figures.Rate > 0 })
	f := s.Status().Figures
	if f.Running != 3 || f.Waiting != 2 || f.Cached != 0.25 || f.StepP50 != 0.0125 || f.StepP90 != 0.020 {
		t.Errorf("figures %+v", f)
	}
	if !math.IsNaN(f.Acceptance) || !math.IsNaN(f.KV) {
		t.Errorf("what was not given is %g and %g, want nothing", f.Acceptance, f.KV)
	}
	s.Stop()
	s.Stop()
	s.Wait()
	st = s.Status()
	if st.State != Stopped || st.Note != "" || st.PID != 0 || !st.Figures.At.IsZero() || alive(pid) {
		t.Errorf("after the stop: %+v, alive: %v", st, alive(pid))
	}
	s.Stop()
	lines, _ := s.Log().Since(0)
	if n := len(lines); n < 3 || lines[n-1].Text != "ended" || lines[n-1].Level != "INFO" || lines[1].Text != "velo serve model=Play" {
		t.Errorf("the log is %v", lines)
	}
	if told.Load() < 4 {
		t.Errorf("changes were told %d times", told.Load())
	}
}

func TestReadyIsAHealthCheckThatPassed(t *testing.T) {
	s := supervised(t, Options{Check: 20 * time.Millisecond})
	begin(t, s, scene("late:40"))
	eventually(t, "the health check is waited for", func() bool { return s.Status().Checking })
	if st := s.Status(); st.State != Loading || st.URL == "" {
		t.Errorf("before the health check passed: %+v", st)
	}
	eventually(t, "it is told why it is not ready", func() bool { return strings.Contains(s.Status().Ill, "503") })
	if st := await(t, s, Ready); st.Checking || st.Ill != "" {
		t.Error("a ready engine is still being checked")
	}
}

func TestSlowLoadIsFollowedAndStopped(t *testing.T) {
	s := supervised(t, Options{})
	begin(t, s, scene("slow"))
	eventually(t, "a rate of loading", func() bool { return s.Status().Rate > 0 })
	st := s.Status()
	// 1000 bytes each 20 ms and more.
	if st.State != Loading || st.Total != 3000_000 || st.Rate > 70_000 {
		t.Errorf("while loading: %+v", st)
	}
	s.Stop()
	if got := s.Status().State; got != Stopping {
		t.Errorf("after Stop it is %s", got)
	}
	s.Wait()
	if st := s.Status(); st.State != Stopped || st.Failure != nil || st.Note != "" {
		t.Errorf("stopped while loading: %+v", st)
	}
}

func TestFailuresAreExplained(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	var kills atomic.Uint64
	for _, c := range []struct {
		scene, code, ended, message, advice string
		starved                             bool
	}{
		{"exit:1", Internal, "exit code 1", "could not load the model: the last words", "copy the log", false},
		{"exit:2", BadFlag, "exit code 2", "does not take one of its flags: the last words", "Correct the setting", false},
		{"exit:3", NoMemory, "exit code 3", "about to run out", "shorter context", false},
		{"exit:70", Panic, "exit code 70", "an error in it", "copy the log", false},
		{"exit:71", Hung, "exit code 71", "did not end", "Start the engine again", false},
		{"exit:42", Internal, "exit code 42", "code 42", "copy the log", false},
		{"panic", Panic, "exit code 2", "an error in it", "copy the log", false},
		{"kill:9", Killed, "signal killed", "killed from outside", "a limit of the session", false},
		{"kill:9", NoMemory, "signal killed", "ran out", "shorter context", true},
		{"kill:7", BadModel, "", "became shorter", "another model", false},
		{"kill:11", Panic, "", "by a fault", "copy the log", false},
		{"failed0", DriverLost, "exit code 0", "The GPU is gone.", "the driver starts anew", false},
		{fmt.Sprintf("port:%d", port), PortTaken, "exit code 2", fmt.Sprintf("Port %d is taken by another program.", port), "which is free", false},
	} {
		t.Run(c.scene+c.code, func(t *testing.T) {
			s := supervised(t, Options{Kills: func() uint64 {
				if c.starved {
					return kills.Add(1)
				}
				return 0
			}})
			command := scene(c.scene)
			command.Port = port
			begin(t, s, command)
			f := await(t, s, Crashed).Failure
			if f.Code != c.code || c.ended != "" && f.Ended() != c.ended || !strings.Contains(f.Message, c.message) || !strings.Contains(f.Advice, c.advice) {
				t.Errorf("%s, %s: %s %s", f.Code, f.Ended(), f.Message, f.Advice)
			}
			if len(f.Lines) == 0 || len(f.Lines) > failureLines {
				t.Errorf("%d lines are kept", len(f.Lines))
			}
			if c.scene == "panic" && !strings.HasPrefix(f.Lines[0], "panic: the engine is broken") {
				t.Errorf("the lines begin with %q", f.Lines[0])
			}
			if c.code == PortTaken {
				l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", f.NextPort))
				if err != nil || f.NextPort <= port {
					t.Errorf("port %d is offered: %v", f.NextPort, err)
				} else {
					l.Close()
				}
			}
			s.Stop() // forgets it
			if st := s.Status(); st.State != Stopped || st.Failure != nil {
				t.Errorf("after Stop: %+v", st)
			}
		})
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	s := supervised(t, Options{})
	begin(t, s, Command{Path: "/nowhere/velo"})
	if f := s.Status().Failure; s.Status().State != Crashed || f.Code != Unstarted || !strings.Contains(f.Message, "/nowhere/velo") || f.Ended() != "not started" {
		t.Errorf("%+v", f)
	}
	begin(t, s, scene("normal"))
	await(t, s, Ready)
}

func TestCrashWhileReady(t *testing.T) {
	s := supervised(t, Options{})
	begin(t, s, scene("dies:300"))
	await(t, s, Ready)
	if st := await(t, s, Crashed); st.Failure.Exit != exitAbort || st.URL != "" {
		t.Errorf("%+v", st)
	}
}

func TestStopThatIsNotMinded(t *testing.T) {
	for name, want := range map[string]string{"hang": "terminated", "deaf": "killed"} {
		t.Run(name, func(t *testing.T) {
			s := supervised(t, Options{Drain: 30 * time.Millisecond, Terminate: 50 * time.Millisecond})
			begin(t, s, scene(name))
			pid := await(t, s, Ready).PID
			child := 0
			lines, _ := s.Log().Since(0)
			for _, l := range lines {
				if n, ok := strings.CutPrefix(l.Text, "child="); ok {
					child, _ = strconv.Atoi(n)
				}
			}
			if name == "deaf" && child == 0 {
				t.Fatal("the engine has no child")
			}
			s.Stop()
			s.Wait()
			if st := s.Status(); st.State != Stopped || !strings.Contains(st.Note, want) || alive(pid) {
				t.Errorf("%+v, alive: %v", st, alive(pid))
			}
			if child != 0 {
				eventually(t, "the engine's own child is gone", func() bool { return gone(child) })
			}
		})
	}
}

// gone tells whether a process has ended, though nobody may have waited for it.
func gone(pid int) bool {
	if !alive(pid) {
		return true
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(b), ") Z ")
}

func TestGarbageDoesNotUpset(t *testing.T) {
	s := supervised(t, Options{})
	begin(t, s, scene("garbage"))
	st := await(t, s, Ready)
	if st.Total != 2000 {
		t.Errorf("%+v", st)
	}
	lines, _ := s.Log().Since(0)
	warned := 0
	for _, l := range lines {
		if l.Level == "WARN" && strings.Contains(l.Text, "is left out") {
			warned++
		}
	}
	if warned < 12 {
		t.Errorf("%d of the lines were told in the log", warned)
	}
	time.Sleep(20 * time.Millisecond)
	if got := s.Status().State; got != Ready {
		t.Errorf("a late line makes it %s", got)
	}
}

func TestFloodOfLines(t *testing.T) {
	const n = 60000
	s := supervised(t, Options{})
	begin(t, s, scene("flood:"+strconv.Itoa(n)))
	await(t, s, Ready)
	s.Stop()
	s.Wait()
	lines, next := s.Log().Since(0)
	if len(lines) != logLines || next != n+3 {
		t.Fatalf("%d lines are kept of %d", len(lines), next)
	}
	if last := lines[len(lines)-1].Text; last != "the end without a newline" {
		t.Errorf("the last one is %q", last)
	}
	long := lines[len(lines)-2]
	if len(long.Text) > longestLine+10 || !strings.HasSuffix(long.Text, " …") {
		t.Errorf("a line of %d bytes", len(long.Text))
	}
	if lines[0].Text != "line "+strconv.Itoa(n+2-logLines+1-1) || lines[0].N != next-logLines {
		t.Errorf("the first one is %d: %q", lines[0].N, lines[0].Text)
	}
	if more, again := s.Log().Since(next); len(more) != 0 || again != next {
		t.Error("what was read is read again")
	}
	if three, _ := s.Log().Since(next - 3); len(three) != 3 {
		t.Error("the last three are not to be had")
	}
}

func TestRestart(t *testing.T) {
	s := supervised(t, Options{})
	if err := s.Restart(scene("normal")); err != nil { // where none runs it starts one
		t.Fatal(err)
	}
	first := await(t, s, Ready).PID
	if err := s.Restart(scene("normal")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another process is ready", func() bool { st := s.Status(); return st.State == Ready && st.PID != first })
	if alive(first) {
		t.Error("the first one is still there")
	}
	s.Stop()
	begin(t, s, scene("normal")) // while it stops: after that
	await(t, s, Ready)
	s.Stop()
	begin(t, s, scene("normal"))
	s.Stop() // takes that back
	s.Wait()
	if st := s.Status(); st.State != Stopped {
		t.Errorf("%+v", st)
	}
}

func TestEndedFromOutside(t *testing.T) {
	s := supervised(t, Options{})
	begin(t, s, scene("normal"))
	await(t, s, Ready)
	s.mu.Lock()
	_ = s.proc.life.Close() // as if somebody else had ended it: nobody asked here
	s.mu.Unlock()
	if st := await(t, s, Stopped); !strings.Contains(st.Note, "from outside") {
		t.Errorf("%+v", st)
	}
}

// TestStartAndStopManyTimes presses the button two hundred times, at every moment of a start.
func TestStartAndStopManyTimes(t *testing.T) {
	s := supervised(t, Options{})
	files := openFiles(t)
	for i := range 200 {
		begin(t, s, scene("normal"))
		time.Sleep(time.Duration(i%20) * time.Millisecond)
		s.Stop()
		if i%3 == 0 {
			s.Wait()
		}
	}
	s.Wait()
	if st := s.Status(); st.State != Stopped || st.Note != "" {
		t.Errorf("at the end: %+v", st)
	}
	s.client.CloseIdleConnections()
	eventually(t, "all files are closed", func() bool { return openFiles(t) <= files })
	if out, err := exec.Command("pgrep", "-P", strconv.Itoa(os.Getpid())).Output(); err == nil {
		for _, pid := range strings.Fields(string(out)) {
			if name, _ := os.ReadFile("/proc/" + pid + "/comm"); strings.HasPrefix(string(name), "supervise") {
				t.Errorf("process %s is left", pid)
			}
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("open files cannot be counted here")
	}
	return len(list)
}

func TestCloseWhileLoading(t *testing.T) {
	s := New(Options{})
	begin(t, s, scene("slow"))
	pid := await(t, s, Loading).PID
	s.Close()
	if alive(pid) {
		t.Error("the engine outlives the program")
	}
	if s.Start(scene("normal")) == nil || s.Restart(scene("normal")) == nil {
		t.Error("an engine was started after the end")
	}
	s.Stop()
	s.Close()
}

// TestKilledWindow kills the supervising process as a crash of the window would: the engine sees the
// end of its pipe and ends.
func TestKilledWindow(t *testing.T) {
	for _, when := range []string{"slow@loading", "normal@ready"} {
		t.Run(when, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), parentEnv+"="+when)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatalf("%v: %v", err, cmd.Wait())
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || !alive(pid) {
				t.Fatalf("the engine is process %q: %v", line, err)
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			eventually(t, "the engine ends", func() bool { return gone(pid) })
		})
	}
}
