package ui

import (
	"testing"

	"fyne.io/fyne/v2"
)

// TestQuestionsAreAnsweredByKeys: Enter agrees and Escape does not, whatever had the focus before.
func TestQuestionsAreAnsweredByKeys(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	for _, key := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyEnter, fyne.KeyEscape} {
		agreed := 0
		g.shell.ask("Delete", "Delete it?", "Delete", func() { agreed++ })
		g.pump()
		g.keyTo(key)
		want := 1
		if key == fyne.KeyEscape {
			want = 0
		}
		if n := len(g.window.Canvas().Overlays().List()); agreed != want || n != 0 || len(g.shell.dialogs) != 0 {
			t.Errorf("%s: agreed %d times, %d overlays and %d questions are left", key, agreed, n, len(g.shell.dialogs))
		}
	}
	g.shell.ask("Delete", "Delete it?", "Delete", func() { t.Error("the other button agrees") })
	g.window.Canvas().FocusPrevious() // the one that does not
	g.keyTo(fyne.KeyReturn)
	if n := len(g.shell.dialogs); n != 0 {
		t.Errorf("%d questions are left", n)
	}
}
