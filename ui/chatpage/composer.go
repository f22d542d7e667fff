package chatpage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// The bounds of a message.
const (
	mostTyped   = 4 << 10  // bytes that are pasted into the field; more is attached: a field of Fyne's takes seconds a key at 50 KB
	mostImages  = 8        // pictures of one message
	mostPicture = 20 << 20 // bytes of one
)

// prompt is the field that a message is typed in.
type prompt struct {
	widget.Entry
	onEscape func()
	onKey    func(*fyne.KeyEvent)
	onLong   func(text string) // a long text was pasted

	onPicture func() // the clipboard has no text: it may hold a picture
}

func newPrompt(placeholder string) *prompt {
	p := &prompt{}
	p.MultiLine, p.Wrapping, p.PlaceHolder = true, fyne.TextWrapWord, placeholder
	p.ExtendBaseWidget(p)
	return p
}

// TypedKey passes on what a field has no use for.
func (p *prompt) TypedKey(k *fyne.KeyEvent) {
	switch {
	case k.Name == fyne.KeyEscape && p.onEscape != nil:
		p.onEscape()
	case k.Name == fyne.KeyF11 && p.onKey != nil:
		p.onKey(k)
	default:
		p.Entry.TypedKey(k)
	}
}

// TypedShortcut keeps long texts out of the field.
func (p *prompt) TypedShortcut(s fyne.Shortcut) {
	if paste, ok := s.(*fyne.ShortcutPaste); ok {
		text := paste.Clipboard.Content()
		switch {
		case text == "" && p.onPicture != nil:
			p.onPicture()
			return
		case len(text)+len(p.Text) > mostTyped && p.onLong != nil:
			p.onLong(text)
			return
		}
	}
	p.Entry.TypedShortcut(s)
}

// AcceptsTab leaves the tab to the focus.
func (p *prompt) AcceptsTab() bool { return false }

// What the empty field says.
const (
	askHere  = "Ask something. Ctrl+Enter sends."
	stopHere = "Escape stops the answer. What you type is for the next message."
)

// composer is where a message is written.
type composer struct {
	view     *fyne.Container
	rows     *fyne.Container
	entry    *prompt
	fill     *widget.Select
	send     *look.PushButton
	stop     *look.PushButton
	notice   *fyne.Container // what is edited, or answered
	what     *look.Text
	attached *fyne.Container
	results  *fyne.Container // fields for the results of calls

	images  []console.ChatImage
	long    string // a text that was attached
	fills   []int
	instead string // the turn that is edited
	calls   []console.ChatCall
	answers []*prompt
	moved   func()
}

func (c *composer) build(p *Page) {
	c.moved = func() {}
	c.entry = newPrompt(askHere)
	c.entry.SetMinRowsVisible(3)
	c.entry.onEscape = p.escape
	c.entry.onKey = p.Key
	c.entry.onLong = c.attachText
	if p.Clipboard != nil {
		c.entry.onPicture = p.PasteImage
	}
	c.entry.OnChanged = func(string) { p.update() }
	c.fills = append([]int{0}, p.Chats.Fills()...)
	names := make([]string, len(c.fills))
	for i, n := range c.fills {
		names[i] = fillName(n)
	}
	c.fill = widget.NewSelect(names, func(string) { p.update() })
	c.fill.SetSelectedIndex(0)
	c.send = look.MainButton("Send", p.Send)
	c.stop = look.StopButton("Stop", p.Stop)
	c.what = look.NewText("").Sized(look.Small).In(look.Amber).Fixed(160)
	c.notice = look.Trailing(look.Step, c.what, look.Button("Cancel", c.cancel))
	c.attached = look.Line(look.Step)
	c.results = look.Rows(look.Step)
	buttons := []fyne.CanvasObject{look.Button("Attach image…", p.chooseImage)}
	if p.Clipboard != nil {
		buttons = append(buttons, look.Button("Paste image", p.PasteImage))
	}
	tools := look.Wrap(look.Step, append(buttons, look.Sized(160, 0, c.fill), look.Sized(96, 0, look.Over(c.send, c.stop)))...)
	c.rows = look.Rows(look.Step, c.notice, c.results, c.attached, c.entry, tools)
	c.view = look.Rows(0, look.Rule(), container.New(&margins{side: look.Gap, edge: 12, most: mostWide}, c.rows))
	c.stop.Hide()
	c.notice.Hide()
	c.attached.Hide()
	c.results.Hide()
	c.moved = p.settle
}

// text is what was written, the attached text behind it.
func (c *composer) text() string {
	if c.long == "" {
		return c.entry.Text
	}
	return strings.TrimLeft(c.entry.Text+"\n\n"+c.long, "\n")
}

// empty tells whether there is nothing to send.
func (c *composer) empty() bool {
	if len(c.calls) > 0 {
		for _, a := range c.answers {
			if strings.TrimSpace(a.Text) != "" {
				return false
			}
		}
	}
	return strings.TrimSpace(c.text()) == "" && len(c.images) == 0 && c.fill.SelectedIndex() <= 0
}

// message is what is to be sent.
func (c *composer) message() console.ChatMessage {
	m := console.ChatMessage{Text: c.text(), Images: c.images, Instead: c.instead}
	if i := c.fill.SelectedIndex(); i > 0 {
		m.Fill = c.fills[i]
	}
	if len(c.calls) == 0 {
		return m
	}
	given := false
	for _, a := range c.answers {
		given = given || strings.TrimSpace(a.Text) != ""
	}
	if !given {
		return m // the user asks something else instead
	}
	if len(c.calls) == 1 {
		m.Tool, m.Text = c.calls[0].Name, c.answers[0].Text
		return m
	}
	for _, a := range c.answers {
		m.Results = append(m.Results, a.Text)
	}
	return m
}

