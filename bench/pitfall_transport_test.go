package bench_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/report"
	"velo/bench/runner"
	"velo/bench/sim"
)

// Pitfalls 13 to 18: what lies between the model and the measurement.

// Requests share connections, and the record says which did. With a connection for each request the phases
// of connecting are in every TTFT; with a connection kept whose answer was not read to its end the next
// request reads what was left of it; and a request that waits for the kernel to send the rest of it (Nagle)
// arrives 40 ms late each time.
func TestPitfall13(t *testing.T) {
	t.Parallel()
	instant := &sim.Scenario{Tokens: 4}
	t.Run("pooled", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, *instant)
		large := func(c *client.Chat) { c.Messages[0].Content = strings.Repeat("a long prompt ", 3000) }
		var connection int64
		soonest := time.Hour
		for i := range 12 {
			a := s.ask(nil, large)
			c := a.exchange.Conn
			if i == 0 {
				connection = a.writes[0].Conn
				if c.Reused || c.Connect < 0 {
					t.Errorf("the first request says %+v; it had to connect", c)
				}
				continue
			}
			if !c.Reused || c.Connect != bench.Unset || c.DNS != bench.Unset || c.TLS != bench.Unset || a.writes[0].Conn != connection {
				t.Errorf("request %d says %+v and came over connection %d; it was to come over %d", i, c, a.writes[0].Conn, connection)
			}
			if !(a.WrittenDelay >= 0) {
				t.Errorf("request %d: nothing says when it had been written", i)
			}
			offset, _ := s.client.Offset()
			soonest = min(soonest, time.Duration(a.writes[0].Request)-offset-a.Start)
		}
		if soonest > 35*ms {
			t.Errorf("the soonest of 11 requests was read %v after its start: something holds them up", soonest)
		}
	})
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, *instant, func(o *client.Options) { o.NoKeepAlive = true })
		seen := map[int64]bool{}
		for range 3 {
			a := s.ask(nil)
			seen[a.writes[0].Conn] = true
			if a.exchange.Conn.Reused || a.exchange.Conn.Connect < 0 {
				t.Errorf("it says %+v; every request was to connect", a.exchange.Conn)
			}
		}
		if len(seen) != 3 {
			t.Errorf("%d connections for 3 requests that were to have one each", len(seen))
		}
	})
	t.Run("closed by the server", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, sim.Scenario{Tokens: 4, Close: true})
		session, out := s.run(t.Context(), runner.Options{Repeat: 4, Warmup: 1}, prompt())
		if out.OK != 4 {
			t.Fatalf("%+v", out)
		}
		level(t, measure.Compute(session, measure.Options{}), "reuse", measure.Red)
	})
	t.Run("left in the middle", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, *instant)
		before := s.ask(nil)
		ctx, cancel := context.WithCancel(context.Background())
		q := &bench.Request{Number: 1, Session: "left"}
		s.call(&sim.Scenario{ITL: 20 * simMS, Tokens: 500}).Do(ctx, q, sinkFunc(func(e bench.Event) {
			s.Append(e)
			if _, ok := e.(bench.Chunks); ok {
				cancel()
			}
		}))
		cancel()
		after := s.ask(nil)
		if after.N != 4 || after.Status != bench.OK || after.writes[0].Conn == before.writes[0].Conn {
			t.Errorf("after a request that was left: %d tokens, %s, over connection %d as before; want 4 over a new one", after.N, after.Status, after.writes[0].Conn)
		}
	})
}

// sinkFunc is a sink that is a function.
type sinkFunc func(bench.Event)

func (f sinkFunc) Append(e bench.Event) { f(e) }

