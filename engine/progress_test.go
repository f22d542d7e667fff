package engine

import (
	"testing"
	"time"

	"velo/engine/enginetest"
	"velo/engine/weights"
)

// TestProgressRate: the rate is that of the last half second and more, and 0 until there is one.
func TestProgressRate(t *testing.T) {
	e := loadTiny(t, enginetest.Plain, Options{Context: 128, Lanes: 1})
	now := time.Unix(100, 0)
	var last Progress
	p := &pace{from: now, now: func() time.Time { return now }, progress: func(p Progress) { last = p }}
	c := e.Weights.Counted(p.tell)
	var names []string
	e.Weights.Each(func(w *weights.Tensor) { names = append(names, w.Name) })
	ask := func(i int, later time.Duration) { now = now.Add(later); c.Tensor(names[i]) }
	ask(0, 0)
	ask(1, 100*time.Millisecond)
	if last.Rate != 0 || last.Done <= 0 {
		t.Errorf("after 0.1 s: %+v", last)
	}
	ask(2, 900*time.Millisecond)
	if want := float64(last.Done); last.Rate != want {
		t.Errorf("%d bytes in a second are %v a second", last.Done, last.Rate)
	}
	before, rate := last.Done, last.Rate
	ask(3, 400*time.Millisecond)
	if last.Rate != rate {
		t.Errorf("after 0.4 s more it is %v and was %v", last.Rate, rate)
	}
	ask(4, 1600*time.Millisecond)
	if want := float64(last.Done-before) / 2; last.Rate != want {
		t.Errorf("%d bytes in 2 s are %v a second", last.Done-before, last.Rate)
	}
	rate = last.Rate
	now = now.Add(time.Hour) // what was asked for last may have been there long before
	if c.End(); last != (Progress{e.Weights.Bytes(), e.Weights.Bytes(), rate}) {
		t.Errorf("the end is %+v at %v a second", last, rate)
	}
	if paced(nil) != nil {
		t.Error("nobody listens and is told")
	}
}
