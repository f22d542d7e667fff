package window

import (
	"testing"

	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/test"
)

// A newer Fyne that keeps its settings otherwise is told here.
func TestNothingMovesByItself(t *testing.T) {
	s := app.NewWithID(ID + ".still").Settings()
	if !keepStill(s) || s.ShowAnimations() {
		t.Error("what moves by itself was not turned off")
	}
	if keepStill(test.NewTempApp(t).Settings()) {
		t.Error("settings that are not Fyne's own were written to")
	}
}