// clear makes room for the next message. The context fill is for one message only.
func (c *composer) clear() {
	c.images, c.long, c.instead = nil, "", ""
	c.entry.SetText("")
	c.fill.SetSelectedIndex(0)
	c.setCalls(nil)
	c.show()
}

// set puts a message back, to be edited or because it was not sent.
func (c *composer) set(m console.ChatMessage) {
	c.images, c.instead, c.long = m.Images, m.Instead, ""
	if len(m.Text) > mostTyped {
		c.long = m.Text
		c.entry.SetText("")
	} else {
		c.entry.SetText(m.Text)
	}
	c.fill.SetSelectedIndex(0)
	for i, n := range c.fills {
		if n == m.Fill {
			c.fill.SetSelectedIndex(i)
		}
	}
	c.show()
}

// cancel leaves the editing of an old question.
func (c *composer) cancel() { c.clear() }

// setCalls asks for the results of calls; nil: of none.
func (c *composer) setCalls(calls []console.ChatCall) {
	same := len(calls) == len(c.calls)
	for i := range calls {
		same = same && calls[i] == c.calls[i]
	}
	if same {
		return
	}
	c.calls, c.answers, c.results.Objects = calls, nil, nil
	for _, call := range calls {
		e := newPrompt("What the tool gave back")
		e.SetMinRowsVisible(1)
		e.onEscape, e.onKey = c.entry.onEscape, c.entry.onKey
		e.OnChanged = c.entry.OnChanged
		c.answers = append(c.answers, e)
		c.results.Add(look.Field("Result of "+look.Fit(call.Name, 320, look.Small, fyne.TextStyle{}), 0, e))
	}
	c.show()
}

// attachText keeps a long text beside the field.
func (c *composer) attachText(text string) {
	if c.long != "" {
		c.long += "\n\n"
	}
	c.long += text
	c.show()
}

// attach adds a picture.
func (c *composer) attach(i console.ChatImage) error {
	if len(c.images) >= mostImages {
		return fmt.Errorf("cannot attach %s: a message has at most %d pictures. Send it, and attach the others to the next one", i.Name, mostImages)
	}
	c.images = append(c.images[:len(c.images):len(c.images)], i)
	c.show()
	return nil
}

// show brings what is attached, and the notice, up to date.
func (c *composer) show() {
	c.attached.Objects = nil
	remove := func(text string, do func()) fyne.CanvasObject { return quiet(choice{text, do}) }
	for i, img := range c.images {
		var face fyne.CanvasObject
		if small := thumbnail(img, 96); small != nil {
			o := canvas.NewImageFromImage(small)
			o.FillMode, o.ScaleMode = canvas.ImageFillContain, canvas.ImageScaleFastest
			face = look.Sized(48, 48, o)
		} else {
			face = look.NewText(img.Name).Sized(look.Small).Fixed(96)
		}
		c.attached.Add(face)
		c.attached.Add(remove("Remove", func() {
			c.images = append(append([]console.ChatImage(nil), c.images[:i]...), c.images[i+1:]...)
			c.show()
		}))
	}
	if c.long != "" {
		c.attached.Add(look.NewText("Text of " + group(len([]rune(c.long))) + " characters").Sized(look.Small))
		c.attached.Add(remove("Remove", func() { c.long = ""; c.show() }))
	}
	showIf(c.attached, len(c.attached.Objects) > 0)
	showIf(c.results, len(c.calls) > 0)
	showIf(c.notice, c.instead != "")
	c.what.Set("Editing an earlier question: what is sent becomes another version of it.")
	c.attached.Refresh()
	c.results.Refresh()
	c.moved()
}

// showIf shows or hides an object.
func showIf(o fyne.CanvasObject, on bool) {
	if on == o.Visible() {
		return
	}
	if on {
		o.Show()
	} else {
		o.Hide()
	}
}

// pictures are the endings of files that are pictures which servers take.
var pictureTypes = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}

// Extensions are the endings of the files that can be attached.
func Extensions() []string { return []string{".png", ".jpg", ".jpeg", ".gif", ".webp"} }

// IsPicture tells whether a file can be attached, by its name.
func IsPicture(path string) bool { return pictureTypes[strings.ToLower(filepath.Ext(path))] != "" }

// readPicture reads a file that is to be attached. It may take as long as a disk.
func readPicture(path string) (console.ChatImage, error) {
	kind := pictureTypes[strings.ToLower(filepath.Ext(path))]
	name := filepath.Base(path)
	if kind == "" {
		return console.ChatImage{}, fmt.Errorf("cannot attach %s: pictures are PNG, JPEG, GIF or WebP files", name)
	}
	info, err := os.Stat(path)
	if err != nil {
		return console.ChatImage{}, fmt.Errorf("cannot attach %s: %w", name, err)
	}
	if info.Size() > mostPicture || !info.Mode().IsRegular() {
		return console.ChatImage{}, fmt.Errorf("cannot attach %s: a picture is a file of at most %d MiB. Make it smaller first", name, mostPicture>>20)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return console.ChatImage{}, fmt.Errorf("cannot attach %s: %w", name, err)
	}
	return console.ChatImage{Name: name, MIME: kind, Data: data}, nil
}
