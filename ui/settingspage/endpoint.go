package settingspage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// endpointForm is an endpoint and its models.
type endpointForm struct {
	section
	saver
	old      console.Endpoint
	typedKey bool
	asked    int // lists and checks: only the answer to the last one counts

	title, place             *look.Text
	kind, way                *widget.Select
	name, url, key, model    *look.Entry
	think                    *widget.Check
	keep, drop               *look.PushButton
	check, add, remove       *look.PushButton
	engine                   *look.PushButton
	status                   status
	found                    *look.Paragraph
	fields, models           *fyne.Container
	filter                   *look.Entry
	count                    *look.Text
	table                    *table.Table
	listed                   *look.Paragraph
	open, byHand, again, out *look.PushButton
	all, shown               []modelLine
	scroll                   *look.Scroll
}

// modelLine is a row of the table of models.
type modelLine struct {
	name   string
	listed bool // by the server
	set    console.Model
}

func (f *endpointForm) build(g *Page) {
	f.saver = saver{page: g, save: f.store, job: func() func() error {
		e := f.read()
		return func() error {
			_, err := g.Endpoints.SaveEndpoint(e, nil)
			return err
		}
	}}
	f.section.shown, f.section.flush = f.list, f.saver.flush
	f.title, f.place = heading("").Fixed(120), look.NewText("").Sized(look.Small).In(look.Muted).Fixed(120)
	var kinds, ways []string
	for _, p := range g.Preferences.Presets() {
		kinds = append(kinds, p.Name)
	}
	for _, w := range g.Preferences.ReasoningWays() {
		ways = append(ways, w.Name)
	}
	f.kind = widget.NewSelect(kinds, f.picked)
	f.kind.PlaceHolder = "Pick one"
	f.way = widget.NewSelect(ways, func(string) { f.changed() })
	f.name, f.url = look.NewEntry("As you call it; empty: its address"), look.NewEntry("http://127.0.0.1:8000/v1")
	f.key, f.model = look.NewSecret("Empty: none"), look.NewEntry("Empty: the server's first")
	f.model.OnChanged = func(string) { f.changed() }
	f.think = widget.NewCheck("Answers carry their reasoning in <think> tags", func(bool) { f.changed() })
	f.keep, f.drop = look.Button("Keep key", f.keepKey), look.Button("Remove key", f.dropKey)
	f.check = look.Button("Check", f.try)
	f.add = look.MainButton("Add endpoint", f.store)
	f.remove = look.Button("Remove endpoint…", f.delete)
	f.engine = look.Button("Go to the engine", g.GoEngine)
	f.status, f.found = newStatus(), look.NewParagraph("").AtMost(3)
	f.name.OnChanged = func(string) { f.changed() }
	f.url.OnChanged = func(string) { f.changed() }
	f.key.OnChanged = func(string) { f.states() }
	f.key.OnSubmitted = func(string) { f.keepKey() }
	f.fields = look.Rows(look.Gap,
		look.Flow(look.Gap, wideWidth, look.Field("Kind of server", wideWidth, f.kind), look.Field("Name", wideWidth, f.name)),
		look.Flow(look.Gap, wideWidth, look.Field("Address", wideWidth, f.url), look.Field("Model that a run takes", wideWidth, f.model)),
		look.Rows(look.Half, look.NewText("Key").Sized(look.Small).In(look.Muted),
			look.Line(look.Step, look.Sized(wideWidth, 0, f.key), f.keep, f.drop)),
		look.Flow(look.Gap, wideWidth, look.Field("How reasoning is switched", wideWidth, f.way), look.Inset(look.Gap, 0, 0, 0, f.think)),
	)

	f.filter = look.NewEntry("Filter models")
	f.filter.OnChanged = func(string) { f.arrange() }
	f.filter.OnEscape = func() { f.filter.SetText("") }
	f.count = look.NewText("").Sized(look.Small).In(look.Muted)
	f.table = table.New(look.Small, table.Column{Title: "Model", Stretch: true, Least: 160}, table.Column{Title: "Set for it", Stretch: true, Least: 160},
		table.Column{Title: "Tokenizer", Least: 96}, table.Column{Title: "Known from", Least: 96})
	f.table.OnSelect = func(int) { f.states() }
	f.table.OnOpen = func(int) { f.openModel() }
	f.open = look.Button("Set up model", f.openModel)
	f.byHand = look.Button("Add model by name…", f.nameModel)
	f.out = look.Button("Forget model", f.forget)
	f.again = look.Button("List again", f.list)
	f.listed = look.NewParagraph("").AtMost(4)
	f.models = look.Rows(look.Step, look.Rule(),
		look.Inset(look.Step, 0, 0, 0, look.Trailing(look.Gap, look.Line(look.Gap, heading("Models"), f.count), look.Line(look.Step, f.again, f.byHand))),
		f.listed, look.Trailing(look.Gap, f.filter, look.Line(look.Step, f.out, f.open)))
	top := look.Rows(look.Gap, look.Trailing(look.Gap, look.Rows(look.Half, f.title, f.place), look.Line(look.Step, f.engine, f.remove, f.check, f.add)),
		f.status.Paragraph, f.fields, f.found, f.models)
	f.scroll = look.NewScroll(look.Inset(look.Gap, look.Margin, look.Margin, look.Margin, look.Rows(look.Step, top, f.table)))
	head := func() float32 { return f.table.Position().Y + look.Gap }
	f.scroll.OnScroll = func(y, height float32) { f.table.SetView(y-head(), height) }
	f.table.OnShow = func(y, height float32) { f.scroll.Reveal(y+head(), height) }
	f.table.OnScroll = f.scroll.Scrolled
	f.view = f.scroll
}

