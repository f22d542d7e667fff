package telemetrypage

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2"

	"velo/bench/otlp"
	"velo/bench/otlp/series"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/plot"
)

// Measures of a gauge, in units.
const (
	gaugeWidth = 168
	lineHeight = 40
)

// mostEngines is how many engines are shown.
const mostEngines = 8

// engines are the figures of each engine, with their last minutes.
type engines struct {
	page   *Page
	view   fyne.CanvasObject
	column *fyne.Container
	scroll *look.Scroll
	none   *look.Paragraph

	blocks []*block
	gauges map[string]*gauge // by source, instance and name; a gauge is made once
	shape  string            // of what is on screen
}

// block is one engine.
type block struct {
	title, place *look.Text
	view         *fyne.Container
}

// gauge is a figure of an engine, and a line of its last minutes below.
type gauge struct {
	view *fyne.Container
	tile *look.Tile
	plot *plot.View
	draw history // of Prepare
}

func newEngines(g *Page) *engines {
	v := &engines{page: g, gauges: map[string]*gauge{}, column: look.Rows(look.Margin)}
	v.none = look.NewParagraph("No engine has told its figures yet. Metrics come with OTLP, or from the metrics pages that the settings name: the streams of an engine say nothing of what it is busy with.").In(look.Muted)
	v.scroll = look.NewScroll(look.Inset(look.Step, look.Gap, look.Gap, 0, look.Rows(look.Gap, v.none, v.column)))
	v.view = v.scroll
	return v
}

func (v *engines) content() fyne.CanvasObject { return v.view }
func (v *engines) query(*otlp.Query)          {}

// shown is an engine as it is put on screen.
type shown struct {
	title, place string
	gauges       []string // keys
}

func (v *engines) prepare(s *console.TelemetrySnapshot, p look.Palette) func() {
	if !v.page.refresh.due(Engines, s.At, distributionsEvery) {
		return func() {}
	}
	type change struct {
		key  string
		g    series.Gauge
		turn bool
	}
	var list []shown
	var changes []change
	shape := ""
	for _, source := range s.Sources {
		for _, e := range source.Engines {
			if len(list) == mostEngines {
				break
			}
			x := shown{title: e.Title}
			if e.Model != "" {
				x.title += " · " + e.Model
			}
			parts := []string{source.Name}
			if i := strings.TrimPrefix(e.Service, source.Name+"/"); i != e.Service {
				parts = append(parts, "instance "+i)
			}
			if source.Status != nil {
				if t := at(source.Status.Model, source.Status.Topology); t != "" {
					parts = append(parts, "status: "+t+", "+ago(source.Status.Received))
				}
			}
			parts = append(parts, "figures "+ago(e.Age))
			if source.Clock != nil {
				parts = append(parts, "clock "+bounds(source.Clock.Bounds))
			}
			x.place = strings.Join(parts, " · ")
			for _, one := range e.Gauges {
				key := e.Service + "\x00" + e.Title + "\x00" + one.Name
				x.gauges = append(x.gauges, key)
				c := change{key: key, g: one}
				if made := v.gauges[key]; made != nil {
					if img, scale := made.plot.Back(); img != nil {
						made.draw.draw(img, scale, p, curve{of: key, points: one.Points, now: s.At, bare: true})
						c.turn = true
					}
				}
				changes = append(changes, c)
			}
			list = append(list, x)
			shape += fmt.Sprint(x.title, "\x01", x.gauges, "\x02")
		}
	}
	return func() {
		for _, c := range changes {
			g := v.gauges[c.key]
			if g == nil {
				g = v.make(c.g.Name)
				v.gauges[c.key] = g
			}
			f := write(gaugeUnit(c.g.Unit), c.g.Value, c.g.Source.Mark())
			unit := f.unit
			if c.g.Unit == "" {
				unit = map[string]string{series.MeanAccepted: "tokens", series.Running: "requests", series.Waiting: "requests"}[c.g.Name]
			}
			g.tile.Set(f.value, unit, f.mark, c.g.Note, look.Plain)
			if c.turn {
				g.plot.Turn()
			}
		}
		if shape != v.shape {
			v.shape = shape
			v.rebuild(list)
		}
		for i := range list {
			v.blocks[i].title.Set(list[i].title)
			v.blocks[i].place.Set(list[i].place)
		}
		if showIf(v.none, len(list) == 0) {
			v.scroll.Settle()
		}
	}
}

func (v *engines) make(name string) *gauge {
	g := &gauge{tile: look.NewTile(name).Wide(gaugeWidth).Notes(2), plot: plot.NewView(fyne.NewSize(gaugeWidth, lineHeight))}
	g.plot.OnSize = v.page.drawAgain
	g.view = look.Rows(look.Half, g.tile, g.plot)
	return g
}

func (v *engines) rebuild(list []shown) {
	v.column.Objects, v.blocks = nil, nil
	for _, x := range list {
		b := &block{title: look.NewText("").Bold().Fixed(200), place: look.NewText("").Sized(look.Small).In(look.Muted).Fixed(200)}
		cells := make([]fyne.CanvasObject, len(x.gauges))
		for i, key := range x.gauges {
			cells[i] = v.gauges[key].view
		}
		b.view = look.Rows(look.Gap, look.Rows(0, b.title, b.place), look.Flow(look.Gap, gaugeWidth, cells...), look.Rule())
		v.blocks = append(v.blocks, b)
		v.column.Add(b.view)
	}
	v.scroll.Settle()
	v.page.Redraw()
}
