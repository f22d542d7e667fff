package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"velo/bench"
)

// A script writes the events of a session whose every time is known: the sessions that the golden
// reports are made of. The same script always writes the same session.
type script struct {
	s      *bench.Session
	rng    *rand.Rand
	now    time.Duration
	step   *bench.Step
	number int
}

func newScript(id, title string, workers, repeat int) *script {
	sc := &script{s: &bench.Session{}, rng: rand.New(rand.NewPCG(7, 11)), now: 5 * time.Millisecond}
	sc.s.Append(&bench.Header{
		Schema: bench.SchemaVersion, ID: id, Title: title,
		Anchor:   time.Date(2026, 3, 14, 9, 26, 53, 589793238, time.UTC),
		Endpoint: bench.Endpoint{Name: "lab box", URL: "http://192.168.1.20:8000/v1", Model: "example-8b-q4", OwnedBy: "example", Server: "uvicorn"},
		Suite:    json.RawMessage(`{"id":"quick","title":"Quick look"}`),
		Plan: bench.Plan{Workers: workers, Repeat: repeat, Seed: 42, Prefix: bench.PrefixSalted, Failure: bench.FailureContinue,
			Warmup: workers, Protocol: "http/1.1"},
		Environment: bench.Environment{Velo: "0.1.0", Go: "go1.26.0", OS: "linux/amd64", Kernel: "6.12.0", Host: "bench-1",
			CPU: "Example 9 9900X 12-Core Processor", Cores: 24, MemoryGB: 62.7, Governor: "performance"},
		Drawing: bench.DrawingQuiet,
	})
	return sc
}

// begin opens a step, released now.
func (sc *script) begin(st bench.Step) {
	st.Number = len(sc.s.Steps)
	st.Released = sc.now
	st.Barrier = true
	sc.step = &st
	sc.s.Append(&st)
}

// reply is what comes back to one request of a script.
type reply struct {
	worker, turn, prompt int
	warmup               bool
	skew                 time.Duration // t0 − released
	ttft                 time.Duration
	gaps                 []time.Duration // after the first chunk
	thought              int             // of the chunks, how many come on the reasoning channel
	text                 func(i int) string
	perChunk             int // tokens in each chunk, by continuous usage; 0 = no continuous usage
	usage                *bench.Usage
	user                 bool // no kernel stamps
	status               bench.Status
	class, message       string
	http                 int
	open                 bool // no End
}

