package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// process is one child. What is not made at its start is guarded by the supervisor's lock.
type process struct {
	command Command
	cmd     *exec.Cmd
	life    *os.File // the child's standard input: its end is the end of the child
	errors  *os.File // what it writes to its log
	states  *os.File // what it says of itself
	done    chan struct{}
	watched context.Context // its figures are read until this ends
	unwatch context.CancelFunc

	kills  uint64 // at the start
	first  uint64 // number of the first line of its log
	asked  bool   // to end
	forced string // what it took to end it, where asking was not enough
	failed *message
	loads  rate
	probed bool
}

// launch starts a process. The lock is held, and there is none.
func (s *Supervisor) launch(c Command) {
	p := &process{command: c, done: make(chan struct{}), kills: s.o.Kills()}
	_, p.first = s.log.Since(math.MaxUint64)
	p.watched, p.unwatch = context.WithCancel(context.Background())
	s.log.add(fmt.Sprintf("%s INFO starting %s %s", time.Now().UTC().Format(stamp), c.Path, strings.Join(c.Args, " ")))
	if err := p.start(); err != nil {
		p.unwatch()
		f := Failure{Code: Unstarted, Exit: -1, Message: "The engine's process could not be started: " + err.Error() + ".",
			Advice: "Check that the program's file is still where it was when the window opened."}
		s.become(Status{State: Crashed, Failure: &f})
		return
	}
	select {
	case <-s.ended:
		s.ended = make(chan struct{})
	default: // started again without a pause
	}
	s.proc = p
	s.become(Status{State: Starting, PID: p.cmd.Process.Pid})
	s.wg.Go(func() { s.watch(p) })
}

// start makes the pipes and the child.
func (p *process) start() (err error) {
	var files []*os.File
	pipe := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		r, w, err = os.Pipe()
		files = append(files, r, w)
		return r, w
	}
	stdin, life := pipe()
	logs, stderr := pipe()
	states, said := pipe()
	if err == nil {
		p.cmd = exec.Command(p.command.Path, p.command.Args...)
		p.cmd.Env = append(os.Environ(), p.command.Env...)
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stderr, stderr
		p.cmd.Args = append(p.cmd.Args, "--with-parent", "--status-fd", inherit(p.cmd, said))
		ownGroup(p.cmd)
		err = p.cmd.Start()
	}
	if err != nil {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
		return err
	}
	for _, f := range []*os.File{stdin, stderr, said} {
		_ = f.Close() // the child has its own
	}
	p.life, p.errors, p.states = life, logs, states
	return nil
}

// watch follows a process to its end.
func (s *Supervisor) watch(p *process) {
	var readers sync.WaitGroup
	readers.Go(func() { readLines(p.errors, s.log.add) })
	readers.Go(func() { readLines(p.states, func(line string) { s.heard(p, line) }) })
	err := p.cmd.Wait()
	// What it wrote last is still to be read, but something that it started may hold the pipes open.
	read := make(chan struct{})
	go func() { readers.Wait(); close(read) }()
	select {
	case <-read:
	case <-time.After(time.Second):
	}
	_ = p.errors.Close()
	_ = p.states.Close()
	<-read
	_ = p.life.Close()
	p.unwatch()
	close(p.done)
	s.exited(p, err)
}

// exited says what became of a process that is gone, and starts the next one.
func (s *Supervisor) exited(p *process, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc = nil
	var exit *exec.ExitError
	clean := err == nil && p.failed == nil
	switch {
	case p.asked:
		s.become(Status{State: Stopped, Note: p.forced})
	case clean:
		s.become(Status{State: Stopped, Note: "The engine was ended from outside this window."})
	default:
		f := end{command: p.command, said: p.failed, lines: s.log.texts(p.first), starved: s.o.Kills() > p.kills}
		if errors.As(err, &exit) {
			f.code, f.signal = exit.ExitCode(), signalOf(exit.ProcessState)
		}
		s.become(Status{State: Crashed, Failure: f.explain()})
	}
	if next := s.next; next != nil && !s.closed {
		s.next = nil
		s.launch(*next)
	}
	if s.proc == nil {
		close(s.ended)
	}
}

// drain ends a process that was asked to: its pipe ends first, and whoever does not mind is made to.
func (s *Supervisor) drain(p *process) {
	_ = p.life.Close()
	timer := time.NewTimer(s.o.Drain)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	s.force(p, fmt.Sprintf("The engine had not ended %s after it was asked to, and was terminated.", seconds(s.o.Drain)))
	terminate(p.cmd.Process)
	timer.Reset(s.o.Terminate)
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	s.force(p, fmt.Sprintf("The engine had not ended %s after it was asked to, and was killed.", seconds(s.o.Drain+s.o.Terminate)))
	killGroup(p.cmd.Process)
	<-p.done
}

func (s *Supervisor) force(p *process, how string) {
	s.mu.Lock()
	p.forced = how
	s.mu.Unlock()
	s.log.add(time.Now().UTC().Format(stamp) + " WARN " + how)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

// longestLine is how much of a line is kept, bytes.
const longestLine = 4096

// readLines gives each line, cut to longestLine bytes, until the file ends.
func readLines(f io.Reader, line func(string)) {
	r := bufio.NewReaderSize(f, longestLine)
	for {
		b, err := r.ReadSlice('\n')
		text := strings.TrimRight(string(b), "\r\n")
		cut := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if cut {
			text += " …"
		}
		if text != "" || err == nil {
			line(strings.ToValidUTF8(text, "�"))
		}
		if err != nil {
			return
		}
	}
}
