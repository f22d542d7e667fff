package app

import (
	"strings"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/report"
)

// tableSession is a request of a kind: status and kind of step are given, chunks hold a token each.
func tableSession(warmup bool, status bench.Status, usage int, slo ...bench.SLO) *bench.Session {
	s := &bench.Session{Header: bench.Header{ID: "0000000000010000abcd", Plan: bench.Plan{Workers: 1, SLO: slo}}}
	s.Append(&bench.Step{Workers: 1, Barrier: true, Warmup: warmup})
	s.Append(&bench.Request{Warmup: warmup, Start: time.Second, Planned: time.Second})
	var chunks bench.Chunks
	if status == bench.OK {
		for i := range 11 {
			at := time.Second + time.Duration(100+10*i)*time.Millisecond
			chunks = append(chunks, bench.Chunk{Read: int32(i), User: at, Kernel: at, Usage: -1, Exact: -1, Text: "abcdabcd"})
		}
		s.Append(chunks)
	}
	end := &bench.End{Status: status, By: bench.EndDone, End: 2 * time.Second, Close: 2 * time.Second, Stamp: bench.KernelStamp, Class: "http-503"}
	if usage > 0 {
		end.Usage = &bench.Usage{Completion: usage, Prompt: -1, Cached: -1, Reasoning: -1}
	}
	s.Append(end)
	s.Append(&bench.Finish{State: bench.Done})
	return s
}

func TestPrintTable(t *testing.T) {
	for _, c := range []struct {
		name        string
		session     *bench.Session
		want, never []string
	}{
		{"counted by the server", tableSession(false, bench.OK, 11),
			[]string{"1 of 1 requests succeeded, 11 tokens (server), 55.0 tok/s all together, 5.00 req/s\n"}, []string{"~", "()"}},
		{"estimated", tableSession(false, bench.OK, 0),
			[]string{"200 tok/s ~", "22 tokens (estimate), 110 tok/s ~ all together", "~ estimate"}, []string{"TTFT  100 ms ~"}},
		{"warm-up failed", tableSession(true, bench.Failed, 0),
			[]string{"no request was measured: 1 of 1 warm-up requests failed\n"}, []string{"0 of 0", "()", "p50"}},
		{"every request failed", tableSession(false, bench.Failed, 0), []string{"0 of 1 requests succeeded\n"}, []string{"()", "p50"}},
		{"objectives", tableSession(false, bench.OK, 11, bench.SLO{Metric: "ttft", Bound: 0.05}, bench.SLO{Metric: "error_rate", Bound: 0.01}),
			[]string{"≤ 50 ms: missed (100 ms)", "met (0 %)"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			printTable(&b, report.New(c.session, report.Options{}), nil)
			for _, w := range c.want {
				if !strings.Contains(b.String(), w) {
					t.Errorf("%q is missing in\n%s", w, b.String())
				}
			}
			for _, w := range c.never {
				if strings.Contains(b.String(), w) {
					t.Errorf("%q should not be in\n%s", w, b.String())
				}
			}
		})
	}
}

// A file that is not there is no unknown session, and no store is opened to find that out.
func TestReportOfNoFile(t *testing.T) {
	t.Setenv("VELO_DATA", t.TempDir())
	for _, file := range []string{"missing.velo", "./missing"} {
		code, _, errs := velo(t.Context(), "report", file)
		if code != exitFailed || !strings.Contains(errs, "cannot read the session file "+file+": there is no such file") {
			t.Errorf("%s: exit code %d, %s", file, code, errs)
		}
	}
}
