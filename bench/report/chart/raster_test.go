package chart

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"testing"

	"github.com/wcharczuk/go-chart/v2/drawing"
)

var black = drawing.Color{A: 255}

// canvas is a white image of n × n pixels at a scale.
func canvas(n int, scale float64) *raster {
	img := image.NewRGBA(image.Rect(0, 0, n, n))
	for i := range img.Pix {
		img.Pix[i] = 255
	}
	return &raster{img: img, scale: scale}
}

// inkOn is the sum of the darkness of all pixels: 1 for a black one.
func (r *raster) inkOn() float64 {
	sum := 0.0
	for i := 0; i < len(r.img.Pix); i += 4 {
		sum += 1 - float64(r.img.Pix[i])/255
	}
	return sum
}

func one(points ...vec) []subpath { return []subpath{{points: points}} }

func TestStrokesCoverTheirArea(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape []subpath
		s     stroke
		scale float64
		want  float64
	}{
		{"level", one(vec{10, 20.3}, vec{90, 20.3}, vec{90.001, 20.3}), stroke{black, 1.5, nil}, 1, 80 * 1.5},
		{"slanted", one(vec{10, 10}, vec{90, 70}), stroke{black, 2, nil}, 1, 100 * 2},
		{"scaled", one(vec{5, 5}, vec{45, 35}), stroke{black, 1, nil}, 2, 100 * 2},
		{"hairline on whole pixels", one(vec{10, 20.3}, vec{90, 20.3}), stroke{black, 1, nil}, 1, 80},
		{"dashed", one(vec{10, 20}, vec{90, 20}), stroke{black, 1, []float64{4, 4}}, 1, 40},
		{"dashed around a bend", one(vec{10, 10}, vec{50, 10}, vec{50, 50}), stroke{black, 2, []float64{6, 2}}, 1, 60 * 2},
		{"pattern without length", one(vec{10, 20}, vec{90, 20}), stroke{black, 1, []float64{0, 0}}, 1, 80},
		{"one point", one(vec{10, 20}), stroke{black, 2, nil}, 1, 0},
		{"repeated points", one(vec{10, 20}, vec{10, 20}, vec{50, 20}, vec{50, 20}), stroke{black, 2, nil}, 1, 80},
		{"there and back", one(vec{10, 20}, vec{50, 20}, vec{10, 20}), stroke{black, 2, nil}, 1, 80 + math.Pi/2},
		{"a right bend is round outside", one(vec{10, 20}, vec{50, 20}, vec{50, 60}), stroke{black, 20, nil}, 1, 2*40*20 - 100 + math.Pi*100/4},
		{"a left bend is round outside", one(vec{10, 80}, vec{50, 80}, vec{50, 40}), stroke{black, 20, nil}, 1, 2*40*20 - 100 + math.Pi*100/4},
	} {
		r := canvas(100, c.scale)
		r.stroke(c.shape, c.s)
		if got := r.inkOn(); math.Abs(got-c.want) > 0.02*c.want+0.5 {
			t.Errorf("%s: %.1f pixels of ink, want %.1f", c.name, got, c.want)
		}
	}
}

func TestOverlapsOfAStrokeNeverCancel(t *testing.T) {
	// A line that crosses itself: the crossing must be as dark as the rest.
	r := canvas(100, 1)
	r.stroke(one(vec{10, 50}, vec{90, 50}, vec{90, 90}, vec{50, 90}, vec{50, 10}), stroke{black, 6, nil})
	if c := r.img.RGBAAt(50, 50); c.R != 0 {
		t.Errorf("the crossing is %v", c)
	}
}

