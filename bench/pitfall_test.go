// Package bench_test holds the 24 ways in which benchmarks of language-model servers have measured
// wrongly, one test each. Every one streams from the scripted endpoint (package sim) over a real
// socket through the client, or the runner, and compares what measure and report make of it with the
// times and counts that the endpoint logged.
//
// Times are held to the log, never to the schedule, so that a busy machine changes the truth and the
// measurement alike; what a wrong way would show differs from the truth by far more than the slack.
package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/runner"
	"velo/bench/sim"
	"velo/bench/suite"
)

const ms = time.Millisecond

// simMS is a millisecond of a scenario.
const simMS = sim.Duration(time.Millisecond)

// stage is an endpoint whose times are known, and a client that measures it.
type stage struct {
	testing.TB
	server *sim.Server
	client *client.Client
	clock  bench.Clock

	mu      sync.Mutex
	session bench.Session
}

// newStage starts an endpoint and makes a client for it.
func newStage(t testing.TB, sc sim.Scenario, change ...func(*client.Options)) *stage {
	t.Helper()
	server, err := sim.Start(sim.Options{Scenario: sc, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{TB: t, server: server, clock: bench.StartClock()}
	o := client.Options{BaseURL: server.URL(), Clock: s.clock, Connections: 8, Timeout: bench.Timeout{Total: time.Minute}}
	for _, f := range change {
		f(&o)
	}
	if s.client, err = client.New(o); err != nil {
		t.Fatal(err)
	}
	s.session.Header.ID = "pitfall"
	t.Cleanup(func() {
		s.client.Close()
		_ = server.Close()
	})
	return s
}

// Append keeps an event; streams may bring theirs at once.
func (s *stage) Append(e bench.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Append(e)
}

// call prepares a request; a scenario replaces members of the endpoint's.
func (s *stage) call(sc *sim.Scenario, change ...func(*client.Chat)) *client.Call {
	s.Helper()
	chat := client.Chat{Model: "velo-sim", Messages: []client.Message{{Role: "user", Content: "Say something."}}}
	if sc != nil {
		b, err := json.Marshal(sc)
		if err != nil {
			s.Fatal(err)
		}
		chat.Extra = map[string]json.RawMessage{"sim": b}
	}
	for _, f := range change {
		f(&chat)
	}
	call, err := s.client.Prepare(chat)
	if err != nil {
		s.Fatal(err)
	}
	return call
}

// answer is one request, measured, and the truth about it.
type answer struct {
	measure.Request
	exchange *bench.Exchange
	result   client.Result
	writes   []sim.Write // of the whole stream
	tokens   []sim.Write // of these, the chunks with text
}

// ask sends one request and measures it.
func (s *stage) ask(sc *sim.Scenario, change ...func(*client.Chat)) *answer {
	s.Helper()
	s.mu.Lock()
	number := len(s.session.Exchanges)
	s.mu.Unlock()
	q := &bench.Request{Number: number, Session: fmt.Sprintf("ask-%d", number)}
	res := s.call(sc, change...).Do(context.Background(), q, s)
	return s.answer(number, res)
}

// answer puts together what is known of a request of the session.
func (s *stage) answer(number int, res client.Result) *answer {
	s.mu.Lock()
	x := s.session.Exchanges[number]
	s.mu.Unlock()
	a := &answer{Request: measure.Of(x, measure.Options{}), exchange: x, result: res}
	for _, w := range s.server.Truth() {
		if w.Session == x.Request.Session {
			a.writes = append(a.writes, w)
			if w.Tokens > 0 {
				a.tokens = append(a.tokens, w)
			}
		}
	}
	if len(a.writes) == 0 {
		s.Fatalf("the endpoint never answered request %d (%s): %s", number, x.End.Status, x.End.Error)
	}
	return a
}

// builtin is a scenario that travels with the endpoint.
func builtin(t testing.TB, name string) *sim.Scenario {
	t.Helper()
	sc, err := sim.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return &sc
}

// run runs a suite of these steps and returns its session.
func (s *stage) run(ctx context.Context, o runner.Options, steps ...suite.Step) (*bench.Session, runner.Outcome) {
	s.Helper()
	steps = append([]suite.Step{{Type: suite.Section, Title: "S", Reset: true}}, steps...)
	session := &bench.Session{}
	o.Client, o.Clock, o.Model, o.Sink = s.client, s.clock, "velo-sim", session
	o.Suite = &suite.Suite{ID: "t", Title: "T", Steps: steps}
	if o.Header.ID == "" {
		o.Header.ID = fmt.Sprintf("run%d", s.clock.Now())
	}
	out, err := runner.Run(ctx, o)
	if err != nil {
		s.Fatal(err)
	}
	return session, out
}

// streams are the writes of the endpoint by the session of their request.
func (s *stage) streams() map[string][]sim.Write {
	all := map[string][]sim.Write{}
	for _, w := range s.server.Truth() {
		all[w.Session] = append(all[w.Session], w)
	}
	return all
}

// withTokens are the writes that carried text.
func withTokens(writes []sim.Write) []sim.Write {
	var out []sim.Write
	for _, w := range writes {
		if w.Tokens > 0 {
			out = append(out, w)
		}
	}
	return out
}

// firstOf is the first write of a kind.
func firstOf(t testing.TB, writes []sim.Write, kind string) sim.Write {
	t.Helper()
	for _, w := range writes {
		if w.Kind == kind {
			return w
		}
	}
	t.Fatalf("the endpoint wrote nothing of kind %q", kind)
	return sim.Write{}
}

// tokensIn is the sum of the tokens of writes.
func tokensIn(writes []sim.Write) int {
	n := 0
	for _, w := range writes {
		n += w.Tokens
	}
	return n
}

// bracket is what a time can be: what it stands for lies between the clock readings around a write.
type bracket struct{ lo, hi time.Duration }

// at is when the kernel received a write, on the session's clock.
func (s *stage) at(w sim.Write) bracket {
	offset, half := s.client.Offset()
	return bracket{time.Duration(w.Before) - offset - half, time.Duration(w.After) - offset + half}
}

// from is the time from a moment of the session to a write.
func (s *stage) from(t time.Duration, w sim.Write) bracket {
	b := s.at(w)
	return bracket{b.lo - t, b.hi - t}
}

// gap is the time between two writes of one stream, by the endpoint's monotonic clock.
func gap(a, b sim.Write) bracket {
	return bracket{time.Duration(b.MonoBefore - a.MonoAfter), time.Duration(b.MonoAfter - a.MonoBefore)}
}

// slack is how late a stamp may be. A read's return waits for the reader. The kernel's waits too where bytes
// were not read at once: it puts them together with those that follow, under the stamp of the last.
func slack(r *measure.Request) time.Duration {
	if r.Stamp == bench.KernelStamp {
		return 400 * ms
	}
	return 600 * ms
}

// early is how much too early a time may be: what the clocks' offset was off. Nothing comes before it was
// sent, so this side is sharp on any machine.
const early = 20 * ms

// came checks the time of a write, which may be late by the slack.
func came(t testing.TB, what string, got measure.Num, b bracket, slack time.Duration) {
	t.Helper()
	lies(t, what, got, b, bracket{b.lo - early, b.hi + slack})
}

// lasted checks the time between two writes, of which either may be late by the slack.
func lasted(t testing.TB, what string, got measure.Num, b bracket, slack time.Duration) {
	t.Helper()
	lies(t, what, got, b, bracket{b.lo - slack, b.hi + slack})
}

func lies(t testing.TB, what string, got measure.Num, truth, allowed bracket) {
	t.Helper()
	if !(float64(got) >= allowed.lo.Seconds() && float64(got) <= allowed.hi.Seconds()) {
		t.Errorf("%s is %.1f ms, the endpoint's log says %.1f to %.1f ms", what, 1e3*got, 1e3*truth.lo.Seconds(), 1e3*truth.hi.Seconds())
	}
}

// inTime tells whether the endpoint kept to its schedule in a request and the client was there to read.
// Where the shape of a stream matters, and not only its times, there is nothing to check otherwise.
func (s *stage) inTime(r *measure.Request, writes []sim.Write) bool {
	tokens := withTokens(writes)
	for i, w := range tokens {
		if time.Duration(w.MonoBefore-w.Due) > 30*ms || i < len(r.Arrivals) && r.Arrivals[i].At > s.at(w).hi+30*ms {
			return false
		}
	}
	return true
}

// undisturbed tries until the machine did not disturb; try tells whether it did not.
func undisturbed(t *testing.T, try func() bool) {
	t.Helper()
	for range 6 {
		if try() {
			return
		}
	}
	t.Skip("the machine is so busy that the endpoint never kept to its schedule: nothing could be checked")
}

// holds checks the invariants that every measurement has to keep.
func holds(t testing.TB, broken []string) {
	t.Helper()
	for _, b := range broken {
		t.Errorf("an invariant does not hold: %s", b)
	}
}

// line is a line of the trust panel.
func line(t testing.TB, r *measure.Run, id string) measure.Check {
	t.Helper()
	for _, k := range r.Trust {
		if k.ID == id {
			return k
		}
	}
	t.Fatalf("the trust panel has no line %q", id)
	return measure.Check{}
}

// level checks the verdict of a line of the trust panel.
func level(t testing.TB, r *measure.Run, id string, want ...measure.Level) {
	t.Helper()
	k := line(t, r, id)
	for _, l := range want {
		if k.Level == l {
			return
		}
	}
	t.Errorf("trust: %s is %s (%s), want %v", k.Name, k.Level, k.Value, want)
}

// foreign is a number as another tool defines it.
func foreign(t testing.TB, tool, name string, r *measure.Run) measure.Num {
	t.Helper()
	for _, f := range measure.As(tool, r) {
		if f.Metric == name {
			return f.Value
		}
	}
	t.Fatalf("%s has no %q", tool, name)
	return measure.Missing
}
