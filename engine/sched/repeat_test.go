package sched

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRepeats: the detector says what looking at the last window tokens says.
func TestRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window, times := rapid.IntRange(3, 40).Draw(t, "window"), rapid.IntRange(2, 4).Draw(t, "times")
		// Random tokens of a small vocabulary, with stretches of a repeated phrase.
		var tokens []int32
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			phrase := rapid.SliceOfN(rapid.Int32Range(0, 2), 1, 15).Draw(t, "phrase")
			tokens = append(tokens, slices.Repeat(phrase, rapid.IntRange(1, 30).Draw(t, "repeats"))...)
		}
		r := newRepeats(window, times)
		for i, id := range tokens {
			want := false
			for p := 1; p <= max(window/times, 1) && i+1 >= window; p++ {
				last := tokens[i+1-window : i+1]
				want = want || slices.Equal(last[p:], last[:window-p])
			}
			if got := r.add(id); got != want {
				t.Fatalf("after %v: a loop is %v instead of %v", tokens[:i+1], got, want)
			}
		}
	})
}

// TestRepeatsDefaults: 300 tokens of a period of up to 100 are a loop, nothing
// less is.
func TestRepeatsDefaults(t *testing.T) {
	for _, period := range []int{1, 2, 7, 99, 100} {
		r := newRepeats(300, 3)
		for i := range 300 {
			if got, want := r.add(int32(i%period)), i == 299; got != want {
				t.Errorf("period %d, token %d: a loop is %v", period, i, got)
			}
		}
	}
	r := newRepeats(300, 3)
	for i := range 1000 {
		if r.add(int32(i % 101)) {
			t.Fatal("a period of 101 is a loop")
		}
	}
}
