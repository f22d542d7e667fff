//go:build linux && cuda && cgo

package cuda_test

import (
	"context"
	"strings"
	"testing"

	"velo/cuda"
	"velo/engine"
	"velo/engine/backend"
	"velo/engine/enginetest"
	"velo/engine/sample"
	"velo/engine/sched"
)

// TestPlanned: the plan of an engine on a GPU has all that the driver hands out for it, while it is loaded
// and while it serves, and not much more; nothing is taken once it is loaded.
func TestPlanned(t *testing.T) {
	log, held, ok := cuda.OnHollow(t)
	if !ok {
		return
	}
	const mib = 1 << 20
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		for _, kv := range []string{"", "f32", "fp8"} {
			before := len(log())
			e, err := engine.Load(t.Context(), enginetest.Folder(t, family), engine.Options{Backend: backend.CUDA, KV: kv, Context: 300, Lanes: 3, Tokens: 2000, Checkpoints: 4, Rows: 90})
			if err != nil {
				t.Fatal(err)
			}
			p := &e.Memory
			loaded := log()[before:]
			if got, want := held(loaded, "device"), p.Asked()+p.Own.Device; got > want+2*mib || got < want-8*mib {
				t.Errorf("%s, %q: planned are %d bytes of the device, taken %d\n%s", family, kv, want, got, p)
			}
			if got, want := held(loaded, "pinned"), p.Own.Pinned; got > want || got < want-want/10 {
				t.Errorf("%s, %q: planned are %d page-locked bytes, taken %d", family, kv, want, got)
			}
			for i := range loaded {
				if got := held(loaded[:i+1], "device"); got > p.Total+2*mib {
					t.Errorf("%s, %q: while loading %d bytes of the device are taken, planned are %d", family, kv, got, p.Total)
				}
			}
			serve(t, e)
			for _, line := range log()[before+len(loaded):] {
				if !strings.HasPrefix(line, "graph") {
					t.Errorf("%s, %q: while serving the driver was asked for: %s", family, kv, line)
				}
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if all := log()[before:]; held(all, "device") != 0 || held(all, "pinned") != 0 {
				t.Errorf("%s, %q: not given back are %d bytes of the device and %d page-locked ones", family, kv, held(all, "device"), held(all, "pinned"))
			}
		}
	}
}

// serve answers requests of many lengths, together, up to the end of the context.
func serve(t *testing.T, e *engine.Engine) {
	t.Helper()
	s := sched.New(e.Model, sched.Options{Lanes: e.Lanes, Context: e.Context, StepTokens: e.Model.Rows(), PrefixCache: true, LoopWindow: -1})
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	var streams []*sched.Stream
	for i := range 24 {
		prompt := make([]int32, 1+i*12)
		for j := range prompt {
			prompt[j] = int32((i + j) % 200)
		}
		params := sample.Params{Temperature: float32(i % 2), TopP: 0.9, TopK: 20 * (i % 3), FrequencyPenalty: 0.5}
		if i%4 == 0 {
			params.LogitBias = map[int32]float32{1: 1, 2: -1}
		}
		more, err := s.Submit(t.Context(), &sched.Request{Prompt: prompt, Sampling: params, MaxTokens: 20 + i, IgnoreEOS: true, Top: 5, Copies: 1 + i%3})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, more...)
	}
	buf := make([]sched.Token, 64)
	for i, stream := range streams {
		for more := true; more; {
			_, more = stream.Next(buf)
		}
		if r := stream.Result(); r.Finish != sched.Length {
			t.Errorf("answer %d ends with %+v", i, r)
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}
