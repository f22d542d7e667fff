package chart

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRunsSplitAtGaps(t *testing.T) {
	nan := math.NaN()
	points := []Point{{0, 1}, {1, 2}, {2, nan}, {nan, 5}, {3, 4}, {4, math.Inf(1)}, {5, nan}, {6, 0}}
	got := runs(points, false, false)
	want := [][]Point{{{0, 1}, {1, 2}}, {{3, 4}}, {{6, 0}}}
	if !slices.EqualFunc(got, want, slices.Equal[[]Point]) {
		t.Errorf("runs are %v, want %v", got, want)
	}
	if got := runs(points, false, true); len(got) != 2 {
		t.Errorf("on a logarithmic axis zero is a gap: %v", got)
	}
}

func TestStepsHoldTheValue(t *testing.T) {
	got := steps([]Point{{0, 1}, {2, 3}, {4, 3}})
	want := []Point{{0, 1}, {2, 1}, {2, 3}, {4, 3}}
	if !slices.Equal(got, want) {
		t.Errorf("steps are %v, want %v", got, want)
	}
}

func TestClipCutsAtTheEdge(t *testing.T) {
	x, y := &scale{min: 0, max: 10}, &scale{min: 0, max: 10}
	for _, c := range []struct {
		name string
		run  []Point
		want [][]Point
	}{
		{"inside", []Point{{1, 1}, {2, 9}}, [][]Point{{{1, 1}, {2, 9}}}},
		{"over the top", []Point{{0, 5}, {1, 15}, {2, 5}}, [][]Point{{{0, 5}, {0.5, 10}}, {{1.5, 10}, {2, 5}}}},
		{"through", []Point{{-5, 5}, {15, 5}}, [][]Point{{{0, 5}, {10, 5}}}},
		{"beside", []Point{{-5, 5}, {-1, 5}}, nil},
		{"in from far", []Point{{5, 1e300}, {5, 5}}, [][]Point{{{5, 10}, {5, 5}}}},
	} {
		got := clip(c.run, x, y)
		same := func(a, b []Point) bool {
			return slices.EqualFunc(a, b, func(p, q Point) bool { return math.Abs(p.X-q.X) < 1e-6 && math.Abs(p.Y-q.Y) < 1e-6 })
		}
		if !slices.EqualFunc(got, c.want, same) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestClippedAndFlattenedRunsStayInside(t *testing.T) {
	value := rapid.OneOf(rapid.Float64Range(-30, 30), rapid.Float64Range(-1e305, 1e305))
	rapid.Check(t, func(t *rapid.T) {
		x, y := &scale{min: -7, max: 9}, &scale{min: -3, max: 11}
		var run []Point
		for range rapid.IntRange(1, 9).Draw(t, "n") {
			run = append(run, Point{value.Draw(t, "x"), value.Draw(t, "y")})
		}
		for _, parts := range [][][]Point{clip(run, x, y), flatten(run, x, y)} {
			for _, part := range parts {
				for _, p := range part {
					if !x.holds(p.X) || !y.holds(p.Y) {
						t.Fatalf("%v of %v is outside", p, run)
					}
				}
			}
		}
	})
}

func TestFlattenFollowsTheEdge(t *testing.T) {
	x, y := &scale{min: 0, max: 10}, &scale{min: 0, max: 10}
	got := flatten([]Point{{0, 5}, {2, 25}, {4, -15}}, x, y)
	want := []Point{{0, 5}, {0.5, 10}, {2, 10}, {2.75, 10}, {3.25, 0}, {4, 0}}
	if len(got) != 1 || !slices.EqualFunc(got[0], want, func(p, q Point) bool { return math.Abs(p.X-q.X) < 1e-9 && math.Abs(p.Y-q.Y) < 1e-9 }) {
		t.Errorf("flattened is %v, want %v", got, want)
	}
}

func TestDecimateKeepsEveryColumnsExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, width := rapid.IntRange(1, 6000).Draw(t, "n"), float64(rapid.IntRange(1, 300).Draw(t, "width"))
		seed := rapid.Int64().Draw(t, "seed")
		run := stalled(seed, n, 40)
		x := &scale{min: 0, max: 30}
		out := decimate(run, x, width)
		if len(out) > 4*int(width)+8 {
			t.Fatalf("%d points for %g columns", len(out), width)
		}
		type range2 struct{ lo, hi float64 }
		extremes := func(points []Point) map[int]range2 {
			m := map[int]range2{}
			for _, p := range points {
				c := int(math.Floor(x.fraction(p.X) * width))
				r, ok := m[c]
				if !ok {
					r = range2{p.Y, p.Y}
				}
				m[c] = range2{math.Min(r.lo, p.Y), math.Max(r.hi, p.Y)}
			}
			return m
		}
		before, after := extremes(run), extremes(out)
		for c, r := range before {
			if after[c] != r {
				t.Fatalf("column %d was %v, is %v", c, r, after[c])
			}
		}
		if out[0] != run[0] || out[len(out)-1] != run[len(run)-1] {
			t.Fatal("the ends are not kept")
		}
	})
}

