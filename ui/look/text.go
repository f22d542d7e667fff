package look

import (
	"strings"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"
)

// Text is one line of text whose colour follows the theme.
type Text struct {
	widget.BaseWidget

	text  string
	size  float32
	style fyne.TextStyle
	ink   Ink
	align fyne.TextAlign
	width float32 // least width, in units; < 0: as the text
}

// NewText returns a line of body text, as wide as it is long.
func NewText(text string) *Text {
	t := &Text{text: text, size: Body, width: -1}
	t.ExtendBaseWidget(t)
	return t
}

// NewMono returns a line in the family of numbers.
func NewMono(text string) *Text { return NewText(text).Mono() }

// Sized sets the text size, one of the four.
func (t *Text) Sized(size float32) *Text { t.size = size; return t }

// Bold makes it bold.
func (t *Text) Bold() *Text { t.style.Bold = true; return t }

// Mono takes the family of numbers.
func (t *Text) Mono() *Text { t.style.Monospace = true; return t }

// In sets the colour's role.
func (t *Text) In(i Ink) *Text { t.ink = i; return t }

// Right aligns it to the right.
func (t *Text) Right() *Text { t.align = fyne.TextAlignTrailing; return t }

// Centre puts it in the middle.
func (t *Text) Centre() *Text { t.align = fyne.TextAlignCenter; return t }

// Fixed reserves a width in units, whatever the text: what does not fit ends in an ellipsis, and
// what comes behind does not move when the text changes.
func (t *Text) Fixed(width float32) *Text { t.width = width; return t }

// Text returns the whole text, also where only a part of it is shown.
func (t *Text) Text() string { return t.text }

// Set changes the text.
func (t *Text) Set(text string) {
	if text == t.text {
		return
	}
	t.text = text
	t.Refresh()
}

// SetIn changes the text and its role.
func (t *Text) SetIn(text string, ink Ink) {
	if text == t.text && ink == t.ink {
		return
	}
	t.text, t.ink = text, ink
	t.Refresh()
}

// CreateRenderer is Fyne's.
func (t *Text) CreateRenderer() fyne.WidgetRenderer {
	r := &textRenderer{t: t, c: canvas.NewText("", nil)}
	r.update()
	return r
}

type textRenderer struct {
	t *Text
	c *canvas.Text
}

func (r *textRenderer) update() {
	t, c := r.t, r.c
	c.TextSize, c.TextStyle, c.Alignment = t.size, t.style, t.align
	c.Color = Now().Ink(t.ink)
	if t.width >= 0 {
		c.Text = Fit(t.text, t.Size().Width, t.size, t.style)
	} else {
		c.Text = t.text
	}
}

func (r *textRenderer) MinSize() fyne.Size {
	if r.t.width >= 0 {
		return fyne.NewSize(r.t.width, fyne.MeasureText("0", r.t.size, r.t.style).Height)
	}
	return fyne.MeasureText(r.t.text, r.t.size, r.t.style)
}

func (r *textRenderer) Layout(size fyne.Size) {
	if r.t.width >= 0 {
		r.update()
	}
	h := r.c.MinSize().Height
	r.c.Move(fyne.NewPos(0, (size.Height-h)/2))
	r.c.Resize(fyne.NewSize(size.Width, h))
}

func (r *textRenderer) Refresh() {
	r.update()
	r.Layout(r.t.Size())
	r.c.Refresh()
}

func (r *textRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.c} }
func (r *textRenderer) Destroy()                     {}

// Fit cuts text to a width in units; what was cut is an ellipsis.
func Fit(text string, width, size float32, style fyne.TextStyle) string {
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		text = text[:i] + "…"
	}
	if width <= 0 || text == "" {
		return ""
	}
	// A text of this many bytes can not fit at any size in use; cutting it first bounds the cost of
	// measuring a hostile one.
	if most := int(width) + 64; len(text) > most {
		for !utf8.RuneStart(text[most]) {
			most--
		}
		text = text[:most] + "…"
	}
	if fyne.MeasureText(text, size, style).Width <= width+0.5 {
		return text
	}
	lo, hi := 0, len(text)
	for lo < hi { // the longest prefix that fits with its ellipsis
		mid := (lo + hi + 1) / 2
		cut := mid
		for cut > 0 && cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut--
		}
		if fyne.MeasureText(text[:cut]+"…", size, style).Width <= width+0.5 {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	for lo > 0 && lo < len(text) && !utf8.RuneStart(text[lo]) {
		lo--
	}
	return strings.TrimRight(text[:lo], " ") + "…"
}
