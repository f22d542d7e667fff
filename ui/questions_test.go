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
	for _, key := range []fyne.KeyName{fyne.KeyReturn, fyne.KeyEscape} {
		g.shell.warn("Remove", "Remove it?", "Remove", func() { t.Error("what is warned of is agreed to by " + key) })
		g.keyTo(key)
		if n := len(g.shell.dialogs); n != 0 {
			t.Errorf("%s: %d questions are left", key, n)
		}
	}
	removed := 0
	g.shell.warn("Remove", "Remove it?", "Remove", func() { removed++ })
	g.window.Canvas().FocusPrevious() // the one that agrees
	g.keyTo(fyne.KeyReturn)
	if removed != 1 {
		t.Errorf("removed %d times", removed)
	}
	g.shell.ask("Delete", "Delete it?", "Delete", func() { t.Error("the other button agrees") })
	g.window.Canvas().FocusPrevious() // the one that does not
	g.keyTo(fyne.KeyReturn)
	if n := len(g.shell.dialogs); n != 0 {
		t.Errorf("%d questions are left", n)
	}
}
