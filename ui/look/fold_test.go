package look

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/test"
)

func block(w, h float32) *canvas.Rectangle {
	r := canvas.NewRectangle(nil)
	r.SetMinSize(fyne.NewSize(w, h))
	return r
}

// TestFoldGivesWay: beside each other where both fit, the outer one folds first, and nothing hangs over.
func TestFoldGivesWay(t *testing.T) {
	title, a, b := block(100, 20), block(200, 30), block(250, 30)
	inner := Fold(8, a, b)
	outer := Fold(16, title, inner)
	for _, c := range []struct{ width, height float32 }{{600, 30}, {574, 30}, {573, 58}, {458, 58}, {457, 96}, {250, 96}} {
		outer.Resize(fyne.NewSize(c.width, 200))
		outer.Resize(fyne.NewSize(c.width, outer.MinSize().Height))
		if m := outer.MinSize(); m.Height != c.height || m.Width != 250 {
			t.Errorf("in a width of %v it takes %v, want a height of %v", c.width, m, c.height)
		}
		for i, o := range []fyne.CanvasObject{title, a, b} {
			x := o.Position().X
			if i > 0 {
				x += inner.Position().X
			}
			if x < 0 || x+o.Size().Width > c.width {
				t.Errorf("in a width of %v object %d goes from %v to %v", c.width, i, x, x+o.Size().Width)
			}
		}
	}
}

// TestFoldLeavesNoRoomForWhatIsHidden: neither beside the rest nor in a row of its own.
func TestFoldLeavesNoRoomForWhatIsHidden(t *testing.T) {
	title, hidden, b := block(100, 20), block(200, 30), block(250, 30)
	hidden.Hide()
	inner := Fold(8, hidden, b)
	outer := Fold(16, title, inner)
	for width, height := range map[float32]float32{600: 30, 366: 30, 365: 58, 250: 58} {
		outer.Resize(fyne.NewSize(width, 200))
		outer.Resize(fyne.NewSize(width, outer.MinSize().Height))
		if h := outer.MinSize().Height; h != height {
			t.Errorf("in a width of %v it takes a height of %v, want %v", width, h, height)
		}
	}
	outer.Resize(fyne.NewSize(600, 30))
	if got := title.Size().Width; got != 600-16-250 {
		t.Errorf("the title has a width of %v", got)
	}
}

func TestAsideGivesWay(t *testing.T) {
	left, centre := block(96, 10), block(400, 10)
	c := Aside(280, 200, left, centre)
	if m := c.MinSize().Width; m != 600 {
		t.Errorf("it needs a width of %v", m)
	}
	for width, want := range map[float32]float32{1000: 280, 680: 280, 650: 250, 600: 200} {
		c.Resize(fyne.NewSize(width, 100))
		if left.Size().Width != want || centre.Position().X != want || centre.Size().Width != width-want {
			t.Errorf("in a width of %v the column has %v, the rest %v", width, left.Size().Width, centre.Size().Width)
		}
	}
}

// TestRoomFillsOrScrolls: its content has the height there is, or what it needs.
func TestRoomFillsOrScrolls(t *testing.T) {
	test.NewTempApp(t)
	o := block(50, 300)
	content := container.NewStack(o)
	r := NewRoom(content)
	for height, want := range map[float32]float32{500: 500, 300: 300, 200: 300} {
		r.Resize(fyne.NewSize(100, height))
		r.Settle()
		if s := content.Size(); s.Height != want || s.Width != 100 {
			t.Errorf("in a height of %v the content has %v", height, s)
		}
	}
	if h := r.MinSize().Height; h > 64 {
		t.Errorf("it needs a height of %v", h)
	}
	o.SetMinSize(fyne.NewSize(50, 700))
	r.Settle()
	if s := content.Size(); s.Height != 700 {
		t.Errorf("grown, the content has %v", s)
	}
}
