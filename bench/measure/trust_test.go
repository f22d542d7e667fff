package measure

import (
	"strings"
	"testing"
	"time"

	"velo/bench"
)

// trusted is a session about which there is nothing to say: 4 workers, a warm-up request and 30
// measured ones each.
func trusted() *bench.Session {
	s := &bench.Session{Header: bench.Header{ID: "00000000000400000000", Drawing: bench.DrawingNone,
		Plan: bench.Plan{Workers: 4, Prefix: bench.PrefixSalted}, Environment: bench.Environment{Cores: 2}}}
	s.Append(&bench.Step{Number: 0, Workers: 4, Barrier: true, Warmup: true})
	s.Append(&bench.Step{Number: 1, Workers: 4, Barrier: true})
	number := 0
	for w := range 4 {
		for i, q := range back(w, 31, 21, 100, 10, 1) {
			q.warmup, q.turn, q.step = i == 0, 0, min(i, 1)
			if i > 0 {
				q.start += 1000
			}
			q.usage = &bench.Usage{Prompt: 1000, Completion: 21, Reasoning: -1, Cached: 0, Accepted: -1, Rejected: -1}
			x := q.exchange(number)
			x.Request.AskedPrompt, x.Request.AskedOutput, x.Request.ExactOutput = 1010, 21, true
			x.Conn = &bench.Conn{Request: number, Reused: i > 0, FirstByte: x.Request.Start + 50*ms, Wrote: x.Request.Start + ms/10}
			feed(s, x)
			number++
		}
	}
	for i := range 12 {
		s.Append(&bench.Sample{At: time.Duration(i) * time.Second, CPU: time.Duration(i) * 200 * ms, Readers: 4, InFlight: 4,
			GCPauses: i, GCPauseP99: ms / 10})
	}
	return s
}

func check(r *Run, id string) Check {
	for _, k := range r.Trust {
		if k.ID == id {
			return k
		}
	}
	return Check{}
}

func TestTrusted(t *testing.T) {
	r := Compute(trusted(), Options{})
	for _, k := range r.Trust {
		if k.Level != Green {
			t.Errorf("%s is %s: %s", k.ID, k.Level, k.Value)
		}
	}
	if r.Worst != Green {
		t.Errorf("worst %s", r.Worst)
	}
}

