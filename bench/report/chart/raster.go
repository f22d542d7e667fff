package chart

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"github.com/wcharczuk/go-chart/v2/drawing"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/vector"
)

// PNG writes the chart as an image of width × height logical px, each of
// them scale × scale image pixels.
func PNG(w io.Writer, c Chart, width, height int, scale float64, p Palette) error {
	img, err := Image(c, width, height, scale, p)
	if err != nil {
		return err
	}
	if err := png.Encode(w, img); err != nil {
		return fmt.Errorf("cannot write PNG chart: %w", err)
	}
	return nil
}

// Image draws the chart into a new image of width·scale × height·scale pixels
// whose rows lie without gaps: its stride is four times its width.
func Image(c Chart, width, height int, scale float64, p Palette) (*image.RGBA, error) {
	if err := checkSize(width, height, scale); err != nil {
		return nil, err
	}
	pixels := func(n int) int { return max(1, int(math.Round(float64(n)*scale))) }
	img := image.NewRGBA(image.Rect(0, 0, pixels(width), pixels(height)))
	if err := render(c, float64(width), float64(height), p, &raster{img: img, scale: scale}); err != nil {
		return nil, err
	}
	return img, nil
}

// raster is the backend of images. It fills anti-aliased polygons; a stroke
// is turned into polygons first.
type raster struct {
	img   *image.RGBA
	scale float64 // image pixels in a logical px
	z     vector.Rasterizer

	polygons [][]vec // scratch, image pixels
	corners  []vec   // backing store of the polygons of a stroke
}

func (r *raster) device(shape []subpath) [][]vec {
	polygons := make([][]vec, 0, len(shape))
	for _, sub := range shape {
		points := make([]vec, len(sub.points))
		for i, at := range sub.points {
			points[i] = vec{at.x * r.scale, at.y * r.scale}
		}
		if sub.closed && len(points) > 1 {
			points = append(points, points[0])
		}
		polygons = append(polygons, points)
	}
	return polygons
}

func (r *raster) fill(shape []subpath, c drawing.Color) {
	if box, ok := rectangle(shape); ok {
		// Edges of upright boxes on whole pixels: bars and bands are crisp.
		// A box with any area keeps at least one pixel.
		x0, x1 := snap(box.left*r.scale, box.right*r.scale)
		y0, y1 := snap(box.top*r.scale, box.bottom*r.scale)
		if box.width() > 0 && box.height() > 0 {
			draw.Draw(r.img, image.Rect(x0, y0, x1, y1), uniform(c), image.Point{}, draw.Over)
		}
		return
	}
	r.paint(r.device(shape), c)
}

// snap rounds an interval to whole pixels, one at least.
func snap(from, to float64) (int, int) {
	a, b := int(math.Round(from)), int(math.Round(to))
	if a == b {
		a = int(math.Floor((from + to) / 2))
		b = a + 1
	}
	return a, b
}

func (r *raster) stroke(shape []subpath, s stroke) {
	width := s.width * r.scale
	lines := r.device(shape)
	for i := range lines {
		lines[i] = distinct(lines[i])
	}
	if len(lines) == 1 && len(lines[0]) == 2 && s.width <= hairline {
		lines[0] = crisp(lines[0], width)
		if a, b := lines[0][0], lines[0][1]; a.x == b.x || a.y == b.y {
			width = math.Max(1, math.Round(width))
		}
	}
	if len(s.dash) > 0 {
		dash := make([]float64, len(s.dash))
		for i, d := range s.dash {
			dash[i] = d * r.scale
		}
		var pieces [][]vec
		for _, line := range lines {
			pieces = append(pieces, dashed(line, dash)...)
		}
		lines = pieces
	}
	r.polygons, r.corners = r.polygons[:0], r.corners[:0]
	for _, line := range lines {
		r.outline(line, width/2)
	}
	r.paint(r.polygons, s.color)
}

// hairline is the widest stroke, in logical px, of grids, axes and markers,
// which are moved onto whole pixels. Lines of data are never moved.
const hairline = 1

// crisp moves an upright or level line so that its edges lie on whole pixels.
func crisp(line []vec, width float64) []vec {
	a, b := line[0], line[1]
	odd := int(math.Max(1, math.Round(width)))%2 == 1
	place := func(v float64) float64 {
		if odd {
			return math.Floor(v) + 0.5
		}
		return math.Round(v)
	}
	switch {
	case a.y == b.y:
		a.y = place(a.y)
		b.y = a.y
	case a.x == b.x:
		a.x = place(a.x)
		b.x = a.x
	}
	return []vec{a, b}
}

