package look

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"
)

// TileWidth is the width of an ordinary tile, in units.
const TileWidth = 152

// Tile shows one number: its name, the value with unit and source mark on one baseline, and a line
// below. Its size does not depend on what it shows.
type Tile struct {
	widget.BaseWidget

	label, value, unit, mark, note string
	ink                            Ink
	size                           float32 // of the value
	chars                          int     // the unit keeps this many characters away from the left edge
	width                          float32
	noted                          int // lines of room for a note
}

// NewTile returns a tile of the ordinary width without a value: a dash.
func NewTile(label string) *Tile {
	t := &Tile{label: label, value: "—", size: Head, width: TileWidth, noted: 1}
	t.ExtendBaseWidget(t)
	return t
}

// Hero makes it the number that is read from two metres away.
func (t *Tile) Hero() *Tile { t.size, t.width = Hero, 2*TileWidth+Gap; return t }

// Steady keeps room for a number of characters, so that a value that changes its length while
// somebody looks does not move its unit.
func (t *Tile) Steady(chars int) *Tile { t.chars = chars; return t }

// Wide sets the width in units.
func (t *Tile) Wide(width float32) *Tile { t.width = width; return t }

// Notes sets how many lines there is room for below the value.
func (t *Tile) Notes(lines int) *Tile { t.noted = lines; return t }

// SetLabel changes the name.
func (t *Tile) SetLabel(label string) {
	if label != t.label {
		t.label = label
		t.Refresh()
	}
}

// Value is what the tile shows, in one string: "123 tok/s ▪".
func (t *Tile) Value() string {
	return strings.Join(strings.Fields(t.value+" "+t.unit+" "+t.mark), " ")
}

// Note is the line below.
func (t *Tile) Note() string { return t.note }

// Set changes the value; an empty one is a dash.
func (t *Tile) Set(value, unit, mark, note string, ink Ink) {
	if value == "" || value == "—" {
		value, mark = "—", ""
	}
	if value == t.value && unit == t.unit && mark == t.mark && note == t.note && ink == t.ink {
		return
	}
	t.value, t.unit, t.mark, t.note, t.ink = value, unit, mark, note, ink
	t.Refresh()
}

// CreateRenderer is Fyne's.
func (t *Tile) CreateRenderer() fyne.WidgetRenderer {
	r := &tileRenderer{t: t}
	add := func() *canvas.Text {
		c := canvas.NewText("", nil)
		r.objects = append(r.objects, c)
		return c
	}
	r.label, r.value, r.unit, r.mark = add(), add(), add(), add()
	for range t.noted {
		r.notes = append(r.notes, add())
	}
	r.Refresh()
	return r
}

type tileRenderer struct {
	t                        *Tile
	label, value, unit, mark *canvas.Text
	notes                    []*canvas.Text
	objects                  []fyne.CanvasObject
}

func (r *tileRenderer) MinSize() fyne.Size {
	small := fyne.MeasureText("0", Small, fyne.TextStyle{}).Height
	h := small + fyne.MeasureText("0", r.t.size, fyne.TextStyle{Monospace: true}).Height
	h += small * float32(r.t.noted)
	return fyne.NewSize(r.t.width, h)
}

func (r *tileRenderer) Layout(size fyne.Size) {
	place := func(c *canvas.Text, x, y float32) fyne.Size {
		m := c.MinSize()
		c.Resize(m)
		c.Move(fyne.NewPos(x, y))
		return m
	}
	y := place(r.label, 0, 0).Height
	baseline := func(c *canvas.Text) float32 {
		_, b := fyne.CurrentApp().Driver().RenderedTextSize(c.Text, c.TextSize, c.TextStyle, nil)
		return b
	}
	v := place(r.value, 0, y)
	gap := float32(Half)
	if r.t.size == Hero {
		gap = Step
	}
	x := fyne.Max(v.Width, fyne.MeasureText(strings.Repeat("0", r.t.chars), r.t.size, r.value.TextStyle).Width) + gap
	by := y + baseline(r.value)
	u := place(r.unit, x, by-baseline(r.unit))
	if r.t.unit != "" {
		x += u.Width + Half
	}
	place(r.mark, x, by-baseline(r.mark))
	y += v.Height
	for _, n := range r.notes {
		y += place(n, 0, y).Height
	}
}

func (r *tileRenderer) Refresh() {
	t, p := r.t, Now()
	set := func(c *canvas.Text, text string, size float32, style fyne.TextStyle, ink Ink) {
		c.Text, c.TextSize, c.TextStyle, c.Color = text, size, style, p.Ink(ink)
		c.Refresh()
	}
	value, ink := t.value, t.ink
	if t.value == "—" {
		ink = Faint
	}
	width := t.Size().Width
	if width <= 0 {
		width = t.width
	}
	set(r.label, Fit(t.label, width, Small, fyne.TextStyle{}), Small, fyne.TextStyle{}, Muted)
	unitSize := float32(Small)
	if t.size == Hero {
		unitSize = Head
	}
	set(r.value, value, t.size, fyne.TextStyle{Monospace: true, Bold: true}, ink)
	set(r.unit, t.unit, unitSize, fyne.TextStyle{}, Muted)
	set(r.mark, t.mark, Small, fyne.TextStyle{}, Muted)
	lines := wrapLine(t.note, width, Small, fyne.TextStyle{})
	for i, n := range r.notes {
		text := ""
		switch {
		case i == len(r.notes)-1 && len(lines) > i:
			text = Fit(strings.Join(lines[i:], " "), width, Small, fyne.TextStyle{})
		case i < len(lines):
			text = lines[i]
		}
		set(n, text, Small, fyne.TextStyle{}, Muted)
	}
	r.Layout(t.Size())
}

func (r *tileRenderer) Objects() []fyne.CanvasObject { return r.objects }
func (r *tileRenderer) Destroy()                     {}
