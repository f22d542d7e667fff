package settingspage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/ui/console"
	"velo/ui/look"
)

// modelForm is what is set for a model and what was found out about it.
type modelForm struct {
	section
	saver
	endpoint console.Endpoint
	name     string
	state    console.Model
	asked    int
	trying   context.CancelFunc // nil = no trial goes on

	title, place     *look.Text
	parameters       map[string]*look.Entry
	extra            *widget.Entry
	reasoning, kind  *widget.Select
	path             *look.Entry
	pick             *fyne.Container
	status           status
	lamp             *look.Lamp
	why              *look.Paragraph
	try, stop        *look.PushButton
	tried            *look.Text
	remarks          *look.Paragraph
	ratio, ratioFrom *look.Text
	scroll           *look.Scroll
}

// choice is a word of the program and the words for it.
type choice struct{ id, words string }

var reasonings = []choice{
	{console.ReasoningDefault, "As the model likes"}, {console.ReasoningOff, "Off"}, {"low", "Low"}, {"medium", "Medium"}, {"high", "High"},
}

// The kinds of tokenizers.
const (
	fileKind = "A file or folder"
)

var tokenizerKinds = []choice{
	{console.TokenizerNone, "None: the server's usage counts"}, {console.TokenizerServer, "The server's own /tokenize"}, {fileKind, fileKind},
}

func wordsOf(list []choice) (words []string) {
	for _, c := range list {
		words = append(words, c.words)
	}
	return words
}

func idOf(list []choice, words string) string {
	for _, c := range list {
		if c.words == words {
			return c.id
		}
	}
	return list[0].id
}

func wordsFor(list []choice, id string) string {
	for _, c := range list {
		if c.id == id {
			return c.words
		}
	}
	return list[0].words
}

func (f *modelForm) build(g *Page) {
	f.saver = saver{page: g, save: f.store, job: func() func() error {
		e, name, s := f.endpoint, f.name, f.read()
		return func() error { return g.Preferences.SaveModel(e.ID, name, s) }
	}}
	f.section.flush = func() {
		f.saver.flush()
		f.cancelTrial()
	}
	f.title, f.place = heading("").Fixed(120), look.NewText("").Sized(look.Small).In(look.Muted).Fixed(120)
	back := look.Button("Back to the endpoint", f.back)
	f.parameters = map[string]*look.Entry{}
	fields := look.Flow(look.Gap, fieldWidth)
	for _, k := range g.Preferences.ParameterKinds() {
		e := look.NewEntry(k.Hint)
		e.OnChanged = func(string) { f.changed() }
		f.parameters[k.Name] = e
		fields.Add(look.Field(k.Name, fieldWidth, e))
	}
	f.extra = widget.NewMultiLineEntry()
	f.extra.SetPlaceHolder(`{"logit_bias": {}}`)
	f.extra.SetMinRowsVisible(3)
	f.extra.TextStyle.Monospace = true
	f.extra.OnChanged = func(string) { f.changed() }
	f.reasoning = widget.NewSelect(wordsOf(reasonings), func(string) { f.changed() })
	f.kind = widget.NewSelect(wordsOf(tokenizerKinds), func(string) { f.kindChanged() })
	f.path = look.NewEntry("tokenizer.json, a folder that holds one, or a .gguf file")
	f.path.OnChanged = func(string) { f.changed() }
	take := func(path string) { f.path.SetText(path) }
	f.pick = look.Trailing(look.Step, f.path, look.Line(look.Step,
		look.Button("Folder…", func() { g.ChooseFolder("Choose a folder that holds tokenizer.json", take) }),
		look.Button("File…", func() { g.ChooseFile("Choose tokenizer.json or a .gguf file", take) })))
	f.status = newStatus()
	f.lamp, f.why = look.NewLamp(fieldWidth), look.NewParagraph("").In(look.Muted).AtMost(3)
	f.try, f.stop = look.MainButton("Try model", f.Try), look.StopButton("Stop", f.cancelTrial)
	f.stop.Hide()
	f.tried = look.NewText("").Sized(look.Small).In(look.Muted)
	f.remarks = look.NewParagraph("").AtMost(12)
	f.ratio, f.ratioFrom = look.NewMono("—"), look.NewText("").Sized(look.Small).In(look.Muted)

	f.scroll = content(
		look.Trailing(look.Gap, look.Rows(look.Half, f.title, f.place), look.Line(look.Step, back, f.stop, f.try)),
		f.status.Paragraph,
		small("What is set here is sent in runs and chats with this model, where the suite or the chat says nothing else. Empty fields are not sent."),
		fields,
		look.Field("Further parameters, a JSON object", formWidth, f.extra),
		look.Flow(look.Gap, wideWidth, look.Field("Reasoning", wideWidth, f.reasoning)),
		look.Rule(),
		look.Flow(look.Gap, wideWidth, look.Field("Tokenizer", wideWidth, f.kind), look.Inset(look.Gap+look.Half, 0, 0, 0, f.lamp.Container)),
		f.pick, f.why,
		look.Rule(),
		look.Line(look.Gap, heading("What a trial found"), f.tried),
		small("A trial asks the model once, for an answer of 320 tokens at most, with everything that is set above: what the server refuses, what becomes of reasoning, and whether the tokenizer counts as the server does."),
		f.remarks,
		look.Rows(look.Half, look.NewText("Tokens over the estimate by text length").Sized(look.Small).In(look.Muted), look.Line(look.Step, f.ratio, f.ratioFrom)),
	)
	f.view = f.scroll
}

