package chatpage

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// form is where the parameters of a chat are entered.
type form struct {
	page                                           *Page
	view                                           fyne.CanvasObject
	system, extra, tools                           *prompt
	temperature, topP, minP, topK, maxTokens, seed *look.Entry
	reasoning                                      *widget.Select
	why                                            *look.Paragraph
	scroll                                         *look.Scroll
	shown                                          console.ChatParameters
	touched                                        bool
	filling                                        bool
}

// The words for how much a model reasons, in the order of the list.
var efforts = []struct{ id, name string }{
	{console.ReasoningDefault, "As the server does"}, {console.ReasoningOff, "Off"}, {"low", "Low"}, {"medium", "Medium"}, {"high", "High"},
}

func (f *form) build(g *Page) {
	f.page = g
	number := func() *look.Entry {
		e := look.NewEntry("not sent")
		e.OnChanged = func(string) { f.touch() }
		e.OnEscape = g.escape
		e.OnKey = g.Key
		e.OnSubmitted = func(string) { f.apply() }
		return e
	}
	long := func(rows int, placeholder string) *prompt {
		e := newPrompt(placeholder)
		e.SetMinRowsVisible(rows)
		e.OnChanged = func(string) { f.touch() }
		e.onEscape, e.onKey = g.escape, g.Key
		return e
	}
	f.system = long(5, "No system prompt is sent")
	f.extra = long(3, `Further members of the request, as JSON: {"repetition_penalty": 1.1}`)
	f.tools = long(4, `Tools that the model may call, as JSON: [{"type": "function", "function": {"name": "…"}}]`)
	f.temperature, f.topP, f.minP, f.topK, f.maxTokens, f.seed = number(), number(), number(), number(), number(), number()
	names := make([]string, len(efforts))
	for i, e := range efforts {
		names[i] = e.name
	}
	f.reasoning = widget.NewSelect(names, func(string) { f.touch() })
	f.why = look.NewParagraph("What is empty is not sent. Changes hold from the next turn on.").In(look.Muted).Sized(look.Small)
	fields := look.Flow(look.Gap, 136,
		look.Field("Temperature", 136, f.temperature), look.Field("Top p", 136, f.topP), look.Field("Min p", 136, f.minP),
		look.Field("Top k", 136, f.topK), look.Field("Most output tokens", 136, f.maxTokens), look.Field("Seed", 136, f.seed))
	f.scroll = look.NewScroll(look.Inset(look.Gap, look.Gap, look.Gap, look.Gap, look.Rows(look.Gap,
		look.Trailing(look.Step, look.NewText("Parameters of this chat").Sized(look.Head).Bold().Fixed(160),
			look.Line(look.Step, look.Button("Close", g.toggleForm), look.MainButton("Apply", f.apply))),
		f.why,
		look.Field("System prompt", 0, f.system), fields,
		look.Line(look.Gap, look.Field("Reasoning", 200, f.reasoning)),
		look.Field("Extra parameters", 0, f.extra), look.Field("Tools", 0, f.tools))))
	f.view = f.scroll
}

func (f *form) touch() {
	if !f.filling {
		f.touched = true
	}
}

// show fills the form, unless the user is changing it.
func (f *form) show(p console.ChatParameters) {
	if f.touched && f.view.Visible() {
		return
	}
	f.filling = true
	f.shown, f.touched = p, false
	set := func(e *look.Entry, text string) {
		if e.Text != text {
			e.SetText(text)
		}
	}
	set(f.temperature, floatText(p.Temperature))
	set(f.topP, floatText(p.TopP))
	set(f.minP, floatText(p.MinP))
	set(f.topK, intText(p.TopK))
	set(f.maxTokens, intText(p.MaxTokens))
	seed := ""
	if p.Seed != nil {
		seed = strconv.FormatInt(*p.Seed, 10)
	}
	set(f.seed, seed)
	f.system.SetText(p.System)
	f.extra.SetText(string(p.Extra))
	f.tools.SetText(string(p.Tools))
	for i, e := range efforts {
		if e.id == p.Reasoning {
			f.reasoning.SetSelectedIndex(i)
		}
	}
	f.filling = false
}