func TestAnythingOverABendStaysDark(t *testing.T) {
	for name, bend := range map[string][]vec{
		"right": {{10, 20}, {50, 20}, {50, 60}}, "left": {{50, 60}, {50, 20}, {10, 20}},
	} {
		for _, over := range [][]vec{{{52, 2}, {52, 40}}, {{52, 40}, {52, 2}}} {
			r := canvas(100, 1)
			r.stroke([]subpath{{points: bend}, {points: over}}, stroke{black, 20, nil})
			if c := r.img.RGBAAt(54, 15); c.R != 0 {
				t.Errorf("the outside of a %s bend under another line is %v", name, c)
			}
		}
	}
}

func TestBoxesAreCrispAndNeverVanish(t *testing.T) {
	r := canvas(100, 1)
	r.fill(one(vec{10.4, 10.4}, vec{20.4, 10.4}, vec{20.4, 20.4}, vec{10.4, 20.4}, vec{10.4, 10.4}), black)
	if got := r.inkOn(); got != 100 {
		t.Errorf("a box of 10 × 10 has %.2f pixels of ink", got)
	}
	for _, p := range r.img.Pix {
		if p != 0 && p != 255 {
			t.Fatalf("an edge is blurred: %d", p)
		}
	}
	r = canvas(100, 1)
	r.fill(one(vec{10.5, 10}, vec{10.6, 10}, vec{10.6, 10.1}, vec{10.5, 10.1}), black)
	if got := r.inkOn(); got != 1 {
		t.Errorf("a speck has %.2f pixels of ink", got)
	}
}

func TestShapesOutsideTheImageAreCut(t *testing.T) {
	r := canvas(100, 1)
	r.fill(one(vec{-50, -50}, vec{150, -50}, vec{50, 300}), black)
	r.stroke(one(vec{-500, 50}, vec{500, 60}), stroke{black, 3, nil})
	r.disc(vec{-20, 200}, 30, black)
	r.text("outside", vec{500, 500}, textRegular, 12, 0, black)
	if r.inkOn() < 1000 {
		t.Error("what is inside is missing")
	}
}

func TestTextIsInsideItsBox(t *testing.T) {
	for _, f := range faces {
		r := canvas(120, 1)
		l := label{"Hxg 42.1±µ", 20, 60, 16, f, color.RGBA{}}
		r.text(l.text, vec{l.x, l.y}, f, l.size, 0, black)
		box := l.bounds()
		count := 0
		for y := range 120 {
			for x := range 120 {
				if r.img.RGBAAt(x, y).R < 250 {
					count++
					if fx, fy := float64(x), float64(y); fx < box.left-2 || fx > box.right+1 || fy < box.top-1 || fy > box.bottom+1 {
						t.Fatalf("%s: ink at %d, %d outside %v", f.family, x, y, box)
					}
				}
			}
		}
		if count < 150 {
			t.Errorf("%s: only %d pixels of text", f.family, count)
		}
	}
	turned := canvas(120, 1)
	turned.text("Hxg 42", vec{60, 20}, textRegular, 16, math.Pi/2, black)
	if turned.img.RGBAAt(110, 20).R != 255 || turned.inkOn() < 60 {
		t.Error("turned text is not turned clockwise")
	}
}

func TestImagesHaveTheirSizeAndNoGapsBetweenRows(t *testing.T) {
	for _, scale := range []float64{1, 1.25, 2, 3} {
		img, err := Image(samples()["bars"], 333, 211, scale, Dark)
		if err != nil {
			t.Fatal(err)
		}
		w, h := int(math.Round(333*scale)), int(math.Round(211*scale))
		if img.Rect != image.Rect(0, 0, w, h) || img.Stride != 4*w {
			t.Errorf("scale %g: %v, stride %d", scale, img.Rect, img.Stride)
		}
		if got := img.RGBAAt(0, h-1); got != Dark.Background {
			t.Errorf("scale %g: the corner is %v", scale, got)
		}
	}
	var out bytes.Buffer
	if err := PNG(&out, samples()["lines"], 200, 150, 2, Light); err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(&out); err != nil || img.Bounds().Dx() != 400 {
		t.Errorf("PNG: %v, %v", img.Bounds(), err)
	}
}