func (f *modelForm) back() {
	id := f.endpoint.ID
	f.page.Edit(id)
}

// fill shows a model of an endpoint.
func (f *modelForm) fill(e console.Endpoint, name string) {
	f.saver.cancel()
	f.dirty = false
	f.endpoint, f.name = e, name
	f.asked++
	f.title.Set(name)
	f.place.Set("A model of " + nameOf(e))
	f.status.Set("")
	f.byProgram(func() { f.put(console.Model{Name: name, Ratio: measure.Missing}) })
	f.load()
	f.scroll.To(0)
}

// load reads what is known of the model.
func (f *modelForm) load() {
	asked, e, name := f.asked, f.endpoint, f.name
	f.page.Thread.Work(func() func() {
		m, err := f.page.Preferences.Model(e.ID, name)
		return func() {
			if f.asked != asked {
				return
			}
			if err != nil {
				f.status.wrong(err)
			}
			f.byProgram(func() { f.put(m) })
		}
	})
}

// put shows a model's settings and state.
func (f *modelForm) put(m console.Model) {
	for name, e := range f.parameters {
		e.SetText(m.Settings.Parameters[name])
	}
	f.extra.SetText(m.Settings.Extra)
	f.reasoning.SetSelected(wordsFor(reasonings, m.Settings.Reasoning))
	kind := m.Settings.Tokenizer
	f.path.SetText("")
	if kind != console.TokenizerNone && kind != console.TokenizerServer {
		f.path.SetText(kind)
		kind = fileKind
	}
	f.kind.SetSelected(wordsFor(tokenizerKinds, kind))
	show(f.pick, kind == fileKind)
	f.found(m)
}

// found shows what a trial found out.
func (f *modelForm) found(m console.Model) {
	f.state = m
	set := m.Settings.Tokenizer != console.TokenizerNone
	show(f.lamp.Container, set)
	show(f.why, set)
	tone, word, _ := verdict(m)
	f.lamp.Set(tone, word)
	switch {
	case m.Why != "":
		f.why.Set(m.Why)
	case m.Verdict == console.TokenizerNotTried:
		f.why.Set("It is used once it has counted an answer as the server does: try the model, or start a run.")
	default:
		f.why.Set("")
	}
	f.tried.Set("")
	if !m.Tried.IsZero() {
		f.tried.Set(m.Tried.Local().Format("2 January 2006, 15:04"))
	}
	switch {
	case len(m.Remarks) > 0:
		f.remarks.SetIn(strings.Join(m.Remarks, "\n"), look.Plain)
	case m.Tried.IsZero():
		f.remarks.SetIn("The model was not tried yet.", look.Muted)
	default:
		f.remarks.SetIn("The server took everything that is set.", look.Plain)
	}
	f.ratio.SetIn("—", look.Faint)
	f.ratioFrom.Set("not known")
	if m.Ratio.Ok() {
		value, _ := report.FormatNum(measure.Metric{}, m.Ratio)
		f.ratio.SetIn(value+" "+measure.Estimate.Mark(), look.Plain)
		f.ratioFrom.Set(fmt.Sprintf("estimate, from %d tokens", m.RatioTokens))
	}
	f.scroll.Settle()
}

