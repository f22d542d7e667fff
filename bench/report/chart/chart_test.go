package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"strings"
	"testing"

	"codeberg.org/go-pdf/fpdf"
	"pgregory.net/rapid"
)

var sizes = [][2]int{{240, 140}, {320, 140}, {240, 400}, {391, 212}, {600, 400}, {1000, 180}, {2000, 1200}}

func TestLabelsAreInsideAndApartAtEverySize(t *testing.T) {
	for name, c := range samples() {
		for _, size := range sizes {
			w, h := float64(size[0]), float64(size[1])
			r := record(t, c, w, h)
			if err := r.faults(w, h); err != nil {
				t.Errorf("%s at %d × %d: %v", name, size[0], size[1], err)
			}
			if len(r.texts) == 0 {
				t.Errorf("%s at %d × %d has no text at all", name, size[0], size[1])
			}
		}
	}
}

// hostile are charts that would make go-chart fail, panic or draw nothing.
func hostile() map[string]Chart {
	inf, nan := math.Inf(1), math.NaN()
	line := func(points ...Point) Lines { return Lines{Title: "t", Lines: []Line{{Name: "a", Points: points}}} }
	fixed := line(Point{0, 0}, Point{1, 100}, Point{2, -100}, Point{3, 5})
	fixed.Y, fixed.X = Axis{Min: 0, Max: 10}, Axis{Min: 0.5, Max: 2.5}
	fixed.Lines[0].Style.Fill = true
	equalFill := line(Point{1, 1}, Point{1, 2}, Point{1, 1})
	equalFill.Lines[0].Style = Style{Fill: true, Step: true, Width: nan, Index: -4}
	logarithmic := line(Point{-1, 1}, Point{0, 0}, Point{1e-300, 1e300}, Point{1e300, 1e-300})
	logarithmic.X.Log, logarithmic.Y.Log = true, true
	negativeLog := line(Point{-1, -1}, Point{-2, -3})
	negativeLog.Y.Log = true
	badMarkers := line(Point{0, 1}, Point{1, 2})
	badMarkers.Markers = []Marker{{nan, X, "nan", nil}, {inf, Y, "inf", nil}, {1e300, Y, "far", []float64{0, 0}}, {0.5, X, "", nil}, {-5, Orientation(9), "odd", nil}}
	badMarkers.Bands = []Band{{nan, 1, color.RGBA{}, "x"}, {-inf, inf, color.RGBA{}, "everything"}, {1, 0, color.RGBA{}, "reversed"}}
	badMarkers.Envelope = &Envelope{X: []float64{0, nan, 1, 2}, Lo: []float64{3, 1}, Hi: []float64{inf, 2, 3}}
	long := line(Point{0, 1}, Point{1, 2})
	long.Title = strings.Repeat("a very long title ", 40)
	long.X.Label, long.Y.Label, long.Lines[0].Name = long.Title, long.Title, long.Title
	shout := line(Point{0, 1}, Point{5, 2})
	shout.Y.Format = func(float64) string { return "the same very wide label for every tick" }
	shout.X.Format = func(v float64) string { return strings.Repeat("w", 30) }
	foreign := line(Point{0, 1}, Point{1, 2})
	foreign.Title, foreign.Lines[0].Name = "日本語 🙂 \x00\xff <&>\"", "\u202e模型"
	onlyBands := Lines{Bands: []Band{{0, 1, color.RGBA{}, "a"}}}
	many := Lines{}
	for i := range 400 {
		many.Lines = append(many.Lines, Line{Name: fmt.Sprint("series with a name ", i), Points: []Point{{0, float64(i)}, {1, float64(i)}}})
	}
	manyBars := Bars{Values: make([]float64, 5000)}
	for i := range manyBars.Values {
		manyBars.Values[i] = float64(i % 17)
		manyBars.Labels = append(manyBars.Labels, fmt.Sprint("bar ", i))
	}
	manyAcross := manyBars
	manyAcross.Horizontal = true
	return map[string]Chart{
		"nothing": Lines{}, "no histogram": Histogram{}, "no bars": Bars{},
		"one point": line(Point{3, 4}), "zero point": line(Point{0, 0}), "equal x": line(Point{1, 2}, Point{1, 9}),
		"equal y": line(Point{1, 2}, Point{2, 2}), "all nan": line(Point{1, nan}, Point{2, nan}), "nan x": line(Point{nan, 1}),
		"infinite": line(Point{1, inf}, Point{2, -inf}, Point{inf, 2}), "some nan": line(Point{0, 1}, Point{1, nan}, Point{2, 1}),
		"huge": line(Point{-1e300, -1e300}, Point{1e300, 1e300}), "largest": line(Point{-math.MaxFloat64, -math.MaxFloat64}, Point{math.MaxFloat64, math.MaxFloat64}),
		"tiny": line(Point{0, 1e-300}, Point{1e-300, 2e-300}), "denormal": line(Point{0, 5e-324}, Point{5e-324, 0}),
		"close": line(Point{1e6, 1e6}, Point{math.Nextafter(1e6, 2e6), math.Nextafter(1e6, 2e6)}),
		"fixed": fixed, "equal x filled": equalFill, "logarithmic": logarithmic, "negative on log": negativeLog,
		"markers": badMarkers, "long": long, "wide ticks": shout, "foreign": foreign, "only bands": onlyBands, "many": many,
		"backwards": line(Point{5, 1}, Point{3, 2}, Point{9, 0}),
		"unequal":   Histogram{Edges: []float64{0, 1}, Counts: []float64{1, 2, 3}},
		"no edges":  Histogram{Counts: []float64{1, 2, 3}}, "no counts": Histogram{Edges: []float64{0, 1}},
		"equal edges": Histogram{Edges: []float64{1, 1, 1}, Counts: []float64{4, 5}}, "falling edges": Histogram{Edges: []float64{3, 2, 1}, Counts: []float64{4, 5}},
		"overflow bin": Histogram{Edges: []float64{-inf, 0, 1, inf}, Counts: []float64{4, 5, 6}},
		"bad counts":   Histogram{Edges: []float64{0, 1, 2, 3}, Counts: []float64{nan, -5, inf}}, "huge counts": Histogram{Edges: []float64{0, 1, 2}, Counts: []float64{1e300, 1}, LogCounts: true},
		"small counts": Histogram{Edges: []float64{0, 1, 2}, Counts: []float64{1e-9, 1e-3}, LogCounts: true, Y: Axis{Min: -1, Max: 5}},
		"bars unequal": Bars{Labels: []string{"a"}, Values: []float64{1, 2}, Lo: []float64{0}, Hi: []float64{3, 4, 5}}, "labels only": Bars{Labels: []string{"a", "b"}},
		"bars zero": Bars{Values: []float64{0, 0}}, "bars huge": Bars{Values: []float64{-1e308, 1e308}, Labels: []string{"a", "b"}},
		"bars log":   Bars{Y: Axis{Log: true}, Values: []float64{0, -1, 1, 1e9}, Lo: []float64{0, 0, 0.5}, Hi: []float64{0, 0, 2}},
		"bars fixed": Bars{Y: Axis{Min: 5, Max: 9}, Values: []float64{1, 7, 20}}, "bars fixed across": Bars{Y: Axis{Min: 5, Max: 9}, Values: []float64{1, 7, 20}, Horizontal: true},
		"many bars": manyBars, "many across": manyAcross,
	}
}