// distinct drops points that repeat the one before.
func distinct(line []vec) []vec {
	kept := line[:0]
	for i, at := range line {
		if i == 0 || at != kept[len(kept)-1] {
			kept = append(kept, at)
		}
	}
	return kept
}

// maxDashes is the largest number of dashes that a line is cut into. A line
// that would have more fills its part of the picture anyway.
const maxDashes = 20000

// dashed cuts a line into its dashes. A pattern that does not advance, or too
// often, leaves the line whole.
func dashed(line []vec, pattern []float64) [][]vec {
	total := 0.0
	for _, d := range pattern {
		if !(d >= 0) || math.IsInf(d, 0) {
			return [][]vec{line}
		}
		total += d
	}
	way := 0.0
	for i := 1; i < len(line); i++ {
		way += math.Hypot(line[i].x-line[i-1].x, line[i].y-line[i-1].y)
	}
	if total < 0.5 || len(line) < 2 || way/total*float64(len(pattern)) > maxDashes {
		return [][]vec{line}
	}
	var pieces [][]vec
	index, left, on := 0, pattern[0], true
	piece := []vec{line[0]}
	for i := 1; i < len(line); i++ {
		from, to := line[i-1], line[i]
		length := math.Hypot(to.x-from.x, to.y-from.y)
		for done := 0.0; done < length; {
			step := math.Min(left, length-done)
			done += step
			left -= step
			t := done / length
			at := vec{from.x + t*(to.x-from.x), from.y + t*(to.y-from.y)}
			if on {
				piece = append(piece, at)
			}
			if left <= 0 {
				if on && len(piece) > 1 {
					pieces = append(pieces, piece)
				}
				index = (index + 1) % len(pattern)
				left, on = pattern[index], !on
				piece = []vec{at}
			}
		}
	}
	if on && len(piece) > 1 {
		pieces = append(pieces, piece)
	}
	return pieces
}

// outline adds the polygons of a stroked line: one quadrilateral a segment
// and a fan of triangles on the outer side of each bend, all of the same
// orientation, so that where they overlap they never cancel.
func (r *raster) outline(line []vec, half float64) {
	var previous vec // normal of the segment before
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		length := math.Hypot(b.x-a.x, b.y-a.y)
		n := vec{-(b.y - a.y) / length * half, (b.x - a.x) / length * half}
		r.polygon(vec{a.x + n.x, a.y + n.y}, vec{a.x - n.x, a.y - n.y}, vec{b.x - n.x, b.y - n.y}, vec{b.x + n.x, b.y + n.y})
		if i > 1 {
			r.join(a, previous, n, half)
		}
		previous = n
	}
}

// join rounds the outer side of a bend at a point between two segments with
// the normals m and n.
func (r *raster) join(at, m, n vec, half float64) {
	cross, dot := m.x*n.y-m.y*n.x, m.x*n.x+m.y*n.y
	turn := math.Atan2(cross, dot)
	if math.Abs(turn) < 0.05 {
		return
	}
	from, side := math.Atan2(m.y, m.x), 1.0
	if turn > 0 { // bends towards the normals: the outer side is the other one
		side = -1
	}
	// Within a tenth of a pixel of the round.
	step := 2 * math.Acos(math.Max(0, 1-0.1/math.Max(half, 0.1)))
	steps := int(math.Max(1, math.Min(16, math.Ceil(math.Abs(turn)/step))))
	last := vec{at.x + side*m.x, at.y + side*m.y}
	for i := 1; i <= steps; i++ {
		next := vec{at.x + side*n.x, at.y + side*n.y}
		if i < steps {
			sin, cos := math.Sincos(from + turn*float64(i)/float64(steps))
			next = vec{at.x + side*half*cos, at.y + side*half*sin}
		}
		r.polygon(at, last, next)
		last = next
	}
}

// polygon keeps a polygon for painting, turned to positive area.
func (r *raster) polygon(points ...vec) {
	start := len(r.corners)
	r.corners = append(r.corners, points...)
	kept := r.corners[start:len(r.corners):len(r.corners)]
	area := 0.0
	for i, a := range kept {
		b := kept[(i+1)%len(kept)]
		area += a.x*b.y - a.y*b.x
	}
	if area < 0 {
		for i, j := 0, len(kept)-1; i < j; i, j = i+1, j-1 {
			kept[i], kept[j] = kept[j], kept[i]
		}
	}
	r.polygons = append(r.polygons, kept)
}

