package chatpage

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"velo/bench/measure"
	"velo/ui/console"
	"velo/ui/look"
)

// TestButtonsBelowATurnAreAllInView: they go to as many rows as there is room made for, in every width.
func TestButtonsBelowATurnAreAllInView(t *testing.T) {
	test.NewTempApp(t).Settings().SetTheme(&look.Theme{})
	turn := &console.ChatTurn{ID: "a", Measured: &measure.Request{N: 3}}
	words, make := (&layouter{}).foot(turn, false, false)
	if len(words) != 5 {
		t.Fatalf("the buttons are %q", words)
	}
	rows := map[float32]bool{}
	for width := float32(160); width < 700; width += 13 {
		bar, height := make().(*fyne.Container), barHeight(words, width)
		rows[height] = true
		bar.Resize(fyne.NewSize(width, height))
		for i, o := range bar.Objects {
			if end := o.Position().Add(o.Size()); end.X > width+1 || end.Y > height+1 {
				t.Errorf("in a width of %v %q ends at %v of %v × %v", width, words[i], end, width, height)
			}
		}
	}
	if len(rows) < 3 || !rows[buttonHeight] {
		t.Errorf("the heights are %v", rows)
	}
}
