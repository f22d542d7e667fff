package chatpage

import (
	"testing"

	"fyne.io/fyne/v2"
)

// Where there is no room for the list and the panel, a button changes one for the other, and nothing is cut.
func TestColumnsOfANarrowPage(t *testing.T) {
	g := newStage(t, talked(), 1144, 690)
	g.draw()
	p := g.page
	list, panel := p.list.view, p.panel.View
	if !list.Visible() || !panel.Visible() || p.fold.Visible() {
		t.Fatal("a wide page does not show list and panel")
	}
	narrow := fyne.NewSize(p.View.MinSize().Width, 500)
	if narrow.Width > 860 {
		t.Errorf("the page needs %g units of width", narrow.Width)
	}
	g.window.Resize(narrow)
	g.draw()
	if list.Visible() || !panel.Visible() || !p.fold.Visible() {
		t.Fatalf("at %g units: list %v, panel %v, button %v", narrow.Width, list.Visible(), panel.Visible(), p.fold.Visible())
	}
	if end := panel.Position().X + panel.Size().Width; end > p.View.Size().Width+0.5 {
		t.Errorf("the panel ends at %g of %g", end, p.View.Size().Width)
	}
	if w, least := p.conversation.Size().Width, p.conversation.MinSize().Width; w < least {
		t.Errorf("the conversation has %g units and needs %g", w, least)
	}
	p.fold.OnTapped()
	g.draw()
	if !list.Visible() || panel.Visible() || p.fold.Text != "Figures" {
		t.Error("the button does not show the list")
	}
	p.fold.OnTapped()
	g.draw()
	if list.Visible() || !panel.Visible() {
		t.Error("the button does not show the panel again")
	}
	p.FocusSearch()
	if !list.Visible() {
		t.Error("the search is not in view")
	}
	g.window.Resize(fyne.NewSize(1144, 690))
	g.draw()
	if !list.Visible() || !panel.Visible() || p.fold.Visible() {
		t.Error("wide again, list and panel are not both there")
	}
}
