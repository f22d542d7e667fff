package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// Lamp is a word with a coloured dot: never colour alone.
type Lamp struct {
	*fyne.Container
	dot  *Surface
	word *Text
}

// NewLamp returns a lamp whose word has a fixed width in units; 0: as wide as the word.
func NewLamp(width float32) *Lamp {
	l := &Lamp{dot: Dot(OnFaint), word: NewText("")}
	if width > 0 {
		l.word.Fixed(width)
	}
	l.Container = Line(Step, l.dot, l.word)
	return l
}

// Set changes tone and word.
func (l *Lamp) Set(t Tone, word string) {
	l.dot.SetTone(t)
	l.word.Set(word)
}

// Word is what it says.
func (l *Lamp) Word() string { return l.word.Text() }

// Progress is a bar of four units; a share below zero shows nothing done.
type Progress struct {
	widget.BaseWidget
	share float32
}

// NewProgress returns an empty bar.
func NewProgress() *Progress {
	p := &Progress{}
	p.ExtendBaseWidget(p)
	return p
}

// Set changes the share that is done, 0 to 1.
func (p *Progress) Set(share float32) {
	share = fyne.Max(0, fyne.Min(1, share))
	if share == p.share {
		return
	}
	p.share = share
	p.Refresh()
}

// CreateRenderer is Fyne's.
func (p *Progress) CreateRenderer() fyne.WidgetRenderer {
	r := &progressRenderer{p: p, back: canvas.NewRectangle(nil), done: canvas.NewRectangle(nil)}
	r.Refresh()
	return r
}

type progressRenderer struct {
	p          *Progress
	back, done *canvas.Rectangle
}

func (r *progressRenderer) MinSize() fyne.Size { return fyne.NewSize(64, Half) }
func (r *progressRenderer) Layout(s fyne.Size) {
	r.back.Resize(s)
	r.done.Resize(fyne.NewSize(s.Width*r.p.share, s.Height))
}
func (r *progressRenderer) Refresh() {
	n := Now()
	r.back.FillColor, r.done.FillColor = n.Raised, n.Accent
	r.back.CornerRadius, r.done.CornerRadius = 2, 2
	r.Layout(r.p.Size())
	r.back.Refresh()
}
func (r *progressRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.back, r.done}
}
func (r *progressRenderer) Destroy() {}

// Empty is the state of a page that has nothing to show yet: what will be here, and the next action.
func Empty(title, text string, actions ...fyne.CanvasObject) fyne.CanvasObject {
	body := Rows(Step, NewText(title).Sized(Head).Bold(), NewParagraph(text).In(Muted))
	if len(actions) > 0 {
		body.Add(Sized(0, Step, NewSurface(OnBackground)))
		body.Add(Line(Step, actions...))
	}
	return container.New(middle{}, body)
}

// middle keeps an object at a readable width, its upper edge at a third of the height.
type middle struct{}

func (middle) MinSize(o []fyne.CanvasObject) fyne.Size { return o[0].MinSize() }
func (middle) Layout(o []fyne.CanvasObject, size fyne.Size) {
	w := fyne.Min(size.Width, 520)
	h := settle(o[0], w)
	o[0].Move(fyne.NewPos(0, fyne.Max(0, (size.Height-h)/4)))
}

// Notice is a message in a bar: what, why and what to do, with at most a few actions. It stays until
// it is dismissed.
type Notice struct {
	*fyne.Container
	edge    *Surface
	text    *Paragraph
	actions *fyne.Container
	dismiss *PushButton
	moved   func()

	OnDismiss func() // the user has read it
}

// NewNotice returns a hidden notice. It calls moved when it comes, goes or changes its height: what
// lies around it is to be laid out again.
func NewNotice(moved func()) *Notice {
	n := &Notice{edge: NewSurface(OnAccent), text: NewParagraph(""), actions: Line(Step)}
	n.moved = moved
	n.dismiss = Button("Dismiss", func() {
		n.Close()
		if n.OnDismiss != nil {
			n.OnDismiss()
		}
	})
	n.dismiss.Importance = widget.LowImportance
	body := container.New(trailing{Gap}, n.text, n.actions)
	n.Container = Rows(0,
		Panel(OnSurface, Frame(nil, nil, Sized(3, 0, n.edge), Inset(Half, Margin, Half, Margin-3, body))),
		Rule())
	n.Hide()
	return n
}

// Say shows a message. The tone is OnAccent, OnAmber or OnRed.
func (n *Notice) Say(t Tone, text string, actions ...fyne.CanvasObject) {
	n.edge.SetTone(t)
	n.text.Set(text)
	n.actions.Objects = append(append([]fyne.CanvasObject{}, actions...), n.dismiss)
	n.Show()
	n.moved()
}

// Close takes the message away.
func (n *Notice) Close() {
	if n.Visible() {
		n.Hide()
		n.moved()
	}
}

// Text is the message.
func (n *Notice) Text() string { return n.text.Text() }

// trailing gives the second object what it needs at the right, the first one the rest.
type trailing struct{ gap float32 }

func (l trailing) MinSize(o []fyne.CanvasObject) fyne.Size {
	a, b := o[0].MinSize(), o[1].MinSize()
	return fyne.NewSize(a.Width+l.gap+b.Width, fyne.Max(a.Height, b.Height))
}

