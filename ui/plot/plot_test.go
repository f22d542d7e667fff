package plot

import (
	"image"
	"image/color"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench/measure"
	"velo/ui/look"
)

var white = color.NRGBA{0xff, 0xff, 0xff, 0xff}

func blank(w, h int) (*Raster, *image.RGBA) {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	r := &Raster{}
	r.On(img)
	r.Clear(color.NRGBA{0, 0, 0, 0xff})
	return r, img
}

func brightness(img *image.RGBA, x, y int) int { return int(img.RGBAAt(x, y).R) }

// total is the light in the image, in fully covered pixels.
func total(img *image.RGBA) float64 {
	sum := 0
	for i := 0; i < len(img.Pix); i += 4 {
		sum += int(img.Pix[i])
	}
	return float64(sum) / 255
}

func points(p ...[2]float32) (int, func(int) (float32, float32)) {
	return len(p), func(i int) (float32, float32) { return p[i][0], p[i][1] }
}

func TestLineCoversItsLengthTimesItsWidth(t *testing.T) {
	for name, to := range map[string][2]float32{
		"flat": {90, 50}, "rising": {90, 20}, "steep": {40, 5}, "upright": {10, 90}, "diagonal": {50, 90},
	} {
		r, img := blank(100, 100)
		n, at := points([2]float32{10, 50}, to)
		r.Line(n, at, 1.5, white)
		want := 1.5 * math.Hypot(float64(to[0]-10), float64(to[1]-50))
		if got := total(img); math.Abs(got-want) > 0.05*want+2 {
			t.Errorf("%s: %.1f pixels of light, want about %.1f", name, got, want)
		}
	}
}

func TestLineKeepsPeaks(t *testing.T) {
	// A thousand samples in ten columns, one of them high up.
	r, img := blank(20, 100)
	r.Line(1000, func(i int) (float32, float32) {
		y := float32(90)
		if i == 500 {
			y = 5
		}
		return float32(i) / 100, y
	}, 1.5, white)
	if brightness(img, 5, 8) == 0 {
		t.Error("a peak between samples of one column was lost")
	}
}

func TestLineGaps(t *testing.T) {
	nan := float32(math.NaN())
	r, img := blank(100, 20)
	n, at := points([2]float32{5, 10}, [2]float32{30, 10}, [2]float32{50, nan}, [2]float32{70, 10}, [2]float32{95, 10})
	r.Line(n, at, 2, white)
	if brightness(img, 20, 10) == 0 || brightness(img, 80, 10) == 0 {
		t.Error("the parts beside the gap are missing")
	}
	if brightness(img, 50, 10) != 0 {
		t.Error("the gap was bridged")
	}
}

func TestLineBlendsOnce(t *testing.T) {
	half := white
	half.A = 0x80
	r, img := blank(40, 20)
	n, at := points([2]float32{5, 10}, [2]float32{20, 10}, [2]float32{20, 10}, [2]float32{35, 10})
	r.Line(n, at, 2, half)
	for x := 8; x < 32; x++ {
		if b := brightness(img, x, 10); b < 0x7d || b > 0x83 {
			t.Fatalf("column %d has %#x, want 0x80 everywhere", x, b)
		}
	}
}

func TestRasterStaysInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(0, 40).Draw(t, "w"), rapid.IntRange(0, 40).Draw(t, "h")
		r, _ := blank(w, h)
		f := rapid.SampledFrom([]float32{-1e30, -50, 0, 3.5, 39.99, 40, 1e9, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())})
		p := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]float32 { return [2]float32{f.Draw(t, "x"), f.Draw(t, "y")} }), 0, 12).Draw(t, "points")
		n, at := points(p...)
		r.Line(n, at, 1.5, white)
		for _, v := range r.cover {
			if v != 0 {
				t.Fatal("coverage was left behind")
			}
		}
		r.Rect(rapid.IntRange(-50, 50).Draw(t, "rx"), rapid.IntRange(-50, 50).Draw(t, "ry"), 20, 20, white)
		r.Text(TypeOf(true, 12), "12.3 µs", rapid.IntRange(-60, 60).Draw(t, "tx"), rapid.IntRange(-60, 60).Draw(t, "ty"), white)
	})
}

func TestAxisGrowsInStepsAndNeverShrinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Axis
		steps := 0
		for _, v := range rapid.SliceOf(rapid.Float64Range(0, 1e6)).Draw(t, "values") {
			before := a.Top
			if a.Reach(v) {
				steps++
			}
			if a.Top < before || a.Top < v {
				t.Fatalf("top %g after %g, was %g", a.Top, v, before)
			}
			if v > 0 && a.Top > 2*v*(1+1e-9) && a.Top != before {
				t.Fatalf("top %g is more than twice %g", a.Top, v)
			}
		}
		if steps > 60 {
			t.Fatalf("%d steps: the axis follows instead of stepping", steps)
		}
	})
	var a Axis
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		if a.Reach(v) {
			t.Errorf("grew to %g for %g", a.Top, v)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		top  float64
		n    int
		want []float64
	}{
		{150, 6, []float64{0, 50, 100, 150}},
		{100, 5, []float64{0, 20, 40, 60, 80, 100}},
		{1, 3, []float64{0, 0.5, 1}},
		{8, 5, []float64{0, 2, 4, 6, 8}},
		{0, 5, []float64{0}},
	} {
		got := (&Axis{Top: c.top}).Ticks(c.n)
		if len(got) != len(c.want) {
			t.Errorf("ticks of %g: %v, want %v", c.top, got, c.want)
			continue
		}
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("ticks of %g: %v, want %v", c.top, got, c.want)
			}
		}
	}
}