func TestHostileChartsDraw(t *testing.T) {
	pdf := document()
	for name, c := range hostile() {
		for _, size := range append(sizes, [2]int{1, 1}, [2]int{20, 20}, [2]int{60, 300}, [2]int{300, 40}) {
			w, h := float64(size[0]), float64(size[1])
			r := record(t, c, w, h)
			if err := r.faults(w, h); err != nil {
				t.Errorf("%s at %d × %d: %v", name, size[0], size[1], err)
			}
		}
		if _, err := Image(c, 300, 200, 1.5, Dark); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := SVG(&bytes.Buffer{}, c, 300, 200, Dark); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := PDF(pdf, c, 10, 10, 120, 60, Light); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEmptyChartsSaySo(t *testing.T) {
	for _, name := range []string{"nothing", "no histogram", "no bars", "all nan", "nan x", "infinite", "negative on log", "only bands", "no counts", "bad counts", "labels only", "largest"} {
		if r := record(t, hostile()[name], 400, 240); !r.has("No data") {
			t.Errorf("%s does not say that there is no data: %v", name, r.texts)
		}
	}
	for _, name := range []string{"one point", "zero point", "equal x", "equal y", "some nan", "huge", "tiny", "denormal", "close", "bars zero"} {
		if r := record(t, hostile()[name], 400, 240); r.has("No data") || len(r.texts) < 3 {
			t.Errorf("%s shows no axes: %v", name, r.texts)
		}
	}
}

func TestBadSizesAreErrors(t *testing.T) {
	c := samples()["lines"]
	for _, bad := range []struct {
		w, h  int
		scale float64
	}{{0, 100, 1}, {100, -1, 1}, {1 << 20, 10, 1}, {100, 100, 0}, {100, 100, math.NaN()}, {100, 100, math.Inf(1)}, {16000, 16000, 2}} {
		_, err := Image(c, bad.w, bad.h, bad.scale, Light)
		if err == nil || !strings.HasPrefix(err.Error(), "cannot draw chart: ") {
			t.Errorf("%v: error is %v", bad, err)
		}
	}
	if err := SVG(&bytes.Buffer{}, c, 0, 0, Light); err == nil {
		t.Error("SVG of no size is no error")
	}
	if _, err := Image(nil, 10, 10, 1, Light); err == nil {
		t.Error("no chart is no error")
	}
	if err := PDF(document(), c, 0, 0, math.NaN(), 5, Light); err == nil {
		t.Error("PDF box without a size is no error")
	}
	if err := PDF(fpdf.New("P", "mm", "A4", ""), c, 0, 0, 50, 50, Light); err == nil {
		t.Error("PDF without a page is no error")
	}
	if err := PDF(fpdf.New("P", "pt", "A4", ""), c, 0, 0, 50, 50, Light); err == nil {
		t.Error("PDF in points is no error")
	}
}

// Any lines, of any values, at any size: text is inside and apart.
func TestAnyLinesKeepTheirLabelsApart(t *testing.T) {
	value := rapid.OneOf(rapid.Float64Range(-100, 100), rapid.Float64(), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), 1e300, 1e-300}))
	axis := rapid.Custom(func(t *rapid.T) Axis {
		return Axis{
			Label: rapid.SampledFrom([]string{"", "Time", "Something long to say about the axis"}).Draw(t, "label"),
			Unit:  rapid.SampledFrom([]string{"", "s", "tok/s"}).Draw(t, "unit"),
			Log:   rapid.Bool().Draw(t, "log"), ZeroBased: rapid.Bool().Draw(t, "zero"),
			Min: rapid.SampledFrom([]float64{0, math.NaN(), -3, 5}).Draw(t, "min"),
			Max: rapid.SampledFrom([]float64{0, math.NaN(), 7, 1e9}).Draw(t, "max"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		c := Lines{Title: rapid.SampledFrom([]string{"", "Title"}).Draw(t, "title"), X: axis.Draw(t, "x"), Y: axis.Draw(t, "y")}
		for i := range rapid.IntRange(0, 9).Draw(t, "lines") {
			l := Line{Name: rapid.SampledFrom([]string{"", "a", "a longer name of a model"}).Draw(t, "name")}
			l.Style = Style{Step: rapid.Bool().Draw(t, "step"), Fill: rapid.Bool().Draw(t, "fill"), Index: i % 3}
			for range rapid.IntRange(0, 8).Draw(t, "points") {
				l.Points = append(l.Points, Point{value.Draw(t, "px"), value.Draw(t, "py")})
			}
			c.Lines = append(c.Lines, l)
		}
		for range rapid.IntRange(0, 5).Draw(t, "markers") {
			c.Markers = append(c.Markers, Marker{Value: value.Draw(t, "mv"), Axis: Orientation(rapid.IntRange(0, 1).Draw(t, "ma")), Label: rapid.SampledFrom([]string{"", "p90 27.9 ms"}).Draw(t, "ml")})
		}
		for range rapid.IntRange(0, 4).Draw(t, "bands") {
			c.Bands = append(c.Bands, Band{value.Draw(t, "b0"), value.Draw(t, "b1"), Light.Red, rapid.SampledFrom([]string{"", "mathematics"}).Draw(t, "bl")})
		}
		w, h := float64(rapid.IntRange(1, 900).Draw(t, "width")), float64(rapid.IntRange(1, 600).Draw(t, "height"))
		r := &recorder{}
		if err := render(c, w, h, Dark, r); err != nil {
			t.Fatal(err)
		}
		if err := r.faults(w, h); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnyHistogramAndBarsKeepTheirLabelsApart(t *testing.T) {
	value := rapid.OneOf(rapid.Float64Range(-50, 2000), rapid.Float64(), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(-1)}))
	list := rapid.SliceOfN(value, 0, 30)
	rapid.Check(t, func(t *rapid.T) {
		axis := Axis{Label: "Value", Unit: "ms", Log: rapid.Bool().Draw(t, "log")}
		w, h := float64(rapid.IntRange(1, 900).Draw(t, "width")), float64(rapid.IntRange(1, 600).Draw(t, "height"))
		labels := rapid.SliceOfN(rapid.SampledFrom([]string{"", "p", "mathematics", "creative writing at length"}), 0, 30).Draw(t, "labels")
		markers := []Marker{{value.Draw(t, "m"), X, "p50 22.6 ms", nil}, {value.Draw(t, "m"), X, "p90 27.9 ms", nil}, {value.Draw(t, "m"), Y, "limit", nil}}
		for _, c := range []Chart{
			Histogram{Title: "H", X: axis, Y: Axis{Label: "Tokens"}, Edges: list.Draw(t, "edges"), Counts: list.Draw(t, "counts"), Markers: markers, LogCounts: rapid.Bool().Draw(t, "lc")},
			Bars{Title: "B", Y: axis, Labels: labels, Values: list.Draw(t, "values"), Lo: list.Draw(t, "lo"), Hi: list.Draw(t, "hi"), Horizontal: rapid.Bool().Draw(t, "across")},
		} {
			r := &recorder{}
			if err := render(c, w, h, Dark, r); err != nil {
				t.Fatal(err)
			}
			if err := r.faults(w, h); err != nil {
				t.Fatalf("%T: %v", c, err)
			}
		}
	})
}
