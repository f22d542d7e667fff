package settingspage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// list asks the server for its models, and the program for those that the user named.
func (f *endpointForm) list() {
	e := f.old
	if e.ID == "" {
		return
	}
	f.asked++
	asked := f.asked
	ctx, cancel := context.WithTimeout(f.page.ctx, 30*time.Second)
	f.listed.SetIn("Asking the server for its models …", look.Muted)
	f.page.Thread.Work(func() func() {
		defer cancel()
		named, keptErr := f.page.Preferences.NamedModels(e.ID)
		listed, err := f.page.Endpoints.Models(ctx, e.ID)
		return func() {
			if f.asked != asked || errors.Is(err, context.Canceled) {
				return
			}
			f.all = lines(listed, named)
			n := 0
			for _, m := range f.all {
				if m.listed {
					n++
				}
			}
			switch {
			case keptErr != nil:
				f.listed.SetIn(sentence(keptErr.Error()), look.Red)
			case err != nil:
				f.listed.SetIn(sentence(err.Error())+" A model can be added by its name.", look.Red)
			case n == 0 && len(f.all) > 0:
				f.listed.SetIn("The server gives no list: those below are yours. Check says whether it answers.", look.Amber)
			case n == 0:
				f.listed.SetIn("The server lists no models: add one by its name.", look.Amber)
			default:
				f.listed.SetIn("Double-click a model, or press Enter on it, to set it up.", look.Muted)
			}
			f.arrange()
		}
	})
}

// lines puts together what the server lists and what the user named.
func lines(listed []string, named []console.Model) []modelLine {
	var all []modelLine
	for _, name := range listed {
		m := modelLine{name: name, listed: true, set: console.Model{Name: name}}
		if i := slices.IndexFunc(named, func(k console.Model) bool { return k.Name == name }); i >= 0 {
			m.set = named[i]
			m.listed = !named[i].ByHand
		}
		all = append(all, m)
	}
	for _, k := range named {
		if !slices.Contains(listed, k.Name) {
			all = append(all, modelLine{name: k.Name, set: k})
		}
	}
	return all
}

// described says in a few words what is set for a model.
func described(m console.Model) string {
	var parts []string
	n := 0
	for _, text := range m.Settings.Parameters {
		if text != "" {
			n++
		}
	}
	switch {
	case n == 1:
		parts = append(parts, "1 parameter")
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d parameters", n))
	}
	if m.Settings.Extra != "" {
		parts = append(parts, "further ones")
	}
	if m.Settings.Reasoning != "" {
		parts = append(parts, "reasoning "+m.Settings.Reasoning)
	}
	if m.Settings.Tokenizer != "" {
		parts = append(parts, "tokenizer")
	}
	return strings.Join(parts, ", ")
}

// tokenizerCell says how the tokenizer of a model is.
func tokenizerCell(m console.Model) table.Cell {
	if m.Settings.Tokenizer == console.TokenizerNone {
		return table.Cell{Text: "—", Ink: look.Faint}
	}
	_, word, ink := verdict(m)
	return table.Cell{Text: word, Ink: ink}
}

// verdict is what is known about the tokenizer, as a lamp says it.
func verdict(m console.Model) (look.Tone, string, look.Ink) {
	switch m.Verdict {
	case console.TokenizerVerified:
		return look.OnGreen, "verified", look.Green
	case console.TokenizerWrong:
		return look.OnRed, "not the model's", look.Red
	case console.TokenizerUnclear:
		return look.OnAmber, "unclear", look.Amber
	}
	return look.OnFaint, "not tried", look.Muted
}

// arrange filters what is shown.
func (f *endpointForm) arrange() {
	words := strings.Fields(strings.ToLower(f.filter.Text))
	f.shown = f.shown[:0:0]
	for _, m := range f.all {
		name := strings.ToLower(m.name)
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(name, w) }) {
			f.shown = append(f.shown, m)
		}
	}
	f.count.Set("")
	if len(f.all) > 0 {
		f.count.Set(fmt.Sprint(len(f.all)))
		if len(f.shown) != len(f.all) {
			f.count.Set(fmt.Sprintf("%d of %d", len(f.shown), len(f.all)))
		}
	}
	rows := f.shown
	f.table.SetRows(len(rows), func(r, c int) table.Cell {
		m := rows[r]
		switch c {
		case 0:
			return table.Cell{Text: m.name}
		case 1:
			if text := described(m.set); text != "" {
				return table.Cell{Text: text}
			}
			return table.Cell{Text: "—", Ink: look.Faint}
		case 2:
			return tokenizerCell(m.set)
		}
		if m.listed {
			return table.Cell{Text: "the server", Ink: look.Muted}
		}
		return table.Cell{Text: "you", Ink: look.Muted}
	})
	f.states()
	f.scroll.Settle()
}

// selected is the selected model.
func (f *endpointForm) selected() (modelLine, bool) {
	if r := f.table.Selected(); r >= 0 && r < len(f.shown) {
		return f.shown[r], true
	}
	return modelLine{}, false
}

func (f *endpointForm) openModel() {
	if m, ok := f.selected(); ok {
		f.page.OpenModel(f.old, m.name)
	}
}

func (f *endpointForm) nameModel() {
	e := f.old
	f.page.Prompt("Add model", "Name, as the server knows it", "", "Add model", func(name string) {
		if strings.TrimSpace(name) == "" {
			return
		}
		f.page.Thread.Work(func() func() {
			err := f.page.Preferences.AddModel(e.ID, name)
			return func() {
				if err != nil {
					f.page.Say(look.OnRed, sentence(err.Error()))
					return
				}
				if f.old.ID == e.ID {
					f.list()
				}
			}
		})
	})
}

func (f *endpointForm) forget() {
	m, ok := f.selected()
	if !ok {
		return
	}
	e := f.old
	f.page.Ask("Forget model", fmt.Sprintf("Forget what is set for “%s”, and what was found out about it? A model that the server lists stays in the list.", m.name), "Forget model", func() {
		f.page.Thread.Work(func() func() {
			err := f.page.Preferences.RemoveModel(e.ID, m.name)
			return func() {
				if err != nil {
					f.page.Say(look.OnRed, sentence(err.Error()))
				}
				if f.old.ID == e.ID {
					f.list()
				}
			}
		})
	})
}

// ModelNames are the models in the table of the endpoint in view.
func (g *Page) ModelNames() []string {
	var names []string
	for _, m := range g.endpoint.shown {
		names = append(names, m.name)
	}
	return names
}
