package chart

import (
	"image/color"
	"math"

	gochart "github.com/wcharczuk/go-chart/v2"
)

// tick is a label at a distance in px from the left end (x) or the bottom
// (y) of the plot, in one or two lines.
type tick struct {
	at    float64
	lines []string
}

// name is a series or marker with the sample that stands for it.
type name struct {
	text   string
	color  color.RGBA
	dash   []float64
	block  bool    // the sample is a tinted block: an envelope
	value  float64 // of y, where the label would like to be
	linked bool    // the line reaches the right end of the plot: a thin line may lead to its label
	muted  bool    // a marker
}

// flag is a label above the plot: a marker at x0 = x1 or a band.
type flag struct {
	text   string
	x0, x1 float64
}

// frame is everything around the plot, from which its place follows.
type frame struct {
	width, height  float64
	palette        Palette
	title          string
	xLabel, yLabel string
	xUnit, yUnit   string
	names          []name
	markers, bands []flag

	// x and y return the scales for a plot of that size; their ticks are
	// the labels of xTicks and yTicks where those are nil.
	x              func(width float64, unit string) *scale
	y              func(height float64, unit string) *scale
	xTicks, yTicks func(length float64) []tick // of categories
	rightRoom      float64                     // px that values need beside the plot
	topRoom        float64                     // px that values need above it
}

// detail is how much of the frame is shown. Where there is too little room
// the least needed goes first.
type detail int

const (
	everything detail = iota
	noXLabel
	noYLabel
	noNames
	noFlags
	noTitle
	noTicks
)

const (
	minPlotWidth, minPlotHeight = 56, 40
	tickGap                     = 8  // px between plot and tick labels
	nameGap                     = 10 // px between plot and names
	maxFlagRows                 = 4
)

// layout places everything and returns a scene that lacks only the series.
func (f *frame) layout() *scene {
	for d := everything; ; d++ {
		if s := f.try(d); d == noTicks || s.plot.width() >= minPlotWidth && s.plot.height() >= minPlotHeight {
			return s
		}
	}
}

// margin is the room at the edges of the picture.
func (f *frame) margin() float64 {
	return math.Max(2, math.Min(8, math.Round(math.Min(f.width, f.height)/20)))
}