func (l trailing) Layout(o []fyne.CanvasObject, size fyne.Size) {
	b := o[1].MinSize()
	w := size.Width - b.Width - l.gap
	h := settle(o[0], w)
	o[0].Move(fyne.NewPos(0, fyne.Max(0, (size.Height-h)/2)))
	o[1].Resize(b)
	o[1].Move(fyne.NewPos(size.Width-b.Width, (size.Height-b.Height)/2))
}

// Trailing puts one object at the right, as wide as it needs, and gives another the rest.
func Trailing(gap float32, rest, right fyne.CanvasObject) *fyne.Container {
	return container.New(trailing{gap}, rest, right)
}

// Item is a row that can be chosen: an entry of the navigation, of the list of suites, of the index
// of a report.
type Item struct {
	widget.BaseWidget

	title, detail string
	selected      bool
	hovered       bool
	focused       bool
	OnTapped      func()
}

var (
	_ fyne.Focusable    = (*Item)(nil)
	_ fyne.Tappable     = (*Item)(nil)
	_ desktop.Hoverable = (*Item)(nil)
)

// NewItem returns an item; the detail is a smaller second line, or empty.
func NewItem(title, detail string, tapped func()) *Item {
	i := &Item{title: title, detail: detail, OnTapped: tapped}
	i.ExtendBaseWidget(i)
	return i
}

// Title is its first line.
func (i *Item) Title() string { return i.title }

// Selected tells whether it is the chosen one.
func (i *Item) Selected() bool { return i.selected }

// Select marks it as the chosen one, or not.
func (i *Item) Select(on bool) {
	if i.selected != on {
		i.selected = on
		i.Refresh()
	}
}

// Tapped chooses it.
func (i *Item) Tapped(*fyne.PointEvent) {
	if i.OnTapped != nil {
		i.OnTapped()
	}
}

// MouseIn is Fyne's.
func (i *Item) MouseIn(*desktop.MouseEvent) { i.hovered = true; i.Refresh() }

// MouseMoved is Fyne's.
func (i *Item) MouseMoved(*desktop.MouseEvent) {}

// MouseOut is Fyne's.
func (i *Item) MouseOut() { i.hovered = false; i.Refresh() }

// FocusGained is Fyne's.
func (i *Item) FocusGained() { i.focused = true; i.Refresh(); Reveal(i) }

// FocusLost is Fyne's.
func (i *Item) FocusLost() { i.focused = false; i.Refresh() }

// TypedRune is none of an item's business.
func (i *Item) TypedRune(r rune) { PassRune(i, r) }

// TypedKey chooses it with the space or the enter key.
func (i *Item) TypedKey(e *fyne.KeyEvent) {
	switch e.Name {
	case fyne.KeySpace, fyne.KeyReturn, fyne.KeyEnter:
		i.Tapped(nil)
	default:
		PassKey(i, e)
	}
}

// CreateRenderer is Fyne's.
func (i *Item) CreateRenderer() fyne.WidgetRenderer {
	r := &itemRenderer{i: i, back: canvas.NewRectangle(nil), edge: canvas.NewRectangle(nil),
		title: canvas.NewText("", nil), detail: canvas.NewText("", nil)}
	r.Refresh()
	return r
}

type itemRenderer struct {
	i             *Item
	back, edge    *canvas.Rectangle
	title, detail *canvas.Text
}

func (r *itemRenderer) MinSize() fyne.Size {
	h := float32(32)
	if r.i.detail != "" {
		h = 48
	}
	return fyne.NewSize(96, h)
}

func (r *itemRenderer) Layout(s fyne.Size) {
	r.back.Resize(s)
	r.edge.Resize(fyne.NewSize(3, s.Height))
	w := s.Width - 2*Gap
	r.title.Text = Fit(r.i.title, w, Body, r.title.TextStyle)
	r.detail.Text = Fit(r.i.detail, w, Small, r.detail.TextStyle)
	t, d := r.title.MinSize(), r.detail.MinSize()
	y := (s.Height - t.Height) / 2
	if r.i.detail != "" {
		y = (s.Height - t.Height - d.Height) / 2
	}
	r.title.Move(fyne.NewPos(Gap, y))
	r.title.Resize(fyne.NewSize(w, t.Height))
	r.detail.Move(fyne.NewPos(Gap, y+t.Height))
	r.detail.Resize(fyne.NewSize(w, d.Height))
}

func (r *itemRenderer) Refresh() {
	p, i := Now(), r.i
	r.back.FillColor = alpha(p.Background, 0)
	if i.hovered {
		r.back.FillColor = p.Hover
	}
	if i.selected {
		r.back.FillColor = p.Selected
	}
	r.edge.FillColor = p.Accent
	// What shows nothing is hidden: a colour of no opacity would be painted.
	r.back.Hidden, r.edge.Hidden = !i.hovered && !i.selected && !i.focused, !i.selected
	r.back.StrokeWidth = 0
	if i.focused {
		r.back.StrokeWidth, r.back.StrokeColor = 2, p.Accent
	}
	r.title.TextSize, r.title.Color = Body, p.Text
	r.title.TextStyle = fyne.TextStyle{Bold: i.selected}
	r.detail.TextSize, r.detail.Color = Small, p.Muted
	r.Layout(i.Size())
	for _, o := range r.Objects() {
		o.Refresh()
	}
}

func (r *itemRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.back, r.edge, r.title, r.detail}
}
func (r *itemRenderer) Destroy() {}