// fill shows an endpoint; the zero one is new.
func (f *endpointForm) fill(e console.Endpoint) {
	f.asked++
	f.old = e
	f.saver.cancel()
	f.dirty = false
	f.byProgram(func() {
		f.kind.ClearSelected()
		for _, p := range f.page.Preferences.Presets() {
			if p.ID == e.Preset {
				f.kind.SetSelected(p.Name)
			}
		}
		ways := f.page.Preferences.ReasoningWays()
		f.way.SetSelected(ways[0].Name)
		for _, w := range ways {
			if w.ID == e.Reasoning {
				f.way.SetSelected(w.Name)
			}
		}
		f.name.SetText(e.Name)
		f.url.SetText(e.URL)
		f.model.SetText(e.Model)
		f.key.SetText("")
		f.think.SetChecked(e.ThinkTags)
		f.filter.SetText("")
	})
	f.all = nil
	f.arrange()
	f.status.Set("")
	f.say("", look.Muted)
	f.listed.SetIn("", look.Muted)
	f.take(e)
	f.scroll.To(0)
}

// take shows what the form itself does not change.
func (f *endpointForm) take(e console.Endpoint) {
	if !f.dirty {
		f.old = e
	}
	f.old.HasKey = e.HasKey
	title := nameOf(e)
	switch {
	case e.ID == "":
		title = "New endpoint"
		f.place.Set("Pick a kind of server, or type its address.")
	case e.BuiltIn:
		f.place.Set("The scripted endpoint is a part of Velo: it needs no address and no key.")
	case e.Engine:
		f.place.Set("Velo's own engine: its settings are on the Engine page.")
	default:
		f.place.Set(e.URL)
	}
	f.title.Set(title)
	f.key.SetPlaceHolder("Empty: none")
	if e.HasKey {
		f.key.SetPlaceHolder("A key is kept; type to replace it")
	}
	show(f.fields, !e.BuiltIn && !e.Engine)
	show(f.models, e.ID != "")
	show(f.table, e.ID != "")
	show(f.remove, e.ID != "" && !e.BuiltIn && !e.Engine)
	show(f.check, !e.BuiltIn && !e.Engine)
	show(f.add, e.ID == "")
	show(f.engine, e.Engine)
	f.states()
	f.scroll.Settle()
}

// show shows or hides an object.
func show(o fyne.CanvasObject, on bool) {
	if on {
		o.Show()
	} else {
		o.Hide()
	}
}

func (f *endpointForm) states() {
	typed := strings.TrimSpace(f.url.Text) != ""
	f.check.SetEnabled(typed)
	f.add.SetEnabled(typed)
	f.keep.SetEnabled(f.old.ID != "" && strings.TrimSpace(f.key.Text) != "")
	show(f.keep, f.old.ID != "")
	show(f.drop, f.old.HasKey)
	m, ok := f.selected()
	f.open.SetEnabled(ok)
	f.out.SetEnabled(ok && (m.set.ByHand || described(m.set) != ""))
	f.fields.Refresh()
}

func (f *endpointForm) changed() {
	f.states()
	if f.filling || f.old.ID == "" {
		return
	}
	f.status.typed()
	f.touched()
}

