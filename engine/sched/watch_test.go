package sched

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
)

// hanging is a device that does not come back from the nth step until it is let go. While preparing is
// set it says that the host is at something that is made once.
type hanging struct {
	*cpu.Backend
	left      int
	hangs     chan struct{} // closed when it does
	let       chan struct{} // closed to let it go
	preparing atomic.Bool
}

var _ ops.Watched = (*hanging)(nil)

func (h *hanging) Doing() (string, bool) { return "attend_bf16_128, combine", h.preparing.Load() }

func (h *hanging) Read(x ops.Buffer, rows int) []float32 {
	if h.left--; h.left == 0 {
		close(h.hangs)
		<-h.let
	}
	return h.Backend.Read(x, rows)
}

// hung makes a scheduler on such a device, and tells what its watch says.
func hung(t *testing.T, family string, nth int, limit time.Duration) (s *Scheduler, h *hanging, told chan error) {
	t.Helper()
	c := families(vocab)[family]
	b := cpu.New(cpu.Options{Rows: 64, Workers: 1})
	t.Cleanup(b.Close)
	h = &hanging{Backend: b, left: nth, hangs: make(chan struct{}), let: make(chan struct{})}
	m, err := model.New(c, enginetest.TensorsOf(c), h, model.Options{Tokens: 512, Sequences: 4, Outputs: 8})
	if err != nil {
		t.Fatal(err)
	}
	told = make(chan error, 2)
	return New(m, Options{Lanes: 2, StepLimit: limit, Hung: func(err error) { told <- err }}), h, told
}

// A step that does not end ends every answer, of those that run and those that wait, with a sentence that
// names what the device was given last; new ones are refused, who drains is told, and the status says
// why. When the step comes back after all, the loop ends and nothing is told twice.
func TestStepThatNeverEnds(t *testing.T) {
	for _, family := range []string{"plain", "hybrid"} {
		s, h, told := hung(t, family, 5, 200*time.Millisecond)
		var streams []*Stream
		for i := range 4 {
			streams = append(streams, submit(t, s, &Request{Prompt: text(uint64(i), 9), MaxTokens: 50, Top: sample.NoLogProbs})...)
		}
		ran := make(chan error, 1)
		go func() { ran <- s.Run(context.Background()) }()
		within(t, "a step that never ends", func() {
			var all sync.WaitGroup
			for i, stream := range streams {
				all.Go(func() {
					tokens, r := read(stream)
					var hang *HangError
					if r.Finish != Failed || !errors.As(r.Err, &hang) || r.Generated != len(tokens) || r.Prompt != 9 || r.Submitted.IsZero() || r.End.IsZero() {
						t.Errorf("answer %d ends with %d tokens and %+v", i, len(tokens), r)
					}
				})
			}
			all.Wait()
			err := <-told
			for _, want := range []string{"cannot go on: step 5 of the engine has not ended after ", "the device was given last: attend_bf16_128, combine"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("nothing of %q in %q", want, err)
				}
			}
			if st := s.Status(); st.Alive || st.Failure != err.Error() || st.Waiting != 0 {
				t.Errorf("status is %+v", st)
			}
			if _, err := s.Submit(context.Background(), &Request{Prompt: []int32{1}}); !errors.Is(err, ErrStopped) || !errors.As(err, new(*HangError)) {
				t.Errorf("a request after it is told %v", err)
			}
			if err := s.Drain(context.Background()); err != nil {
				t.Errorf("draining: %v", err)
			}
			streams[0].Cancel() // too late, and harmless
			close(h.let)
			if err := <-ran; !errors.As(err, new(*HangError)) {
				t.Errorf("the loop ends with %v", err)
			}
			for i, stream := range streams {
				if tokens, r := read(stream); len(tokens) != 0 || !errors.As(r.Err, new(*HangError)) {
					t.Errorf("afterwards answer %d has %d tokens more, %+v", i, len(tokens), r)
				}
			}
			if len(told) != 0 {
				t.Error("it was told twice")
			}
		})
	}
}

// What the host makes once does not count, and a step that ends in time is no hang; nor is an engine
// that has nothing to do.
func TestNoHang(t *testing.T) {
	s, h, told := hung(t, "plain", 2, 60*time.Millisecond)
	h.preparing.Store(true)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	streams := submit(t, s, &Request{Prompt: text(1, 9), MaxTokens: 5, IgnoreEOS: true, Top: sample.NoLogProbs})
	within(t, "what is made once", func() {
		<-h.hangs
		time.Sleep(150 * time.Millisecond) // more than a limit, less than ten
		close(h.let)
		if _, r := read(streams[0]); r.Finish != Length {
			t.Errorf("it ends with %+v", r)
		}
		h.preparing.Store(false)
		time.Sleep(100 * time.Millisecond) // nothing to do
		if !s.Status().Alive || len(told) != 0 {
			t.Errorf("taken for a hang: %+v", s.Status())
		}
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// What is made once is not waited for for ever, and a step far beyond the limit is none where the last
// ones were as long.
func TestHangLimits(t *testing.T) {
	s, h, told := hung(t, "plain", 2, 5*time.Millisecond)
	h.preparing.Store(true)
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	submit(t, s, &Request{Prompt: text(1, 9), MaxTokens: 5, Top: sample.NoLogProbs})
	within(t, "a preparation that never ends", func() {
		if err := <-told; !errors.As(err, new(*HangError)) {
			t.Error(err)
		}
		close(h.let)
		<-ran
	})

	s, h, told = hung(t, "plain", 2, 5*time.Millisecond)
	for i := range s.status.ring {
		s.status.ring[i] = time.Hour
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { ran <- s.Run(ctx) }()
	streams := submit(t, s, &Request{Prompt: text(1, 9), MaxTokens: 2, IgnoreEOS: true, Top: sample.NoLogProbs})
	within(t, "steps of an hour", func() {
		<-h.hangs
		time.Sleep(100 * time.Millisecond)
		if len(told) != 0 {
			t.Error(<-told)
		}
		close(h.let)
		read(streams[0])
		stop()
		<-ran
	})
}
