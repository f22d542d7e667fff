// Package chart draws the charts of reports and exports: lines, histograms
// and bars as PNG, as SVG and as vectors on a PDF page. One layout feeds all
// three, so the same chart is the same picture everywhere, and the same chart
// gives the same bytes on every run.
//
// go-chart draws the series; it is archived and knows nothing of gaps, nice
// ticks or labels that keep out of each other's way, so cleaning of the data,
// scales, layout and the three renderers are here and nothing else in the
// program imports it.
//
// Sizes are logical pixels: text is 12 px, titles 14 px, lines 1.5 px. On
// paper one pixel is 0.2352 mm, which prints labels at 8 pt.
package chart

import (
	"fmt"
	"image/color"
	"io"
	"math"

	gochart "github.com/wcharczuk/go-chart/v2"
)

// Chart is one of Lines, Histogram and Bars.
type Chart interface {
	// compose lays the chart out on a canvas of width × height logical
	// pixels. It never fails: a chart without data says so.
	compose(width, height float64, p Palette) *scene
}

var (
	_ Chart = Lines{}
	_ Chart = Histogram{}
	_ Chart = Bars{}
)

// Orientation says along which axis a Marker's value is measured.
type Orientation int

// The axes of a chart.
const (
	X Orientation = iota // the marker is a vertical line at a value of x
	Y                    // the marker is a horizontal line at a value of y
)

// Point is one sample of a Line. A Y that is NaN, infinite or beyond ±1e305
// is a gap in the line; a point with such an X is left out.
type Point struct{ X, Y float64 }

// Style is how a Line is drawn. The zero value is a solid line of 1.5 px in
// the colour of its place among the lines.
type Style struct {
	Index int        // 1-based place in Palette.Series; 0 takes the line's own place in the chart
	Color color.RGBA // opaque; used instead of Index unless zero
	Width float64    // logical px; 0 is 1.5
	Dash  []float64  // logical px on, off, …; nil is solid (or by place, where a legend tells lines apart)
	Step  bool       // hold each value until the next x
	Fill  bool       // tint the area down to zero, or to the axis where zero is not on it
}

// Line is one series of a Lines chart. Points are drawn in the order given;
// thousands that go back and forth in x are drawn in the order of x.
type Line struct {
	Name   string // beside the end of the line, or in the legend; may be empty
	Points []Point
	Style  Style
}

// Band is a vertical tint over the whole height of a chart: a regime, a step
// of a suite. Only red, green and blue of Color count; the tint is faint.
type Band struct {
	X0, X1 float64
	Color  color.RGBA
	Label  string
}

// Marker is a dashed line across the plot at one value: a median, a p90. It
// is left out when its value is not finite or lies outside a fixed axis;
// automatic axes grow to hold it.
type Marker struct {
	Value float64
	Axis  Orientation
	Label string
	Dash  []float64 // logical px on, off, …; nil is 4 on, 3 off
}

// Envelope is the band between a lowest and a highest value at each x, drawn
// behind the lines. The three slices run in parallel; where their lengths
// differ the shortest counts.
type Envelope struct {
	X, Lo, Hi []float64
	Name      string     // shown with the names of the lines; may be empty
	Color     color.RGBA // zero is the first line's colour
}

// Axis describes one axis. A bound that is NaN is taken from the data; where
// Min ≥ Max, as in the zero value, both are.
type Axis struct {
	Label, Unit string
	ZeroBased   bool // include zero even when the data do not
	Min, Max    float64
	Log         bool                 // logarithmic; values ≤ 0 are not drawn
	Format      func(float64) string // of a tick and of the number on a bar; nil gives plain decimals
}

// Lines is a chart of lines over a common x.
type Lines struct {
	Title    string
	X, Y     Axis
	Lines    []Line
	Bands    []Band
	Markers  []Marker
	Envelope *Envelope
}

// Histogram is a chart of counts in bins: Counts[i] lies between Edges[i] and
// Edges[i+1]. Bins without two finite edges are not drawn; their counts are
// named under the axis.
type Histogram struct {
	Title     string
	X, Y      Axis
	Edges     []float64 // n+1, ascending
	Counts    []float64 // n
	Markers   []Marker
	LogCounts bool // logarithmic counts; any count above zero stays visible
}

// Bars is a chart of one bar a label. A NaN value is a missing bar, shown as
// a dash. Lo and Hi, where given and finite, are whiskers.
type Bars struct {
	Title      string
	Y          Axis // of the values, also when Horizontal
	Labels     []string
	Values     []float64
	Lo, Hi     []float64
	Horizontal bool
}

const (
	maxSide  = 16384             // logical px and, times scale, image px
	maxImage = 100 * 1000 * 1000 // image pixels
)

func checkSize(width, height int, scale float64) error {
	if width < 1 || height < 1 || width > maxSide || height > maxSide {
		return fmt.Errorf("cannot draw chart: %d × %d is not a size between 1 and %d pixels", width, height, maxSide)
	}
	if math.IsNaN(scale) || scale < 0.1 || scale > 16 {
		return fmt.Errorf("cannot draw chart: scale %g is not between 0.1 and 16", scale)
	}
	if w, h := float64(width)*scale, float64(height)*scale; w*h > maxImage {
		return fmt.Errorf("cannot draw chart: %.0f × %.0f pixels are more than %d million; take a smaller size or scale", w, h, maxImage/1000000)
	}
	return nil
}

// render draws a chart through go-chart onto a backend. width and height are
// logical pixels.
func render(c Chart, width, height float64, p Palette, b backend) (err error) {
	if c == nil {
		return fmt.Errorf("cannot draw chart: there is none")
	}
	// go-chart indexes without asking. Nothing here is known to make it
	// panic; should something, an export must fail and not the program.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot draw chart: %v", r)
		}
	}()
	s := c.compose(width, height, p)
	return s.chart().Render(func(int, int) (gochart.Renderer, error) {
		return &pen{backend: b}, nil
	}, io.Discard)
}
