package chart

import (
	"bytes"
	"io"
	"testing"

	gochart "github.com/wcharczuk/go-chart/v2"
)

func zigzags(n int) Lines {
	return Lines{Title: "Zig-zag", X: Axis{Label: "Sample"}, Y: Axis{Label: "Rate", Unit: "tok/s", ZeroBased: true}, Lines: []Line{{Name: "noisy", Points: zigzag(n)}}}
}

func benchmarkImage(b *testing.B, c Chart, scale float64) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Image(c, 600, 400, scale, Light); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkImage5000(b *testing.B)        { benchmarkImage(b, zigzags(5000), 1) }
func BenchmarkImage50000(b *testing.B)       { benchmarkImage(b, zigzags(50000), 1) }
func BenchmarkImage50000Scale2(b *testing.B) { benchmarkImage(b, zigzags(50000), 2) }
func BenchmarkImageSixteen(b *testing.B)     { benchmarkImage(b, samples()["sixteen"], 2) }
func BenchmarkImageBars(b *testing.B)        { benchmarkImage(b, samples()["bars"], 1) }

// Fifty thousand points in no order of x, dashed.
func BenchmarkImageScatter50000(b *testing.B) {
	points := make([]Point, 50000)
	for i := range points {
		points[i] = Point{float64(i * 7919 % 50000), float64(i * 104729 % 1000)}
	}
	benchmarkImage(b, Lines{Lines: []Line{{Points: points, Style: Style{Dash: []float64{4, 2}}}}}, 3)
}

func BenchmarkPNG5000(b *testing.B) {
	c := zigzags(5000)
	for b.Loop() {
		if err := PNG(io.Discard, c, 600, 400, 1, Light); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSVG50000(b *testing.B) {
	c := zigzags(50000)
	size := 0
	for b.Loop() {
		var out bytes.Buffer
		if err := SVG(&out, c, 600, 400, Light); err != nil {
			b.Fatal(err)
		}
		size = out.Len()
	}
	b.ReportMetric(float64(size), "bytes")
}

// The chart alone; a document pays for the fonts once, see below.
func BenchmarkPDF50000(b *testing.B) {
	c := zigzags(50000)
	for b.Loop() {
		b.StopTimer()
		pdf := document()
		b.StartTimer()
		if err := PDF(pdf, c, 10, 20, 190, 100, Light); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPDFDocument(b *testing.B) {
	c := zigzags(5000)
	size := 0
	for b.Loop() {
		pdf := document()
		pdf.SetCompression(true)
		if err := PDF(pdf, c, 10, 20, 190, 100, Light); err != nil {
			b.Fatal(err)
		}
		size = len(written(b, pdf))
	}
	b.ReportMetric(float64(size), "bytes")
}

// What go-chart's own raster renderer takes for a hundredth of 50,000 points,
// for comparison; it grows faster than their number.
func BenchmarkGoChart500(b *testing.B) {
	series := continuous(zigzag(500), gochart.Style{})
	c := gochart.Chart{Width: 600, Height: 400, Series: []gochart.Series{series}}
	for b.Loop() {
		var raw gochart.ImageWriter
		if err := c.Render(gochart.PNG, &raw); err != nil {
			b.Fatal(err)
		}
	}
}
