package chatpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif" // pictures of prompts
	_ "image/jpeg"
	_ "image/png"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"
	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp"

	"velo/ui/console"
	"velo/ui/look"
)

// The sizes of what is not text, in units.
const (
	buttonHeight = 32
	buttonInset  = 15 // from the edge of a button without a ground to its words
	pictureSide  = 160
	mostPrompt   = 24 // rows of a prompt that are shown until it is opened
	mostPixels   = 40_000_000
)

// actions are what the buttons of a turn do.
type actions struct {
	Toggle  func(turn, what string)
	Version func(id string) // shows the branch of that turn
	Edit    func(t *console.ChatTurn)
	Again   func(t *console.ChatTurn)
	Copy    func(turn, format string)
	Text    func(what, text string) // puts a text on the clipboard
	Stats   func(turn string)
}

// The things of a turn that open and close.
const (
	theReasoning = "reasoning"
	thePrompt    = "prompt"
)

// layouter lays out turns at a width. It keeps the documents that it made, since laying out a long
// answer is what costs. It is for one goroutine at a time.
type layouter struct {
	do   actions
	docs map[docKey]document
}

type docKey struct {
	turn  string
	width float32
	size  int
}

// options say how a turn is shown.
type options struct {
	model    string
	open     map[string]bool // by turn and what
	now      time.Time
	shown    string // the turn whose statistics the panel shows
	width    float32
	answered bool // the calls of the turn have results
}

func key(turn, what string) string { return turn + " " + what }

func (l *layouter) document(t *console.ChatTurn, width float32) document {
	k := docKey{t.ID, width, len(t.Answer)}
	if d, ok := l.docs[k]; ok {
		return d
	}
	if l.docs == nil {
		l.docs = map[docKey]document{}
	}
	for old := range l.docs { // of another width, or another state of the same turn
		if old.turn == t.ID || old.width != width {
			delete(l.docs, old)
		}
	}
	d := markdown(t.Answer, width)
	l.docs[k] = d
	return d
}

// paragraph are lines of one style.
func paragraph(text string, s style, width, x float32) []line {
	lines := wrap([]span{{text: text, style: s, x: -1}}, width, x, x)
	stack(lines, 0)
	return lines
}

func space(h float32) part { return part{h: h} }

// turn lays out a turn. One that runs has no answer yet: that is set by the page while it comes.
func (l *layouter) turn(t *console.ChatTurn, o options) *turnView {
	v := &turnView{id: t.ID, answer: -1}
	add := func(p ...part) { v.parts = append(v.parts, p...) }
	l.question(t, o, add)
	add(space(look.Gap))
	name := style{size: look.Body, bold: true}
	add(part{lines: paragraph(o.model, name, o.width, 0)}, space(look.Half))
	if t.Status == "" {
		v.answer = len(v.parts)
		v.restack()
		return v
	}
	if t.Reasoning != "" {
		l.reasoning(t, o, add)
	}
	if t.Answer != "" {
		d := l.document(t, o.width)
		add(part{lines: d.lines})
		first := len(v.parts) - 1
		for _, c := range d.codes {
			text := c.text
			// The button lies over the head of its block: it takes no height of its own.
			add(part{x: o.width - 108, w: 104, h: buttonHeight, over: true, base: first, dy: c.y - 2,
				make: l.button("Copy code", func() { l.do.Text("the code", text) })})
		}
	}
	for _, c := range t.Calls {
		add(space(look.Step), part{lines: callLines(c, o.width)})
	}
	if text, bad := condition(t); text != "" {
		s := style{size: look.Body, ink: inkAmber}
		if bad {
			s.ink = inkRed
		}
		add(space(look.Step), part{lines: paragraph(text, s, o.width, 0)})
		if bad {
			add(space(look.Half), part{h: buttonHeight, make: l.line(
				choice{"Send again", func() { l.do.Again(t) }},
				choice{"Copy details", func() { l.do.Text("the details", details(t)) }})})
		}
	}
	for _, r := range t.Remarks {
		add(space(look.Half), part{lines: paragraph(r, small, o.width, 0)})
	}
	if s := summary(t); s != "" {
		m := small
		m.mono = true
		add(space(look.Step), part{lines: paragraph(s, m, o.width, 0)})
	}
	_, bad := condition(t)
	words, make := l.foot(t, bad, o.shown == t.ID)
	add(space(look.Half), part{x: -buttonInset, w: o.width + 2*buttonInset, h: barHeight(words, o.width+2*buttonInset), make: make}, space(look.Gap))
	v.restack()
	return v
}

