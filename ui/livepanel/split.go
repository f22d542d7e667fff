package livepanel

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"

	"velo/ui/look"
)

// split is a bar that shows how tokens share among reasoning and answer.
type split struct {
	widget.BaseWidget
	reasoning, answer int
}

func newSplit() *split {
	s := &split{}
	s.ExtendBaseWidget(s)
	return s
}

func (s *split) set(reasoning, answer int) {
	if reasoning != s.reasoning || answer != s.answer {
		s.reasoning, s.answer = reasoning, answer
		s.Refresh()
	}
}

// CreateRenderer is Fyne's.
func (s *split) CreateRenderer() fyne.WidgetRenderer {
	r := &splitRenderer{s: s, back: canvas.NewRectangle(nil), left: canvas.NewRectangle(nil), right: canvas.NewRectangle(nil)}
	r.Refresh()
	return r
}

type splitRenderer struct {
	s                 *split
	back, left, right *canvas.Rectangle
}

func (r *splitRenderer) MinSize() fyne.Size { return fyne.NewSize(64, look.Step) }

func (r *splitRenderer) Layout(size fyne.Size) {
	r.back.Resize(size)
	total := r.s.reasoning + r.s.answer
	if total == 0 {
		r.left.Hide()
		r.right.Hide()
		return
	}
	w := size.Width * float32(r.s.reasoning) / float32(total)
	r.left.Resize(fyne.NewSize(w, size.Height))
	r.right.Move(fyne.NewPos(w, 0))
	r.right.Resize(fyne.NewSize(size.Width-w, size.Height))
	r.left.Show()
	r.right.Show()
}

func (r *splitRenderer) Refresh() {
	p := look.Now()
	r.back.FillColor = p.Raised
	r.left.FillColor, r.right.FillColor = regimeColor("reasoning"), p.Accent
	r.Layout(r.s.Size())
	for _, o := range r.Objects() {
		o.Refresh()
	}
}

func (r *splitRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.back, r.left, r.right}
}
func (r *splitRenderer) Destroy() {}
