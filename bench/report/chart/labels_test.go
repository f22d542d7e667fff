package chart

import (
	"math"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

func TestSpreadMovesLabelsApartAsLittleAsNeeded(t *testing.T) {
	got, ok := spread([]float64{50, 10, 52}, 10, 0, 100)
	want := []float64{46, 10, 56}
	if !ok || math.Abs(got[0]-want[0]) > 1e-9 || got[1] != 10 || math.Abs(got[2]-want[2]) > 1e-9 {
		t.Errorf("spread to %v, want %v", got, want)
	}
	if _, ok := spread([]float64{1, 2, 3}, 10, 0, 15); ok {
		t.Error("three labels of 10 fit into 15")
	}
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.SliceOfN(rapid.Float64Range(-50, 150), 0, 12).Draw(t, "wanted")
		got, ok := spread(wanted, 8, 0, 100)
		if ok != (len(wanted) <= 13) {
			t.Fatalf("%d labels fit: %v", len(wanted), ok)
		}
		order := make([]int, len(got))
		for i := range order {
			order[i] = i
		}
		sort.Slice(order, func(a, b int) bool { return got[order[a]] < got[order[b]] })
		for k, i := range order {
			if got[i] < -1e-9 || got[i] > 100+1e-9 {
				t.Fatalf("%v is outside", got)
			}
			if k > 0 {
				before := order[k-1]
				if got[i]-got[before] < 8-1e-9 {
					t.Fatalf("%v are too close", got)
				}
				if wanted[i] < wanted[before] {
					t.Fatalf("%v changes the order of %v", got, wanted)
				}
			}
		}
	})
}

func TestStackKeepsTagsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := make([]tag, rapid.IntRange(0, 10).Draw(t, "n"))
		for i := range tags {
			tags[i] = tag{centre: rapid.Float64Range(0, 300).Draw(t, "centre"), width: rapid.Float64Range(5, 120).Draw(t, "width")}
		}
		rows := stack(tags, 10, 290, 8, 3)
		if rows > 3 {
			t.Fatalf("%d rows", rows)
		}
		for i, a := range tags {
			if a.row < 0 {
				continue
			}
			if a.left < 10-1e-9 || a.left+a.width > 290+1e-9 || a.row >= rows {
				t.Fatalf("%+v is outside", a)
			}
			for _, b := range tags[:i] {
				if a.row == b.row && a.left < b.left+b.width+8-1e-9 && b.left < a.left+a.width+8-1e-9 {
					t.Fatalf("%+v overlaps %+v", a, b)
				}
			}
		}
	})
}

func TestUpToFiveLinesAreNamedAtTheirEnds(t *testing.T) {
	c := samples()["five"].(Lines)
	s := c.compose(600, 320, Light)
	beside := 0
	for _, l := range s.labels {
		if l.x > s.plot.right && l.text != "" {
			beside++
		}
	}
	if beside != 5 {
		t.Errorf("%d names beside the plot, want 5", beside)
	}
	c = samples()["sixteen"].(Lines)
	s = c.compose(600, 320, Light)
	for _, l := range s.labels {
		if l.x > s.plot.right {
			t.Errorf("%q stands beside the plot, it belongs into the legend", l.text)
		}
	}
	r := record(t, c, 600, 320)
	patterns := map[string]bool{}
	for _, line := range c.prepare(Light) {
		key := ""
		for _, d := range line.dash {
			key += short(d) + " "
		}
		patterns[key+paint("c", opaque(line.color))] = true
	}
	if len(patterns) != 16 {
		t.Errorf("%d of 16 lines can be told apart", len(patterns))
	}
	for _, want := range []string{"worker 1", "worker 16"} {
		if !r.has(want) {
			t.Errorf("the legend lacks %q", want)
		}
	}
}

func TestALegendThatIsCutSaysHowMuch(t *testing.T) {
	r := record(t, samples()["sixteen"], 240, 140)
	found := false
	for _, l := range r.texts {
		if len(l.body) > 2 && l.body[:2] == "+ " {
			found = true
		}
	}
	if !found {
		t.Errorf("names are missing without a word: %v", r.texts)
	}
}

func TestWhatIsOutsideTheAxisIsNamed(t *testing.T) {
	c := Histogram{X: Axis{Label: "ITL", Unit: "ms", Min: 0, Max: 2}, Edges: []float64{0, 1, 2, 3, math.Inf(1)}, Counts: []float64{5, 4, 3, 2}}
	if r := record(t, c, 600, 300); !r.has("ITL, ms (5 outside)") {
		t.Errorf("3 + 2 counts are lost without a word: %v", r.texts)
	}
	c = Histogram{Edges: []float64{0, 1}, Counts: []float64{5, 4, 3}}
	if r := record(t, c, 600, 300); !r.has("7 outside") {
		t.Errorf("4 + 3 counts without edges are lost without a word: %v", r.texts)
	}
}

func TestCountsHaveWholeTicks(t *testing.T) {
	c := Histogram{Edges: []float64{0, 1, 2}, Counts: []float64{1, 2}}
	s := c.compose(600, 400, Light)
	if len(s.y.ticks) < 3 {
		t.Errorf("ticks are %v", s.y.ticks)
	}
	for _, tick := range s.y.ticks {
		if tick.Value != math.Trunc(tick.Value) {
			t.Errorf("%v is no count", tick.Value)
		}
	}
}

func TestAnyCountIsVisible(t *testing.T) {
	for _, logarithmic := range []bool{false, true} {
		c := Histogram{Edges: []float64{0, 1, 2, 3}, Counts: []float64{1e6, 0, 1}, LogCounts: logarithmic}
		r := record(t, c, 600, 300)
		bars := 0
		for _, f := range r.fills {
			if box, ok := rectangle(f.shape); ok && f.color == opaque(Light.series(0)) {
				bars++
				if box.height() < 1 || box.width() < 1 {
					t.Errorf("a bar of %g × %g", box.width(), box.height())
				}
			}
		}
		if bars != 2 {
			t.Errorf("logarithmic %v: %d bars, want 2", logarithmic, bars)
		}
	}
}