// Server-sent events come in any framing that the standard allows, cut anywhere. A parser that wants "data: "
// with its space, or LF alone, sees no event; one that takes U+2028 for the end of a line, or each read for an
// event, breaks the JSON; one that counts comments takes a keep-alive for the first token.
func TestPitfall14(t *testing.T) {
	t.Parallel()
	s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 5 * simMS, Tokens: 24})
	scenarios := map[string]*sim.Scenario{}
	for _, name := range []string{
		"crlf", "cr", "no-space", "crlf-no-space", "comments", "keep-alive", "event-fields", "multi-line", "long-lines",
		"bom", "no-final-blank", "separators", "done-spaced", "no-done", "split-utf8", "split-crlf", "split-bytes", "unframed",
	} {
		scenarios[name] = builtin(t, name)
	}
	scenarios["bom"].Role = "none" // so that it stands before a token
	scenarios["multi-line, crlf"] = builtin(t, "multi-line")
	scenarios["multi-line, crlf"].LineEnd = "crlf"
	for _, end := range []string{"lf", "crlf", "cr"} { // cut at every byte
		scenarios["bytes, "+end] = &sim.Scenario{TTFT: 20 * simMS, ITL: 30 * simMS, Tokens: 6, Regime: "unicode", LineEnd: end,
			Split: "bytes", SplitBytes: 1, SplitDelay: sim.Duration(20 * time.Microsecond)}
	}
	var mu sync.Mutex // numbers of requests
	number := 0
	for name, sc := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mu.Lock()
			n := number
			number++
			mu.Unlock()
			a := s.answer(n, s.call(sc).Do(context.Background(), &bench.Request{Number: n, Session: name}, s))
			end := a.exchange.End
			if end.Status != bench.OK || end.Malformed > 0 || len(a.Arrivals) != len(a.tokens) || a.N != tokensIn(a.tokens) || a.Unseen != 0 {
				t.Fatalf("%s: %d tokens in %d chunks, %d malformed, %v unseen; %d were sent in %d: %s",
					end.Status, a.N, len(a.Arrivals), end.Malformed, a.Unseen, tokensIn(a.tokens), len(a.tokens), end.Error)
			}
			text := a.result.Answer
			if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) || sim.CountTokens(text) != a.N {
				t.Errorf("the text has %d tokens and reads %q", sim.CountTokens(text), text)
			}
			if sc.Separators && !strings.ContainsRune(text, '\u2028') {
				t.Errorf("the separators are lost: %q", text)
			}
			if (sc.Comments > 0 || sc.KeepAlive > 0) && end.Comments == 0 {
				t.Error("no comment was counted")
			}
			for i, w := range a.tokens {
				if sc.LineBytes > 0 {
					break // lines of 1 MB wait in the endpoint's send buffer for a reader that is slower
				}
				at, b := measure.Num(a.Arrivals[i].At.Seconds()), s.at(w)
				if sc.Split != "" {
					// A chunk is many writes, the log has the last one, and an event may be over before it: with
					// the CR of its empty line, while the LF is still to come.
					lies(t, "time of a chunk", at, b, bracket{b.lo - 2*time.Second, b.hi + 2*time.Second})
					continue
				}
				came(t, "time of a chunk", at, b, 2*time.Second)
			}
			holds(t, a.Broken)
		})
	}
}

// A status of 200 is no success. With its errors and breaks taken for one the run has ten requests that ended
// well, some with a TTFT of nothing; with failures thrown away their tokens are gone.
func TestPitfall15(t *testing.T) {
	t.Parallel()
	s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 5 * simMS, Tokens: 24},
		func(o *client.Options) { o.Timeout = bench.Timeout{Idle: 1500 * ms} })
	s.Append(&bench.Step{Workers: 1, Barrier: true})
	cases := []struct {
		scenario string
		status   bench.Status
		tokens   int
	}{
		{"malformed", bench.OK, 24}, // one chunk of many: counted
		{"error-200", bench.Failed, 0},
		{"error-first", bench.Failed, 0},
		{"error-mid", bench.Failed, 10},
		{"truncated", bench.Truncated, 10},
		{"reset", bench.Truncated, 10},
		{"clean-eof", bench.Truncated, 10},
		{"json", bench.NotStreaming, 0},
		{"empty", bench.Empty, 0},
		{"html-200", bench.Failed, 0},
		{"hang", bench.TimedOut, 10},
	}
	total := 0
	for _, c := range cases {
		a := s.ask(builtin(t, c.scenario), func(c *client.Chat) { c.ContinuousUsage, c.MaxTokens = true, 500 })
		tokens := c.tokens
		if c.scenario == "reset" { // a reset may overtake what was sent before it
			tokens = min(tokens, a.N)
		}
		if a.Status != c.status || a.N != tokens || a.Status != bench.OK && a.Error == "" {
			t.Errorf("%s: %s with %d tokens (%s); want %s with %d", c.scenario, a.Status, a.N, a.Error, c.status, tokens)
		}
		if tokens == 0 && (a.TTFT.Ok() || a.Rate.Ok() || a.E2E.Ok()) {
			t.Errorf("%s: TTFT %v, rate %v, E2E %v without a token", c.scenario, a.TTFT, a.Rate, a.E2E)
		}
		if tokens > 0 {
			came(t, c.scenario+": TTFT", a.TTFT, s.from(a.Start, a.tokens[0]), slack(&a.Request))
		}
		if want := map[bool]int{true: 1}[c.scenario == "malformed"]; a.exchange.End.Malformed != want {
			t.Errorf("%s: %d malformed events, want %d", c.scenario, a.exchange.End.Malformed, want)
		}
		total += tokens
	}
	run := measure.Compute(&s.session, measure.Options{})
	if n := len(cases); run.Attempted != n || run.OK != 1 || run.Failed != n-1 || run.TTFT.N != 1 || run.Tokens != total {
		t.Errorf("%d attempted, %d ok, %d failed, TTFT of %d, %d tokens; want %d, 1, %d, 1 and %d",
			run.Attempted, run.OK, run.Failed, run.TTFT.N, run.Tokens, n, n-1, total)
	}
	if done := foreign(t, "vllm", "completed", run); done != 1 {
		t.Errorf("as vLLM counts, %v completed", done)
	}
}

