// Package window opens the real window. It alone imports fyne/v2/app, and with it OpenGL.
package window

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"

	_ "velo/app/window/glstub" // answers OpenGL's one link-time symbol
	"velo/assets/icons"
	"velo/ui"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

// ID is the program's name towards the desktop.
const ID = "io.velo.console"

// stuck is how long the window may take to end after a signal.
const stuck = 3 * time.Second

// Run opens the window over a console and returns when it is closed: 0, or 1 where no window could
// be opened, which is told on stderr. The files are opened as if they were dropped; what raise
// delivers later, the arguments of a second start, is opened too and the window comes to the front.
// Call it on the main goroutine.
func Run(c console.Console, open []string, raise <-chan []string) int {
	if err := probe(); err != nil {
		fmt.Fprintln(os.Stderr, "velo: "+err.Error())
		return 1
	}
	keepTexturesShortly()
	a := app.NewWithID(ID)
	a.SetIcon(fyne.NewStaticResource("velo.png", icons.PNG))
	a.Settings().SetTheme(&look.Theme{})
	loadFonts()
	keepStill(a.Settings())
	w := a.NewWindow("Velo")
	w.SetMaster()
	t := thread.New(fyne.Do)
	s := ui.New(ui.Params{Console: c, Window: w, Thread: t, Quit: a.Quit, SlowPaint: bySoftware(paints), Screen: screen(),
		OpenURL: func(path string) error {
			return a.OpenURL(&url.URL{Scheme: "file", Path: filepath.ToSlash(path)})
		}})
	a.Settings().AddListener(func(set fyne.Settings) {
		keepStill(set)
		s.Themed()
		t.Do(shareFonts) // when Fyne, which listens too, has read them again
	})

	a.Lifecycle().SetOnEnteredForeground(func() { s.Foreground(true) })
	a.Lifecycle().SetOnExitedForeground(func() { s.Foreground(false) })
	done := make(chan struct{})
	a.Lifecycle().SetOnStarted(func() {
		s.Begin()
		s.Open(open...)
		go func() {
			for {
				select {
				case <-done:
					return
				case files, ok := <-raise:
					if !ok {
						return
					}
					t.Do(func() {
						w.Show()
						w.RequestFocus()
						s.Open(files...)
					})
				}
			}
		}()
	})
	// Fyne ends its loop on a signal by itself; what is queued from then on would run on the wrong
	// goroutine.
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-ended:
			t.Close()
			// Fyne 2.8.1 can wait for ever then: its last event is queued for the loop that has just
			// ended. The engine must not outlive the program for that.
			select {
			case <-done:
			case <-time.After(stuck):
				_ = c.Close()
				os.Exit(0)
			}
		case <-done:
		}
	}()
	w.ShowAndRun()
	signal.Stop(ended)
	close(done)
	t.Close()
	s.End()
	return 0
}