// Every line of the panel, at its levels.
func TestTrust(t *testing.T) {
	samples := func(change func(i int, s *bench.Sample)) func(*bench.Session) {
		return func(s *bench.Session) {
			for i, x := range s.Samples {
				change(i, x)
			}
		}
	}
	exchanges := func(change func(i int, x *bench.Exchange)) func(*bench.Session) {
		return func(s *bench.Session) {
			for i, x := range s.Exchanges {
				if !x.Request.Warmup {
					change(i, x)
				}
			}
		}
	}
	chunks := func(change func(c *bench.Chunk)) func(*bench.Session) {
		return exchanges(func(_ int, x *bench.Exchange) {
			for i := range x.Chunks {
				change(&x.Chunks[i])
			}
		})
	}
	for _, c := range []struct {
		id     string
		change func(*bench.Session)
		want   Level
	}{
		{"client_cpu", samples(func(i int, s *bench.Sample) { s.CPU = time.Duration(i) * 990 * ms }), Green}, // 2 readers can run on 2 cores
		{"client_cpu", samples(func(i int, s *bench.Sample) { s.CPU = time.Duration(i) * 1500 * ms }), Amber},
		{"client_cpu", samples(func(i int, s *bench.Sample) { s.Readers, s.CPU = 1, time.Duration(i)*600*ms }), Amber},
		{"client_cpu", samples(func(i int, s *bench.Sample) { s.CPU = time.Duration(i) * 6 * time.Second }), Red},
		{"client_cpu", func(s *bench.Session) { s.Samples[3].CPU += 900 * ms }, Amber}, // one busy second is enough
		{"client_cpu", func(s *bench.Session) { s.Samples = nil }, Unknown},
		{"stamp_delay", chunks(func(c *bench.Chunk) { c.User = c.Kernel + 3*ms }), Amber},
		{"stamp_delay", chunks(func(c *bench.Chunk) { c.User = c.Kernel + 6*ms }), Red},
		{"stamp_delay", chunks(func(c *bench.Chunk) { c.Kernel = bench.Unset }), Unknown},
		{"stamp_kind", chunks(func(c *bench.Chunk) { c.Kernel = bench.Unset }), Amber},
		{"stamp_kind", exchanges(func(i int, x *bench.Exchange) {
			if i == 9 {
				x.Chunks[0].Kernel = bench.Unset
			}
		}), Amber},
		{"multi_reads", exchanges(func(_ int, x *bench.Exchange) { x.End.Multi = 2 }), Amber},
		{"multi_reads", exchanges(func(_ int, x *bench.Exchange) { x.End.Multi = 7 }), Red},
		{"multi_reads", exchanges(func(_ int, x *bench.Exchange) { // by the chunks, where the client did not count
			x.End.Reads = 0
			x.Chunks[5].Read = x.Chunks[4].Read
			x.Chunks[9].Read = x.Chunks[8].Read
		}), Amber},
		{"gc_pause", samples(func(_ int, s *bench.Sample) { s.GCPauseP99 = 2 * ms }), Amber},
		{"gc_pause", samples(func(_ int, s *bench.Sample) { s.GCPauseP99 = 20 * ms }), Red},
		{"gc_pause", func(s *bench.Session) { s.Samples = nil }, Unknown},
		{"schedule_delay", exchanges(func(_ int, x *bench.Exchange) { x.Request.Planned -= 2 * ms }), Amber},
		{"schedule_delay", exchanges(func(i int, x *bench.Exchange) {
			if i%20 == 0 {
				x.Request.Planned -= 100 * ms
			}
		}), Red},
		{"reuse", exchanges(func(i int, x *bench.Exchange) { x.Conn.Reused = i%10 != 0 }), Amber},
		{"reuse", exchanges(func(i int, x *bench.Exchange) { x.Conn.Reused = false }), Red},
		{"reuse", exchanges(func(i int, x *bench.Exchange) { x.Conn = nil }), Unknown},
		{"concurrency", func(s *bench.Session) { s.Steps[1].Workers = 5 }, Amber},
		{"concurrency", func(s *bench.Session) { s.Steps[1].Workers = 16 }, Red},
		{"concurrency", func(s *bench.Session) { s.Steps[1].Workers = 60 }, Red},
		{"concurrency", func(s *bench.Session) { s.Steps[1].Workers = 600 }, Unknown}, // fewer requests than streams
		{"lengths", exchanges(func(_ int, x *bench.Exchange) { x.Request.AskedPrompt = 1100 }), Amber},
		{"lengths", exchanges(func(_ int, x *bench.Exchange) { x.Request.AskedOutput = 32 }), Red},
		{"lengths", exchanges(func(_ int, x *bench.Exchange) { x.Request.AskedOutput, x.Request.ExactOutput = 500, false }), Green},
		{"lengths", exchanges(func(_ int, x *bench.Exchange) { x.End.Usage.Prompt = -1; x.Request.ExactOutput = false }), Unknown},
		{"lengths", exchanges(func(_ int, x *bench.Exchange) { x.Request.AskedPrompt, x.Request.ExactOutput = 0, false }), Green},
		{"cache_hits", exchanges(func(_ int, x *bench.Exchange) { x.End.Usage.Cached = 9 }), Green},
		{"cache_hits", exchanges(func(_ int, x *bench.Exchange) { x.End.Usage.Cached = 10 }), Amber},
		{"cache_hits", exchanges(func(_ int, x *bench.Exchange) { x.End.Usage.Cached = 500 }), Red},
		{"cache_hits", exchanges(func(_ int, x *bench.Exchange) { x.Request.Turn, x.End.Usage.Cached = 1, 500 }), Unknown}, // its own conversation
		{"cache_hits", func(s *bench.Session) {
			s.Header.Plan.Prefix = bench.PrefixShared
			exchanges(func(_ int, x *bench.Exchange) { x.End.Usage.Cached = 500 })(s)
		}, Green},
		{"cache_hits", exchanges(func(_ int, x *bench.Exchange) { x.End.Usage.Cached = -1 }), Unknown},
		{"buffered", exchanges(func(i int, x *bench.Exchange) {
			if i == 7 {
				squeeze(x)
			}
		}), Amber},
		{"buffered", exchanges(func(i int, x *bench.Exchange) { squeeze(x) }), Red},
		{"failures", exchanges(func(i int, x *bench.Exchange) {
			if i == 7 {
				x.End.Status, x.End.Class = bench.Failed, "http-429"
			}
		}), Amber},
		{"failures", exchanges(func(i int, x *bench.Exchange) {
			if i%4 == 0 {
				x.End.Status = bench.TimedOut
			}
		}), Red},
		{"failures", exchanges(func(i int, x *bench.Exchange) {
			if i == 7 {
				x.End.Status = bench.Stopped
			}
		}), Amber},
		{"support", exchanges(func(i int, x *bench.Exchange) { x.Request.Warmup = i%2 == 0 }), Amber},
		{"support", exchanges(func(i int, x *bench.Exchange) { x.Request.Warmup = i%10 != 0 }), Amber},
		{"clock_step", exchanges(func(i int, x *bench.Exchange) { x.End.ClockStep = i == 7 }), Amber},
		{"clock_step", exchanges(func(i int, x *bench.Exchange) { x.End.ClockStep = i%2 == 0 }), Red},
		{"clock_step", func(s *bench.Session) { s.Samples[5].Offset = ms }, Amber},
		{"drawing", func(s *bench.Session) { s.Header.Drawing = bench.DrawingQuiet }, Green},
		{"drawing", func(s *bench.Session) { s.Header.Drawing = bench.DrawingLive }, Amber},
		{"drawing", func(s *bench.Session) { s.Header.Drawing = "" }, Unknown},
		{"invariants", exchanges(func(i int, x *bench.Exchange) {
			if i == 7 {
				x.End.Usage.Completion = 500
			}
		}), Red},
		{"invariants", func(s *bench.Session) { s.Steps[1].Workers = 3 }, Red}, // 4 in flight
	} {
		s := trusted()
		c.change(s)
		r := Compute(s, Options{})
		if k := check(r, c.id); k.Level != c.want {
			t.Errorf("%s is %q, want %s: %s", c.id, k.Level, c.want, k.Value)
		}
	}
}

