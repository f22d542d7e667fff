package ui

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/suite"
)

// sampleSession writes the events of a session of workers × turns requests as a measured one looks:
// prefill, decode at about rate tokens/s with noise, a stall, some failures. The same arguments give
// the same events.
func sampleSession(workers, turns int, rate float64, failEvery int) *bench.Session {
	s := &bench.Session{}
	for _, e := range sampleEvents(workers, turns, rate, failEvery) {
		s.Append(e)
	}
	return s
}

func sampleEvents(workers, turns int, rate float64, failEvery int) []bench.Event {
	rnd := rand.New(rand.NewPCG(7, uint64(workers)))
	anchor := time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)
	var suiteText json.RawMessage
	if all := suite.BuiltIn(); len(all) > 0 {
		suiteText = all[0].Marshal()
	}
	out := []bench.Event{&bench.Header{Schema: bench.SchemaVersion, ID: "0193a1b2c3d4e5f60718", Anchor: anchor,
		Title:    "Coding workload",
		Endpoint: bench.Endpoint{Name: "Workstation", URL: "http://10.0.0.7:8000/v1", Model: "llama-3.3-70b-instruct-nvfp4", Server: "vllm"},
		Suite:    suiteText,
		Plan: bench.Plan{Workers: workers, Repeat: 1, Seed: 1, Prefix: bench.PrefixSalted, Failure: bench.FailureContinue, Warmup: workers,
			Protocol: "http/1.1", SLO: []bench.SLO{{Metric: "ttft", Quantile: 0.95, Bound: 0.4}}},
		Environment: bench.Environment{Velo: "0.1.0", Go: "go1.26", OS: "linux/arm64", Host: "spark", CPU: "Grace 20 cores", Cores: 20, MemoryGB: 119},
		Drawing:     bench.DrawingQuiet}}
	at := 200 * time.Millisecond
	number := 0
	sections := []string{"Prose", "Code", "Mathematics"}
	for turn := 0; turn < turns; turn++ {
		step := &bench.Step{Number: turn, Index: turn, Section: sections[turn%3], Title: fmt.Sprintf("prompt %d", turn+1), Kind: "prompt",
			Workers: workers, Barrier: true, Released: at, TG: 128}
		out = append(out, step)
		end := at
		for w := 0; w < workers; w++ {
			r := number
			number++
			start := at + time.Duration(rnd.IntN(300))*time.Microsecond
			out = append(out, &bench.Request{Number: r, Step: turn, Worker: w, Turn: turn, Session: fmt.Sprint("s", w), Planned: start, Start: start, AskedOutput: 128, Prompt: "Write.", PromptBytes: 400})
			out = append(out, &bench.Conn{Request: r, Reused: turn > 0, DNS: bench.Unset, Connect: bench.Unset, TLS: bench.Unset,
				Wrote: start + 50*time.Microsecond, FirstByte: start + 90*time.Millisecond, Status: 200, Server: "vllm"})
			t := start + 120*time.Millisecond + time.Duration(rnd.IntN(160))*time.Millisecond
			if failEvery > 0 && r%failEvery == failEvery-1 {
				out = append(out, &bench.End{Request: r, Status: bench.Failed, By: bench.EndError, Class: "http-503", Error: "The server answered 503: it is overloaded. Try fewer workers.",
					End: t, Close: t, Stamp: bench.KernelStamp})
				continue
			}
			n := 128
			var chunks bench.Chunks
			for i := 0; i < n; i++ {
				chunks = append(chunks, bench.Chunk{Request: r, Read: int32(i), User: t + 60*time.Microsecond, Kernel: t, Usage: int32(i + 1), Exact: -1, Text: " token"})
				gap := (0.85 + 0.3*rnd.Float64()) / rate
				if i == 60 && turn%3 == 1 {
					gap += 0.45
				}
				t += time.Duration(gap * 1e9)
			}
			out = append(out, chunks, &bench.End{Request: r, Status: bench.OK, By: bench.EndDone, Finish: "length", End: t, Close: t + time.Millisecond, Stamp: bench.KernelStamp,
				Usage: &bench.Usage{Prompt: 96, Completion: n, Reasoning: -1, Cached: 0, Accepted: -1, Rejected: -1}, Reads: n, Events: n + 2, Silent: 2, Bytes: 24000})
			end = max(end, t)
		}
		out = append(out, &bench.Sample{At: end, CPU: time.Duration(turn) * 20 * time.Millisecond, Readers: workers, InFlight: workers, GCPauses: turn, GCPauseMax: 200 * time.Microsecond, GCPauseP99: 150 * time.Microsecond, Heap: 20 << 20})
		at = end + 150*time.Millisecond
	}
	return append(out, &bench.Finish{At: at, State: bench.Done})
}

// sampleSnapshot is what a window sees of such a session while it is measured: everything up to a
// share of it.
func sampleSnapshot(workers, turns int, rate float64, failEvery int, share float64) measure.Snapshot {
	events := sampleEvents(workers, turns, rate, failEvery)
	whole := events[len(events)-1].(*bench.Finish).At
	now := time.Duration(float64(whole) * share)
	live := measure.NewLive(measure.Options{})
	for _, e := range events {
		switch e := e.(type) {
		case *bench.Step:
			if e.Released > now {
				continue
			}
		case *bench.Request:
			if e.Start > now {
				continue
			}
		case bench.Chunks:
			var seen bench.Chunks
			for _, c := range e {
				if c.User <= now {
					seen = append(seen, c)
				}
			}
			if len(seen) == 0 {
				continue
			}
			live.Append(seen)
			continue
		case *bench.End:
			if e.End > now {
				continue
			}
		case *bench.Sample:
			if e.At > now {
				continue
			}
		case *bench.Finish:
			if e.At > now {
				continue
			}
		}
		live.Append(e)
	}
	return live.Snapshot(now)
}
