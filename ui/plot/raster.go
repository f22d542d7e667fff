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
	img         *image.RGBA
	w, h        int
	cover       []uint8 // of a line, by pixel
	low, top    []int32 // the rows of a column that have any; low < 0: none
	first, last int     // the columns
}

// On begins to draw on an image.
func (r *Raster) On(img *image.RGBA) {
	r.img, r.w, r.h = img, img.Rect.Dx(), img.Rect.Dy()
	if cap(r.low) < r.w {
		r.low, r.top = make([]int32, r.w), make([]int32, r.w)
	}
	r.low, r.top = r.low[:r.w], r.top[:r.w]
	if len(r.cover) < r.w*r.h {
		r.cover = make([]uint8, r.w*r.h)
	}
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
// gap. Coverage is collected for the whole line before it is blended once, so that a line which lets
// what is below shine through is no darker where its parts meet or run over each other.
func (r *Raster) Line(n int, at func(i int) (x, y float32), width float32, c color.NRGBA) {
	if r.w == 0 || r.h == 0 {
		return
	}
	r.first, r.last = r.w, -1
	var px, py float32
	open := false
	for i := range n {
		x, y := at(i)
		if x != x || y != y || open && x < px {
			open = false
			if x != x || y != y {
				continue
			}
		}
		if open {
			r.segment(px, py, x, y, width)
		} else {
			r.segment(x, y, x, y, width) // a sample on its own is a dot
		}
		px, py, open = x, y, true
	}
	r.strike(c)
}

// segment notes the coverage of a straight part of a line: by columns where it is flat, by rows
// where it is steep.
func (r *Raster) segment(x0, y0, x1, y1, width float32) {
	dx, dy := x1-x0, y1-y0
	length := float32(math.Hypot(float64(dx), float64(dy)))
	if dx >= abs(dy) {
		half := width / 2
		slope := float32(0)
		if dx > 0 {
			half *= length / dx
			slope = dy / dx
		}
		for c := max(floor(x0), 0); c <= min(floor(x1), r.w-1); c++ {
			x := min(max(float32(c)+0.5, x0), x1)
			y := y0 + slope*(x-x0)
			top, bottom := y-half, y+half
			for row := max(floor(top), 0); row <= min(floor(bottom), r.h-1); row++ {
				r.note(c, row, min(bottom, float32(row+1))-max(top, float32(row)))
			}
		}
		return
	}
	if dy < 0 {
		x0, y0, x1, y1, dx, dy = x1, y1, x0, y0, -dx, -dy
	}
	half := width / 2 * length / dy
	slope := dx / dy
	for row := max(floor(y0), 0); row <= min(floor(y1), r.h-1); row++ {
		y := min(max(float32(row)+0.5, y0), y1)
		x := x0 + slope*(y-y0)
		left, right := x-half, x+half
		for c := max(floor(left), 0); c <= min(floor(right), r.w-1); c++ {
			r.note(c, row, min(right, float32(c+1))-max(left, float32(c)))
		}
	}
}

// note keeps the greatest coverage of a pixel, and which part of its column has any.
func (r *Raster) note(x, y int, cover float32) {
	v := uint8(min(cover, 1)*255 + 0.5)
	if v == 0 {
		return
	}
	if x < r.first || x > r.last || r.low[x] < 0 {
		if r.last < 0 {
			r.first, r.last = x, x
			r.low[x] = -1
		}
		for ; r.first > x; r.first-- {
			r.low[r.first-1] = -1
		}
		for ; r.last < x; r.last++ {
			r.low[r.last+1] = -1
		}
		r.low[x], r.top[x] = int32(y), int32(y)
	}
	r.low[x], r.top[x] = min(r.low[x], int32(y)), max(r.top[x], int32(y))
	if p := &r.cover[y*r.w+x]; *p < v {
		*p = v
	}
}

// strike blends what was noted, and forgets it.
func (r *Raster) strike(c color.NRGBA) {
	for x := r.first; x <= r.last; x++ {
		if r.low[x] < 0 {
			continue
		}
		for y := r.low[x]; y <= r.top[x]; y++ {
			p := &r.cover[int(y)*r.w+x]
			if *p != 0 {
				r.blend(x, int(y), c, float32(*p)/255)
				*p = 0
			}
		}
	}
}

func abs(v float32) float32 { return max(v, -v) }

// floor is that of a coordinate; what lies far outside of any image stays outside.
func floor(v float32) int { return int(math.Floor(float64(min(max(v, -1e6), 1e6)))) }