// squeeze makes all chunks come at the end.
func squeeze(x *bench.Exchange) {
	last := x.Chunks[len(x.Chunks)-1].Kernel
	for i := range x.Chunks {
		x.Chunks[i].Kernel, x.Chunks[i].User = last, last+ms/10
	}
}

// A read that completed several events counts once.
func TestStampDelayByRead(t *testing.T) {
	s := trusted()
	for _, x := range s.Exchanges {
		for i := range x.Chunks {
			x.Chunks[i].Read /= 3
		}
	}
	for n, want := range map[int]string{99: "1 ms at most, over 99 pauses", 100: "1 ms over 100 pauses", 1: "1 ms at most, over 1 pause"} {
		if got := high(1e-3, n, "pause"); got != want {
			t.Errorf("of %d: %q", n, got)
		}
	}
	if k := check(Compute(s, Options{}), "stamp_delay"); !strings.HasSuffix(k.Value, "over 840 reads") { // 120 requests of 7
		t.Errorf("%s", k.Value)
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct{ a, b, want Level }{{Green, Unknown, Unknown}, {Unknown, Amber, Amber}, {Red, Amber, Red}, {Green, Green, Green}} {
		if worse(c.a, c.b) != c.want || worse(c.b, c.a) != c.want {
			t.Errorf("the worse of %s and %s", c.a, c.b)
		}
	}
	if r := Compute(&bench.Session{}, Options{}); r.Worst != Unknown {
		t.Errorf("an empty session is %s", r.Worst)
	}
}

// TestTrustWithoutAClient: of times that an engine told, no line about a client may be green.
func TestTrustWithoutAClient(t *testing.T) {
	s := trusted()
	for _, x := range s.Exchanges {
		x.End.Stamp = bench.EmitterStamp
	}
	r := Compute(s, Options{})
	unknown := 0
	for _, k := range r.Trust {
		switch k.ID {
		case "cache_hits", "buffered", "failures", "support", "invariants":
			if k.Level != Green {
				t.Errorf("%s is %s: it is about the streams, not about a client", k.ID, k.Level)
			}
		default:
			if unknown++; k.Level != Unknown || k.Value != "no client measured" {
				t.Errorf("%s is %s (%s)", k.ID, k.Level, k.Value)
			}
		}
	}
	if unknown != 11 || r.Worst != Unknown {
		t.Errorf("%d lines are unknown, the worst is %s", unknown, r.Worst)
	}
	if got := r.Requests[0].Stamp; got != bench.EmitterStamp {
		t.Errorf("the stamp is %q", got)
	}
}
