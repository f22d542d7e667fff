package plot

import (
	"image"
	"image/color"
	"image/draw"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"velo/assets"
)

// Type is a font at one size in pixels, its glyphs drawn once and kept. It is safe for concurrent
// use.
type Type struct {
	mu     sync.Mutex
	face   font.Face
	glyphs map[rune]glyph
	Ascent int // pixels above the baseline
	Height int // pixels from line to line
}

type glyph struct {
	mask    *image.Alpha
	x, y    int // of the mask, from the dot
	advance int
}

var (
	typesMu sync.Mutex
	types   = map[typeKey]*Type{}
	fonts   = map[bool]*opentype.Font{}
)

type typeKey struct {
	mono bool
	size int // 1/8 pixel
}

// TypeOf returns the family of text or of numbers at a size in pixels.
func TypeOf(mono bool, size float64) *Type {
	key := typeKey{mono, int(size*8 + 0.5)}
	typesMu.Lock()
	defer typesMu.Unlock()
	if t := types[key]; t != nil {
		return t
	}
	f := fonts[mono]
	if f == nil {
		data := assets.TextRegular
		if mono {
			data = assets.MonoRegular
		}
		var err error
		if f, err = opentype.Parse(data); err != nil {
			panic("cannot read an embedded font: " + err.Error()) // it is part of this binary
		}
		fonts[mono] = f
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: float64(key.size) / 8, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		panic("cannot use an embedded font: " + err.Error())
	}
	m := face.Metrics()
	t := &Type{face: face, glyphs: map[rune]glyph{}, Ascent: m.Ascent.Ceil(), Height: (m.Ascent + m.Descent).Ceil()}
	types[key] = t
	return t
}

func (t *Type) glyph(c rune) glyph {
	if g, ok := t.glyphs[c]; ok {
		return g
	}
	dr, mask, mp, adv, ok := t.face.Glyph(fixed.Point26_6{}, c)
	g := glyph{advance: adv.Round()}
	if ok && !dr.Empty() {
		g.mask = image.NewAlpha(image.Rect(0, 0, dr.Dx(), dr.Dy()))
		draw.Draw(g.mask, g.mask.Rect, mask, mp, draw.Src)
		g.x, g.y = dr.Min.X, dr.Min.Y
	}
	if len(t.glyphs) < 1024 { // names of models may hold anything
		t.glyphs[c] = g
	}
	return g
}

// Width is the width of a text in pixels.
func (t *Type) Width(s string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := 0
	for _, c := range s {
		w += t.glyph(c).advance
	}
	return w
}

// Text draws a text whose upper left is (x, y) and returns where the next one would begin.
func (r *Raster) Text(t *Type, s string, x, y int, c color.NRGBA) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ch := range s {
		g := t.glyph(ch)
		if g.mask != nil {
			for j := 0; j < g.mask.Rect.Dy(); j++ {
				row := g.mask.Pix[j*g.mask.Stride:][:g.mask.Rect.Dx()]
				for i, a := range row {
					if a != 0 {
						r.blend(x+g.x+i, y+t.Ascent+g.y+j, c, float32(a)/255)
					}
				}
			}
		}
		x += g.advance
	}
	return x
}

// TextRight draws a text that ends at x.
func (r *Raster) TextRight(t *Type, s string, x, y int, c color.NRGBA) {
	r.Text(t, s, x-t.Width(s), y, c)
}
