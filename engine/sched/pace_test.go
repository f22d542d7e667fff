package sched

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	var p pace
	if n := p.rows(0, 512); n != 512 {
		t.Errorf("without a bound a step has %d rows", n)
	}
	if n := p.rows(time.Second, 512); n != firstRows {
		t.Errorf("the first step has %d rows", n)
	}
	p.note(Step{Rows: 4, Prefill: 4, Took: time.Hour})
	if p.row != 0 {
		t.Error("a step of few rows counted")
	}
	for _, c := range []struct {
		row  time.Duration
		want int
	}{{time.Millisecond, 100}, {time.Microsecond, 512}, {time.Second, leastRows}, {2 * time.Millisecond, 50}} {
		for range 60 {
			p.note(Step{Rows: 100, Prefill: 90, Took: 100 * c.row})
		}
		if n := p.rows(100*time.Millisecond, 512); n < c.want-1 || n > c.want+1 {
			t.Errorf("at %v a row a step has %d rows, want %d", c.row, n, c.want)
		}
	}
}

// TestStepTime: steps are cut to the time that they may take, whoever reads.
func TestStepTime(t *testing.T) {
	seen := newTally()
	s := New(newModel(t, "plain", size{tokens: 2048, sequences: 4}), Options{Lanes: 4, StepTokens: 64, StepTime: time.Second, Observer: seen})
	submit(t, s, &Request{Prompt: text(2, 300), MaxTokens: 2})
	s.pace.row = 1.0 / 20 // 20 rows a second
	if _, err := s.turn(); err != nil {
		t.Fatal(err)
	}
	if seen.rows != 20 {
		t.Errorf("a step of a second has %d rows at 20 rows a second", seen.rows)
	}
}