func (f *modelForm) changed() {
	if f.filling {
		return
	}
	f.status.typed()
	f.touched()
}

func (f *modelForm) kindChanged() {
	show(f.pick, idOf(tokenizerKinds, f.kind.Selected) == fileKind)
	f.scroll.Settle()
	f.changed()
}

// read is what the form has.
func (f *modelForm) read() console.ModelSettings {
	s := console.ModelSettings{Parameters: map[string]string{}, Extra: f.extra.Text, Reasoning: idOf(reasonings, f.reasoning.Selected)}
	for name, e := range f.parameters {
		if text := strings.TrimSpace(e.Text); text != "" {
			s.Parameters[name] = text
		}
	}
	if s.Tokenizer = idOf(tokenizerKinds, f.kind.Selected); s.Tokenizer == fileKind {
		s.Tokenizer = strings.TrimSpace(f.path.Text)
	}
	return s
}

// store saves what is set.
func (f *modelForm) store() { f.storeThen(func(error) {}) }

func (f *modelForm) storeThen(then func(error)) {
	asked, e, name, s := f.asked, f.endpoint, f.name, f.read()
	f.page.Thread.Work(func() func() {
		err := f.page.Preferences.SaveModel(e.ID, name, s)
		m, readErr := f.page.Preferences.Model(e.ID, name)
		return func() {
			if f.asked != asked {
				if err != nil { // the form is gone: it has to be said elsewhere
					f.page.Say(look.OnRed, fmt.Sprintf("What was typed for %s was not saved. %s", name, sentence(err.Error())))
				}
				return
			}
			if err != nil {
				f.status.wrong(err)
				f.scroll.Settle()
				then(err)
				return
			}
			f.status.saved()
			if readErr == nil && !f.dirty {
				f.found(m)
			}
			then(nil)
		}
	})
}

// Try asks the model once.
func (f *modelForm) Try() {
	if f.trying != nil {
		return
	}
	f.saver.cancel()
	f.dirty = false
	ctx, cancel := context.WithTimeout(f.page.ctx, 5*time.Minute)
	f.trying = cancel
	f.buttons()
	f.storeThen(func(err error) {
		if err != nil { // what was typed cannot be saved: nothing is asked
			f.endTrial()
			return
		}
		f.ask(ctx)
	})
}

func (f *modelForm) ask(ctx context.Context) {
	asked, e, name := f.asked, f.endpoint, f.name
	f.tried.Set("asking …")
	f.page.Thread.Work(func() func() {
		m, err := f.page.Preferences.TryModel(ctx, e.ID, name)
		return func() {
			if f.asked != asked {
				return
			}
			stopped := ctx.Err() == context.Canceled
			f.endTrial()
			switch {
			case stopped:
				f.found(f.state)
			case err != nil:
				f.found(f.state)
				f.remarks.SetIn(sentence(err.Error()), look.Red)
				f.scroll.Settle()
			default:
				f.found(m)
			}
		}
	})
}

func (f *modelForm) cancelTrial() {
	if f.trying != nil {
		f.endTrial()
		f.found(f.state)
	}
}

func (f *modelForm) endTrial() {
	if f.trying != nil {
		f.trying()
		f.trying = nil
	}
	f.buttons()
}

func (f *modelForm) buttons() {
	show(f.stop, f.trying != nil)
	show(f.try, f.trying == nil)
	f.scroll.Settle()
}
