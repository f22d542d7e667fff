package ui

import (
	"fmt"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

var sizes = []fyne.Size{{Width: 1280, Height: 776}, {Width: 1920, Height: 1056}} // less the menu bar

// TestNothingIsCutOrOverlaps looks at every page in every state: its least size is no larger than
// the window, no text is wider or higher than what it lies in, and no two texts lie over each other.
func TestNothingIsCutOrOverlaps(t *testing.T) {
	if raced {
		t.Skip("drawn without the race detector")
	}
	states := []struct {
		name string
		fake func() *fake
	}{
		{"empty", newFake},
		{"full", func() *fake { return newFake().full().local() }},
		{"one worker", func() *fake { return newFake().full().running(1, 0.6) }},
		{"64 workers", func() *fake { return newFake().full().running(64, 0.3) }},
		{"failing", func() *fake {
			f := newFake().full().running(4, 0.5)
			f.state.Active, f.state.Finished, f.state.Error = false, console.FinishedFailed, strings.Repeat(errDown.Error()+" ", 3)
			f.fail, f.unlisted = errDown, errDown
			return f
		}},
		{"engine with a model", func() *fake { return newFake().withModel() }},
		{"engine loads", func() *fake { return newFake().full().serving(console.EngineLoading) }},
		{"engine serves", func() *fake { return newFake().full().serving(console.EngineReady) }},
		{"engine crashed", func() *fake { return newFake().full().serving(console.EngineCrashed) }},
		{"long names", func() *fake {
			f := newFake().full().running(2, 0.5)
			long := strings.Repeat("a-model-with-a-name-that-does-not-end-", 5)
			f.endpoints[0].Name, f.endpoints[0].Model = long, long
			f.state.Title, f.state.Model, f.state.Endpoint, f.state.Progress.Title = long, long, long, long
			f.local()
			f.servers[1].Version, f.servers[1].Models[0], f.recent[0] = long, long, "/"+long+"/"+long
			f.suites[0].Title, f.suites[0].Description, f.suites[0].Path = long, long, long
			f.sessions[0].Title, f.sessions[0].Model = long, long
			f.serving(console.EngineCrashed).engine.choose("/" + strings.Repeat("a-folder/", 20) + long)
			f.engine.facts.Type, f.engine.facts.Architecture, f.engine.facts.Device = long, long, long
			f.engine.status.Failure.Message, f.engine.status.Failure.Advice = long, long
			f.engine.status.Failure.Lines, f.engine.status.Note = []string{long, long, long, long, long, long, long}, long
			f.notices = []string{long, "The store was damaged and was restored from the copy of yesterday."}
			return f
		}},
	}
	for _, state := range states {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s %g", state.name, size.Width), func(t *testing.T) {
				g := newStage(t, state.fake(), size.Width, size.Height)
				for _, p := range g.shell.pages {
					if strings.HasPrefix(state.name, "engine") && p.id != EnginePage {
						continue
					}
					g.shell.Show(p.id)
					if p.id == ReportPage && state.name != "empty" {
						g.shell.openReport("one")
					}
					g.pump()
					g.shell.ticker.round()
					g.pump()
					if m := g.window.Content().MinSize(); m.Width > size.Width || m.Height > size.Height {
						t.Errorf("%s needs %v, there is %v", p.id, m, size)
					}
					if m, room := g.shell.centre.MinSize(), g.shell.room.Size(); m.Height > room.Height {
						t.Errorf("%s needs a height of %v, there is %v", p.id, m.Height, room.Height)
					}
					checkTexts(t, p.id, g.window.Content())
				}
			})
		}
	}
}

// area is where something visible lies on the window.
type area struct {
	text       string
	x, y, w, h float32
}