// Nothing is sent twice. With retries the endpoint gets 12 requests for 9 records, none of which has failed,
// and the third of the requests that did fail is hidden in the latency of those that followed.
func TestPitfall16(t *testing.T) {
	t.Parallel()
	s := newStage(t, *builtin(t, "fail-every-third"))
	session, out := s.run(t.Context(), runner.Options{Repeat: 9, Failure: bench.FailureContinue}, prompt())
	run := measure.Compute(session, measure.Options{})
	streams := map[int64]bool{}
	for _, w := range s.server.Truth() {
		streams[w.Stream] = true
	}
	if len(streams) != 9 || len(session.Exchanges) != 9 || out.Failed != 3 || run.Failed != 3 || run.Errors["http-5xx"] != 3 {
		t.Errorf("the endpoint got %d requests, %d are on record, %d failed %v; want 9, 9 and 3", len(streams), len(session.Exchanges), run.Failed, run.Errors)
	}
	if len(s.streams()) != 9 {
		t.Errorf("%d requests bear 9 names", len(s.streams()))
	}

	limited := newStage(t, *builtin(t, "rate-limited"))
	a := limited.ask(nil)
	if end := a.exchange.End; end.Status != bench.Failed || end.Class != "http-429" || end.RetryAfter != 2*time.Second || a.exchange.Conn.Status != 429 {
		t.Errorf("%+v, status %d; want http-429 and the 2 s that the server asks for", end, a.exchange.Conn.Status)
	}
	if first, last := a.writes[0].Stream, a.writes[len(a.writes)-1].Stream; first != 1 || last != 1 {
		t.Errorf("the endpoint got requests %d to %d instead of one", first, last)
	}
}

// Time is monotonic, and no request mixes two clocks. With wall-clock differences a clock that is set during
// a request makes a gap of an hour, or a negative one.
func TestPitfall17(t *testing.T) {
	t.Parallel()
	s := newStage(t, *builtin(t, "normal-gaps"))
	a := s.ask(nil)
	if len(a.tokens) != 64 || len(a.ICL) != 63 {
		t.Fatalf("%d gaps between %d chunks", len(a.ICL), len(a.tokens))
	}
	for i, g := range a.ICL {
		lasted(t, "a gap", measure.Num(g), gap(a.tokens[i], a.tokens[i+1]), slack(&a.Request))
	}
	lasted(t, "first to last chunk", a.E2E-a.TTFT, gap(a.tokens[0], a.tokens[63]), slack(&a.Request))
	s.session.Header.Anchor = s.clock.Anchor()
	for i, w := range a.tokens { // the anchor brings them to the wall clock
		wall := s.session.Wall(a.Arrivals[i].At).UnixNano()
		if off := int64(slack(&a.Request)); wall < w.Before-int64(early) || wall > w.After+off {
			t.Errorf("chunk %d came at %d by the wall clock, the endpoint wrote it from %d to %d", i, wall, w.Before, w.After)
		}
	}
	for name, set := range map[string]func(x *bench.Exchange){
		"back, noticed":   func(x *bench.Exchange) { shift(x, 10, -time.Hour); x.End.ClockStep = true },
		"forward":         func(x *bench.Exchange) { shift(x, 10, time.Hour) },
		"back, all along": func(x *bench.Exchange) { shift(x, 0, -time.Hour) },
	} {
		end := *a.exchange.End
		x := &bench.Exchange{Request: a.exchange.Request, Conn: a.exchange.Conn, Chunks: append(bench.Chunks(nil), a.exchange.Chunks...), End: &end}
		end.Stamp = bench.KernelStamp
		set(x)
		r := measure.Of(x, measure.Options{})
		if r.Stamp != bench.UserStamp {
			t.Errorf("%s: the stamps are the %s's although the clock was set", name, r.Stamp)
		}
		lasted(t, name+": first to last chunk", r.E2E-r.TTFT, gap(a.tokens[0], a.tokens[63]), 500*ms)
		came(t, name+": TTFT", r.TTFT, s.from(a.Start, a.tokens[0]), 500*ms)
		for _, g := range r.ICL {
			if g < 0 || g > 60 {
				t.Errorf("%s: there is a gap of %.4g s", name, g)
			}
		}
		holds(t, r.Broken)
	}
}

