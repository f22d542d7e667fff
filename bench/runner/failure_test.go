package runner

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/sim"
	"velo/bench/suite"
)

func TestStopDuringPrefill(t *testing.T) {
	s, err := sim.Start(sim.Options{Scenario: sim.Scenario{Fault: sim.Fault{Kind: "silence"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, l := options(t, s.URL(), prompt("a"), prompt("b"))
	o.Workers = 3
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	begun := 0
	l.seen = func(e bench.Event) {
		if _, ok := e.(*bench.Request); ok {
			if begun++; begun == 3 {
				cancel()
			}
		}
	}
	out, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Outcome{State: bench.Aborted, Reason: "stopped by the user", Requests: 3}); out != want {
		t.Errorf("outcome %+v", out)
	}
	checkOrder(t, l)
	for _, x := range l.session().Exchanges {
		if x.End.Status != bench.Stopped || x.End.By != bench.EndCancel || len(x.Chunks) > 0 {
			t.Errorf("ended %+v with %d chunks", x.End, len(x.Chunks))
		}
	}
}

func TestStopKeepsFinishedAndPartialTurns(t *testing.T) {
	s, err := sim.Start(sim.Options{Scenario: sim.Scenario{Tokens: 5000, ITL: sim.Duration(2 * time.Millisecond)}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, l := options(t, s.URL(), suite.Step{Type: suite.Prompt, Text: "short", TG: 3}, prompt("endless"), prompt("never"))
	o.Workers = 2
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	chunks := map[int]int{}
	l.seen = func(e bench.Event) {
		if c, ok := e.(bench.Chunks); ok {
			if chunks[c[0].Request] += len(c); chunks[2] >= 5 && chunks[3] >= 5 {
				cancel()
			}
		}
	}
	out, err := Run(ctx, o)
	if err != nil || out.State != bench.Aborted || out.OK != 2 || out.Requests != 4 || out.Failed != 0 {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	checkOrder(t, l)
	session := l.session()
	if len(session.Exchanges) != 4 || session.Finish.State != bench.Aborted {
		t.Fatalf("%d exchanges, finish %+v", len(session.Exchanges), session.Finish)
	}
	for i, x := range session.Exchanges {
		want := bench.OK
		if i >= 2 {
			want = bench.Stopped
		}
		if x.End.Status != want || i >= 2 && len(x.Chunks) < 5 {
			t.Errorf("request %d ended %s with %d chunks", i, x.End.Status, len(x.Chunks))
		}
	}
}

func TestStopBeforeAnything(t *testing.T) {
	e := newEndpoint(t)
	o, l := options(t, e.URL, suite.Step{Type: suite.Bench, PP: 300, TG: 4})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out, err := Run(ctx, o)
	if err != nil || out.State != bench.Aborted || out.Requests != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	checkOrder(t, l)
	if n := len(e.requests()); n > 0 {
		t.Errorf("%d requests after the stop", n)
	}
}

func TestFailurePolicies(t *testing.T) {
	for _, test := range []struct {
		policy  string
		out     Outcome
		reason  string
		reached []string // prompts that were asked in measured requests
	}{
		{bench.FailureStop, Outcome{State: bench.Broken, Requests: 4, OK: 2, Failed: 1}, `the run ended at the first failure (step "two", worker 1): the server is not ready`, []string{"one", "two"}},
		{bench.FailureSkip, Outcome{State: bench.Done, Requests: 6, OK: 4, Failed: 1}, "", []string{"one", "two", "three"}},
		{bench.FailureContinue, Outcome{State: bench.Done, Requests: 6, OK: 5, Failed: 1}, "", []string{"one", "two", "three"}},
	} {
		t.Run(test.policy, func(t *testing.T) {
			e := newEndpoint(t)
			arrived := make(chan struct{})
			e.answer = func(w http.ResponseWriter, r *http.Request, n int, q asked) bool {
				if q.last() != "two" {
					return false
				}
				if q.Session != "velo-0-000002" { // the other worker's, which goes on for as long as it may
					close(arrived)
					if test.policy != bench.FailureContinue {
						<-r.Context().Done()
					}
					return false
				}
				<-arrived
				http.Error(w, `{"error":{"message":"loading"}}`, http.StatusServiceUnavailable)
				return true
			}
			o, l := options(t, e.URL, prompt("one"), prompt("two"), prompt("three"))
			o.Workers, o.Failure, o.Header.ID = 2, test.policy, "0"
			out := mustRun(t, o)
			if !strings.HasPrefix(out.Reason, test.reason) || (out.Reason == "") != (test.reason == "") {
				t.Errorf("reason %q", out.Reason)
			}
			out.Reason = ""
			if out != test.out {
				t.Errorf("outcome %+v, want %+v", out, test.out)
			}
			checkOrder(t, l)
			var reached []string
			for _, x := range l.session().Exchanges {
				if x.Request.Worker == 0 {
					reached = append(reached, x.Request.Prompt)
				}
			}
			if !reflect.DeepEqual(reached, test.reached) {
				t.Errorf("asked %v, want %v", reached, test.reached)
			}
			// A turn that failed is not part of the conversation.
			for _, q := range e.ordered() {
				if q.last() == "three" && q.Session == "velo-0-000004" && len(q.Messages) != 3 {
					t.Errorf("after a failed turn %d messages were sent", len(q.Messages))
				}
			}
		})
	}
}

func TestSkipLeavesOutAStepWhoseWarmupFailed(t *testing.T) {
	e := newEndpoint(t)
	e.answer = func(w http.ResponseWriter, r *http.Request, n int, q asked) bool {
		if q.last() == "two" && q.number("max_tokens") == WarmupOutput {
			http.Error(w, "no", http.StatusInternalServerError)
			return true
		}
		return false
	}
	o, l := options(t, e.URL, prompt("one"), prompt("two"), prompt("three"))
	o.Failure, o.Warmup = bench.FailureSkip, 1
	out := mustRun(t, o)
	if want := (Outcome{State: bench.Done, Requests: 2, OK: 2}); out != want {
		t.Errorf("outcome %+v", out)
	}
	if !strings.Contains(l.notes(), `Step "two" was left out in repetition 1: a warm-up request failed: the server failed`) {
		t.Errorf("notes: %s", l.notes())
	}
}

func TestEveryRequestFailed(t *testing.T) {
	e := newEndpoint(t)
	e.answer = func(w http.ResponseWriter, r *http.Request, n int, q asked) bool {
		w.Header().Set("Retry-After", "3")
		http.Error(w, `{"error":"slow down"}`, http.StatusTooManyRequests)
		return true
	}
	o, l := options(t, e.URL, prompt("one"), prompt("two"))
	o.Failure = bench.FailureContinue
	out := mustRun(t, o)
	if out.State != bench.Broken || out.Failed != 2 || !strings.HasPrefix(out.Reason, "every request failed: the server gets too many requests") {
		t.Errorf("outcome %+v", out)
	}
	for _, x := range l.session().Exchanges {
		if x.End.Class != "http-429" || x.End.RetryAfter != 3*time.Second {
			t.Errorf("end %+v", x.End)
		}
	}
	if n := len(e.requests()); n != 2 {
		t.Errorf("%d requests were sent for 2: something was tried again", n)
	}
}

func TestUnreachable(t *testing.T) {
	e := newEndpoint(t)
	url := e.URL
	e.Close()
	o, l := options(t, url, suite.Step{Type: suite.Bench, PP: 300, TG: 4})
	o.Failure = bench.FailureContinue
	out := mustRun(t, o)
	if out.State != bench.Broken || !strings.Contains(out.Reason, "nothing listens there") || out.Requests != 0 {
		t.Errorf("outcome %+v", out)
	}
	checkOrder(t, l)
}
