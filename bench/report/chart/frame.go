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
	row   int // 1 stands a line lower, under its neighbours
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

// caption is a label above the plot: a marker at x0 = x1 or a band.
type caption struct {
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
	markers, bands []caption

	// x and y return the scales for a plot of that size; their ticks are
	// the labels of xTicks and yTicks where those are nil.
	x              func(width float64, unit string) *scale
	y              func(height float64, unit string) *scale
	xTicks, yTicks func(length float64) []tick // of categories
	rightRoom      float64                     // px that values need beside the plot
	topRoom        float64                     // px that values need above it
	minHeight      float64                     // px of the plot that categories need to be named
}

// detail is how much of the frame is shown. Where there is too little room
// the least needed goes first.
type detail int

const (
	everything detail = iota
	noXLabel
	noYLabel
	noNames
	noCaptions
	noTitle
	noTicks
)

const (
	minPlotWidth, minPlotHeight = 56, 40
	tickGap                     = 8  // px between plot and tick labels
	nameGap                     = 10 // px between plot and names
	lineHeight                  = 14 // px between lines of one label
	maxCaptionRows              = 4
)

// layout places everything and returns a scene that lacks only the series.
func (f *frame) layout() *scene {
	for _, height := range []float64{math.Max(f.minHeight, minPlotHeight), minPlotHeight} {
		for d := everything; d < noTicks; d++ {
			if s := f.try(d); s.plot.width() >= minPlotWidth && s.plot.height() >= height {
				return s
			}
		}
	}
	return f.try(noTicks)
}

// margin is the room at the edges of the picture.
func (f *frame) margin() float64 {
	return math.Min(8, math.Round(math.Min(f.width, f.height)/20))
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

	// Rows above and below depend on the width of the plot, that on the
	// labels of y, and these on the height that the rows leave: a few rounds
	// settle it. Rows below are never given back, so that none is cut off.
	markerRows, bandRows, rowsBelow := 0, 0, 1
	var left, right float64
	var marked, banded []tag
	var xTicks, yTicks []tick
	for range 4 {
		above := 6.0
		if rows := markerRows + bandRows; rows > 0 {
			above = float64(rows)*rowHeight + 3
		}
		s.plot.top = top + math.Max(above, f.topRoom)
		s.plot.bottom = bottom - tickGap - labelSize - float64(rowsBelow-1)*lineHeight
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
		xTicks = f.ticksOfX(s)
		before := [3]int{markerRows, bandRows, rowsBelow}
		for _, t := range xTicks {
			rowsBelow = max(rowsBelow, t.row+len(t.lines))
		}
		if d < noCaptions {
			limit := min(maxCaptionRows, int((bottom-top)/4/rowHeight))
			marked = f.place(s, f.markers, s.plot.left, f.width-pad)
			markerRows = stack(marked, s.plot.left, f.width-pad, 8, limit)
			banded = f.placeBands(s)
			bandRows = min(1, len(banded))
		}
		if before == [3]int{markerRows, bandRows, rowsBelow} {
			break
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
		text := t.lines[0]
		s.write(text, s.plot.left-tickGap-textRegular.width(text, labelSize), middle(s.plot.bottom-t.at, labelSize), f.palette.Muted)
	}
	f.writeX(s, xTicks, pad)
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
	r.right, r.bottom = math.Max(math.Min(r.right, f.width), r.left+1), math.Max(math.Min(r.bottom, f.height), r.top+1)
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

// ticksOfX are the labels under the plot.
func (f *frame) ticksOfX(s *scene) []tick {
	if f.xTicks != nil {
		return f.xTicks(s.plot.width())
	}
	return positions(s.x, s.plot.width())
}

// writeX writes the labels under the plot and leaves out those that would
// touch the one before.
func (f *frame) writeX(s *scene, ticks []tick, pad float64) {
	ends := map[int]float64{}
	for _, t := range ticks {
		w := widest(t.lines)
		left := math.Max(pad, math.Min(f.width-pad-w, s.plot.left+t.at-w/2))
		free := true
		for i := range t.lines {
			if end, ok := ends[t.row+i]; ok && left < end+6 {
				free = false
			}
		}
		if !free {
			continue
		}
		for i, line := range t.lines {
			ends[t.row+i] = left + w
			x := left + (w-textRegular.width(line, labelSize))/2
			s.write(line, x, s.plot.bottom+tickGap+ascent*labelSize+float64(t.row+i)*lineHeight, f.palette.Muted)
		}
	}
}

// place turns captions of single values into tags.
func (f *frame) place(s *scene, captions []caption, lo, hi float64) []tag {
	var tags []tag
	for _, fl := range captions {
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
		if len([]rune(text)) < 5 && text != full || text == "" {
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

// fitTicks picks the number of ticks: as many as fit at about one every
// spacing px, fewer where labels would touch. One tick alone tells no scale:
// rather than that it keeps the first and the last of more.
func fitTicks(length, spacing float64, most int, try func(n int) *scale, touch func(*scale) bool) *scale {
	first := max(2, min(most, int(math.Round(length/spacing))))
	for n := first; n >= 2; n-- {
		if sc := try(n); len(sc.ticks) >= 2 && !touch(sc) {
			return sc
		}
	}
	for n := 2; n <= 6; n++ {
		sc := try(n)
		if k := len(sc.ticks); k >= 2 {
			sc.ticks = []gochart.Tick{sc.ticks[0], sc.ticks[k-1]}
			if !touch(sc) {
				return sc
			}
		}
	}
	sc := try(2)
	sc.ticks = sc.ticks[:min(1, len(sc.ticks))]
	return sc
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