// send appends one request and its answer, and returns when its last chunk came.
func (sc *script) send(r reply) time.Duration {
	n := sc.number
	sc.number++
	start := sc.step.Released + r.skew
	sc.s.Append(&bench.Request{Number: n, Step: sc.step.Number, Worker: r.worker, Turn: r.turn, Warmup: r.warmup, Session: fmt.Sprintf("velo-%d", n),
		Planned: start, Start: start, AskedPrompt: r.prompt, AskedOutput: len(r.gaps) + 1, Prompt: "Tell me about lighthouses.", PromptBytes: 4*r.prompt + 30,
		Parameters: json.RawMessage(`{"stream":true}`)})
	first := start + r.ttft
	http := r.http
	if http == 0 {
		http = 200
	}
	sc.s.Append(&bench.Conn{Request: n, Reused: n > 0, Remote: "192.168.1.20:8000", DNS: bench.Unset, Connect: bench.Unset, TLS: bench.Unset,
		Wrote: start + 40*time.Microsecond, FirstByte: first - 2*time.Millisecond, Status: http, Server: "uvicorn"})
	at := first
	last := start
	if r.ttft > 0 {
		var cs bench.Chunks
		for i := 0; i <= len(r.gaps); i++ {
			if i > 0 {
				at += r.gaps[i-1]
			}
			c := bench.Chunk{Request: n, Read: int32(i), Kernel: at, User: at + 30*time.Microsecond, Usage: -1, Exact: -1, Text: " word"}
			if i > 0 && r.gaps[i-1] == 0 {
				c.Read = cs[i-1].Read
			}
			if r.user {
				c.Kernel = bench.Unset
			}
			if i < r.thought {
				c.Channel = bench.Reasoning
			}
			if r.text != nil {
				c.Text = r.text(i)
			}
			if r.perChunk > 0 {
				c.Usage = int32((i + 1) * r.perChunk)
			}
			cs = append(cs, c)
		}
		for len(cs) > 0 { // as it arrives: a few at a time
			k := min(len(cs), 16)
			sc.s.Append(cs[:k:k])
			cs = cs[k:]
		}
		last = at
	}
	if r.open {
		return last
	}
	status := r.status
	if status == "" {
		status = bench.OK
	}
	e := &bench.End{Request: n, Status: status, By: bench.EndDone, Finish: "stop", Class: r.class, Error: r.message, End: last + 300*time.Microsecond,
		Close: last + 400*time.Microsecond, Stamp: bench.KernelStamp, Usage: r.usage, Reads: len(r.gaps) + 1, Events: len(r.gaps) + 3, Silent: 2, Bytes: int64(180 * (len(r.gaps) + 3))}
	if r.user {
		e.Stamp = bench.UserStamp
	}
	switch status {
	case bench.Failed, bench.TimedOut:
		e.By, e.Finish = bench.EndError, ""
	case bench.Stopped:
		e.By, e.Finish = bench.EndCancel, ""
	case bench.Truncated:
		e.By, e.Finish = bench.EndEOF, ""
	}
	sc.s.Append(e)
	return last
}

// gaps are n gaps around a mean, a hundredth part of them a stall.
func (sc *script) gaps(n int, mean time.Duration, spread float64) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = time.Duration(float64(mean) * (1 + spread*(2*sc.rng.Float64()-1))).Round(time.Microsecond)
		if sc.rng.IntN(100) == 0 {
			out[i] *= 5
		}
	}
	return out
}

// sample watches the measuring process, once a second over the whole session.
func (sc *script) samples() {
	for t := time.Duration(0); t <= sc.now; t += time.Second {
		sc.s.Append(&bench.Sample{At: t, CPU: time.Duration(float64(t) * 0.03), Readers: 2, InFlight: 1, GCPauses: int(t / time.Second), GCPauseMax: 80 * time.Microsecond,
			GCPauseP99: 90 * time.Microsecond, Heap: 24 << 20, OffsetError: time.Microsecond})
	}
}

func (sc *script) finish(state, reason string) *bench.Session {
	sc.samples()
	sc.s.Append(&bench.Finish{At: sc.now, State: state, Reason: reason})
	return sc.s
}

func usage(prompt, completion, reasoning, cached int) *bench.Usage {
	return &bench.Usage{Prompt: prompt, Completion: completion, Reasoning: reasoning, Cached: cached, Accepted: -1, Rejected: -1}
}

// singleSession: one stream, three steps, two repetitions, one token a chunk by usage.
func singleSession() *bench.Session {
	sc := newScript("019ced5ee8d5a1b2c3d4", "Quick look at a small model", 1, 2)
	sc.s.Header.Endpoint = bench.Endpoint{Name: "Scripted", URL: "http://127.0.0.1:9", Model: "scripted", BuiltIn: true}
	steps := []bench.Step{
		{Index: 1, Section: "Prose", Title: "a lighthouse keeper's morning", Kind: "prompt", Workers: 1},
		{Index: 3, Section: "Code", Title: "reverse a string", Kind: "prompt", Workers: 1},
		{Index: 5, Section: "Shape", Title: "pp2048 tg128", Kind: "bench", Workers: 1, PP: 2048, TG: 128},
	}
	for rep := range 2 {
		for i, st := range steps {
			st.Repetition = rep
			for _, warm := range []bool{true, false} {
				st.Warmup = warm
				sc.begin(st)
				n := []int{180, 240, 127}[i]
				if warm {
					n = 15
				}
				prompt := []int{48, 61, 2048}[i]
				end := sc.send(reply{prompt: prompt, warmup: warm, skew: 200 * time.Microsecond, ttft: time.Duration(60+prompt/8+3*rep) * time.Millisecond,
					gaps: sc.gaps(n, time.Duration(16+2*i)*time.Millisecond, 0.2), usage: usage(prompt, n+1, -1, 0)})
				sc.now = end + 20*time.Millisecond
			}
		}
	}
	return sc.finish(bench.Done, "")
}