func floatText(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

func intText(v *int) string {
	if v == nil {
		return ""
	}
	return strconv.Itoa(*v)
}

// parameters reads the form; the error names the field.
func (f *form) parameters() (p console.ChatParameters, err error) {
	p.System = f.system.Text
	float := func(name string, e *look.Entry, to **float64) {
		text := strings.TrimSpace(e.Text)
		if text == "" || err != nil {
			return
		}
		v, bad := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
		if bad != nil {
			err = fmt.Errorf("%s is not a number: %q. Type one such as 0.7, or empty the field so that it is not sent", name, text)
			return
		}
		*to = &v
	}
	whole := func(name string, e *look.Entry) *int64 {
		text := strings.TrimSpace(e.Text)
		if text == "" || err != nil {
			return nil
		}
		v, bad := strconv.ParseInt(text, 10, 64)
		if bad != nil {
			err = fmt.Errorf("%s is not a whole number: %q. Type one, or empty the field so that it is not sent", name, text)
			return nil
		}
		return &v
	}
	float("Temperature", f.temperature, &p.Temperature)
	float("Top p", f.topP, &p.TopP)
	float("Min p", f.minP, &p.MinP)
	if v := whole("Top k", f.topK); v != nil {
		k := int(*v)
		p.TopK = &k
	}
	if v := whole("Most output tokens", f.maxTokens); v != nil {
		k := int(*v)
		p.MaxTokens = &k
	}
	p.Seed = whole("Seed", f.seed)
	if i := f.reasoning.SelectedIndex(); i >= 0 {
		p.Reasoning = efforts[i].id
	}
	object := func(name, text, like string, into any) json.RawMessage {
		text = strings.TrimSpace(text)
		if text == "" || err != nil {
			return nil
		}
		if bad := json.Unmarshal([]byte(text), into); bad != nil {
			err = fmt.Errorf("%s cannot be read: %w. Write %s", name, bad, like)
			return nil
		}
		return json.RawMessage(text)
	}
	p.Extra = object("Extra parameters", f.extra.Text, `a JSON object such as {"repetition_penalty": 1.1}`, &map[string]json.RawMessage{})
	p.Tools = object("Tools", f.tools.Text, "a JSON array of tool definitions", &[]json.RawMessage{})
	return p, err
}

// apply keeps what was entered.
func (f *form) apply() {
	p, err := f.parameters()
	if err != nil {
		f.tell(err)
		return
	}
	g := f.page
	id := g.chat.ID
	g.Thread.Work(func() func() {
		err := g.Chats.SetChatParameters(id, p)
		return func() {
			if err != nil {
				f.tell(err)
				return
			}
			f.touched = false
			f.tell(nil)
			g.read(id)
			if f.view.Visible() {
				g.toggleForm()
			}
		}
	})
}

func (f *form) tell(err error) {
	if err != nil {
		f.why.SetIn(err.Error()+".", look.Red)
	} else {
		f.why.SetIn("What is empty is not sent. Changes hold from the next turn on.", look.Muted)
	}
	f.scroll.Settle()
	f.scroll.To(0)
}

// Parameters shows or hides the parameters of the chat.
func (g *Page) Parameters() { g.toggleForm() }

func (g *Page) toggleForm() {
	if !g.loaded {
		return
	}
	open := !g.form.view.Visible()
	if open {
		g.form.touched = false
		g.form.show(g.chat.Parameters)
		g.form.tell(nil)
	}
	showIf(g.form.view, open)
	g.update()
	g.body.Refresh()
	if open {
		g.form.scroll.Settle()
		g.focus(g.form.system)
	} else {
		g.settleScroll(g.follow)
		g.focus(g.composer.entry)
	}
}
