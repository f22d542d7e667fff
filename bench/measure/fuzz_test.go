package measure

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"velo/bench"
)

// reader makes events of bytes: times and counts of every kind, hostile ones among them.
type reader struct{ b []byte }

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) wide() int64 {
	var w [8]byte
	r.b = r.b[copy(w[:], r.b):]
	return int64(binary.LittleEndian.Uint64(w[:]))
}

func (r *reader) time() time.Duration {
	switch r.byte() % 8 {
	case 0:
		return bench.Unset
	case 1:
		return time.Duration(r.wide())
	case 2:
		return math.MaxInt64
	case 3:
		return -time.Duration(r.byte()) * time.Second
	}
	return time.Duration(r.byte())*ms + time.Duration(r.byte())*256*ms
}

func (r *reader) count() int {
	switch r.byte() % 6 {
	case 0:
		return -1
	case 1:
		return int(r.wide())
	}
	return int(r.byte())
}

func (r *reader) float() float64 {
	switch r.byte() % 4 {
	case 0:
		return math.Float64frombits(uint64(r.wide()))
	case 1:
		return math.NaN()
	}
	return float64(r.byte())
}

func (r *reader) event() bench.Event {
	small := func() int { return int(r.byte() % 6) }
	switch r.byte() % 9 {
	case 0:
		return &bench.Header{ID: "x", Drawing: "live", Plan: bench.Plan{Workers: r.count(), Rate: float64(r.byte() % 2),
			SLO: []bench.SLO{{Metric: "itl", Bound: r.float()}, {Metric: "rate", Quantile: r.float(), Bound: 1}, {Metric: "goodput"}, {Metric: "x"}}}}
	case 1:
		return &bench.Step{Number: small(), Index: small(), Repetition: r.count(), Workers: r.count(), Warmup: r.byte()%4 == 0,
			Barrier: r.byte()%2 == 0, Released: r.time()}
	case 2:
		return &bench.Request{Number: small(), Step: small(), Worker: small(), Turn: small(), Warmup: r.byte()%5 == 0, Planned: r.time(),
			Start: r.time(), AskedPrompt: r.count(), AskedOutput: r.count(), ExactOutput: r.byte()%2 == 0}
	case 3:
		return &bench.Conn{Request: small(), Reused: r.byte()%2 == 0, FirstByte: r.time(), Wrote: r.time()}
	case 4:
		return &bench.End{Request: small(), Status: []bench.Status{bench.OK, bench.Failed, bench.Stopped, "?", ""}[r.byte()%5], End: r.time(),
			Close: r.time(), Stamp: []bench.StampKind{bench.KernelStamp, bench.UserStamp, ""}[r.byte()%3], ClockStep: r.byte()%4 == 0,
			Usage:   &bench.Usage{Prompt: r.count(), Completion: r.count(), Reasoning: r.count(), Cached: r.count(), Accepted: r.count(), Rejected: r.count()},
			Timings: &bench.Timings{PromptN: r.count(), PromptMS: r.float(), CacheN: r.count(), DraftN: r.count(), DraftAccepted: r.count()},
			Reads:   r.count(), Multi: r.count()}
	case 5:
		return &bench.Sample{At: r.time(), CPU: r.time(), Readers: r.count(), GCPauses: r.count(), GCPauseP99: r.time(), Offset: r.time(), OffsetError: r.time()}
	case 6:
		return &bench.Finish{At: r.time()}
	}
	n := int(r.byte() % 24)
	number := small()
	at := r.time()
	c := make(bench.Chunks, n)
	for i := range c {
		if r.byte()%5 == 0 {
			at = r.time()
		} else {
			at += time.Duration(r.byte()) * ms
		}
		c[i] = bench.Chunk{Request: number, Read: int32(i / 2), User: at, Kernel: at - time.Duration(r.byte())*10*time.Microsecond, Channel: bench.Channel(r.byte()),
			Usage: int32(r.count()), Exact: int32(r.count()), Text: "hostile text"[:r.byte()%12]}
		if r.byte()%16 == 0 {
			c[i].Kernel = r.time()
		}
	}
	return c
}

// hostile is a tokenizer whose answers cannot be true.
type hostile struct{ r *reader }