// try lays the frame out at one level of detail.
func (f *frame) try(d detail) *scene {
	s := &scene{width: f.width, height: f.height, palette: f.palette, grid: true}
	pad := f.margin()
	top := pad
	if f.title != "" && d < noTitle {
		text := textBold.fit(Printable(f.title), titleSize, f.width-2*pad)
		if text != "" {
			s.labels = append(s.labels, label{text, pad, top + ascent*titleSize, titleSize, textBold, f.palette.Text})
		}
		top += 22
	}
	beside := d < noNames && f.beside()
	if !beside && d < noNames && len(f.names) > 0 {
		top = f.legend(s, top)
	}
	xUnit, yUnit := f.xUnit, f.yUnit
	if f.yLabel != "" && d < noYLabel {
		s.write(textRegular.fit(Printable(f.yLabel), labelSize, f.width-2*pad), pad, top+ascent*labelSize, f.palette.Muted)
		top += rowHeight
		yUnit = ""
	}
	bottom := f.height - pad
	xLabelAt := 0.0
	if f.xLabel != "" && d < noXLabel {
		xLabelAt = bottom - descent*labelSize
		bottom -= rowHeight
		xUnit = ""
	}
	if d == noTicks {
		s.plot = rect{pad, math.Min(top, f.height-pad-1), math.Max(pad+1, f.width-pad), math.Max(top+1, bottom)}.whole(f)
		s.x, s.y = f.x(s.plot.width(), ""), f.y(s.plot.height(), "")
		s.x.ticks, s.y.ticks = nil, nil
		s.bare = true
		return s
	}

	// Rows of flags depend on the width of the plot, that on the labels of
	// y, and these on the height that the flags leave: two rounds settle it.
	var markerRows, bandRows int
	var left, right float64
	var marked, banded []tag
	var yTicks []tick
	for range 2 {
		above := 6.0
		if rows := markerRows + bandRows; rows > 0 {
			above = float64(rows)*rowHeight + 3
		}
		s.plot.top = top + math.Max(above, f.topRoom)
		s.plot.bottom = bottom - tickGap - ascent*labelSize - descent*labelSize
		if f.xTicks != nil {
			s.plot.bottom = bottom - tickGap - f.categoryHeight()
		}
		s.y = f.y(math.Max(1, s.plot.height()), yUnit)
		yTicks = f.ticksOfY(s)
		left = pad
		for _, t := range yTicks {
			left = math.Max(left, pad+widest(t.lines)+tickGap)
		}
		right = math.Max(pad, f.rightRoom+pad)
		if beside && len(f.names) > 0 {
			right = pad + nameGap + swatchSize + 4 + f.widestName()
		}
		s.plot.left, s.plot.right = left, f.width-right
		s.plot = s.plot.whole(f)
		s.x = f.x(math.Max(1, s.plot.width()), xUnit)
		if d < noFlags {
			limit := min(maxFlagRows, int((bottom-top)/4/rowHeight))
			marked = f.place(s, f.markers, s.plot.left, f.width-pad)
			markerRows = stack(marked, s.plot.left, f.width-pad, 8, limit)
			banded = f.placeBands(s)
			bandRows = min(1, len(banded))
		}
	}
	for i := range marked {
		if t := marked[i]; t.row >= 0 {
			row := float64(t.row + bandRows)
			s.write(t.text, t.left, s.plot.top-3-descent*labelSize-row*rowHeight, f.palette.Text)
		}
	}
	for _, t := range banded {
		s.write(t.text, t.left, s.plot.top-3-descent*labelSize, f.palette.Muted)
	}
	for _, t := range yTicks {
		y := middle(s.plot.bottom-t.at, labelSize) - float64(len(t.lines)-1)*7
		for i, line := range t.lines {
			s.write(line, s.plot.left-tickGap-textRegular.width(line, labelSize), y+float64(i)*14, f.palette.Muted)
		}
	}
	f.writeX(s, pad)
	if xLabelAt > 0 {
		text := textRegular.fit(Printable(f.xLabel), labelSize, f.width-2*pad)
		w := textRegular.width(text, labelSize)
		x := math.Max(pad, math.Min(f.width-pad-w, (s.plot.left+s.plot.right-w)/2))
		s.write(text, x, xLabelAt, f.palette.Muted)
	}
	if beside && !f.namesBeside(s) {
		return &scene{} // no room for the names: the next level leaves them out
	}
	return s
}

// whole puts the edges of the plot on whole pixels, at least one apart and
// within the picture.
func (r rect) whole(f *frame) rect {
	r = rect{math.Ceil(r.left), math.Ceil(r.top), math.Floor(r.right), math.Floor(r.bottom)}
	r.left, r.top = math.Max(0, math.Min(r.left, f.width-1)), math.Max(0, math.Min(r.top, f.height-1))
	r.right, r.bottom = math.Max(r.right, r.left+1), math.Max(r.bottom, r.top+1)
	return r
}

// ticksOfY are the labels left of the plot.
func (f *frame) ticksOfY(s *scene) []tick {
	if f.yTicks != nil {
		return f.yTicks(s.plot.height())
	}
	return positions(s.y, s.plot.height())
}

// positions turns the ticks of a scale into labels.
func positions(sc *scale, length float64) []tick {
	out := make([]tick, len(sc.ticks))
	for i, t := range sc.ticks {
		out[i] = tick{at: sc.fraction(t.Value) * length, lines: []string{t.Label}}
	}
	return out
}

// categoryHeight is the room that labels under the plot need: two lines.
func (f *frame) categoryHeight() float64 {
	lines := 1
	for _, t := range f.xTicks(f.width * 0.8) { // about the width of the plot
		lines = max(lines, len(t.lines))
	}
	return float64(lines)*14 + 1
}

