// Package plot draws what moves while a run is measured: the timeline and the rows of the workers.
// It draws into a reused image of exactly the pixels on screen, on any goroutine, and costs little
// enough not to disturb what is measured; the window only hands the image over.
package plot

import (
	"image"
	"image/color"
	"math"
)

// Raster draws on an image. Coordinates are pixels from the upper left; colours are blended over
// what is there, which must be opaque.
type Raster struct {
	img      *image.RGBA
	w, h     int
	low, top []float32 // of a line, by column: scratch
}

// On begins to draw on an image.
func (r *Raster) On(img *image.RGBA) {
	r.img, r.w, r.h = img, img.Rect.Dx(), img.Rect.Dy()
	if cap(r.low) < r.w {
		r.low, r.top = make([]float32, r.w), make([]float32, r.w)
	}
	r.low, r.top = r.low[:r.w], r.top[:r.w]
}

// Clear fills the image.
func (r *Raster) Clear(c color.NRGBA) {
	pix := r.img.Pix
	if len(pix) < 4 {
		return
	}
	pix[0], pix[1], pix[2], pix[3] = c.R, c.G, c.B, 0xff
	for n := 4; n < len(pix); n *= 2 {
		copy(pix[n:], pix[:n])
	}
}

func (r *Raster) blend(x, y int, c color.NRGBA, cover float32) {
	if x < 0 || y < 0 || x >= r.w || y >= r.h || cover <= 0 {
		return
	}
	a := uint32(float32(c.A)*min(cover, 1) + 0.5)
	p := r.img.Pix[y*r.img.Stride+4*x:][:4]
	p[0] += uint8((int32(c.R) - int32(p[0])) * int32(a) / 255)
	p[1] += uint8((int32(c.G) - int32(p[1])) * int32(a) / 255)
	p[2] += uint8((int32(c.B) - int32(p[2])) * int32(a) / 255)
	p[3] = 0xff
}

// Rect fills the pixels from (x, y) on.
func (r *Raster) Rect(x, y, w, h int, c color.NRGBA) {
	for j := max(y, 0); j < min(y+h, r.h); j++ {
		for i := max(x, 0); i < min(x+w, r.w); i++ {
			r.blend(i, j, c, 1)
		}
	}
}

// Dash draws a horizontal line of thickness pixels, on and off by turns; off 0 is solid.
func (r *Raster) Dash(x0, x1, y, thickness, on, off int, c color.NRGBA) {
	for x := x0; x < x1; x += on + off {
		r.Rect(x, y, min(on, x1-x), thickness, c)
		if on+off <= 0 {
			return
		}
	}
}

// Line draws a polyline of a width in pixels. Its points go from left to right; a Y that is NaN is a
// gap. Each column of pixels gets one vertical run over everything that the line does within it, so
// the cost does not grow with the number of points in a column, and no peak is lost.
func (r *Raster) Line(n int, at func(i int) (x, y float32), width float32, c color.NRGBA) {
	if r.w == 0 {
		return
	}
	first, last := r.w, -1
	var px, py float32
	open := false
	for i := 0; i <= n; i++ {
		var x, y float32
		gap := i == n
		if !gap {
			x, y = at(i)
			gap = x != x || y != y
		}
		if gap || (open && x < px) {
			r.strike(first, last, width, c)
			first, last, open = r.w, -1, false
			if gap {
				continue
			}
		}
		if !open {
			px, py, open = x, y, true
		}
		a, b := r.span(px, py, x, y, first, last)
		first, last = a, b
		px, py = x, y
	}
}

// span notes the part of a line from (x0, y0) to (x1, y1) in each column, and returns the columns
// noted so far.
func (r *Raster) span(x0, y0, x1, y1 float32, first, last int) (int, int) {
	if x1 < 0 || x0 >= float32(r.w) {
		return first, last
	}
	c0, c1 := max(int(math.Floor(float64(x0))), 0), min(int(math.Floor(float64(x1))), r.w-1)
	for c := c0; c <= c1; c++ {
		ya, yb := y0, y1
		if x1 > x0 {
			slope := (y1 - y0) / (x1 - x0)
			if l := float32(c); l > x0 {
				ya = y0 + slope*(l-x0)
			}
			if rr := float32(c + 1); rr < x1 {
				yb = y0 + slope*(rr-x0)
			}
		}
		lo, hi := min(ya, yb), max(ya, yb)
		if c > last || c < first { // a new column
			r.low[c], r.top[c] = lo, hi
		} else {
			r.low[c], r.top[c] = min(r.low[c], lo), max(r.top[c], hi)
		}
		first, last = min(first, c), max(last, c)
	}
	return first, last
}

// strike draws the columns that were noted.
func (r *Raster) strike(first, last int, width float32, c color.NRGBA) {
	half := width / 2
	for x := first; x <= last; x++ {
		top, bottom := r.low[x]-half, r.top[x]+half
		y0, y1 := int(math.Floor(float64(top))), int(math.Floor(float64(bottom)))
		y0, y1 = max(y0, 0), min(y1, r.h-1)
		for y := y0; y <= y1; y++ {
			cover := min(bottom, float32(y+1)) - max(top, float32(y))
			r.blend(x, y, c, cover)
		}
	}
}
