package measure

import (
	"testing"
	"time"

	"velo/bench"
)

// TestLateChunksKeepRates: chunks that come more than a second behind those of another stream are in the
// rates of their time, and no rate is negative when they leave the window.
func TestLateChunksKeepRates(t *testing.T) {
	l := NewLive(Options{})
	chunk := func(request int, at time.Duration) {
		l.Append(bench.Chunks{{Request: request, Kernel: at, User: at, Read: 1, Text: "a", Usage: -1, Exact: 1}})
	}
	for i := range 2 {
		l.Append(&bench.Request{Number: i, Worker: i})
		chunk(i, time.Duration(i+1)*time.Millisecond)
	}
	for at := 100 * time.Millisecond; at <= 4*time.Second; at += 100 * time.Millisecond {
		chunk(0, at)
		l.Snapshot(at)
	}
	for at := 2 * time.Second; at < 3*time.Second; at += 50 * time.Millisecond {
		chunk(1, at)
	}
	highest := 0.0
	for at := 4 * time.Second; at <= 8*time.Second; at += 100 * time.Millisecond {
		chunk(0, at)
		for _, p := range l.Snapshot(at).Sum {
			if p.Rate < 0 {
				t.Fatalf("at %v the sum is %g tok/s at %v", at, p.Rate, p.At)
			}
			if p.At == 3*time.Second {
				highest = max(highest, p.Rate)
			}
		}
	}
	if highest < 25 || highest > 35 { // 10 a second, and 20 more in the second before
		t.Errorf("the sum is %g tok/s at 3 s, not 30", highest)
	}
}