// question lays out what was asked.
func (l *layouter) question(t *console.ChatTurn, o options, add func(...part)) {
	who := "You"
	if t.Tool != "" {
		who = "Result of " + t.Tool
	} else if len(t.Results) > 0 {
		who = "Results of tools"
	}
	head := []span{{text: who, style: strong, x: -1}, {text: "   " + when(t.Asked, o.now), style: small, x: -1}}
	lines := []line{{h: buttonHeight, spans: head, join: "\n"}}
	add(part{lines: lines})
	add(part{x: o.width - 260 + buttonInset, w: 260, h: buttonHeight, over: true, make: l.questionTools(t)})
	if t.Fill > 0 {
		add(part{lines: paragraph(fillWords(t), small, o.width, 0)}, space(look.Half))
	}
	if len(t.Images) > 0 {
		add(part{h: pictureSide, make: pictures(t.Images, pictureSide)}, space(look.Half))
	}
	text := t.Prompt
	for i, r := range t.Results {
		text += fmt.Sprintf("\n%d. %s", i+1, r)
	}
	text = strings.Trim(text, "\n")
	if text == "" {
		return
	}
	s := body
	if t.Tool != "" || len(t.Results) > 0 {
		s = codes
	}
	p := plain{style: s}
	p.grow(text, o.width-2*inCode)
	rows := p.rows()
	all := len(rows)
	open := o.open[key(t.ID, thePrompt)]
	if all > mostPrompt && !open {
		rows = rows[:mostPrompt/2]
	}
	out := make([]line, 0, len(rows)+2)
	pad := line{h: look.Half + 2, ground: onPrompt}
	out = append(out, pad)
	for _, r := range rows {
		r.x, r.ground = inCode, onPrompt
		out = append(out, r)
	}
	out = append(out, pad)
	stack(out, 0)
	add(part{lines: out})
	if all > mostPrompt {
		label := fmt.Sprintf("Show all %s lines", group(all))
		if open {
			label = "Show less"
		}
		id := t.ID
		add(space(look.Half), part{h: buttonHeight, make: l.line(choice{label, func() { l.do.Toggle(id, thePrompt) }})})
	}
}

func (l *layouter) reasoning(t *console.ChatTurn, o options, add func(...part)) {
	open := o.open[key(t.ID, theReasoning)]
	label, verb := "Reasoning", "Show "
	if t.Measured != nil {
		label = reasoned(t.Measured.Thought, true, t.Source.Mark())
	}
	if open {
		verb = "Hide "
	}
	id := t.ID
	label = verb + strings.ToLower(label[:1]) + label[1:]
	add(part{h: buttonHeight, make: l.line(choice{label, func() { l.do.Toggle(id, theReasoning) }})}, space(look.Half))
	if open {
		p := reasoningText()
		p.grow(t.Reasoning, o.width-look.Gap)
		add(p.parts()...)
		add(space(look.Step))
	}
}

// reasoningText wraps reasoning, to the right of a bar.
func reasoningText() plain {
	return plain{style: style{size: look.Body, ink: inkReasoning}, x: look.Gap, bars: 1}
}

// callLines shows a call of a tool: its name, and its arguments as they are read best.
func callLines(c console.ChatCall, width float32) []line {
	arguments := c.Arguments
	var b bytes.Buffer
	if json.Indent(&b, []byte(arguments), "", "  ") == nil {
		arguments = b.String()
	}
	calls, name := small, style{size: look.Small, mono: true, bold: true}
	lines := []line{{h: 28, ground: onCode, join: "\n", spans: []span{
		{text: "Calls ", style: calls, x: inCode}, {text: fit(clean(c.Name), name, width-2*inCode-48), style: name, x: -1}}}}
	more := wrapCode(highlight(arguments, "json"), width-inCode, inCode)
	for i := range more {
		more[i].ground = onCode
	}
	lines = append(append(lines, more...), line{h: look.Step, ground: onCode, join: "\n"})
	stack(lines, 0)
	return lines
}

// details is everything about a failed turn that helps somebody else to find out why.
func details(t *console.ChatTurn) string {
	out := fmt.Sprintf("status: %s\nasked: %s\nsession: %s, request %d\n", t.Status, t.Asked.Format(time.RFC3339), t.Session, t.Request)
	if t.Finish != "" {
		out += "finish: " + t.Finish + "\n"
	}
	for _, r := range t.Remarks {
		out += "remark: " + r + "\n"
	}
	return out + "error: " + t.Error + "\n"
}

// choice is a button.
type choice struct {
	text string
	do   func()
}

func quiet(c choice) *look.PushButton {
	b := look.Button(c.text, c.do)
	b.Importance = widget.LowImportance
	return b
}

func (l *layouter) button(text string, do func()) func() fyne.CanvasObject {
	return func() fyne.CanvasObject { return quiet(choice{text, do}) }
}

