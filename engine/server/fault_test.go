package server

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/engine"
	"velo/engine/cpu"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sched"
)

// failing is a device that fails when results are read for the nth time.
type failing struct {
	*cpu.Backend
	left int
}

func (f *failing) Read(x ops.Buffer, rows int) []float32 {
	if f.left--; f.left <= 0 {
		panic(&ops.Fault{Err: errors.New("an illegal address was read (CUDA_ERROR_ILLEGAL_ADDRESS, 700)")})
	}
	return f.Backend.Read(x, rows)
}

// TestDeviceFails: requests in flight, of which one waits, are told what the device said; health says
// that the engine is dead, and later requests are refused.
func TestDeviceFails(t *testing.T) {
	e, err := engine.Load(t.Context(), folders(), engine.Options{Context: 512, Lanes: 2, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := cpu.New(cpu.Options{Rows: 64, Workers: 1})
	t.Cleanup(b.Close)
	m, err := model.New(&e.Weights.Config, e.Weights, &failing{b, 12}, model.Options{Tokens: 1024, Sequences: 4, Outputs: 8})
	if err != nil {
		t.Fatal(err)
	}
	r := serveOn(t, e, Options{Engine: e, Model: "org/tiny", Defaults: e.Defaults, Scheduler: sched.New(m, sched.Options{Lanes: 2, LoopWindow: -1})})
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			stream := []string{"", `,"stream":true`, `,"stream":true`}[i]
			code, _, body := r.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":400,"ignore_eos":true`+stream+`}`)
			text := string(body)
			if strings.Count(text, "cannot go on: ") != 1 || !strings.Contains(text, "CUDA_ERROR_ILLEGAL_ADDRESS") || !strings.Contains(text, string(GenerationFailed)) {
				if code != 503 || !strings.Contains(text, string(Unavailable)) { // it came too late to be taken
					t.Errorf("request %d is told %d %s", i, code, text)
				}
			}
		})
	}
	all.Wait()
	code, _, body := r.get(t, "/health")
	if code != 503 || !strings.Contains(string(body), `"status":"dead"`) {
		t.Errorf("health is %d %s", code, body)
	}
	code, _, body = r.post(t, "/v1/chat/completions", `{`+hello+`}`)
	checkError(t, "after the fault", code, body, Unavailable, "")
}

// stuck is a device that does not come back from the nth reading of results.
type stuck struct {
	*cpu.Backend
	left int
	let  chan struct{}
}

func (f *stuck) Doing() (string, bool) { return "product_nvfp4_128", false }

func (f *stuck) Read(x ops.Buffer, rows int) []float32 {
	if f.left--; f.left == 0 {
		<-f.let
	}
	return f.Backend.Read(x, rows)
}

// TestDeviceHangs: requests in flight, and one that waits, are told of a step that never ends instead of
// waiting with it; health says so in a sentence.
func TestDeviceHangs(t *testing.T) {
	e, err := engine.Load(t.Context(), folders(), engine.Options{Context: 512, Lanes: 2, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := cpu.New(cpu.Options{Rows: 64, Workers: 1})
	t.Cleanup(b.Close)
	device := &stuck{b, 12, make(chan struct{})}
	m, err := model.New(&e.Weights.Config, e.Weights, device, model.Options{Tokens: 1024, Sequences: 4, Outputs: 8})
	if err != nil {
		t.Fatal(err)
	}
	r := serveOn(t, e, Options{Engine: e, Model: "org/tiny", Defaults: e.Defaults, Scheduler: sched.New(m, sched.Options{Lanes: 2, LoopWindow: -1, StepLimit: 300 * time.Millisecond})})
	t.Cleanup(func() { close(device.let) }) // before the loop is waited for
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			stream := []string{"", `,"stream":true`, `,"stream":true`}[i]
			code, _, body := r.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":400,"ignore_eos":true`+stream+`}`)
			text := string(body)
			if strings.Count(text, "has not ended after") != 1 || !strings.Contains(text, "product_nvfp4_128") || !strings.Contains(text, string(GenerationFailed)) {
				if code != 503 || !strings.Contains(text, string(Unavailable)) { // it came too late to be taken
					t.Errorf("request %d is told %d %s", i, code, text)
				}
			}
		})
	}
	all.Wait()
	code, _, body := r.get(t, "/health")
	if code != 503 || !strings.Contains(string(body), `"status":"dead","message":"cannot go on: step `) {
		t.Errorf("health is %d %s", code, body)
	}
}