func TestALineThatGoesBackAndForthIsBoundedToo(t *testing.T) {
	points := make([]Point, 50000)
	for i := range points {
		points[i] = Point{float64(i * 7919 % 50000), float64(i * 104729 % 1000)}
	}
	x := &scale{min: 0, max: 50000}
	out := decimate(points, x, 500)
	if len(out) > 4*501+8 {
		t.Errorf("%d points for 500 columns", len(out))
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range out {
		lo, hi = math.Min(lo, p.Y), math.Max(hi, p.Y)
	}
	if lo != 0 || hi != 999 {
		t.Errorf("drawn from %g to %g", lo, hi)
	}
	few := []Point{{3, 1}, {1, 2}, {2, 0}}
	if got := decimate(few, x, 500); !slices.Equal(got, few) {
		t.Errorf("a short path is reordered: %v", got)
	}
}

func TestASpikeAndAStallSurviveFiftyThousandPoints(t *testing.T) {
	points := make([]Point, 50000)
	for i := range points {
		points[i] = Point{float64(i) / 1000, 40 + math.Sin(float64(i))}
	}
	points[31234].Y = 90
	points[11111].Y = 0
	c := Lines{Y: Axis{ZeroBased: true}, Lines: []Line{{Points: points}}}
	r := record(t, c, 600, 400)
	lowest, highest := math.Inf(-1), math.Inf(1) // y runs downwards
	for _, d := range r.data() {
		for _, sub := range d.shape {
			if len(sub.points) > 4*600 {
				t.Errorf("%d points drawn on 600 px", len(sub.points))
			}
			for _, at := range sub.points {
				lowest, highest = math.Max(lowest, at.y), math.Min(highest, at.y)
			}
		}
	}
	s := c.compose(600, 400, Light)
	place := func(v float64) float64 { return s.plot.bottom - s.y.fraction(v)*s.plot.height() }
	if math.Abs(lowest-place(0)) > 0.1 || math.Abs(highest-place(90)) > 0.1 {
		t.Errorf("drawn from %g to %g, want %g to %g", lowest, highest, place(0), place(90))
	}
}

func TestAGapIsDrawnAsAGap(t *testing.T) {
	c := Lines{Lines: []Line{{Points: []Point{{0, 1}, {1, 2}, {2, math.NaN()}, {3, 2}, {4, 1}, {5, math.NaN()}, {6, 1}}}}}
	r := record(t, c, 400, 240)
	if n := len(r.data()); n != 2 {
		t.Errorf("%d strokes, want 2", n)
	}
	if len(r.discs) != 1 {
		t.Errorf("%d dots for the single point, want 1", len(r.discs))
	}
}

func TestEnvelopeCoversEverySample(t *testing.T) {
	e := &Envelope{}
	for i := range 5000 {
		e.X = append(e.X, float64(i))
		e.Lo = append(e.Lo, 10-float64(i%97)/10)
		e.Hi = append(e.Hi, 20+float64(i%89)/10)
	}
	x, y := &scale{min: 0, max: 4999}, &scale{min: 0, max: 30}
	got := cover(e.samples(false, false)[0], x, y, 300)
	if len(got) > 301 {
		t.Errorf("%d samples on 300 px", len(got))
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, s := range got {
		lo, hi = math.Min(lo, s.lo), math.Max(hi, s.hi)
	}
	if math.Abs(lo-0.4) > 1e-9 || math.Abs(hi-28.8) > 1e-9 {
		t.Errorf("covers %g to %g", lo, hi)
	}
}
