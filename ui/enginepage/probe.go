package enginepage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// probePanel measures the GPU and shows what came out.
type probePanel struct {
	page    *Page
	view    *fyne.Container
	choice  *widget.Select
	ids     []string // of the choices
	run     *look.PushButton
	stop    *look.PushButton
	state   *look.Paragraph
	advice  *look.Paragraph
	result  *fyne.Container
	facts   *look.Paragraph
	read    *look.Tile
	copied  *look.Tile
	launch  *look.Tile
	graph   *look.Tile
	node    *look.Tile
	budget  *fyne.Container
	step    *look.Paragraph
	gap     *look.Paragraph
	table   *table.Table
	costs   []console.ProbeCost
	cancel  func() // ends the probe that runs; nil: none does
	asked   time.Time
	current string // choice that is shown as being measured
}

// Words of the panel before anything was measured, and beside an engine that runs.
const (
	probeEmpty = "What this machine's GPU can do, and what each kernel of a model's step takes of that, is measured in a process of its own. It takes some seconds, and memory for the model."
	probeBusy  = "The engine runs and takes its share of the GPU: stop it first for undisturbed figures."
)

func (p *probePanel) build(g *Page) {
	p.page = g
	p.choice = widget.NewSelect(nil, func(string) {})
	p.run, p.stop = look.Button("Probe", p.start), look.Button("Stop probe", p.end)
	p.stop.Hide()
	p.state = look.NewParagraph(probeEmpty).In(look.Muted).AtMost(4)
	p.advice = look.NewParagraph("").In(look.Muted).AtMost(3)
	p.advice.Hide()
	p.facts = look.NewParagraph("").Sized(look.Small).In(look.Muted).AtMost(5)
	tile := func(name string) *look.Tile { return look.NewTile(name).Wide(fieldWidth).Steady(4) }
	p.read, p.copied, p.launch, p.graph, p.node = tile("Read bandwidth"), tile("Copy bandwidth"), tile("Launch"), tile("Launch of a graph"), tile("Kernel in a graph")
	p.step, p.gap = look.NewParagraph("").AtMost(3), look.NewParagraph("").AtMost(3)
	p.table = table.New(look.Small, table.Column{Title: "Kernel", Stretch: true, Least: 144}, table.Column{Title: "Shape", Stretch: true, Least: 112},
		table.Column{Title: "Launches", Right: true}, table.Column{Title: "Bytes", Unit: "MB", Right: true}, table.Column{Title: "Each", Unit: "µs", Right: true},
		table.Column{Title: "All", Unit: "µs", Right: true}, table.Column{Title: "Of bandwidth", Unit: "%", Right: true}, table.Column{Title: "Of the step", Unit: "%", Right: true})
	p.table.OnScroll = func(ev *fyne.ScrollEvent) { g.scroll.Scrolled(ev) }
	p.budget = look.Rows(look.Step, p.step, p.gap, p.table)
	p.result = look.Rows(look.Gap, p.facts, look.Flow(look.Gap, fieldWidth, p.read, p.copied, p.launch, p.graph, p.node), p.budget)
	p.result.Hide()
	p.view = look.Rows(look.Step, look.Fold(look.Gap, look.NewText("Probe of the GPU").Bold(), look.Line(look.Step, look.Sized(280, 0, p.choice), p.stop, p.run)),
		p.state, p.advice, p.result)
}

// choices shows what can be probed; what was chosen stays.
func (p *probePanel) choices() {
	list := p.page.Engine.ProbeChoices()
	titles, ids := make([]string, len(list)), make([]string, len(list))
	for i, c := range list {
		titles[i], ids[i] = c.Title, c.ID
	}
	was := p.chosen()
	p.ids, p.choice.Options = ids, titles
	at := 0
	for i, id := range ids {
		if p.choice.Selected != "" && id == was {
			at = i
		}
	}
	if len(list) > 0 {
		p.choice.SetSelectedIndex(at)
	}
}

// chosen is the ID of the choice.
func (p *probePanel) chosen() string {
	if i := p.choice.SelectedIndex(); i >= 0 && i < len(p.ids) {
		return p.ids[i]
	}
	return ""
}

func (p *probePanel) start() {
	if p.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.asked, p.current = cancel, time.Now(), p.choice.Selected
	choice := p.chosen()
	p.run.Hide()
	p.stop.Show()
	p.advice.Hide()
	text := "Probing: " + p.current + ". This takes some seconds"
	if p.result.Visible() {
		text += "; what is shown below is from before"
	}
	p.state.SetIn(text+".", look.Muted)
	showIf(p.state, true)
	p.settle()
	p.page.Thread.Work(func() func() {
		r, err := p.page.Engine.Probe(ctx, choice)
		cancel()
		return func() { p.done(r, err) }
	})
}

// end stops the probe that runs.
func (p *probePanel) end() {
	if p.cancel != nil {
		p.cancel()
	}
}

