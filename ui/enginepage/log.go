package enginepage

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// mostLines is how many lines of the log the page keeps.
const mostLines = 5000

// logView is the engine's log: it follows the end, is searched and copied.
type logView struct {
	view   fyne.CanvasObject
	filter *look.Entry
	count  *look.Text
	pause  *look.PushButton
	list   *widget.List
	none   *look.Text
	whole  *look.Paragraph // the line that is selected, where it does not fit

	lines  []console.LogLine // all that are kept
	shown  []console.LogLine // those that match
	words  []string
	paused bool
	away   bool    // the user has scrolled away from the end
	at     float32 // how far it was scrolled when the program last put it there
	bottom float32 // how far it could be scrolled then
	copied func(text string)
}

func (l *logView) build(copied func(string)) {
	l.copied = copied
	l.filter = look.NewEntry("Search the log")
	l.filter.OnChanged = func(string) { l.search() }
	l.filter.OnEscape = func() { l.filter.SetText("") }
	l.count = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(136)
	l.pause = look.Button("Pause", l.toggle)
	l.list = widget.NewList(func() int { return len(l.shown) },
		func() fyne.CanvasObject { return look.NewMono("").Sized(look.Small).Fixed(64) },
		func(i widget.ListItemID, o fyne.CanvasObject) {
			if i < len(l.shown) {
				o.(*look.Text).SetIn(line(l.shown[i]), ink(l.shown[i]))
			}
		})
	l.list.HideSeparators = true
	l.list.OnSelected = func(i widget.ListItemID) {
		if i < len(l.shown) {
			l.whole.SetIn(line(l.shown[i]), ink(l.shown[i]))
			l.whole.Show()
			l.view.Refresh()
		}
	}
	l.list.OnUnselected = func(widget.ListItemID) { l.hideWhole() }
	l.whole = look.NewParagraph("").Sized(look.Small).Mono().AtMost(6)
	l.whole.Hide()
	l.none = look.NewText("").Sized(look.Small).In(look.Muted)
	head := look.Fold(look.Gap, look.Line(look.Gap, look.NewText("Log").Bold(), l.count),
		look.Line(look.Step, look.Sized(216, 0, l.filter), l.pause, look.Button("Copy log", l.copy)))
	l.view = look.Frame(look.Inset(look.Step, 0, look.Step, 0, head), look.Inset(look.Half, 0, 0, 0, l.whole), nil,
		look.Over(container.New(following{l}, l.list), look.Inset(look.Half, 0, 0, 0, look.Rows(0, l.none))))
	l.tell()
}

// following is the layout of the list: at the end of the log it stays there, whatever its height becomes.
type following struct{ log *logView }

func (f following) MinSize(o []fyne.CanvasObject) fyne.Size { return o[0].MinSize() }

func (f following) Layout(o []fyne.CanvasObject, size fyne.Size) {
	f.log.look()
	o[0].Move(fyne.Position{})
	o[0].Resize(size)
	f.log.settle()
}

// look finds out where the user has scrolled to; before anything else moves the list.
func (l *logView) look() {
	if at := l.list.GetScrollOffset(); at != l.at {
		l.away = at < l.bottom-1
	}
}

// settle scrolls to the end, or stays where the user reads.
func (l *logView) settle() {
	if l.list.Size().Height <= 0 { // not laid out yet
		return
	}
	was := l.list.GetScrollOffset()
	l.list.ScrollToBottom()
	l.bottom = l.list.GetScrollOffset()
	if l.away || l.paused {
		l.list.ScrollToOffset(min(was, l.bottom))
	}
	l.at = l.list.GetScrollOffset()
}

func (l *logView) hideWhole() {
	if l.whole.Visible() {
		l.whole.Hide()
		l.view.Refresh()
	}
}

// line is a line as it is shown: the date is the same all day long.
func line(l console.LogLine) string {
	if l.Level == "" {
		return l.Text
	}
	return l.Time.Local().Format("15:04:05.000 ") + fmt.Sprintf("%-5s ", l.Level) + l.Text
}

func ink(l console.LogLine) look.Ink {
	switch l.Level {
	case "ERROR":
		return look.Red
	case "WARN":
		return look.Amber
	case "DEBUG":
		return look.Muted
	}
	return look.Plain
}

func (l *logView) matches(line console.LogLine) bool {
	if len(l.words) == 0 {
		return true
	}
	text := strings.ToLower(line.Level + " " + line.Text)
	for _, w := range l.words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// add takes new lines.
func (l *logView) add(lines []console.LogLine) {
	if len(lines) == 0 {
		return
	}
	l.lines = append(l.lines, lines...)
	if n := len(l.lines) - mostLines; n > 0 {
		l.lines = append([]console.LogLine(nil), l.lines[n:]...)
	}
	if l.paused {
		l.tell()
		return
	}
	for _, line := range lines {
		if l.matches(line) {
			l.shown = append(l.shown, line)
		}
	}
	if n := len(l.shown) - mostLines; n > 0 {
		l.shown = append([]console.LogLine(nil), l.shown[n:]...)
	}
	l.refresh()
}

// search filters all lines anew.
func (l *logView) search() {
	l.words = strings.Fields(strings.ToLower(l.filter.Text))
	l.shown = nil
	for _, line := range l.lines {
		if l.matches(line) {
			l.shown = append(l.shown, line)
		}
	}
	l.list.UnselectAll()
	l.hideWhole()
	l.at, l.away = l.list.GetScrollOffset(), false
	l.refresh()
}

// refresh shows the lines, and the end of them unless the user has scrolled away from it.
func (l *logView) refresh() {
	l.look()
	l.list.Refresh()
	l.settle()
	l.tell()
}

func (l *logView) tell() {
	total, shown := len(l.lines), len(l.shown)
	text := plural(total, "line")
	if shown != total {
		text = fmt.Sprintf("%d of %d lines", shown, total)
	}
	if l.paused {
		text += ", paused"
	}
	l.count.Set(text)
	switch {
	case total == 0:
		l.none.Set("The engine writes here what it does.")
	case shown == 0:
		l.none.Set("No line matches the search.")
	default:
		l.none.Set("")
	}
}

// toggle pauses the log or lets it go on; what came meanwhile is not lost.
func (l *logView) toggle() {
	l.paused = !l.paused
	if l.paused {
		l.pause.SetText("Go on")
		l.tell()
		return
	}
	l.pause.SetText("Pause")
	l.search()
}

// copy copies the lines that match, as the engine wrote them.
func (l *logView) copy() {
	var b strings.Builder
	for _, x := range l.shown {
		if x.Level != "" {
			b.WriteString(x.Time.UTC().Format("2006-01-02T15:04:05.000Z ") + x.Level + " ")
		}
		b.WriteString(x.Text + "\n")
	}
	l.copied(b.String())
}