func TestTimeTicks(t *testing.T) {
	for _, c := range []struct {
		top  float64
		last string
	}{{10, "10 s"}, {60, "60 s"}, {600, "10 min"}, {7200, "120 min"}, {28800, "8 h"}} {
		at, text := timeTicks(c.top, 8)
		if text[len(text)-1] != c.last || len(at) > 9 {
			t.Errorf("top %g: %v %v, want the last to be %q", c.top, at, text, c.last)
		}
	}
}

func TestSpreadKeepsLabelsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 7).Draw(t, "n")
		var l []label
		for range n {
			l = append(l, label{y: float32(rapid.Float64Range(-50, 250).Draw(t, "y"))})
		}
		l = spread(l, 16, 10, 200)
		for i := range l {
			if l[i].y > 200.01 {
				t.Fatalf("label at %g is below the plot", l[i].y)
			}
			if i > 0 && l[i].y-l[i-1].y < 15.99 {
				t.Fatalf("labels at %g and %g overlap", l[i-1].y, l[i].y)
			}
		}
	})
}

func TestTimelineKeepsItsAxes(t *testing.T) {
	var d Timeline
	img := image.NewRGBA(image.Rect(0, 0, 600, 300))
	draw := func(seconds int, rate float64) (float64, float64) {
		var s []measure.RollingSample
		for i := 0; i <= seconds*10; i++ {
			s = append(s, measure.RollingSample{At: time.Duration(i) * 100 * time.Millisecond, Rate: rate})
		}
		d.Draw(img, 1, look.Dark, Rates{Sum: s, Median: rate, Now: rate, Label: "x", Middle: "median x"})
		return d.Tops()
	}
	x, y := draw(25, 180)
	if x != 30 || y != 200 {
		t.Fatalf("axes end at %g s and %g tok/s, want 30 and 200", x, y)
	}
	if x, y = draw(3, 12); x != 30 || y != 200 {
		t.Fatalf("axes shrank to %g s and %g tok/s while the eye follows", x, y)
	}
	d.Reset()
	if x, y = draw(3, 12); x != 10 || y != 15 {
		t.Fatalf("after a reset axes end at %g s and %g tok/s, want 10 and 15", x, y)
	}
}

func TestTimelineShowsTheLine(t *testing.T) {
	var d Timeline
	img := image.NewRGBA(image.Rect(0, 0, 600, 300))
	var s []measure.RollingSample
	for i := range 100 {
		s = append(s, measure.RollingSample{At: time.Duration(i) * 100 * time.Millisecond, Rate: 50})
	}
	d.Draw(img, 1, look.Dark, Rates{Sum: s, Median: math.NaN(), Now: math.NaN()})
	accent := 0
	for y := range 300 {
		for x := range 600 {
			if c := img.RGBAAt(x, y); c.B > 0xa0 && c.R < 0x70 {
				accent++
			}
		}
	}
	if accent < 300 {
		t.Errorf("%d pixels of the line's colour", accent)
	}
}

func TestDrawingsOfAnySize(t *testing.T) {
	s := []measure.RollingSample{{At: 0, Rate: 1}, {At: time.Second, Rate: math.Inf(1)}, {At: 2 * time.Second, Rate: math.NaN()}, {At: time.Second, Rate: 3}}
	for _, size := range []image.Point{{}, {X: 1, Y: 1}, {X: 30, Y: 500}, {X: 500, Y: 30}, {X: 2000, Y: 1200}} {
		for _, scale := range []float64{1, 1.5, 3} {
			img := image.NewRGBA(image.Rectangle{Max: size})
			(&Timeline{}).Draw(img, scale, look.Light, Rates{Sum: s, Workers: [][]measure.RollingSample{s, nil}, Median: 1e300, Now: 2, Label: "2", Middle: "median"})
			(&Workers{}).Draw(img, scale, look.Light, []Worker{{Number: 1, State: "decode", Rate: "12", Tokens: "1", TTFT: "—", Points: s}, {}})
		}
	}
}

func TestHeightForHoldsAllRows(t *testing.T) {
	for _, c := range []struct {
		n     int
		width float32
		want  float32
	}{{0, 1000, 0}, {1, 1000, 44}, {16, 1100, 7 * 22}, {64, 1100, 23 * 22}, {64, 300, 65 * 22}} {
		if got := HeightFor(c.n, c.width); got != c.want {
			t.Errorf("%d workers in %g: %g, want %g", c.n, c.width, got, c.want)
		}
	}
}

func BenchmarkTimeline16(b *testing.B) {
	var d Timeline
	img := image.NewRGBA(image.Rect(0, 0, 1096, 260))
	r := Rates{Median: 600, Now: 640, Label: "640", Middle: "median 600"}
	line := func(k int, rate float64) []measure.RollingSample {
		var s []measure.RollingSample
		for i := range measure.Points {
			s = append(s, measure.RollingSample{At: time.Duration(i) * 100 * time.Millisecond, Rate: rate * (1 + 0.1*math.Sin(float64(i*(k+3))))})
		}
		return s
	}
	r.Sum = line(0, 640)
	for w := range 16 {
		r.Workers = append(r.Workers, line(w, 40))
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Draw(img, 1, look.Dark, r)
	}
}

func BenchmarkWorkers16(b *testing.B) {
	var d Workers
	img := image.NewRGBA(image.Rect(0, 0, 1096, 154))
	var rows []Worker
	for w := range 16 {
		row := Worker{Number: w + 1, State: "decode", Rate: "41.8", Tokens: "1,234", TTFT: "203 ms"}
		for i := range measure.Points {
			row.Points = append(row.Points, measure.RollingSample{At: time.Duration(i) * 100 * time.Millisecond, Rate: 40 + 4*math.Sin(float64(i*(w+3)))})
		}
		rows = append(rows, row)
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Draw(img, 1, look.Dark, rows)
	}
}
