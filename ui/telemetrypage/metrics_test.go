package telemetrypage

import (
	"image"
	"testing"
	"time"

	"velo/bench/measure"
	"velo/bench/otlp/series"
	"velo/ui/look"
)

// TestUnits: units are written as people do, and as large as the value.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		unit, plotted string
		value         measure.Num
		want          string
	}{
		{"Hz", "value", 3.201e9, "3.20 GHz"}, {"Hz", "value", 1.755e9, "1.76 GHz"}, {"Hz", "value", 50, "50.0 Hz"},
		{"By", "value", 150754820096, "140 GiB"}, {"By", "value", 1 << 20, "1.00 MiB"}, {"By", "value", 12, "12.0 B"}, {"By", "rate per second", 3 << 20, "3.00 MiB/s"},
		{"By", "value", -1 << 30, "-1.00 GiB"}, {"By", "value", measure.Missing, "— B"}, {"Cel", "value", 61, "61.0 °C"}, {"W", "value", 653.2, "653 W"},
		{"s", "value", 0.025, "25.0 ms"}, {"s", "rate per second", 2, "2.00 s/s"}, {"1", "value", 0.5, "0.500 "}, {"{token}", "rate per second", 100, "100 token/s"},
	} {
		unit, factor := unitOf(&series.Line{Unit: c.unit, Plotted: c.plotted, Value: c.value})
		if got := plain(float64(c.value)*factor) + " " + unit; got != c.want {
			t.Errorf("%v %s, %s: %q, not %q", c.value, c.unit, c.plotted, got, c.want)
		}
	}
}

// TestLabelIsWhole: a long label of the latest value is not cut off at the right, where it would read as another
// number.
func TestLabelIsWhole(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 900, 200))
	var d history
	const label = "3,200,000,000,000"
	points := []series.Sample{{At: time.Second, Value: 3.2e12}, {At: 2 * time.Second, Value: 3.2e12}}
	d.draw(img, 1, look.Dark, curve{of: "x", title: "Value", points: points, now: 3 * time.Second, label: label})
	last := 0
	for x := range 900 {
		for y := range 200 {
			if c := img.RGBAAt(x, y); c.R == look.Dark.Accent.R && c.G == look.Dark.Accent.G && c.B == look.Dark.Accent.B {
				last = x
			}
		}
	}
	if last == 0 || last > 900-8 {
		t.Errorf("the label reaches to %d of 900", last)
	}
	d.draw(img, 1, look.Dark, curve{of: "y", title: "Value", points: points, now: 3 * time.Second, label: ""})
}

func TestCame(t *testing.T) {
	for want, c := range map[string][3]uint64{"1 record, 57 points": {1, 57, 0}, "26 records, 1,350 points, 1 span": {26, 1350, 1}, "2.50 M points": {0, 2500000, 0}} {
		if got := came(c[0], c[1], c[2]); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
