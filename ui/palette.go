package ui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"velo/ui/look"
)

// choiceRow is one thing that the palette offers.
type choiceRow struct {
	id          string // of what was run last; empty: not remembered
	title, menu string
	keys        string
	can         bool
	run         func()
}

// commandPalette is everything that the window can do, found by a few letters. It lies over the page
// while it is open.
type commandPalette struct {
	shell  *Shell
	view   *fyne.Container // nil while it is closed
	entry  *paletteEntry
	list   *choiceList
	count  *look.Text
	all    []choiceRow
	latest []string // ids of what was run, newest first
	focus  fyne.Focusable
}

// togglePalette opens the palette, or closes it.
func (s *Shell) togglePalette() {
	if s.offers.view != nil {
		s.offers.close()
		return
	}
	s.offers.shell = s
	s.offers.open()
}

func (p *commandPalette) open() {
	s := p.shell
	p.all = s.choices()
	p.entry = newPaletteEntry()
	p.entry.OnChanged = func(string) { p.filter() }
	p.entry.move, p.entry.take, p.entry.leave = func(by int) { p.list.move(by) }, p.take, p.close
	p.list = newChoiceList(func(int) { p.take() })
	p.count = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(200)
	hint := look.NewText("↑ ↓ choose   Enter runs   Escape closes").Sized(look.Small).In(look.Muted)
	panel := look.Panel(look.OnSurface, look.Rows(0,
		look.Inset(look.Step, look.Step, look.Step, look.Step, p.entry), look.Rule(), p.list, look.Rule(),
		look.Inset(look.Half, look.Gap, look.Half, look.Gap, look.Trailing(look.Gap, p.count, hint))))
	canvas := s.Window.Canvas()
	p.view = container.New(over{}, newCurtain(p.close), look.Panel(look.OnLine, look.Inset(1, 1, 1, 1, panel)))
	p.filter()
	p.focus = canvas.Focused()
	canvas.Overlays().Add(p.view)
	p.view.Resize(canvas.Size())
	canvas.Focus(p.entry)
}

func (p *commandPalette) close() {
	if p.view == nil {
		return
	}
	canvas := p.shell.Window.Canvas()
	canvas.Overlays().Remove(p.view)
	p.view = nil
	if p.focus != nil {
		canvas.Focus(p.focus)
	}
}

// filter shows what answers to what was typed, the best first, whether it can be done now or not:
// that the thing exists is an answer too. Without a letter it shows what was done last, then what can be
// done in the order of the menus.
func (p *commandPalette) filter() {
	type scored struct {
		choiceRow
		score int
	}
	var hits []scored
	typed := p.entry.Text
	for _, c := range p.all {
		score, ok := fuzzy(typed, c.title)
		if s, also := fuzzy(typed, c.menu+" "+c.title); also && (!ok || s-4 > score) {
			score, ok = s-4, true
		}
		if !ok {
			continue
		}
		if i := slices.Index(p.latest, c.id); i >= 0 && c.id != "" {
			score += 6 - min(i, 5)
		}
		hits = append(hits, scored{c, score - len(c.title)/4}) // of two that answer alike, the one that says less besides
	}
	slices.SortStableFunc(hits, func(a, b scored) int {
		if typed == "" && a.can != b.can {
			if a.can {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.score, a.score)
	})
	rows := make([]choiceRow, len(hits))
	for i, h := range hits {
		rows[i] = h.choiceRow
	}
	p.list.set(rows)
	switch len(rows) {
	case 0:
		p.count.Set("Nothing is called that.")
	case 1:
		p.count.Set("1 command")
	default:
		p.count.Set(fmt.Sprintf("%d commands", len(rows)))
	}
}

// take runs the chosen one and closes the palette; one that cannot be run now stays.
func (p *commandPalette) take() {
	c, ok := p.list.chosen()
	if !ok || !c.can {
		return
	}
	if c.id != "" {
		p.latest = slices.DeleteFunc(p.latest, func(id string) bool { return id == c.id })
		p.latest = slices.Insert(p.latest, 0, c.id)
		p.latest = p.latest[:min(len(p.latest), 6)]
	}
	p.close()
	c.run()
}

// choices are all that the palette offers: the commands, the endpoints and what was opened last.
func (s *Shell) choices() []choiceRow {
	var out []choiceRow
	for _, c := range s.commands {
		if c.id == "palette" {
			continue
		}
		out = append(out, choiceRow{id: c.id, title: c.title, menu: c.menu, keys: c.keys(), can: c.can == nil || c.can(), run: func() { s.Do(c.id) }})
	}
	for _, e := range s.chosen.endpoints {
		name := label(e, s.chosen.endpoints)
		out = append(out, choiceRow{title: "Use " + name, menu: "Endpoint", can: e.ID != s.chosen.endpoint.ID, run: func() { s.bar.picked(name) }})
	}
	for _, r := range s.recent {
		out = append(out, choiceRow{title: "Open " + filepath.Base(r.Path), menu: "File", can: !r.Missing, run: func() { s.Open(r.Path) }})
	}
	return out
}

// over puts the panel of the palette near the top of the window, over a curtain as large as it.
type over struct{}

const paletteWidth, paletteTop = 600, 72

func (over) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(0, 0) }

func (over) Layout(o []fyne.CanvasObject, size fyne.Size) {
	o[0].Move(fyne.Position{})
	o[0].Resize(size)
	w := fyne.Min(paletteWidth, size.Width-2*look.Gap)
	o[1].Resize(fyne.NewSize(w, o[1].MinSize().Height))
	o[1].Move(fyne.NewPos((size.Width-w)/2, fyne.Min(paletteTop, fyne.Max(0, size.Height-o[1].MinSize().Height))))
}
