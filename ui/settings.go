package ui

import (
	"os"
	"strconv"
	"sync"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/settingspage"
	"velo/ui/telemetrypage"
)

func (s *Shell) newSettingsPage() *settingspage.Page {
	return settingspage.New(settingspage.Params{
		Endpoints: s.Console, Preferences: s.Console.Preferences(), Thread: s.Thread,
		Settings: func() console.Settings { return s.settings }, SetMode: s.SetMode, SetTextSize: s.SetTextSize,
		Needs:        s.needs,
		ChooseFolder: func(title string, then func(string)) { s.askFolder(title, "Take this folder", then) },
		ChooseFile:   s.chooseAnyFile, ShowData: s.showData, GoEngine: func() { s.Show(EnginePage) }, Quit: s.Close,
		Added: s.endpointAdded, GoTelemetry: func() {
			s.Show(TelemetryPage)
			s.telemetry.Open(telemetrypage.Settings)
		},
		Recordings: func() (string, bool) {
			d := s.Console.Telemetry().Disk()
			return telemetrypage.OnDisk(d, s.Console.Telemetry().Settings()), d.Writing > 0
		},
		Focus: func(o fyne.Focusable) { s.Window.Canvas().Focus(o) },
		Say:   s.say, Ask: s.ask, Warn: s.warn, Prompt: s.prompt, After: s.After,
	})
}

// settingsChanged brings the page of settings up to date while it is in view.
func (s *Shell) settingsChanged(what string) {
	if s.current == SettingsPage {
		s.set.Changed(what)
	}
}

// chooseAnyFile asks for a file and gives its path on.
func (s *Shell) chooseAnyFile(title string, then func(path string)) {
	d := dialog.NewFileOpen(func(r fyne.URIReadCloser, err error) {
		if err != nil {
			s.say(look.OnRed, "cannot use the file: "+err.Error())
			return
		}
		if r == nil {
			return
		}
		path := r.URI().Path()
		_ = r.Close()
		then(path)
	}, s.Window)
	d.SetTitleText(title)
	s.showFileDialog(d)
}

// scaleVariable is by what Fyne is told a scale; it reads it anew whenever the theme is set.
const scaleVariable = "FYNE_SCALE"

// desktopScale is the scale that the desktop or the user's environment asks for.
var desktopScale = sync.OnceValue(func() float64 {
	if v, err := strconv.ParseFloat(os.Getenv(scaleVariable), 64); err == nil && v > 0 {
		return v
	}
	if v := fyne.CurrentApp().Settings().Scale(); v > 0 {
		return float64(v)
	}
	return 1
})

// scale tells Fyne how large everything is; the next theme that is set brings it about.
func (s *Shell) scale() {
	percent := s.settings.TextSize
	if percent < console.TextSizes[0] || percent > console.TextSizes[len(console.TextSizes)-1] {
		percent = 100
	}
	was := desktopScale()
	if percent == 100 && os.Getenv(scaleVariable) == "" {
		return
	}
	_ = os.Setenv(scaleVariable, strconv.FormatFloat(was*float64(percent)/100, 'g', -1, 64))
}

// needs is what the window takes of the screen at least, in pixels.
func (s *Shell) needs() (width, height int) {
	content := s.Window.Content()
	if content == nil {
		return 0, 0
	}
	least, scale := content.MinSize(), s.Window.Canvas().Scale()
	return int(least.Width*scale + 0.5), int(least.Height*scale + 0.5)
}

// SetTextSize changes the size of text and of everything else, in percent of the desktop's.
func (s *Shell) SetTextSize(percent int) {
	if percent == s.settings.TextSize {
		return
	}
	c := s.Window.Canvas()
	if s.pixels.left == 0 { // else the window is not yet as large as it is to be
		s.pixels.size = fyne.NewSize(c.Size().Width*c.Scale(), c.Size().Height*c.Scale())
	}
	s.settings.TextSize = percent
	s.scale()
	s.SetMode(s.theme.Mode)
	begun := s.pixels.left > 0
	s.pixels.left = pixelTries
	if !begun {
		s.Thread.Do(s.keepPixels)
	}
}

// pixels is the size in pixels that the window keeps while its scale changes, and how often it is looked at still.
type pixels struct {
	size fyne.Size
	left int
}

// Fyne lets the window grow with its scale, beyond the screen, and does so again while what is in it is laid out anew:
// it goes back to a size that the window had in between. So it is looked at a few times.
const (
	pixelTries = 8
	pixelsRest = 120 * time.Millisecond
)

func (s *Shell) keepPixels() {
	c := s.Window.Canvas()
	scale, size, want := c.Scale(), c.Size(), s.pixels.size
	if scale > 0 && want.Width > 0 && (abs(size.Width*scale-want.Width) > 2 || abs(size.Height*scale-want.Height) > 2) {
		s.Window.Resize(fyne.NewSize(want.Width/scale, want.Height/scale))
	}
	if s.pixels.left--; s.pixels.left > 0 {
		s.After(pixelsRest, func() { s.Thread.Do(s.keepPixels) })
	}
}

func abs(v float32) float32 { return max(v, -v) }

// fitScreen makes the window no larger than the screen, where that is known: there may be no window manager that does.
func (s *Shell) fitScreen() {
	c := s.Window.Canvas()
	scale, size := c.Scale(), c.Size()
	if s.Screen.Width <= 0 || s.Screen.Height <= 0 || scale <= 0 {
		return
	}
	s.pixels.size = fyne.NewSize(min(size.Width*scale, s.Screen.Width), min(size.Height*scale, s.Screen.Height))
	s.pixels.left = pixelTries
	s.keepPixels()
}

// larger goes to the next text size in a direction.
func (s *Shell) larger(by int) {
	now := s.settings.TextSize
	if now == 0 {
		now = 100
	}
	for i, size := range console.TextSizes {
		if size == now && i+by >= 0 && i+by < len(console.TextSizes) {
			s.SetTextSize(console.TextSizes[i+by])
			return
		}
	}
}
