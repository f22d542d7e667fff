// Package enginepage is the page of this program's own engine: choose a model, see what it is and
// whether it fits, set flags, start it, watch it load and serve, and read its log.
package enginepage

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

// Params is what the page is given.
type Params struct {
	Engine       console.Engine
	Thread       *thread.Thread
	ChooseFolder func()       // choose a model's folder
	ChooseFile   func()       // choose a .gguf file
	Copy         func(string) // to the clipboard
	Measure      func()       // make the engine the endpoint that runs take
	Stop         func()       // stop the engine, after a question where something would be lost
	Say          func(look.Tone, string)
	Redraw       func() // ask for a Prepare soon
	// After calls f after a while, on any goroutine: time.AfterFunc but for tests.
	After func(d time.Duration, f func()) (cancel func() bool)
}

// Page is the page. Prepare may be called on any goroutine, everything else on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	config  console.EngineConfig // as the form has it, or had it when it last could be read
	key     *string              // that was typed and is not kept yet
	bad     string               // why the form cannot be read
	dirty   bool                 // not kept yet
	filled  bool                 // the form has shown a config
	pending func() bool          // ends the wait until it is kept
	status  console.EngineStatus
	facts   console.ModelFacts
	asked   int // questions about the model: only the answer to the last one counts

	items  []*look.Item
	recent *fyne.Container
	side   *look.Scroll
	left   fyne.CanvasObject
	empty  fyne.CanvasObject
	full   fyne.CanvasObject
	scroll *look.Scroll

	title, place               *look.Text
	lamp                       *look.Lamp
	detail                     *look.Text
	progress                   *look.Progress
	start, stop, restart       *look.PushButton
	address, measure           *look.PushButton
	head                       *fyne.Container
	note                       *look.Paragraph
	failure                    failurePanel
	gauges                     gauges
	gpu                        gpuGauges
	probe                      probePanel
	architecture, format, size *look.Text
	made                       *look.Text
	fit, sum                   *look.Paragraph
	form                       form
	hint                       *look.Paragraph
	command                    *look.Paragraph
	log                        logView
	next                       uint64 // line of the log that comes next; of Prepare
}

// The page's measures, in units.
const (
	listWidth = 264
	listLeast = 160  // where there is no room
	logShare  = 0.36 // of the height
	logLeast  = 148
)