// shift moves the kernel's stamps from chunk n on, as a clock that is set does.
func shift(x *bench.Exchange, n int, by time.Duration) {
	for i := n; i < len(x.Chunks); i++ {
		if x.Chunks[i].Kernel == bench.Unset { // a system without such stamps: as if it had them
			x.Chunks[i].Kernel = x.Chunks[i].User
		}
		x.Chunks[i].Kernel += by
	}
}

// relay passes connections on to an endpoint and keeps what the client said.
type relay struct {
	net.Listener
	mu   sync.Mutex
	said bytes.Buffer
}

func (r *relay) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.Write(b)
}

func newRelay(t testing.TB, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				return
			}
			group.Go(func() {
				_, _ = io.Copy(io.MultiWriter(out, r), in)
				out.Close()
			})
			group.Go(func() {
				_, _ = io.Copy(in, out)
				in.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		group.Wait()
	})
	return r
}

// A proxy that holds tokens back leaves nothing to measure between them, and this is said. Unnoticed, a
// buffered stream reads as a TTFT of the whole reply and thousands of tokens a second; a client that lets
// compression be chosen invites one.
func TestPitfall18(t *testing.T) {
	t.Parallel()
	honest := sim.Scenario{TTFT: 20 * simMS, ITL: 10 * simMS, Tokens: 24}
	t.Run("identity", func(t *testing.T) {
		t.Parallel()
		var r *relay
		s := newStage(t, honest, func(o *client.Options) {
			r = newRelay(t, strings.TrimSuffix(strings.TrimPrefix(o.BaseURL, "http://"), "/v1"))
			o.BaseURL = "http://" + r.Addr().String() + "/v1"
		})
		a := s.ask(nil)
		r.mu.Lock()
		head, _, _ := strings.Cut(strings.ToLower(r.said.String()), "\r\n\r\n")
		r.mu.Unlock()
		if !strings.Contains(head, "\r\naccept-encoding: identity\r\n") || strings.Contains(head, "gzip") || a.N != 24 {
			t.Errorf("the client said\n%s\nand got %d tokens", head, a.N)
		}
		s.client.Close() // before the relay ends
	})
	t.Run("gzip", func(t *testing.T) { // sent although identity was asked
		t.Parallel()
		s := newStage(t, *builtin(t, "gzip"))
		a := s.ask(nil)
		if a.exchange.End.Encoding != "gzip" || a.N != 24 || len(a.Arrivals) != 24 || a.Status != bench.OK {
			t.Errorf("%s, encoding %q, %d tokens; want ok, gzip and 24", a.Status, a.exchange.End.Encoding, a.N)
		}
		came(t, "TTFT", a.TTFT, s.from(a.Start, a.tokens[0]), slack(&a.Request))
		lasted(t, "first to last chunk", a.E2E-a.TTFT, gap(a.tokens[0], a.tokens[23]), slack(&a.Request))
	})
	for name, change := range map[string]func(*sim.Scenario){
		"nothing held back": func(sc *sim.Scenario) {},
		"all held back":     func(sc *sim.Scenario) { sc.BufferAll = true },
		"blocks of 16 KB":   func(sc *sim.Scenario) { sc.Tokens, sc.ITL, sc.BufferBytes = 256, 2*simMS, 16<<10 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := honest
			change(&sc)
			s := newStage(t, sc)
			session, _ := s.run(t.Context(), runner.Options{Repeat: 2}, prompt())
			session.Samples = nil // what a busy machine adds to the trust panel would hide the rest
			for _, x := range session.Exchanges {
				for i := range x.Chunks {
					if c := &x.Chunks[i]; c.Kernel != bench.Unset {
						c.User = c.Kernel
					}
				}
			}
			r := report.New(session, report.Options{})
			found := ""
			for _, f := range r.Findings {
				found += f.Text + "\n"
			}
			switch {
			case sc.BufferAll:
				level(t, r.Run, "buffered", measure.Red)
				if !strings.Contains(found, "Buffered streams") {
					t.Errorf("the report does not open with it:\n%s", found)
				}
			case sc.BufferBytes > 0:
				level(t, r.Run, "multi_reads", measure.Red)
			default:
				level(t, r.Run, "buffered", measure.Green)
			}
		})
	}
}