// checkTexts walks what is visible, as a painter does, and checks its texts.
func checkTexts(t *testing.T, page string, root fyne.CanvasObject) {
	t.Helper()
	var seen []area
	var walk func(o fyne.CanvasObject, x, y float32, clip area)
	walk = func(o fyne.CanvasObject, x, y float32, clip area) {
		if !o.Visible() {
			return
		}
		p, s := o.Position(), o.Size()
		x, y = x+p.X, y+p.Y
		switch o := o.(type) {
		case *canvas.Text:
			m := o.MinSize()
			left := x
			switch o.Alignment {
			case fyne.TextAlignTrailing:
				left = x + s.Width - m.Width
			case fyne.TextAlignCenter:
				left = x + (s.Width-m.Width)/2
			}
			a := area{o.Text, left, y, m.Width, m.Height}
			if strings.TrimSpace(o.Text) == "" || a.x+a.w <= clip.x || a.x >= clip.x+clip.w || a.y+a.h <= clip.y || a.y >= clip.y+clip.h {
				return // scrolled out of view
			}
			if a.x < clip.x-1 || a.x+a.w > clip.x+clip.w+1 {
				t.Errorf("%s: %q is cut: from %.0f to %.0f in %.0f to %.0f", page, o.Text, a.x, a.x+a.w, clip.x, clip.x+clip.w)
			}
			a = cross(clip, a)
			a.text = o.Text
			for _, other := range seen {
				if a.x+1 < other.x+other.w && other.x+1 < a.x+a.w && a.y+3 < other.y+other.h && other.y+3 < a.y+a.h {
					t.Errorf("%s: %q at %.0f,%.0f lies over %q at %.0f,%.0f", page, o.Text, a.x, a.y, other.text, other.x, other.y)
				}
			}
			seen = append(seen, a)
		case *fyne.Container:
			for _, c := range o.Objects {
				walk(c, x, y, clip)
			}
		case *widget.SelectEntry, *look.Entry: // their text scrolls
		case fyne.Widget:
			if _, ok := o.(fyne.Scrollable); ok && s.Width > 0 { // clips
				if _, isTable := o.(interface{ TSV() string }); !isTable {
					clip = cross(clip, area{x: x, y: y, w: s.Width, h: s.Height})
				}
			}
			for _, c := range test.WidgetRenderer(o).Objects() {
				walk(c, x, y, clip)
			}
		}
	}
	s := root.Size()
	walk(root, 0, 0, area{w: s.Width, h: s.Height})
	if len(seen) < 10 {
		t.Errorf("%s: only %d texts were found", page, len(seen))
	}
}

func cross(a, b area) area {
	x, y := max(a.x, b.x), max(a.y, b.y)
	return area{x: x, y: y, w: min(a.x+a.w, b.x+b.w) - x, h: min(a.y+a.h, b.y+b.h) - y}
}

// TestTheCheckFindsOverlaps keeps the check above honest.
func TestTheCheckFindsOverlaps(t *testing.T) {
	test.NewTempApp(t)
	a, b := canvas.NewText("one text", nil), canvas.NewText("another text", nil)
	a.Resize(a.MinSize())
	b.Resize(b.MinSize())
	b.Move(fyne.NewPos(20, 4))
	var fill []fyne.CanvasObject
	for i := range 10 {
		f := canvas.NewText("filler", nil)
		f.Move(fyne.NewPos(0, float32(40+i*30)))
		fill = append(fill, f)
	}
	c := container.NewWithoutLayout(append(fill, a, b)...)
	c.Resize(fyne.NewSize(400, 400))
	inner := &testing.T{}
	checkTexts(inner, "page", c)
	if !inner.Failed() {
		t.Error("two texts over each other were not found")
	}
	b.Move(fyne.NewPos(380, 4))
	inner = &testing.T{}
	checkTexts(inner, "page", c)
	if !inner.Failed() {
		t.Error("a text that is cut was not found")
	}
	b.Move(fyne.NewPos(200, 4))
	inner = &testing.T{}
	checkTexts(inner, "page", c)
	if inner.Failed() {
		t.Error("texts beside each other were called wrong")
	}
}

