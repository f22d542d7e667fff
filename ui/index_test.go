package ui

import (
	"testing"

	"fyne.io/fyne/v2"

	"velo/ui/look"
)

// TestNoNameOfANavigationIsCut looks at the pages' names and at the sections of a report: chosen ones
// are bold, and still fit.
func TestNoNameOfANavigationIsCut(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	g.shell.openReport("one")
	g.pump()
	g.draw()
	items := find(g, func(i *look.Item) bool { return true })
	if len(items) < len(g.shell.pages)+10 {
		t.Fatalf("only %d names are in view", len(items))
	}
	for _, i := range items {
		if fit := look.Fit(i.Title(), i.Size().Width-2*look.Gap, look.Body, fyne.TextStyle{Bold: true}); fit != i.Title() {
			t.Errorf("%q is shown as %q", i.Title(), fit)
		}
	}
}