// settleTime is how long the form rests before what it holds is kept and looked at.
const settleTime = 500 * time.Millisecond

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p}
	g.status.State = console.EngineStopped
	g.recent = look.Rows(0)
	g.side = look.NewScroll(g.recent)
	choose := func() fyne.CanvasObject {
		return look.WrapLeft(look.Step, look.Button("Open folder…", p.ChooseFolder), look.Button("Open file…", p.ChooseFile))
	}
	g.left = look.Panel(look.OnSurface, look.Frame(
		look.Inset(look.Gap, look.Gap, look.Step, look.Gap, look.Rows(look.Step, look.NewText("Models").Sized(look.Head).Bold(), choose())),
		look.Inset(look.Step, look.Gap, look.Gap, look.Gap,
			look.NewParagraph("Drop a model anywhere on the window: a folder with config.json and safetensors, or a .gguf file.").Sized(look.Small).In(look.Muted)),
		nil, g.side))

	g.title = look.NewText("").Sized(look.Head).Bold().Fixed(120)
	g.place = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(120)
	g.start = look.MainButton("Start engine", g.Start)
	g.stop = look.StopButton("Stop engine", p.Stop)
	g.restart = look.Button("Restart", g.Restart)
	g.address = look.Button("Copy address", func() { p.Copy(g.status.URL + "/v1") })
	g.measure = look.Button("Measure", p.Measure)
	g.head = look.Fold(look.Gap, look.Rows(look.Half, g.title, g.place),
		look.Fold(look.Step, look.Line(look.Step, g.measure, g.address), look.Line(look.Step, g.restart, g.stop, g.start)))
	g.lamp = look.NewLamp(320)
	g.detail = look.NewText("").In(look.Muted).Right().Fixed(120)
	g.progress = look.NewProgress()
	g.note = look.NewParagraph("").In(look.Amber).AtMost(2)
	g.note.Hide()
	g.failure.build(g)
	g.gauges.build()
	g.gpu.build()
	g.probe.build(g)

	fact := func(name string) (*look.Text, fyne.CanvasObject) {
		t := look.NewText("—").Fixed(fieldWidth)
		return t, look.Rows(0, look.NewText(name).Sized(look.Small).In(look.Muted), t)
	}
	var a, f, s, m fyne.CanvasObject
	g.architecture, a = fact("Architecture")
	g.format, f = fact("Files")
	g.size, s = fact("Weights")
	g.made, m = fact("Made for")
	g.fit, g.sum = look.NewParagraph("").AtMost(3), look.NewParagraph("").Sized(look.Small).In(look.Muted).AtMost(2)
	g.form.build(g.formChanged)
	g.hint = look.NewParagraph("").In(look.Amber).AtMost(2)
	g.hint.Hide()
	g.command = look.NewParagraph("").Sized(look.Small).Mono().AtMost(4)
	copyCommand := look.Button("Copy command", func() { p.Copy(p.Engine.Command(g.config)) })
	g.log.build(func(text string) {
		p.Copy(text)
		p.Say(look.OnAccent, "The log was copied.")
	})

	top := look.Rows(look.Step, g.head, look.Fold(look.Gap, g.lamp.Container, look.Sized(400, 0, g.detail)), g.progress)
	body := look.Rows(look.Gap, g.note, g.failure.view, g.gauges.view, g.gpu.view,
		look.Flow(look.Gap, fieldWidth, a, f, s, m), look.Rows(look.Half, g.fit, g.sum), look.Rule(),
		g.form.view, g.hint,
		look.Trailing(look.Gap, look.Rows(look.Half, look.NewText("The same on the command line").Sized(look.Small).In(look.Muted), g.command), copyCommand),
		look.Rule(), g.probe.view)
	g.scroll = look.NewScroll(look.Inset(0, look.Gap, look.Gap, 0, body))
	g.full = look.Aside(listWidth, listLeast, g.left, look.Inset(look.Gap, look.Margin-look.Gap, look.Step, look.Margin,
		look.Frame(look.Inset(0, look.Gap, look.Gap, 0, top), nil, nil, container.New(split{}, g.scroll, look.Inset(0, look.Gap, 0, 0, look.Rows(0, look.Rule())), look.Inset(0, look.Gap, 0, 0, g.log.view)))))
	g.empty = look.Inset(look.Margin, look.Margin, look.Margin, look.Margin,
		look.Empty("No model was chosen yet", "The engine of Velo serves a model on this machine, and the console measures it like any other endpoint. "+
			"Choose a folder with config.json and safetensors, or a .gguf file; it can be dropped on the window too.",
			look.MainButton("Open folder…", p.ChooseFolder), look.Button("Open file…", p.ChooseFile)))
	g.View = look.Over(g.empty, g.full)
	g.full.Hide()
	g.show(g.status, nil)
	return g
}

// split gives the log below a share of the height, and the rest to what is above the line.
type split struct{}

func (split) MinSize(o []fyne.CanvasObject) fyne.Size {
	m := o[0].MinSize()
	return fyne.NewSize(fyne.Max(m.Width, o[2].MinSize().Width), m.Height+1+logLeast)
}

func (split) Layout(o []fyne.CanvasObject, size fyne.Size) {
	low := float32(int(fyne.Max(size.Height*logShare, logLeast))) // whole units: the line is one pixel
	o[0].Move(fyne.Position{})
	o[0].Resize(fyne.NewSize(size.Width, size.Height-low-1))
	o[1].Move(fyne.NewPos(0, size.Height-low-1))
	o[1].Resize(fyne.NewSize(size.Width, 1))
	o[2].Move(fyne.NewPos(0, size.Height-low))
	o[2].Resize(fyne.NewSize(size.Width, low))
}

// Shown brings the page up to date when it comes into view.
func (g *Page) Shown() {
	g.Reload()
	g.Redraw()
}

// Hidden keeps what was typed.
func (g *Page) Hidden() {
	if g.dirty {
		g.keep()
	}
}

