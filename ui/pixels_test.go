package ui

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
)

// scaled is a stage whose canvas has a scale.
func scaled(t *testing.T, scale, width, height float32) (g *stage, pixels func() (int, int)) {
	t.Helper()
	g = newStage(t, newFake().full(), width, height)
	c := g.window.Canvas().(test.WindowlessCanvas)
	c.SetScale(scale)
	g.window.Resize(fyne.NewSize(width, height))
	return g, func() (int, int) {
		s := c.Size()
		return int(s.Width*c.Scale() + 0.5), int(s.Height*c.Scale() + 0.5)
	}
}

// TestWindowBeginsNoLargerThanTheScreen: also where a scale makes it larger, and a screen that is not known or larger
// changes nothing.
func TestWindowBeginsNoLargerThanTheScreen(t *testing.T) {
	for _, c := range []struct {
		scale, screenWidth, screenHeight float32
		width, height                    int // of the window, in pixels, that wants to be 1280 × 800 units
	}{
		{1.5, 1280, 800, 1280, 800}, {1.5, 1920, 1000, 1920, 1000}, {1, 1920, 1080, 1280, 800}, {1.5, 0, 0, 1920, 1200}, {2, 5000, 3000, 2560, 1600},
	} {
		g, pixels := scaled(t, c.scale, 1280, 800)
		g.shell.Screen = fyne.NewSize(c.screenWidth, c.screenHeight)
		g.shell.fitScreen()
		if w, h := pixels(); w != c.width || h != c.height {
			t.Errorf("at scale %g on %g × %g the window has %d × %d pixels, want %d × %d", c.scale, c.screenWidth, c.screenHeight, w, h, c.width, c.height)
		}
	}
}

// TestWindowKeepsItsPixels: what the toolkit makes of the window's size after a change of scale is taken back, however
// late it comes, and the user's own size stays when that is over.
func TestWindowKeepsItsPixels(t *testing.T) {
	t.Setenv(scaleVariable, "1") // which the text size changes
	g, pixels := scaled(t, 1, 1280, 800)
	later := func() bool {
		list := g.later
		g.later = nil
		for _, f := range list {
			if f != nil {
				f()
			}
		}
		g.pump()
		return len(list) > 0
	}
	for later() { // what the start left
	}
	g.shell.SetTextSize(130)
	g.window.Canvas().(test.WindowlessCanvas).SetScale(1.3)
	g.pump()
	g.window.Resize(fyne.NewSize(1280, 800)) // late, and of the same size in units
	g.shell.SetTextSize(150)                 // before it was noticed
	g.window.Canvas().(test.WindowlessCanvas).SetScale(1.5)
	later()
	if w, h := pixels(); w != 1280 || h != 800 {
		t.Errorf("the window has %d × %d pixels", w, h)
	}
	for range 3 * pixelTries {
		later()
	}
	g.window.Resize(fyne.NewSize(1000, 700))
	for later() {
	}
	if w, h := pixels(); w != 1500 || h != 1050 {
		t.Errorf("the size that the user gave it became %d × %d pixels", w, h)
	}
}