func (p *probePanel) settle() {
	p.view.Refresh()
	p.page.scroll.Settle()
}

// done shows what came out.
func (p *probePanel) done(r console.ProbeReport, err error) {
	p.cancel = nil
	p.stop.Hide()
	p.run.Show()
	defer p.settle()
	if err != nil {
		message, advice := sentence(err.Error()), ""
		var e *console.ProbeError
		switch {
		case errors.Is(err, context.Canceled):
			p.state.SetIn("The probe was stopped.", look.Muted)
			return
		case errors.As(err, &e):
			message, advice = sentence(e.Message), e.Advice
		}
		p.state.SetIn(message, look.Red)
		p.advice.Set(advice)
		showIf(p.advice, advice != "")
		p.result.Hide()
		return
	}
	text := fmt.Sprintf("Measured at %s in %.1f s.", time.Now().Format("15:04"), r.Duration)
	ink := look.Muted
	if r.Model != "" && len(r.Steps) == 0 {
		text, ink = text+" No step of "+r.Model+" was measured: the time was over before.", look.Amber
	}
	if p.page.status.Running() {
		text, ink = text+" "+probeBusy, look.Amber
	}
	p.state.SetIn(text, ink)
	facts := []string{r.Device, "Memory: " + r.Memory, "Driver: " + r.Driver, "Kernels: " + r.Kernels}
	if r.State != "" {
		facts = append(facts, "Afterwards: "+r.State)
	}
	p.facts.Set(strings.Join(facts, "\n"))
	set := func(t *look.Tile, v float64, format string, scale float64, unit, note string) {
		if v <= 0 {
			t.Set("", "", "", note, look.Plain)
			return
		}
		t.Set(fmt.Sprintf(format, v*scale), unit, "", note, look.Plain)
	}
	rate := func(t *look.Tile, v float64, note string) {
		if v >= 1e12 {
			set(t, v, "%.2f", 1e-12, "TB/s", note)
			return
		}
		set(t, v, "%.0f", 1e-9, "GB/s", note)
	}
	rate(p.read, r.Read, "by a kernel")
	rate(p.copied, r.Copy, "read and written")
	set(p.launch, r.Launch, "%.2f", 1e6, "µs", "of the host")
	set(p.graph, r.Graph, "%.2f", 1e6, "µs", "of the host")
	set(p.node, r.Node, "%.2f", 1e6, "µs", "that does nothing")
	showIf(p.budget, len(r.Steps) > 0)
	p.costs = nil
	if len(r.Steps) > 0 {
		s := &r.Steps[0]
		p.costs = s.Costs
		p.step.Set(fmt.Sprintf("%s, a decode step of %s with %s behind: %s on the GPU, %s for the host, %.1f tok/s.",
			r.Model, plural(s.Rows, "row"), plural(s.Context, "position"), micros(s.Graph), micros(s.Step), s.Rate))
		kernels := "all kernels by themselves " + micros(s.Kernels)
		left := 0
		for i := range s.Costs {
			if s.Costs[i].Time <= 0 {
				left++
			}
		}
		switch {
		case left > 0:
			kernels = fmt.Sprintf("kernels by themselves %s, but for %d of %s, too short to be measured or after the time was over", micros(s.Kernels), left, plural(len(s.Costs), "kind"))
		case s.Between < 0:
			kernels += ", of which they overlap in the step"
		default:
			kernels += ", from one to the next " + micros(s.Between)
		}
		p.gap.SetIn(fmt.Sprintf("Roofline: %.2f GB read once take %s, so the step runs at %.0f %% of it. Gap: %s (%s).",
			float64(s.Bytes)/1e9, micros(s.Roofline), 100*s.Share, micros(s.Gap), kernels), look.Muted)
	}
	p.table.SetRows(len(p.costs), p.cell)
	p.result.Show()
}

// micros is a time in microseconds.
func micros(seconds float64) string { return fmt.Sprintf("%.1f µs", seconds*1e6) }

func (p *probePanel) cell(row, col int) table.Cell {
	k := &p.costs[row]
	number := func(v float64, format string, scale float64) table.Cell {
		if v <= 0 {
			return table.Cell{Text: "—", Ink: look.Faint}
		}
		return table.Cell{Text: fmt.Sprintf(format, v*scale), Copy: fmt.Sprint(v * scale)}
	}
	switch col {
	case 0:
		return table.Cell{Text: k.Kernel}
	case 1:
		return table.Cell{Text: k.Shape, Ink: look.Muted}
	case 2:
		return table.Cell{Text: fmt.Sprint(k.Launches)}
	case 3:
		return number(float64(k.Bytes), "%.1f", 1e-6)
	case 4:
		return number(k.Each, "%.2f", 1e6)
	case 5:
		return number(k.Time, "%.1f", 1e6)
	case 6:
		if k.Bytes == 0 {
			return number(0, "", 0)
		}
		return number(k.Share, "%.0f", 100)
	}
	return number(k.OfStep, "%.1f", 100)
}
