package ui

import (
	"fmt"
	"os"
	"testing"

	"fyne.io/fyne/v2"

	"velo/ui/look"
)

// TestShellScreenshots writes pictures of what lies around the pages to the folder VELO_SCREENSHOTS.
func TestShellScreenshots(t *testing.T) {
	dir := os.Getenv("VELO_SCREENSHOTS")
	if dir == "" {
		t.Skip("VELO_SCREENSHOTS names no folder")
	}
	for _, mode := range []look.Mode{look.AlwaysDark, look.AlwaysLite} {
		for _, size := range []fyne.Size{{Width: 1280, Height: 776}, {Width: 1920, Height: 1056}} {
			name := func(what string) string { return fmt.Sprintf("%s-%s-%d", what, mode, int(size.Width)) }
			open := func(f *fake) *stage {
				g := newStage(t, f, size.Width, size.Height)
				g.shell.SetMode(mode)
				g.shell.Show(StartPage)
				g.pump()
				return g
			}
			open(newFake()).shot(dir, name("start-none"))
			g := open(newFake().full().local())
			g.shot(dir, name("start-found"))
			g.shell.Do("palette")
			g.shot(dir, name("palette"))
			g.typeText("eng")
			g.shot(dir, name("palette-typed"))
			g.keyTo(fyne.KeyEscape)
			g.shell.Do("help.shortcuts")
			g.pump()
			g.shot(dir, name("sheet"))
			g.keyTo(fyne.KeyEscape)
			g.shell.Do("help.about")
			g.pump()
			g.shot(dir, name("about"))
			g.keyTo(fyne.KeyEscape)
			g.shell.say(look.OnRed, errDown.Error())
			g.shot(dir, name("failure"))
		}
	}
}
