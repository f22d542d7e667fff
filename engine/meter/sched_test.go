package meter_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"velo/engine"
	"velo/engine/enginetest"
	"velo/engine/meter"
	"velo/engine/sample"
	"velo/engine/sched"
)

// A scheduler that works tells the meter what it tells in its own status, with
// answers that end in every way and several to a request.
func TestMeterAndSchedulerAgree(t *testing.T) {
	e, err := engine.Load(t.Context(), enginetest.Folder(t, enginetest.Plain), engine.Options{Context: 256, Lanes: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	var s *sched.Scheduler
	m := meter.New(meter.Build{}, func() sched.Status { return s.Status() }, meter.Sources{})
	s = sched.New(e.Model, sched.Options{Lanes: 4, Waiting: 6, PrefixCache: true, Observer: m})
	ctx, stop := context.WithCancel(context.Background())
	var loop, clients sync.WaitGroup
	loop.Go(func() { _ = s.Run(ctx) })
	var mu sync.Mutex
	ended := map[string]float64{}
	tokens := 0
	for c := range 8 {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(c)))
			for range 20 {
				prompt := make([]int32, 1+r.IntN(100))
				for i := range prompt {
					prompt[i] = int32(i % (3 + r.IntN(2)))
				}
				streams, err := s.Submit(context.Background(), &sched.Request{Prompt: prompt, MaxTokens: 1 + r.IntN(20), End: e.EOS,
					Top: sample.NoLogProbs, Copies: 1 + r.IntN(2)})
				if err != nil {
					continue // busy
				}
				cancel := r.IntN(4) == 0
				for _, stream := range streams {
					n := 0
					for more, buffer := true, make([]sched.Token, 8); more; {
						var k int
						k, more = stream.Next(buffer)
						n += k
						if cancel {
							stream.Cancel()
						}
					}
					mu.Lock()
					ended[stream.Result().Finish.String()]++
					tokens += n
					mu.Unlock()
				}
			}
		})
	}
	clients.Wait()
	stop()
	loop.Wait()

	all, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) (sum float64, by map[string]float64) {
		by = map[string]float64{}
		for _, f := range all {
			if f.GetName() != "velogb10_"+name {
				continue
			}
			for _, x := range f.Metric {
				v := x.GetCounter().GetValue() + x.GetGauge().GetValue()
				if f.GetType() == dto.MetricType_HISTOGRAM {
					v = float64(x.Histogram.GetSampleCount())
				}
				sum += v
				if len(x.Label) > 0 {
					by[x.Label[0].GetValue()] += v
				}
			}
		}
		return sum, by
	}
	answers := 0.0
	_, finishes := get("requests_total")
	for finish, n := range ended {
		answers += n
		if finishes[finish] != n {
			t.Errorf("%s: %v, and %v streams say so", finish, finishes[finish], n)
		}
	}
	st := s.Status()
	_, rows := get("scheduler_rows_total")
	for name, want := range map[string]float64{
		"requests_total": answers, "prompt_tokens_total": float64(st.PromptTokens), "prompt_tokens_cached_total": float64(st.ReusedTokens),
		"generation_tokens_total": float64(st.GeneratedTokens), "scheduler_steps_total": float64(st.Steps), "scheduler_step_seconds": float64(st.Steps),
		"request_duration_seconds": answers, "prefix_cache_hits_total": float64(st.Hits), "requests_running": 0, "engine_alive": 0,
	} {
		if got, _ := get(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got, _ := get("generation_tokens_total"); got < float64(tokens) || rows["decode"] == 0 || rows["prefill"] == 0 || ended["length"] == 0 || ended["cancelled"] == 0 {
		t.Errorf("%v generated, %d read; rows %v; %v", got, tokens, rows, ended)
	}
}