// writeX writes the labels under the plot and leaves out those that would
// touch the one before, except that the last one wins over its neighbour.
func (f *frame) writeX(s *scene, pad float64) {
	var ticks []tick
	if f.xTicks != nil {
		ticks = f.xTicks(s.plot.width())
	} else {
		ticks = positions(s.x, s.plot.width())
	}
	end := math.Inf(-1)
	for _, t := range ticks {
		w := widest(t.lines)
		left := math.Max(pad, math.Min(f.width-pad-w, s.plot.left+t.at-w/2))
		if left < end+6 {
			continue
		}
		end = left + w
		for i, line := range t.lines {
			x := left + (w-textRegular.width(line, labelSize))/2
			s.write(line, x, s.plot.bottom+tickGap+ascent*labelSize+float64(i)*14, f.palette.Muted)
		}
	}
}

// place turns flags of single values into tags.
func (f *frame) place(s *scene, flags []flag, lo, hi float64) []tag {
	var tags []tag
	for _, fl := range flags {
		text := textRegular.fit(Printable(fl.text), labelSize, hi-lo)
		if text == "" {
			continue
		}
		tags = append(tags, tag{
			text: text, width: textRegular.width(text, labelSize),
			centre: s.plot.left + s.x.fraction(fl.x0)*s.plot.width(),
		})
	}
	return tags
}

// placeBands centres the label of a band above it, shortened to its width;
// where hardly a letter would be left there is none.
func (f *frame) placeBands(s *scene) []tag {
	var tags []tag
	end := math.Inf(-1)
	for _, b := range f.bands {
		x0, x1 := s.plot.left+s.x.fraction(b.x0)*s.plot.width(), s.plot.left+s.x.fraction(b.x1)*s.plot.width()
		x0, x1 = math.Max(math.Max(x0, end+2), s.plot.left), math.Min(x1, s.plot.right)
		full := Printable(b.text)
		text := textRegular.fit(full, labelSize, x1-x0-2)
		if len([]rune(text)) < 3 && text != full || text == "" {
			continue
		}
		w := textRegular.width(text, labelSize)
		left := (x0 + x1 - w) / 2
		tags = append(tags, tag{text: text, width: w, left: left})
		end = left + w
	}
	return tags
}

func widest(lines []string) float64 {
	w := 0.0
	for _, line := range lines {
		w = math.Max(w, textRegular.width(line, labelSize))
	}
	return w
}

// fitTicks picks the number of ticks: as many as fit at about one every spacing
// px, fewer where labels would touch.
func fitTicks(length, spacing float64, most int, try func(n int) *scale, touch func(*scale) bool) *scale {
	n := max(2, min(most, int(math.Round(length/spacing))))
	for ; ; n-- {
		sc := try(n)
		if n <= 1 || !touch(sc) {
			return sc
		}
	}
}

// touchX reports whether labels in a row come closer than 10 px.
func touchX(width float64) func(*scale) bool {
	return func(sc *scale) bool {
		end := math.Inf(-1)
		for _, t := range positions(sc, width) {
			w := widest(t.lines)
			if t.at-w/2 < end+10 {
				return true
			}
			end = t.at + w/2
		}
		return false
	}
}

// touchY reports whether labels in a column come closer than a row.
func touchY(height float64) func(*scale) bool {
	return func(sc *scale) bool {
		last := math.Inf(-1)
		for _, t := range positions(sc, height) {
			if t.at-last < rowHeight {
				return true
			}
			last = t.at
		}
		return false
	}
}

// withUnit adds the unit to the last tick where the axis has no label.
func withUnit(ticks []gochart.Tick, unit string) []gochart.Tick {
	if n := len(ticks); n > 0 && unit != "" {
		ticks[n-1].Label += " " + Printable(unit)
	}
	return ticks
}