// concurrentSession: four workers, three depths, three repetitions, two tokens a chunk by continuous
// usage, objectives.
func concurrentSession() *bench.Session {
	sc := newScript("019ced5ee8d6a1b2c3d4", "Depth sweep with four workers", 4, 3)
	sc.s.Header.Plan.SLO = []bench.SLO{{Metric: "ttft", Quantile: 0.9, Bound: 5}, {Metric: "rate", Quantile: 0.5, Bound: 200}, {Metric: "error_rate", Bound: 0.01}}
	for rep := range 3 {
		for i, depth := range []int{0, 4096, 16384} {
			for _, warm := range []bool{true, false} {
				sc.begin(bench.Step{Index: 2*i + 1, Repetition: rep, Section: "Depth", Title: fmt.Sprintf("pp512 tg256 d%d", depth), Kind: "bench", Workers: 4, Warmup: warm,
					Depth: depth, PP: 512, TG: 256})
				var end time.Duration
				for w := range 4 {
					n := 127
					if warm {
						n = 7
					}
					prompt := depth + 512
					cached := 0
					if w == 3 {
						cached = prompt / 10
					}
					end = max(end, sc.send(reply{worker: w, turn: 0, warmup: warm, prompt: prompt, skew: time.Duration(100+40*w) * time.Microsecond,
						ttft: time.Duration(90+prompt/6+11*w+5*rep) * time.Millisecond, gaps: sc.gaps(n, time.Duration(24+3*i+w)*time.Millisecond, 0.3), perChunk: 2,
						usage: usage(prompt, 2*(n+1), -1, cached)}))
				}
				sc.now = end + 30*time.Millisecond
			}
		}
	}
	return sc.finish(bench.Done, "")
}

// Text that must never become markup, a formula, a column or a broken page.
const hostile = `=cmd|' /C calc'!A0 | <script>alert(1)</script> [x](javascript:alert(1)) **b** ` + "`c`" + ` \ 日本語 👍 {nb} ` + "\x00\x1b[31m\n\r\tend"

// failingSession: forty requests without usage and with user stamps; some fail in each way.
func failingSession() *bench.Session {
	sc := newScript("019ced5ee8d7a1b2c3d4", "Failures "+hostile, 2, 1)
	sc.s.Header.Endpoint.Model = hostile
	sc.s.Header.Endpoint.URL = "http://somebody:secret@192.168.1.20:8000/v1"
	sc.s.Append(&bench.Note{At: time.Second, Text: "the server does not know min_tokens: " + hostile})
	for k := range 20 {
		sc.begin(bench.Step{Index: k + 1, Section: "Mixed", Title: hostile, Kind: "prompt", Workers: 2})
		var end time.Duration
		for w := range 2 {
			r := reply{worker: w, turn: k, prompt: 100, user: true, skew: 90 * time.Microsecond, ttft: time.Duration(80+k) * time.Millisecond,
				gaps: sc.gaps(60, 21*time.Millisecond, 0.4), text: func(i int) string { return strings.Repeat("x", 3+i%6) }}
			switch {
			case k == 3 && w == 0:
				r.ttft, r.gaps, r.status, r.class, r.http, r.message = 0, nil, bench.Failed, "http-429", 429, "the server asks to wait: "+hostile
			case k == 7:
				r.status, r.class, r.message = bench.TimedOut, "timeout-idle", "nothing came for 30 s; raise the idle timeout or look at the server's log"
				r.gaps = r.gaps[:10]
			case k == 9 && w == 1:
				r.status, r.gaps = bench.Truncated, r.gaps[:30]
			case k == 11 && w == 0:
				r.status, r.ttft, r.gaps = bench.Empty, 0, nil
			case k == 12:
				r.gaps[20] = 1200 * time.Millisecond
			}
			end = max(end, sc.send(r))
		}
		sc.now = end + 10*time.Millisecond
	}
	return sc.finish(bench.Done, "")
}