// Reload reads the config and the recent models again. What is being typed stays.
func (g *Page) Reload() {
	c, recent := g.Engine.Config(), g.Engine.RecentModels()
	was := g.config.Model
	if g.dirty {
		g.config.Model, g.config.HasKey = c.Model, c.HasKey
		g.form.take(g.config)
	} else if c != g.config || !g.filled {
		g.config, g.filled = c, true
		g.form.fill(c)
	}
	g.items = g.items[:0]
	g.recent.Objects = nil
	for _, path := range recent {
		item := look.NewItem(filepath.Base(path), filepath.Dir(path), func() { g.Choose(path) })
		item.Select(path == c.Model)
		g.items = append(g.items, item)
		g.recent.Add(item)
	}
	g.side.Settle()
	if c.Model == "" {
		g.full.Hide()
		g.empty.Show()
	} else {
		g.empty.Hide()
		g.full.Show()
	}
	name := filepath.Base(c.Model)
	if strings.EqualFold(filepath.Ext(name), ".gguf") {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	g.title.Set(name)
	g.place.Set(c.Model)
	g.probe.choices()
	if c.Model != was || g.asked == 0 {
		g.inspect()
	}
	g.update()
	g.View.Refresh()
}

// Choose makes a model the one that the engine takes next.
func (g *Page) Choose(path string) {
	g.config.Model, g.form.model = path, path
	g.dirty = true
	g.keep()
}

// formChanged takes over what was typed, and keeps it when the user rests.
func (g *Page) formChanged() {
	c, key, err := g.form.read()
	g.bad = ""
	if err != nil {
		g.bad = err.Error()
		g.update()
		return
	}
	g.config, g.key, g.dirty = c, key, true
	g.update()
	g.cancel()
	g.pending = g.After(settleTime, func() { g.Thread.Do(g.keep) })
}

func (g *Page) cancel() {
	if g.pending != nil {
		g.pending()
		g.pending = nil
	}
}

// keep keeps what was typed, and looks at the model with it.
func (g *Page) keep() {
	then := g.Flush()
	g.inspect()
	g.Thread.Work(func() func() {
		err := then()
		return func() {
			if err != nil {
				g.Say(look.OnRed, sentence(err.Error()))
			}
			g.Reload()
		}
	})
}

// Flush returns what keeps the form, to be called off the UI thread.
func (g *Page) Flush() (keep func() error) {
	g.cancel()
	if !g.dirty {
		return func() error { return nil }
	}
	c, key := g.config, g.key
	g.dirty, g.key = false, nil
	if key != nil { // it has gone where keys are kept
		g.form.fill(c)
	}
	return func() error { return g.Engine.SaveConfig(c, key) }
}

// inspect finds out what the model is.
func (g *Page) inspect() {
	g.asked++
	asked, c := g.asked, g.config
	if c.Model == "" {
		return
	}
	if g.facts.Path != c.Model {
		g.facts = console.ModelFacts{}
		g.fit.SetIn("The model's files are being looked at.", look.Muted)
		g.showFacts()
	}
	g.Thread.Work(func() func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f, err := g.Engine.Inspect(ctx, c)
		return func() {
			if g.asked != asked {
				return
			}
			g.facts = f
			if err != nil {
				g.facts = console.ModelFacts{}
				g.fit.SetIn(sentence(err.Error()), look.Red)
			}
			g.showFacts()
		}
	})
}

// showFacts shows what the model is. What was not found out is a dash.
func (g *Page) showFacts() {
	f := g.facts
	set := func(t *look.Text, text string) {
		if f.Path == "" || text == "" {
			t.SetIn("—", look.Faint)
			return
		}
		t.SetIn(text, look.Plain)
	}
	set(g.architecture, f.Architecture+", "+plural(f.Layers, "layer"))
	set(g.format, f.Format)
	set(g.size, bytes(f.Weights)+", "+f.Type)
	made := ""
	if f.MaxContext > 0 {
		made = plural(f.MaxContext, "token")
	}
	set(g.made, made)
	g.sum.Set("")
	if f.Path != "" {
		text, ink := verdict(f)
		if g.status.Running() && g.status.Config.Model == f.Path && f.Problem == "" {
			device := g.status.Figures.Device
			if device == "" {
				device = f.Device
			}
			text, ink = inUse(f, device), look.Muted
		}
		g.fit.SetIn(text, ink)
		if f.Problem == "" {
			g.sum.Set(arithmetic(f))
		}
	}
	g.scroll.Settle()
}

