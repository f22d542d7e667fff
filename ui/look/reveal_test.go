package look

import (
	"fmt"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"
)

// TestFocusIsInView: whatever gets the focus by a key is brought into view, forwards and backwards, and nothing moves
// for what is in view already.
func TestFocusIsInView(t *testing.T) {
	test.NewTempApp(t).Settings().SetTheme(&Theme{})
	list := Rows(0)
	var all []fyne.Focusable
	for i := range 30 {
		var o fyne.CanvasObject
		switch i % 3 {
		case 0:
			o = NewItem(fmt.Sprint("item ", i), "", func() {})
		case 1:
			o = Button(fmt.Sprint("button ", i), func() {})
		case 2:
			o = NewEntry("")
		}
		all = append(all, o.(fyne.Focusable))
		list.Add(o)
	}
	inner := NewScroll(list)
	w := test.NewTempWindow(t, Frame(NewText("head"), nil, nil, inner))
	w.Resize(fyne.NewSize(300, 200))
	inner.Settle()
	top := fyne.CurrentApp().Driver().AbsolutePositionForObject(inner).Y
	check := func(i int) {
		t.Helper()
		o := all[i].(fyne.CanvasObject)
		y := fyne.CurrentApp().Driver().AbsolutePositionForObject(o).Y
		if y < top-0.5 || y+o.Size().Height > top+inner.Size().Height+0.5 {
			t.Errorf("%d has the focus and is at %v to %v; in view are %v to %v", i, y, y+o.Size().Height, top, top+inner.Size().Height)
		}
	}
	for i := range all {
		w.Canvas().FocusNext()
		if w.Canvas().Focused() != all[i] {
			t.Fatalf("after %d steps %v has the focus", i+1, w.Canvas().Focused())
		}
		check(i)
	}
	was := inner.Offset()
	w.Canvas().FocusPrevious()
	if inner.Offset() != was {
		t.Error("it was in view, and all the same the list moved")
	}
	for i := len(all) - 2; i > 0; i-- {
		check(i)
		w.Canvas().FocusPrevious()
	}
	check(0)
}

// TestButtonsShowTheirFocus by a ring, those in the accent's colour too.
func TestButtonsShowTheirFocus(t *testing.T) {
	test.NewTempApp(t).Settings().SetTheme(&Theme{})
	for name, b := range map[string]*PushButton{"plain": Button("Go", func() {}), "main": MainButton("Go", func() {})} {
		w := test.NewTempWindow(t, Rows(0, b))
		ring := func() fyne.CanvasObject {
			o := test.WidgetRenderer(b).Objects()
			return o[len(o)-1]
		}
		if ring().Visible() {
			t.Errorf("%s: there is a ring without the focus", name)
		}
		w.Canvas().Focus(b)
		if !ring().Visible() || ring().Size() != b.Size() {
			t.Errorf("%s: with the focus the ring is %v, %v", name, ring().Visible(), ring().Size())
		}
		w.Canvas().Unfocus()
		if ring().Visible() {
			t.Errorf("%s: the ring stays", name)
		}
		if b.Importance != widget.HighImportance && name == "main" {
			t.Error("the main button is none")
		}
	}
}