// reasoningSession: reasoning, then an answer; usage counts both, chunks carry several tokens.
func reasoningSession() *bench.Session {
	sc := newScript("019ced5ee8d8a1b2c3d4", "Reasoning before the answer", 1, 1)
	for k := range 12 {
		sc.begin(bench.Step{Index: k + 1, Section: "Puzzles", Title: fmt.Sprintf("puzzle %d", k+1), Kind: "prompt", Workers: 1})
		n := 200 + 10*k
		end := sc.send(reply{turn: k, prompt: 80, skew: 110 * time.Microsecond, ttft: 140 * time.Millisecond, gaps: sc.gaps(n-1, 25*time.Millisecond, 0.2), thought: 150,
			text: func(i int) string { return strings.Repeat("y", 4+(i*7)%9) }, usage: usage(80, 2*n, 330, 16)})
		sc.now = end + 15*time.Millisecond
	}
	return sc.finish(bench.Done, "")
}

// stoppedSession: stopped by the user in the middle of the second turn.
func stoppedSession() *bench.Session {
	sc := newScript("019ced5ee8d9a1b2c3d4", "Stopped in the middle", 1, 1)
	sc.begin(bench.Step{Index: 1, Section: "Prose", Title: "first", Kind: "prompt", Workers: 1})
	sc.now = sc.send(reply{prompt: 30, ttft: 95 * time.Millisecond, gaps: sc.gaps(90, 20*time.Millisecond, 0.2), usage: usage(30, 91, -1, -1)}) + 10*time.Millisecond
	sc.begin(bench.Step{Index: 2, Section: "Prose", Title: "second", Kind: "prompt", Workers: 1})
	sc.now = sc.send(reply{turn: 1, prompt: 30, ttft: 99 * time.Millisecond, gaps: sc.gaps(40, 20*time.Millisecond, 0.2), status: bench.Stopped}) + 5*time.Millisecond
	return sc.finish(bench.Aborted, "")
}

// cutOffSession: the program died; the last request has no end and the session no Finish.
func cutOffSession() *bench.Session {
	sc := newScript("019ced5ee8daa1b2c3d4", "Cut off", 1, 1)
	sc.begin(bench.Step{Index: 1, Section: "Prose", Title: "first", Kind: "prompt", Workers: 1})
	sc.send(reply{prompt: 30, ttft: 95 * time.Millisecond, gaps: sc.gaps(90, 20*time.Millisecond, 0.2), open: true})
	return sc.s
}

// longSession: many turns of a few chunks each.
func longSession(turns, chunks int) *bench.Session {
	sc := newScript("019ced5ee8dba1b2c3d4", "A long night", 1, 1)
	sc.begin(bench.Step{Index: 1, Section: "Soak", Title: "soak", Kind: "prompt", Workers: 1})
	for k := range turns {
		sc.step.Released = sc.now
		sc.now = sc.send(reply{turn: k, prompt: 30, skew: time.Millisecond, ttft: 50 * time.Millisecond, gaps: sc.gaps(chunks-1, 10*time.Millisecond, 0.2), usage: usage(30, chunks, -1, 0)})
	}
	sc.step.Released = 5 * time.Millisecond
	return sc.finish(bench.Done, "")
}

var goldenSessions = []struct {
	name    string
	session func() *bench.Session
}{
	{"single", singleSession},
	{"concurrent", concurrentSession},
	{"failing", failingSession},
	{"reasoning", reasoningSession},
	{"stopped", stoppedSession},
}