// TestTilesDoNotMove shows that numbers change nothing else: all other texts of the run page stay
// where they are while numbers grow and shrink.
func TestTilesDoNotMove(t *testing.T) {
	f := newFake().full().running(4, 0.5)
	g := newStage(t, f, 1280, 776)
	g.shell.Show(RunPage)
	where := func() map[string]fyne.Position {
		g.shell.ticker.round()
		g.pump()
		out := map[string]fyne.Position{}
		var walk func(o fyne.CanvasObject, at fyne.Position)
		walk = func(o fyne.CanvasObject, at fyne.Position) {
			if !o.Visible() {
				return
			}
			at = at.Add(o.Position())
			switch o := o.(type) {
			case *canvas.Text:
				if strings.Trim(o.Text, "0123456789.,:–— ") != "" && !strings.ContainsAny(o.Text, "0123456789") {
					out[o.Text] = at
				}
			case *fyne.Container:
				for _, c := range o.Objects {
					walk(c, at)
				}
			case fyne.Widget:
				for _, c := range test.WidgetRenderer(o).Objects() {
					walk(c, at)
				}
			}
		}
		walk(g.window.Content(), fyne.Position{})
		return out
	}
	before := where()
	for _, k := range []float64{0.011, 0.97, 3.3, 11} {
		f.mu.Lock()
		s := &f.state.Snapshot
		s.Rate, s.Median, s.Max = s.Rate*0+9.87*100, s.Median*0+5, s.Max*0+12345
		s.MaxGap, s.TTFT, s.Tokens, s.Requests = 0.0012, 2.5, int(100*k*k*k), int(k*90)
		f.mu.Unlock()
		for text, at := range where() {
			if b, ok := before[text]; ok && b != at && text != "ms" && text != "s" && text != "µs" {
				t.Errorf("%q moved from %v to %v", text, b, at)
			}
		}
	}
	if len(before) < 15 {
		t.Fatalf("only %d texts were followed", len(before))
	}
}

// TestContrast holds the promise of the palettes.
func TestContrast(t *testing.T) {
	for name, p := range map[string]look.Palette{"dark": look.Dark, "light": look.Light} {
		for _, ink := range []look.Ink{look.Plain, look.Muted, look.Accent, look.Green, look.Amber, look.Red} {
			for ground, g := range map[string][3]uint8{"background": {p.Background.R, p.Background.G, p.Background.B}, "surface": {p.Surface.R, p.Surface.G, p.Surface.B}} {
				c := p.Ink(ink)
				if r := contrast([3]uint8{c.R, c.G, c.B}, g); r < 4.5 {
					t.Errorf("%s: ink %d on %s has a contrast of %.2f", name, ink, ground, r)
				}
			}
		}
		on := func(a, b [3]uint8, what string) {
			if r := contrast(a, b); r < 4.5 {
				t.Errorf("%s: %s has a contrast of %.2f", name, what, r)
			}
		}
		on([3]uint8{p.OnAccent.R, p.OnAccent.G, p.OnAccent.B}, [3]uint8{p.Accent.R, p.Accent.G, p.Accent.B}, "text on accent")
		on([3]uint8{p.OnRed.R, p.OnRed.G, p.OnRed.B}, [3]uint8{p.Red.R, p.Red.G, p.Red.B}, "text on red")
		on([3]uint8{p.Text.R, p.Text.G, p.Text.B}, [3]uint8{p.Raised.R, p.Raised.G, p.Raised.B}, "text on buttons")
		on([3]uint8{p.Text.R, p.Text.G, p.Text.B}, [3]uint8{p.Selected.R, p.Selected.G, p.Selected.B}, "text on a selected row")
		on([3]uint8{p.Muted.R, p.Muted.G, p.Muted.B}, [3]uint8{p.Selected.R, p.Selected.G, p.Selected.B}, "muted text on a selected row")
	}
}