// picked takes over what is known of a kind of server: its address, where none was typed.
func (f *endpointForm) picked(name string) {
	if f.filling {
		return
	}
	for _, p := range f.page.Preferences.Presets() {
		if p.Name != name {
			continue
		}
		known := strings.TrimSpace(f.url.Text) == ""
		for _, other := range f.page.Preferences.Presets() {
			known = known || other.URL == f.url.Text
		}
		if known && f.old.ID == "" {
			f.url.SetText(p.URL)
		}
	}
	f.changed()
}

// read is the endpoint as the form has it.
func (f *endpointForm) read() console.Endpoint {
	e := f.old
	e.Name, e.URL, e.ThinkTags = strings.TrimSpace(f.name.Text), strings.TrimSpace(f.url.Text), f.think.Checked
	e.Model = strings.TrimSpace(f.model.Text)
	e.Preset, e.Reasoning = "", ""
	for _, p := range f.page.Preferences.Presets() {
		if p.Name == f.kind.Selected {
			e.Preset = p.ID
		}
	}
	if e.Name == "" && f.old.ID == "" && f.kind.Selected != "" && e.Preset != "custom" {
		e.Name = f.kind.Selected
	}
	for _, w := range f.page.Preferences.ReasoningWays() {
		if w.Name == f.way.Selected {
			e.Reasoning = w.ID
		}
	}
	return e
}

// store saves the endpoint. A new one takes its key along.
func (f *endpointForm) store() {
	e := f.read()
	var key *string
	if text := strings.TrimSpace(f.key.Text); text != "" && e.ID == "" {
		key = &text
	}
	f.saveEndpoint(e, key, "Saved.")
}

func (f *endpointForm) saveEndpoint(e console.Endpoint, key *string, said string) {
	asked := f.asked
	f.page.Thread.Work(func() func() {
		kept, err := f.page.Endpoints.SaveEndpoint(e, key)
		return func() {
			if f.asked != asked { // another one is in view
				if err != nil {
					f.page.Say(look.OnRed, sentence(err.Error()))
				}
				return
			}
			if err != nil {
				f.status.wrong(err)
				return
			}
			if e.ID == "" {
				f.fill(kept)
				f.list()
				f.page.Added(kept.ID)
				said = "Saved. Runs and chats take it now."
			} else {
				f.old = kept
				f.take(kept)
			}
			if key != nil {
				f.byProgram(func() { f.key.SetText("") })
			}
			f.status.SetIn(said, look.Muted)
			f.page.Reload()
		}
	})
}

func (f *endpointForm) keepKey() {
	if f.old.ID == "" || strings.TrimSpace(f.key.Text) == "" {
		return
	}
	key := strings.TrimSpace(f.key.Text)
	f.saver.cancel()
	f.dirty = false
	f.saveEndpoint(f.read(), &key, "The key is kept: "+f.page.Preferences.Data().Keys+".")
}

func (f *endpointForm) dropKey() {
	f.saver.cancel()
	f.dirty = false
	f.saveEndpoint(f.read(), new(string), "The key was removed.")
}

// say says what a check found; nothing takes no room.
func (f *endpointForm) say(text string, ink look.Ink) {
	f.found.SetIn(text, ink)
	show(f.found, text != "")
	f.scroll.Settle()
}

// try asks the server, and says what it answered.
func (f *endpointForm) try() {
	e, key := f.read(), strings.TrimSpace(f.key.Text)
	f.asked++
	asked := f.asked
	ctx, cancel := context.WithTimeout(f.page.ctx, 20*time.Second)
	f.say("Asking "+e.URL+" …", look.Muted)
	f.page.Thread.Work(func() func() {
		defer cancel()
		found, err := f.page.Endpoints.Check(ctx, e, key)
		return func() {
			switch {
			case f.asked != asked:
			case err != nil:
				f.say(sentence(err.Error()), look.Red)
			default:
				f.say(sentence(found), look.Green)
			}
		}
	})
}

func (f *endpointForm) delete() {
	e := f.old
	f.page.Warn("Remove endpoint", fmt.Sprintf("Remove “%s”, its key and what is set for its models? Sessions that measured it stay.", nameOf(e)), "Remove endpoint", func() {
		f.saver.cancel()
		f.dirty = false
		f.page.Thread.Work(func() func() {
			err := f.page.Endpoints.DeleteEndpoint(e.ID)
			return func() {
				if err != nil {
					f.status.wrong(err)
					return
				}
				f.fill(console.Endpoint{})
				f.page.show(&f.page.appearance.section)
				f.page.Reload()
			}
		})
	})
}
