package sched

import (
	"context"
	"errors"
	"strings"
	"testing"

	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
)

// failing is a device that fails when results are read for the nth time.
type failing struct {
	*cpu.Backend
	left int
}

func (f *failing) Read(x ops.Buffer, rows int) []float32 {
	if f.left--; f.left == 0 {
		panic(&ops.Fault{Err: errTest})
	}
	return f.Backend.Read(x, rows)
}

// A device that fails ends every answer with what it said, and the loop, but not the process.
func TestFault(t *testing.T) {
	c := families(vocab)["plain"]
	b := cpu.New(cpu.Options{Rows: 64, Workers: 1})
	t.Cleanup(b.Close)
	m, err := model.New(c, enginetest.TensorsOf(c), &failing{b, 5}, model.Options{Tokens: 512, Sequences: 4, Outputs: 8})
	if err != nil {
		t.Fatal(err)
	}
	s := New(m, Options{Lanes: 2})
	var streams []*Stream
	for i := range 3 {
		streams = append(streams, submit(t, s, &Request{Prompt: text(uint64(i), 9), MaxTokens: 50, Top: sample.NoLogProbs})...)
	}
	var fault *ops.Fault
	within(t, "a fault", func() {
		err := s.Run(context.Background())
		var p *PanicError
		if !errors.As(err, &fault) || !errors.Is(err, errTest) || errors.As(err, &p) {
			t.Errorf("the loop ends with %v", err)
		}
		for i, stream := range streams {
			tokens, r := read(stream)
			if r.Finish != Failed || !errors.Is(r.Err, errTest) || !strings.Contains(r.Err.Error(), "cannot compute on the GPU") {
				t.Errorf("answer %d ends with %+v", i, r)
			}
			if want := 4; i < 2 && len(tokens) != want {
				t.Errorf("answer %d has %d tokens, not the %d before the fault", i, len(tokens), want)
			}
		}
	})
	if _, err := s.Submit(context.Background(), &Request{Prompt: []int32{1}}); !errors.Is(err, ErrStopped) {
		t.Errorf("after a fault a request is told %v", err)
	}
}

// lost is a device that is gone when the nth answer gets its recurrent state, which happens between
// steps: the answer has left the queue then and has no lane yet.
type lost struct {
	*cpu.Backend
	left int
}

type lostCache struct {
	ops.Cache
	b *lost
}

func (l *lost) Cache(shape ops.CacheShape, pages, states int) (ops.Cache, error) {
	c, err := l.Backend.Cache(shape, pages, states)
	return lostCache{c, l}, err
}

func (c lostCache) ClearState(slot int32) {
	if c.b.left--; c.b.left == 0 {
		panic(&ops.Fault{Err: errTest})
	}
	c.Cache.ClearState(slot)
}

func (l *lost) Attend(dst, q, k, v ops.Tensor, c ops.Cache, layer, window int, scale float32) {
	l.Backend.Attend(dst, q, k, v, c.(lostCache).Cache, layer, window, scale)
}

func (l *lost) Convolve(x ops.Tensor, w ops.Vector, c ops.Cache, layer int) {
	l.Backend.Convolve(x, w, c.(lostCache).Cache, layer)
}

func (l *lost) DeltaRule(dst ops.Tensor, in *ops.Delta, c ops.Cache, layer int) {
	l.Backend.DeltaRule(dst, in, c.(lostCache).Cache, layer)
}

// A fault between steps ends the answer that was about to begin as well as those beside it: nobody
// waits for ever, and who drains is told.
func TestFaultBetweenSteps(t *testing.T) {
	c := families(vocab)["hybrid"]
	b := cpu.New(cpu.Options{Rows: 64, Workers: 1})
	t.Cleanup(b.Close)
	m, err := model.New(c, enginetest.TensorsOf(c), &lost{b, 2}, model.Options{Tokens: 512, Sequences: 4, Outputs: 8})
	if err != nil {
		t.Fatal(err)
	}
	s := New(m, Options{Lanes: 2})
	var streams []*Stream
	for i := range 4 {
		streams = append(streams, submit(t, s, &Request{Prompt: text(uint64(i), 9), MaxTokens: 50, Top: sample.NoLogProbs})...)
	}
	within(t, "a fault between steps", func() {
		var fault *ops.Fault
		if err := s.Run(context.Background()); !errors.As(err, &fault) || !errors.Is(err, errTest) {
			t.Errorf("the loop ends with %v", err)
		}
		for i, stream := range streams {
			if _, r := read(stream); r.Finish != Failed || !errors.Is(r.Err, errTest) {
				t.Errorf("answer %d ends with %+v", i, r)
			}
		}
		if err := s.Drain(context.Background()); err != nil {
			t.Errorf("draining: %v", err)
		}
	})
}