// line makes buttons beside each other, from the left.
func (l *layouter) line(cs ...choice) func() fyne.CanvasObject {
	return func() fyne.CanvasObject {
		var objects []fyne.CanvasObject
		for _, c := range cs {
			objects = append(objects, look.Button(c.text, c.do))
		}
		return look.Line(look.Step, objects...)
	}
}

// questionTools are the buttons at the head of a question: its versions, and editing it.
func (l *layouter) questionTools(t *console.ChatTurn) func() fyne.CanvasObject {
	return func() fyne.CanvasObject {
		c := look.Line(look.Half, look.Spacer())
		if n := len(t.Versions); n > 1 {
			before := quiet(choice{"‹", func() { l.do.Version(t.Versions[t.Version-1]) }})
			after := quiet(choice{"›", func() { l.do.Version(t.Versions[t.Version+1]) }})
			before.SetEnabled(t.Version > 0)
			after.SetEnabled(t.Version < n-1)
			c.Add(before)
			c.Add(look.NewMono(fmt.Sprintf("%d/%d", t.Version+1, n)).Sized(look.Small).In(look.Muted))
			c.Add(after)
		}
		if t.Tool == "" && len(t.Results) == 0 && t.Status != "" {
			c.Add(quiet(choice{"Edit", func() { l.do.Edit(t) }}))
		}
		return c
	}
}

// foot are the buttons below a turn: what is on them, and what makes them.
func (l *layouter) foot(t *console.ChatTurn, bad, shown bool) (words []string, make func() fyne.CanvasObject) {
	id := t.ID
	choices := []choice{{"Copy", func() { l.do.Copy(id, "markdown") }}, {"JSON", func() { l.do.Copy(id, "json") }}, {"cURL", func() { l.do.Copy(id, "curl") }}}
	if !bad {
		choices = append(choices, choice{"Send again", func() { l.do.Again(t) }})
	}
	const statistics = "Statistics"
	if t.Measured != nil && t.Measured.N > 0 {
		choices = append(choices, choice{statistics, func() { l.do.Stats(id) }})
	}
	for _, c := range choices {
		words = append(words, c.text)
	}
	return words, func() fyne.CanvasObject {
		bar := look.WrapLeft(0)
		for _, c := range choices {
			b := quiet(c)
			b.SetEnabled(c.text != statistics || !shown)
			bar.Add(b)
		}
		return bar
	}
}

// barHeight is the height of a bar of buttons that go to the next row where the width ends.
func barHeight(words []string, width float32) float32 {
	face := style{bold: true}.face()
	rows, used := float32(1), float32(0)
	for _, w := range words {
		b := float32(2 * buttonInset)
		for _, c := range w {
			b += face.advance(c) * look.Body
		}
		if used > 0 && used+b > width {
			rows, used = rows+1, 0
		}
		used += b
	}
	return rows * buttonHeight
}

// thumbnail makes a small picture, off the UI thread; nil where it cannot be read, or has too many
// pixels to be unpacked for a thumbnail.
func thumbnail(i console.ChatImage, side int) *image.RGBA {
	c, _, err := image.DecodeConfig(bytes.NewReader(i.Data))
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width*c.Height > mostPixels {
		return nil
	}
	img, _, err := image.Decode(bytes.NewReader(i.Data))
	if err != nil {
		return nil
	}
	k := min(float64(side)/float64(c.Width), float64(side)/float64(c.Height), 1)
	small := image.NewRGBA(image.Rect(0, 0, max(int(float64(c.Width)*k), 1), max(int(float64(c.Height)*k), 1)))
	draw.ApproxBiLinear.Scale(small, small.Rect, img, img.Bounds(), draw.Src, nil)
	return small
}

// pictures shows the pictures of a prompt beside each other; one that cannot be read is named.
func pictures(images []console.ChatImage, side float32) func() fyne.CanvasObject {
	thumbs := make([]*image.RGBA, len(images))
	for i := range images {
		thumbs[i] = thumbnail(images[i], int(2*side)) // enough for a screen of two pixels a unit
	}
	return func() fyne.CanvasObject {
		var objects []fyne.CanvasObject
		for i, img := range thumbs {
			if img == nil {
				objects = append(objects, look.NewText(images[i].Name).Sized(look.Small).In(look.Muted).Fixed(side))
				continue
			}
			o := canvas.NewImageFromImage(img)
			o.FillMode, o.ScaleMode = canvas.ImageFillContain, canvas.ImageScaleFastest
			w, h := float32(img.Rect.Dx()), float32(img.Rect.Dy())
			k := min(side/w, side/h)
			objects = append(objects, look.Sized(w*k, h*k, o))
		}
		return look.Line(look.Step, objects...)
	}
}
