package measure

import (
	"sync"
	"testing"
	"time"

	"velo/bench"
)

// A running request: its state, its rate as it stalls, the gap that lasts.
func TestLiveRequest(t *testing.T) {
	l := NewLive(Options{})
	l.Append(&bench.Step{Workers: 2})
	s := l.Snapshot(0)
	if len(s.Workers) != 2 || s.Workers[1].State != "waiting" || s.Rate.Ok() || s.TTFT.Ok() || s.MaxGap.Ok() {
		t.Errorf("before the first request: %+v", s)
	}
	l.Append(&bench.Request{Number: 0, Worker: 1, Start: 10 * ms})
	s = l.Snapshot(60 * ms)
	if w := s.Workers[1]; w.State != "prefill" || w.Elapsed != 50*ms || w.Rate.Ok() || s.Running != 1 || s.Rate != 0 {
		t.Errorf("in prefill: %+v", s)
	}
	x := script{start: 10, at: every(100, 10, 101)}.exchange(0) // to 1.11 s
	x.Request.Worker = 1
	for i := range x.Chunks {
		l.Append(x.Chunks[i : i+1])
	}
	s = l.Snapshot(1110 * ms)
	w := s.Workers[1]
	if w.State != "decode" || w.Tokens != 101 || s.Tokens != 101 || s.Source != Server {
		t.Errorf("decoding: %+v", w)
	}
	agree(t, "rate", w.Rate, 100)
	agree(t, "rate of all", s.Rate, 100)
	agree(t, "TTFT", w.TTFT, 0.1)
	agree(t, "median TTFT", s.TTFTMedian, 0.1)
	agree(t, "max gap", s.MaxGap, 0.01)
	s = l.Snapshot(1610 * ms)
	agree(t, "rate half a second into a stall", s.Workers[1].Rate, 50)
	agree(t, "rate of all by then", s.Rate, 51) // at 1.6 s
	agree(t, "the gap that lasts", s.MaxGap, 0.5)
	s = l.Snapshot(3110 * ms)
	agree(t, "rate after a second and more", s.Workers[1].Rate, 0)
	agree(t, "rate of all after it", s.Rate, 0)
	agree(t, "least rate", s.Min, 0)
	end := *x.End
	end.Status, end.Error = bench.TimedOut, "the server stopped sending"
	l.Append(&end)
	s = l.Snapshot(4 * time.Second)
	if w := s.Workers[1]; w.State != "failed" || w.Error != end.Error || s.Failed != 1 || s.LastError != end.Error || s.Running != 0 || s.Rate.Ok() {
		t.Errorf("failed: %+v", s)
	}
}

// Counts that were estimates are put right when the usage comes, in the lines as well; requests that
// follow are counted as the first one turned out.
func TestLiveCounts(t *testing.T) {
	l := NewLive(Options{})
	l.Append(&bench.Step{Workers: 1})
	run := func(number int, start float64) {
		x := script{start: start, at: every(100, 10, 201), none: true, usage: &bench.Usage{Prompt: 1, Completion: 201, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}}.exchange(number)
		for i := range x.Chunks {
			x.Chunks[i].Text = "eight ch"
		}
		l.Append(x.Request)
		l.Append(x.Chunks)
		s := l.Snapshot(at(start + 2100))
		want, rate := 402, 200.0 // two tokens of four bytes a chunk
		if number > 0 {
			want, rate = 402, 100
		}
		if s.Tokens != want || s.Source != Estimate {
			t.Errorf("request %d, running: %d tokens by %s, want %d", number, s.Tokens, s.Source, want)
		}
		agree(t, "rate while running", s.Workers[0].Rate, Num(rate))
		l.Append(x.End)
	}
	run(0, 0)
	s := l.Snapshot(3 * time.Second)
	if s.Tokens != 201 || s.Source != Server {
		t.Errorf("ended: %d tokens by %s", s.Tokens, s.Source)
	}
	for _, p := range s.Sum {
		if p.Rate > 101 {
			t.Errorf("the line still has %v at %v", p.Rate, p.At)
		}
	}
	run(1, 3000)
}

// A kernel stamp that is missing turns the whole request over to user stamps.
func TestLiveRestamp(t *testing.T) {
	l := NewLive(Options{})
	x := script{at: every(100, 10, 50)}.exchange(0)
	for i := range x.Chunks {
		x.Chunks[i].User += 5 * ms
	}
	x.Chunks[40].Kernel = bench.Unset
	l.Append(x.Request)
	l.Append(x.Chunks[:40])
	agree(t, "TTFT by the kernel", l.Snapshot(490*ms).TTFT, 0.1)
	l.Append(x.Chunks[40:])
	agree(t, "TTFT by the reads", l.Snapshot(600*ms).TTFT, 0.10502)
}

// Warm-up is in the lines, not in the counts.
func TestLiveWarmup(t *testing.T) {
	l := NewLive(Options{})
	l.Append(&bench.Step{Workers: 1})
	x := script{at: every(100, 10, 101), warmup: true}.exchange(0)
	feed(l, x)
	s := l.Snapshot(2 * time.Second)
	if s.Tokens != 0 || s.Requests != 0 || s.OK != 0 || s.TTFTMedian.Ok() || len(s.Sum) == 0 {
		t.Errorf("after the warm-up: %+v", s)
	}
}

// Streams append and a window looks on, all at once.
func TestLiveConcurrent(t *testing.T) {
	l := NewLive(Options{})
	l.Append(&bench.Step{Workers: 8})
	var streams, window sync.WaitGroup
	stop := make(chan struct{})
	window.Go(func() {
		for i := time.Duration(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				l.Snapshot(i * 10 * ms)
			}
		}
	})
	for w := range 8 {
		streams.Go(func() {
			for i, q := range back(w, 20, 51, 100, 10, 1) {
				x := q.exchange(20*w + i)
				l.Append(x.Request)
				for k := range x.Chunks {
					l.Append(x.Chunks[k : k+1])
				}
				l.Append(x.End)
			}
		})
	}
	streams.Wait()
	close(stop)
	window.Wait()
	if s := l.Snapshot(15 * time.Second); s.Tokens != 8*20*51 || s.OK != 160 || s.Running != 0 {
		t.Errorf("%d tokens, %d ok, %d running", s.Tokens, s.OK, s.Running)
	}
}

// Snapshots leave nothing behind: what is kept of a long session is bounded.
func TestLiveForgets(t *testing.T) {
	l := NewLive(Options{})
	l.Append(&bench.Step{Workers: 1})
	for i, q := range back(0, 2000, 21, 900, 5, 1000) { // 2 s each: over an hour
		x := q.exchange(i)
		feed(l, x)
		l.Snapshot(x.End.End + ms)
	}
	if n := len(l.sum.line.tokens); n > 2000 {
		t.Errorf("%d cells of the sum are kept", n)
	}
	if n := len(l.sum.finished); n > 1000 {
		t.Errorf("%d periods are kept", n)
	}
	if s := l.Snapshot(4000 * time.Second); len(s.Sum) > Points || len(s.Workers[0].Points) > Points || len(s.Sum) < Points/4 {
		t.Errorf("%d points of the sum", len(s.Sum))
	}
}
