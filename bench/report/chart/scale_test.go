package chart

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestTicksAreNiceAndCarryTheirDigits(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   []string
	}{
		{0, 60, 6, []string{"0", "10", "20", "30", "40", "50", "60"}},
		{0, 1, 5, []string{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{0.1, 0.35, 5, []string{"0.10", "0.15", "0.20", "0.25", "0.30", "0.35"}},
		{-15, 15, 6, []string{"−15", "−10", "−5", "0", "5", "10", "15"}},
		{0, 40000, 4, []string{"0", "10\u2009000", "20\u2009000", "30\u2009000", "40\u2009000"}},
		{0, 4e6, 4, []string{"0", "10⁶", "2×10⁶", "3×10⁶", "4×10⁶"}},
		{0, 2.5e-7, 5, []string{"0", "5×10⁻⁸", "10⁻⁷", "1.5×10⁻⁷", "2×10⁻⁷", "2.5×10⁻⁷"}},
		{3, 27, 5, []string{"5", "10", "15", "20", "25"}},
	} {
		s := &scale{min: c.lo, max: c.hi}
		values, step := s.tickValues(c.n)
		var got []string
		for _, tick := range labelled(values, step, nil) {
			got = append(got, tick.Label)
		}
		if len(got) != len(c.want) {
			t.Errorf("[%g, %g]: ticks %q, want %q", c.lo, c.hi, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("[%g, %g]: ticks %q, want %q", c.lo, c.hi, got, c.want)
				break
			}
		}
	}
}

func TestLogarithmicTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   []float64
	}{
		{1, 1000, 5, []float64{1, 10, 100, 1000}},
		{1, 10, 5, []float64{1, 2, 5, 10}},
		{30, 20000, 4, []float64{100, 1000, 10000}},
		{2e-300, 1e300, 4, []float64{1e-200, 1e-100, 1, 1e100, 1e200, 1e300}},
	} {
		s := &scale{min: c.lo, max: c.hi, log: true}
		got, _ := s.tickValues(c.n)
		if len(got) != len(c.want) {
			t.Errorf("[%g, %g]: ticks %v, want %v", c.lo, c.hi, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]/c.want[i]-1) > 1e-9 {
				t.Errorf("[%g, %g]: ticks %v, want %v", c.lo, c.hi, got, c.want)
				break
			}
		}
	}
}

func TestAnyScaleHoldsItsExtentAndFewOrderedTicks(t *testing.T) {
	value := rapid.OneOf(rapid.Float64Range(-1000, 1000), rapid.Float64Range(-1e305, 1e305))
	rapid.Check(t, func(t *rapid.T) {
		e := extent{log: rapid.Bool().Draw(t, "log")}
		for range rapid.IntRange(0, 4).Draw(t, "count") {
			e.add(value.Draw(t, "value"))
		}
		a := Axis{Log: e.log, ZeroBased: rapid.Bool().Draw(t, "zero")}
		n := rapid.IntRange(2, 12).Draw(t, "n")
		s := a.scale(e, rapid.SampledFrom([]int{0, n}).Draw(t, "round"))
		if !(s.min < s.max) || !finite(s.min) || !finite(s.max) {
			t.Fatalf("bounds %g, %g", s.min, s.max)
		}
		if slack := 1e-9 * (s.max - s.min); e.some && (e.lo < s.min-slack || e.hi > s.max+slack) {
			t.Fatalf("[%g, %g] does not hold [%g, %g]", s.min, s.max, e.lo, e.hi)
		}
		if a.ZeroBased && !a.Log && (s.min > 0 || s.max < 0) {
			t.Fatalf("[%g, %g] is not zero-based", s.min, s.max)
		}
		values, _ := s.tickValues(n)
		if len(values) > 4*n+9 {
			t.Fatalf("%d ticks for %d", len(values), n)
		}
		for i, v := range values {
			if !s.holds(v) || i > 0 && v <= values[i-1] {
				t.Fatalf("ticks %v on [%g, %g]", values, s.min, s.max)
			}
		}
		for _, v := range values {
			if f := s.fraction(v); !(f >= -1e-9 && f <= 1+1e-9) {
				t.Fatalf("fraction of %g is %g", v, f)
			}
		}
	})
}

func TestAutomaticBoundsWasteLittle(t *testing.T) {
	for _, hi := range []float64{57, 101, 9.9, 0.0123, 1800, 61} {
		for n := 2; n <= 8; n++ {
			s := Axis{ZeroBased: true}.scale(extent{hi: hi, lo: hi / 2, some: true}, n)
			if s.min != 0 || s.max < hi || s.max > 1.45*hi {
				t.Errorf("0 … %g at %d ticks has the axis [%g, %g]", hi, n, s.min, s.max)
			}
		}
	}
}

func TestFixedBounds(t *testing.T) {
	e := extent{lo: -20, hi: 80, some: true}
	for _, c := range []struct {
		axis   Axis
		lo, hi float64
	}{
		{Axis{Min: 0, Max: 50}, 0, 50},
		{Axis{Min: math.NaN(), Max: 50}, -20, 50},
		{Axis{Min: 10, Max: math.NaN()}, 10, 80},
		{Axis{}, -20, 80},
		{Axis{Min: 9, Max: 3}, -20, 80},
		{Axis{Min: math.Inf(-1), Max: math.Inf(1)}, -20, 80},
	} {
		if s := c.axis.scale(e, 5); s.min != c.lo || s.max != c.hi {
			t.Errorf("%+v gives [%g, %g], want [%g, %g]", c.axis, s.min, s.max, c.lo, c.hi)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3.14159: "3.14", 42.06: "42.1", 413.4: "413", 12400: "12\u2009400", -0.7: "−0.700", 0.0412: "0.0412",
		2.5e6: "2.5×10⁶", 1e-6: "10⁻⁶", 9.999: "10.0", 99.96: "100", -1e9: "−10⁹", math.Inf(1): "—",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}