// differs tells whether the engine runs with other settings than the form has.
func (g *Page) differs() bool {
	if !g.status.Running() || g.bad != "" {
		return false
	}
	a, b := g.config, g.status.Config
	a.AtLaunch, b.AtLaunch = false, false
	return a != b || g.key != nil
}

// update shows what can be done now, and the command line.
func (g *Page) update() {
	running := g.status.Running()
	showIf(g.start, !running)
	showIf(g.stop, running)
	showIf(g.restart, running)
	ready := g.status.State == console.EngineReady
	showIf(g.address, ready)
	showIf(g.measure, ready)
	g.start.SetEnabled(g.bad == "" && g.config.Model != "")
	g.restart.SetEnabled(g.bad == "" && g.status.State != console.EngineStopping)
	g.stop.SetEnabled(g.status.State != console.EngineStopping)
	hint, tone := "", look.Amber
	switch {
	case g.bad != "":
		hint, tone = g.bad, look.Red
	case g.differs():
		hint = "The engine runs with other settings. Restart it to use these."
	case open(g.config):
		hint = "Whoever reaches this machine over the network can use the engine: give it a key, or leave the address empty for this machine only."
	}
	g.hint.SetIn(hint, tone)
	showIf(g.hint, hint != "")
	g.command.Set(g.Engine.Command(g.config))
	g.full.Refresh() // what is above may have another height now
	g.scroll.Settle()
}

// Start starts the engine with what the form has.
func (g *Page) Start() { g.run(g.Engine.Start) }

// Restart stops it before, if it runs.
func (g *Page) Restart() { g.run(g.Engine.Restart) }

func (g *Page) run(start func() error) {
	if g.bad != "" {
		g.Say(look.OnAmber, "The engine was not started: "+g.bad)
		return
	}
	keep := g.Flush()
	g.Thread.Work(func() func() {
		err := keep()
		if err == nil {
			err = start()
		}
		return func() {
			if err != nil {
				g.Say(look.OnRed, sentence(err.Error()))
			}
			g.Redraw()
		}
	})
}

// usePort takes another port and starts the engine.
func (g *Page) usePort(port int) {
	g.config.Port, g.dirty, g.bad = port, true, ""
	g.form.fill(g.config)
	g.Start()
}

// Prepare reads the log, off the UI thread, and returns what puts a status on screen there. Only one
// may be under way, and it must be on screen before the next one begins.
func (g *Page) Prepare(s console.EngineStatus) (show func()) {
	lines, next := g.Engine.Log(g.next)
	g.next = next
	return func() { g.show(s, lines) }
}

func (g *Page) show(s console.EngineStatus, lines []console.LogLine) {
	was := g.status
	g.status = s
	g.lamp.Set(Tone(s), state(s))
	g.detail.Set(detail(s))
	share := float32(0)
	if s.State == console.EngineLoading && s.Total > 0 {
		share = float32(float64(s.Done) / float64(s.Total))
	}
	g.progress.Set(share)
	note := s.Note
	if s.Ill != "" {
		note = "It does not answer its health check: " + sentence(s.Ill) + " It may come back by itself; if not, restart it."
	}
	moved := showIf(g.note, note != "")
	if g.note.Text() != note {
		g.note.Set(note)
		moved = true
	}
	moved = g.failure.show(s) || moved
	moved = g.gauges.show(s) || moved
	moved = g.gpu.show(s) || moved
	if was.State != s.State || was.Config != s.Config || was.Figures.Device != s.Figures.Device {
		g.showFacts()
		g.update()
	}
	if moved {
		g.scroll.Settle()
		g.scroll.To(0)
	}
	g.log.add(lines)
}

// State is what the lamp says.
func (g *Page) State() string { return g.lamp.Word() }

// showIf shows or hides an object and tells whether that changed anything.
func showIf(o fyne.CanvasObject, on bool) bool {
	if on == o.Visible() {
		return false
	}
	if on {
		o.Show()
	} else {
		o.Hide()
	}
	return true
}
