package chart

import (
	"fmt"
	"math"
	"testing"

	"github.com/wcharczuk/go-chart/v2/drawing"
)

// recorder is a backend that keeps what it is asked to draw.
type recorder struct {
	texts   []text
	strokes []drawn
	fills   []drawn
	discs   []vec
}

type text struct {
	body string
	box  rect
}

type drawn struct {
	shape []subpath
	color drawing.Color
	width float64
	dash  []float64
}

func (r *recorder) fill(shape []subpath, c drawing.Color) {
	r.fills = append(r.fills, drawn{shape: shape, color: c})
}

func (r *recorder) stroke(shape []subpath, s stroke) {
	r.strokes = append(r.strokes, drawn{shape, s.color, s.width, s.dash})
}

func (r *recorder) disc(centre vec, _ float64, _ drawing.Color) { r.discs = append(r.discs, centre) }

func (r *recorder) text(body string, at vec, f *face, size, angle float64, _ drawing.Color) {
	if angle != 0 {
		panic("text is never turned")
	}
	r.texts = append(r.texts, text{body, label{body, at.x, at.y, size, f, Light.Text}.bounds()})
}

func record(t testing.TB, c Chart, width, height float64) *recorder {
	t.Helper()
	r := &recorder{}
	if err := render(c, width, height, Light, r); err != nil {
		t.Fatalf("render: %v", err)
	}
	return r
}

func (r *recorder) has(body string) bool {
	for _, t := range r.texts {
		if t.body == body {
			return true
		}
	}
	return false
}

// data returns the strokes of data: wider than hairlines.
func (r *recorder) data() []drawn {
	var out []drawn
	for _, s := range r.strokes {
		if s.width > hairline {
			out = append(out, s)
		}
	}
	return out
}

// faults checks what must hold in every picture: all text inside the canvas
// and apart from other text, all shapes finite and inside.
func (r *recorder) faults(width, height float64) error {
	const slack = 0.51 // places are rounded to units, widths are not
	for i, a := range r.texts {
		if a.box.left < -slack || a.box.top < -slack || a.box.right > width+slack || a.box.bottom > height+slack {
			return fmt.Errorf("%q at %v is outside %g × %g", a.body, a.box, width, height)
		}
		for _, b := range r.texts[:i] {
			if a.box.left < b.box.right-slack && b.box.left < a.box.right-slack &&
				a.box.top < b.box.bottom-slack && b.box.top < a.box.bottom-slack {
				return fmt.Errorf("%q at %v overlaps %q at %v", a.body, a.box, b.body, b.box)
			}
		}
	}
	for _, set := range [][]drawn{r.strokes, r.fills} {
		for _, d := range set {
			for _, sub := range d.shape {
				for _, at := range sub.points {
					if !finite(at.x) || !finite(at.y) || at.x < -1 || at.y < -3 || at.x > width+1 || at.y > height+1 {
						return fmt.Errorf("a shape reaches %v outside %g × %g", at, width, height)
					}
				}
			}
		}
	}
	for _, at := range r.discs {
		if math.Abs(at.x) > width+1 || math.Abs(at.y) > height+1 {
			return fmt.Errorf("a dot at %v is outside", at)
		}
	}
	return nil
}
