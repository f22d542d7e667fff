package app

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"velo/engine"
)

// The codes of failures that a parent is told; app/supervise explains them.
const (
	codePort     = "port_taken"
	codeModel    = "bad_model"
	codeNoMemory = "no_memory"
	codeFlag     = "bad_flag"
	codePanic    = "panic"
	codeHung     = "hung"
	codeDriver   = "driver_lost" // or a GPU that failed otherwise
	codeInternal = "internal"
)

// teller writes the states of `velo serve` to the descriptor that its parent passed. Without one it
// says nothing. A parent that does not read must not hold the engine up: lines wait in a queue, and
// progress that finds it full is left out.
type teller struct {
	lines chan []byte
	done  chan struct{}

	mu     sync.Mutex
	closed bool
	last   time.Time // of the last progress
}

// newTeller looks for --status-fd itself, so that even a wrong flag can be told.
func newTeller(args []string) *teller {
	for i, a := range args {
		value, ok := strings.CutPrefix(a, "--status-fd=")
		if a == "--status-fd" && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if n, err := strconv.ParseUint(value, 10, 32); ok && err == nil && n > 0 {
			if f := os.NewFile(uintptr(n), "status"); f != nil {
				return tellTo(f)
			}
		}
	}
	return nil
}

func tellTo(f *os.File) *teller {
	t := &teller{lines: make(chan []byte, 256), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		defer f.Close()
		broken := false
		for line := range t.lines {
			if !broken {
				_, err := f.Write(line)
				broken = err != nil
			}
		}
	}()
	return t
}

func (t *teller) say(must bool, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the states below have nothing that JSON does not
	}
	b = append(b, '\n')
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	if !must {
		select {
		case t.lines <- b:
		default:
		}
		return
	}
	select {
	case t.lines <- b:
	case <-time.After(time.Second):
	}
}

// loading tells how far loading is, ten times a second at most and at its end.
func (t *teller) loading(p engine.Progress) {
	if t == nil || p.Total <= 0 {
		return
	}
	now := time.Now()
	t.mu.Lock()
	due := p.Done == p.Total || now.Sub(t.last) >= 100*time.Millisecond
	if due {
		t.last = now
	}
	t.mu.Unlock()
	if due {
		t.say(false, struct {
			State string `json:"state"`
			Done  int64  `json:"done"`
			Total int64  `json:"total"`
		}{"loading", min(p.Done, p.Total), p.Total})
	}
}

func (t *teller) ready(url, model string, context, lanes int) {
	if t != nil {
		t.say(true, struct {
			State   string `json:"state"`
			URL     string `json:"url"`
			Model   string `json:"model"`
			Context int    `json:"context"`
			Lanes   int    `json:"lanes"`
		}{"ready", url, model, context, lanes})
	}
}

func (t *teller) stopping() {
	if t != nil {
		t.say(true, struct {
			State string `json:"state"`
		}{"stopping"})
	}
}

// failed tells why it ended, and closes.
func (t *teller) failed(code, message, advice string) {
	if t == nil {
		return
	}
	t.say(true, struct {
		State   string `json:"state"`
		Code    string `json:"code"`
		Message string `json:"message"`
		Advice  string `json:"advice"`
	}{"failed", code, message, advice})
	t.close()
}

// close waits, for a second at most, until everything is written.
func (t *teller) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		close(t.lines)
	}
	t.mu.Unlock()
	select {
	case <-t.done:
	case <-time.After(time.Second):
	}
}