func (hostile) Name() string       { return "hostile" }
func (hostile) Count(s string) int { return len(s) }
func (h hostile) Prefixes(parts []string) []int {
	var out []int
	for range parts {
		out = append(out, h.r.count())
	}
	return out
}

func FuzzCompute(f *testing.F) {
	f.Add([]byte("\x01\x01\x01\x00\x02\x02\x01\x05\x07\x08abcdefghijklmnopqrstuvwxyz"))
	f.Add([]byte{})
	seed := make([]byte, 4096)
	x := source(1)
	for i := range seed {
		seed[i] = byte(x.next() >> 32)
	}
	for n := 64; n <= len(seed); n *= 2 {
		f.Add(seed[:n])
		f.Add(seed[len(seed)-n:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) <= 1<<14 {
			survive(t, b)
		}
	})
}

// Sessions made of bytes at random, which a fuzzer takes long to find.
func TestHostile(t *testing.T) {
	x := source(99)
	for range 30 {
		b := make([]byte, 512+x.next()%6000)
		for i := range b {
			b[i] = byte(x.next() >> 32)
		}
		survive(t, b)
	}
}

// survive computes a session of events made of bytes. Whatever they are, Compute and Live come to an
// end with numbers that can be shown.
func survive(t *testing.T, b []byte) {
	r := &reader{b}
	s := &bench.Session{}
	l := NewLive(Options{Window: time.Duration(r.byte()) * 50 * ms})
	o := Options{Window: r.time()}
	if r.byte()%4 == 0 {
		o.Tokens = hostile{&reader{[]byte("a handful of counts")}}
	}
	for i := 0; len(r.b) > 0 && i < 400; i++ {
		e := r.event()
		s.Append(e)
		l.Append(e)
		if i%16 == 0 {
			l.Snapshot(r.time())
		}
	}
	l.Snapshot(r.time())
	run := Compute(s, o)
	As("vllm", run)
	As("aiperf", run)
	As("guidellm", run)
	if run.Good > run.OK || run.OK > run.Attempted {
		t.Fatalf("good %d, ok %d, attempted %d", run.Good, run.OK, run.Attempted)
	}
	for i := range run.Requests {
		q := &run.Requests[i]
		for name, v := range map[string]Num{"TTFT": q.TTFT, "TTFO": q.TTFO, "E2E": q.E2E, "ITL": q.ITL, "TPOT": q.TPOT, "rate": q.Rate,
			"peak": q.Peak, "max gap": q.MaxGap, "prefill": q.Prefill, "rolling": q.Rolling.Min, "acceptance": q.Acceptance} {
			if v < 0 || math.IsInf(float64(v), 0) {
				t.Fatalf("request %d: %s = %v", i, name, v)
			}
		}
		if q.N < 0 || q.CacheHit > 1 || q.Acceptance > 1 || q.ShortGaps > 1 || float64(q.Peak) < float64(q.Rate)*(1-1e-9) {
			t.Fatalf("request %d: %+v", i, q)
		}
	}
	for _, d := range dists(run) {
		last := Num(math.Inf(-1))
		for _, q := range d.Quantiles {
			if q.Value < last || d.N > 0 && !q.Value.Ok() {
				t.Fatalf("%s: %+v", d.Metric, d.Quantiles)
			}
			last = q.Value
		}
		HistogramOf(d.Values, d.Weights, 0, 0)
	}
}

func FuzzHistogram(f *testing.F) {
	f.Add([]byte("\x02\x01\x02\x03\x04"), 0.5, 3.0)
	f.Add([]byte{}, math.Inf(1), math.NaN())
	f.Fuzz(func(t *testing.T, b []byte, width, cap float64) {
		r := &reader{b}
		var v []float64
		for len(r.b) > 0 && len(v) < 1000 {
			v = append(v, r.float())
		}
		h := HistogramOf(v, nil, width, cap)
		n := 0.0
		for _, x := range v {
			if math.Abs(x) < 1e300 {
				n++
			}
		}
		if sumOf(h.Counts) != n || len(h.Counts) > 200 || n > 0 && len(h.Edges) != len(h.Counts)+1 {
			t.Fatalf("%d bins hold %v of %v", len(h.Counts), sumOf(h.Counts), n)
		}
		for i := 1; i < len(h.Edges); i++ {
			if !(h.Edges[i] >= h.Edges[i-1]) {
				t.Fatalf("edges %v", h.Edges)
			}
		}
	})
}