// paint fills polygons, in image pixels, by the nonzero rule.
func (r *raster) paint(polygons [][]vec, c drawing.Color) {
	lo, hi := vec{math.Inf(1), math.Inf(1)}, vec{math.Inf(-1), math.Inf(-1)}
	for _, polygon := range polygons {
		for _, at := range polygon {
			lo = vec{math.Min(lo.x, at.x), math.Min(lo.y, at.y)}
			hi = vec{math.Max(hi.x, at.x), math.Max(hi.y, at.y)}
		}
	}
	if lo.x > hi.x {
		return
	}
	// Only the part of the image that the shape covers is cleared and
	// composed: most shapes are small.
	area := image.Rect(int(math.Floor(lo.x)), int(math.Floor(lo.y)), int(math.Ceil(hi.x))+1, int(math.Ceil(hi.y))+1).Intersect(r.img.Rect)
	if area.Empty() {
		return
	}
	r.z.Reset(area.Dx(), area.Dy())
	x, y := float64(area.Min.X), float64(area.Min.Y)
	for _, polygon := range polygons {
		for i, at := range polygon {
			if i == 0 {
				r.z.MoveTo(float32(at.x-x), float32(at.y-y))
			} else {
				r.z.LineTo(float32(at.x-x), float32(at.y-y))
			}
		}
		r.z.ClosePath()
	}
	r.z.Draw(r.img, area, uniform(c), image.Point{})
}

func (r *raster) disc(centre vec, radius float64, c drawing.Color) {
	const corners = 32
	circle := make([]vec, corners)
	for i := range circle {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		circle[i] = vec{(centre.x + radius*cos) * r.scale, (centre.y + radius*sin) * r.scale}
	}
	r.paint([][]vec{circle}, c)
}

func (r *raster) text(body string, at vec, f *face, size, angle float64, c drawing.Color) {
	sin, cos := math.Sincos(angle)
	em := size * r.scale
	origin := vec{at.x * r.scale, at.y * r.scale}
	var contours [][]vec
	advance := 0.0
	for _, ch := range body {
		g := f.glyph(ch)
		if g == nil {
			continue
		}
		place := func(v vec) vec {
			x, y := (v.x+advance)*em, v.y*em
			return vec{origin.x + x*cos - y*sin, origin.y + x*sin + y*cos}
		}
		contours = append(contours, g.contours(place, em)...)
		advance += g.advance
	}
	r.paint(contours, c)
}

// contours flattens a glyph; place maps from the em square to image pixels.
func (g *glyph) contours(place func(vec) vec, em float64) [][]vec {
	steps := 3 + int(math.Min(13, em/24)) // curves of a glyph are short
	var contours [][]vec
	var current []vec
	var pen vec
	for _, s := range g.segments {
		switch s.op {
		case sfnt.SegmentOpMoveTo:
			if len(current) > 0 {
				contours = append(contours, current)
			}
			pen = s.at[0]
			current = []vec{place(pen)}
		case sfnt.SegmentOpLineTo:
			pen = s.at[0]
			current = append(current, place(pen))
		case sfnt.SegmentOpQuadTo:
			from, control, to := pen, s.at[0], s.at[1]
			for i := 1; i <= steps; i++ {
				t := float64(i) / float64(steps)
				a, b, c := (1-t)*(1-t), 2*t*(1-t), t*t
				current = append(current, place(vec{a*from.x + b*control.x + c*to.x, a*from.y + b*control.y + c*to.y}))
			}
			pen = to
		case sfnt.SegmentOpCubeTo:
			from, c1, c2, to := pen, s.at[0], s.at[1], s.at[2]
			for i := 1; i <= steps; i++ {
				t := float64(i) / float64(steps)
				u := 1 - t
				a, b, c, d := u*u*u, 3*u*u*t, 3*u*t*t, t*t*t
				current = append(current, place(vec{
					a*from.x + b*c1.x + c*c2.x + d*to.x, a*from.y + b*c1.y + c*c2.y + d*to.y,
				}))
			}
			pen = to
		}
	}
	if len(current) > 0 {
		contours = append(contours, current)
	}
	return contours
}

func uniform(c drawing.Color) *image.Uniform {
	return image.NewUniform(color.NRGBA{R: c.R, G: c.G, B: c.B, A: c.A})
}
