package look

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
)

// TestWrapFitsAnyWidth: nothing overlaps or hangs over, whatever the width, and the last one is at the right.
func TestWrapFitsAnyWidth(t *testing.T) {
	var objects []fyne.CanvasObject
	for _, w := range []float32{500, 280, 400} {
		r := canvas.NewRectangle(nil)
		r.SetMinSize(fyne.NewSize(w, 30))
		objects = append(objects, r)
	}
	for width, rows := range map[float32]float32{1300: 1, 1200: 1, 1000: 2, 700: 2, 600: 3, 500: 3} {
		c := Wrap(10, objects...)
		c.Resize(fyne.NewSize(width, 300))
		least := c.MinSize()
		if want := rows*30 + (rows-1)*10; least.Height != want || least.Width != 500 {
			t.Errorf("in a width of %v it takes %v, want a height of %v", width, least, want)
		}
		for i, o := range objects {
			right := o.Position().X + o.Size().Width
			if right > width || i == len(objects)-1 && right != width {
				t.Errorf("in a width of %v object %d ends at %v", width, i, right)
			}
			for _, other := range objects[:i] {
				if other.Position().Y == o.Position().Y && other.Position().X+other.Size().Width > o.Position().X {
					t.Errorf("in a width of %v object %d lies over another", width, i)
				}
			}
		}
	}
}
