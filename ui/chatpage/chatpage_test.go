package chatpage

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"

	"velo/bench"
	"velo/ui/console"
	"velo/ui/look"
)

const thinking = "The user asks for the rate of a run. I recall that it is the tokens after the first chunk over the time from the first chunk to the last one, so that there is no fence-post.\n\nLet me write that down with a small function, then check it with one example."

// talked is a chat with a finished turn.
func talked() *fake {
	f := &fake{}
	c, _ := f.NewChat("e1", "qwen3-32b")
	f.chats[0].Title = "The decode rate of a run"
	_ = f.Send(c.ID, console.ChatMessage{Text: "How is the decode rate of a run defined? Show a function in Go."})
	f.stream(thinking, "The **decode rate** is the number of tokens after the first chunk over the time from the first chunk to the last:\n\n1. take `N`, all tokens, and `n1`, those of the first chunk;\n2. divide their difference by the time.\n\n```go\n// Rate is in tokens/s.\nfunc Rate(n, n1 int, d time.Duration) float64 {\n\tif d <= 0 {\n\t\treturn math.NaN() // not measured\n\t}\n\treturn float64(n-n1) / d.Seconds()\n}\n```\n\n| N | n1 | time | rate |\n|---|---|---|---|\n| 512 | 1 | 12.1 s | 42.2 tok/s |\n\n> It ends at the last token, not when the stream closes.\n", 12)
	f.finish(func(t *console.ChatTurn) {
		t.Remarks = []string{"Reasoning was asked for with reasoning_effort."}
		t.Versions, t.Version = []string{"t0", "t1", "t9"}, 1
	})
	return f
}

func failed() *fake {
	f := talked()
	_ = f.Send("c1", console.ChatMessage{Text: "And the time to first token?", Fill: 32768})
	f.stream("", "", 1)
	f.finish(func(t *console.ChatTurn) {
		t.Status, t.Finish, t.Measured, t.FillBy = bench.Failed, "", nil, "tokenizer"
		t.Error = "The server answered 400: this model's context is 32,768 tokens, the prompt has 33,102. Take a smaller context fill, or a model with a longer context."
	})
	return f
}

func shot(g *stage, name string) {
	dir := os.Getenv("VELO_SCREENSHOTS")
	if dir == "" {
		return
	}
	g.draw()
	f, err := os.Create(filepath.Join(dir, name+".png"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, g.window.Canvas().Capture()); err != nil {
		g.t.Fatal(err)
	}
}

// TestPictures writes pictures of the page's states to the folder VELO_SCREENSHOTS.
func TestPictures(t *testing.T) {
	if os.Getenv("VELO_SCREENSHOTS") == "" {
		t.Skip("VELO_SCREENSHOTS names no folder")
	}
	for _, mode := range []look.Mode{look.AlwaysDark, look.AlwaysLite} {
		for _, size := range []fyne.Size{{Width: 1144, Height: 690}, {Width: 1784, Height: 970}} {
			name := func(what string) string {
				return "chat-" + what + "-" + string(mode) + "-" + map[bool]string{true: "1280", false: "1920"}[size.Width < 1500]
			}
			open := func(f *fake) *stage {
				g := newStage(t, f, size.Width, size.Height)
				fyne.CurrentApp().Settings().SetTheme(&look.Theme{Mode: mode})
				g.page.Themed()
				return g
			}
			shot(open(&fake{}), name("empty"))
			fresh := &fake{}
			_, _ = fresh.NewChat("e1", "qwen3-32b")
			shot(open(fresh), name("fresh"))
			shot(open(talked()), name("finished"))
			g := open(failed())
			shot(g, name("failed"))
			g.page.setScope(true)
			g.pump()
			shot(g, name("whole"))
			f := talked()
			_ = f.Send("c1", console.ChatMessage{Text: "Say more."})
			f.stream(thinking, "", 3)
			g = open(f)
			shot(g, name("reasoning"))
			f.stream(thinking, longAnswer(3000), 9)
			shot(g, name("streaming"))
			g = open(talked())
			g.page.Parameters()
			g.pump()
			shot(g, name("parameters"))
		}
	}
}

func TestAnswerStreamsAndEnds(t *testing.T) {
	f := &fake{}
	g := newStage(t, f, 1144, 690)
	g.page.NewChat()
	g.pump()
	g.page.composer.entry.SetText("Hello?")
	g.page.Send()
	g.pump()
	if len(f.sent) != 1 || f.sent[0].Text != "Hello?" {
		t.Fatalf("sent %+v", f.sent)
	}
	if g.page.composer.entry.Text != "" {
		t.Error("the field still holds what was sent")
	}
	f.stream("I think.", "", 1)
	g.draw()
	if s := g.seen(); !strings.Contains(s, "I think.") || !strings.Contains(s, "Reasoning · 2 tokens ~") {
		t.Errorf("the reasoning is not shown:\n%s", s)
	}
	f.stream("I think.", "**Yes", 2)
	g.draw()
	if s := g.seen(); strings.Contains(s, "I think.") || !strings.Contains(s, "**Yes") {
		t.Errorf("at the answer's first word the reasoning is to close:\n%s", s)
	}
	f.stream("I think.", "**Yes** of course", 3)
	f.finish(nil)
	g.draw()
	s := g.seen()
	if !strings.Contains(s, "Yes of course") || strings.Contains(s, "**") || !strings.Contains(s, "42.1 tok/s ▪") {
		t.Errorf("the answer that ended is shown as:\n%s", s)
	}
	if g.page.Active() {
		t.Error("the page thinks that the turn still runs")
	}
}

func tap(t *testing.T, o fyne.CanvasObject, text string) {
	t.Helper()
	var found bool
	var walk func(o fyne.CanvasObject)
	walk = func(o fyne.CanvasObject) {
		switch o := o.(type) {
		case *look.PushButton:
			if o.Text == text && !found {
				found = true
				if o.Disabled() {
					t.Fatalf("the button %q cannot be pressed", text)
				}
				test.Tap(o)
			}
		case *fyne.Container:
			for _, c := range o.Objects {
				walk(c)
			}
		case fyne.Widget:
			for _, c := range test.WidgetRenderer(o).Objects() {
				walk(c)
			}
		}
	}
	walk(o)
	if !found {
		t.Fatalf("there is no button %q", text)
	}
}

// TestOldNewsDoNotEndATurn shows that what was read before a message was sent does not count as the end
// of its turn.
func TestOldNewsDoNotEndATurn(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	old := f.Live()
	g.page.composer.entry.SetText("more")
	g.page.Send()
	g.pump()
	g.page.Prepare(old, look.Now())()
	g.pump()
	if !g.page.Active() || g.window.Canvas().Focused() != fyne.Focusable(g.page.words) {
		t.Error("the turn was taken to have ended")
	}
	g.page.words.TypedRune('x')
	if g.page.composer.entry.Text != "x" {
		t.Errorf("what is typed while the answer comes went to %q", g.page.composer.entry.Text)
	}
	f.finish(nil)
	g.draw()
	if g.page.Active() || g.window.Canvas().Focused() != fyne.Focusable(g.page.composer.entry) {
		t.Error("the end was not noticed")
	}
}

// BenchmarkStream is what the window does eight times a second while an answer of 200,000 characters
// comes.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{2_000, 200_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			f := talked()
			_ = f.Send("c1", console.ChatMessage{Text: "Write a book."})
			whole := longAnswer(1_000_000)
			g := newStage(b, f, 1144, 690)
			f.stream("", whole[:size], 60)
			g.draw()
			b.ReportAllocs()
			n := size
			for b.Loop() {
				n = min(n+50, len(whole))
				f.live.Answer = whole[:n]
				f.live.Elapsed += 125 * time.Millisecond
				g.page.Prepare(f.Live(), look.Now())()
			}
		})
	}
}

// TestTheFirstMessageBeginsAChat: who comes to the page can write at once.
func TestTheFirstMessageBeginsAChat(t *testing.T) {
	f := &fake{}
	g := newStage(t, f, 1144, 690)
	c := &g.page.composer
	if !g.page.none.Visible() || !g.page.conversation.Visible() || !c.view.Visible() || g.page.top.Visible() {
		t.Fatal("without chats there is no field to write in")
	}
	if g.window.Canvas().Focused() != fyne.Focusable(c.entry) {
		t.Fatal("the caret is not in the field")
	}
	if g.page.CanSend() || g.page.HasChat() {
		t.Error("nothing can be sent")
	}
	g.page.Send()
	g.window.Canvas().Unfocus()
	for _, r := range "Why?" { // letters that no field has the focus for
		if !g.page.Type(r) {
			t.Fatal("a letter is not taken")
		}
	}
	g.page.list.reload()
	g.pump()
	if len(f.chats) != 0 || c.entry.Text != "Why?" || !g.page.CanSend() {
		t.Fatalf("%d chats before anything was sent, the field holds %q", len(f.chats), c.entry.Text)
	}
	g.page.Send()
	g.page.Send() // once only
	g.pump()
	if len(f.chats) != 1 || len(f.sent) != 1 || f.sent[0].Text != "Why?" || g.page.Selected() != "c1" || c.entry.Text != "" || !g.page.Active() {
		t.Fatalf("%d chats, sent %+v, %q is open, the field holds %q", len(f.chats), f.sent, g.page.Selected(), c.entry.Text)
	}
	if g.page.none.Visible() || !g.page.top.Visible() {
		t.Error("the chat has no head")
	}
}

// TestAFirstMessageThatFailsIsKept, whether the chat cannot be begun or the message cannot be sent, and
// so is what is written when a chat is begun by hand, or one appears that another begins.
func TestAFirstMessageThatFailsIsKept(t *testing.T) {
	f := &fake{fail: errors.New("the disk is full")}
	g := newStage(t, f, 1144, 690)
	f.fail = nil
	chosen := g.page.Chosen
	g.page.Chosen = func() (console.Endpoint, string) { return console.Endpoint{}, "" }
	g.page.composer.entry.SetText("kept")
	g.page.Send()
	g.pump()
	if len(f.chats) != 0 || g.page.composer.entry.Text != "kept" || len(g.said) != 1 || !strings.Contains(g.said[0], "pick an endpoint") {
		t.Fatalf("without an endpoint: %d chats, %q, said %q", len(f.chats), g.page.composer.entry.Text, g.said)
	}
	g.page.Chosen, f.fail = chosen, errors.New("the disk is full")
	g.page.Send()
	g.pump()
	if g.page.composer.entry.Text != "kept" || !g.page.CanSend() || !strings.Contains(strings.Join(g.said, "\n"), "the disk is full") {
		t.Fatalf("the field holds %q, said %q", g.page.composer.entry.Text, g.said)
	}
	f.fail, f.chats = nil, nil
	_, _ = f.NewChat("e1", "m")
	g.page.list.reload()
	g.pump()
	if g.page.Selected() != "" || g.page.composer.entry.Text != "kept" {
		t.Fatalf("a chat that appears takes the message: %q, %q is open", g.page.composer.entry.Text, g.page.Selected())
	}
	g.page.NewChat()
	g.pump()
	if g.page.Selected() != "c2" || g.page.composer.entry.Text != "kept" || len(f.sent) != 0 {
		t.Fatalf("in the new chat the field holds %q, %q is open, sent %+v", g.page.composer.entry.Text, g.page.Selected(), f.sent)
	}
}

func TestNothingIsSentTwice(t *testing.T) {
	f := &fake{}
	g := newStage(t, f, 1144, 690)
	g.page.NewChat()
	g.pump()
	g.page.Send() // there is nothing
	g.page.composer.entry.SetText("one")
	g.page.Send()
	g.page.Send()
	g.pump()
	g.page.composer.entry.SetText("two")
	g.page.Send() // one goes on
	g.pump()
	if len(f.sent) != 1 {
		t.Fatalf("%d messages were sent, want 1", len(f.sent))
	}
	if g.page.composer.entry.Text != "two" {
		t.Error("what was not sent is lost")
	}
}

func TestAMessageThatFailsIsKept(t *testing.T) {
	f := &fake{}
	g := newStage(t, f, 1144, 690)
	g.page.NewChat()
	g.pump()
	f.fail = errors.New("cannot send the message: a run measures this endpoint. Wait for its end")
	g.page.composer.entry.SetText("one")
	g.page.Send()
	g.pump()
	if g.page.composer.entry.Text != "one" || len(g.said) == 0 || !strings.Contains(g.said[len(g.said)-1], "Wait for its end") {
		t.Errorf("the field holds %q, said was %q", g.page.composer.entry.Text, g.said)
	}
}

func TestEscapeStops(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	escape := &fyne.KeyEvent{Name: fyne.KeyEscape}
	g.page.composer.entry.TypedKey(escape)
	g.pump()
	if f.stops != 0 {
		t.Fatal("stopped although nothing runs")
	}
	g.page.composer.entry.SetText("more")
	g.page.Send()
	g.pump()
	f.stream("", "Some words", 1)
	g.draw()
	g.page.composer.entry.TypedKey(escape)
	g.pump()
	if f.stops != 1 {
		t.Fatal("escape did not stop the turn")
	}
	f.finish(func(t *console.ChatTurn) { t.Status = bench.Stopped })
	g.draw()
	if s := g.seen(); !strings.Contains(s, "Some words") || !strings.Contains(s, "Stopped by you. What came is kept.") {
		t.Errorf("the stopped turn is shown as:\n%s", s)
	}
}

func TestEditAndVersions(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	g.draw()
	g.page.scroll.To(0)
	tap(t, g.page.words, "Edit")
	g.pump()
	c := &g.page.composer
	if !strings.HasPrefix(c.entry.Text, "How is the decode rate") || !c.notice.Visible() {
		t.Fatalf("the field holds %q", c.entry.Text)
	}
	c.entry.SetText("Another question")
	g.page.Send()
	g.pump()
	if m := f.sent[len(f.sent)-1]; m.Instead != "t1" || m.Text != "Another question" {
		t.Errorf("sent %+v", m)
	}
	if c.notice.Visible() {
		t.Error("the notice stayed")
	}
	f.finish(nil)
	g.draw()
	g.page.scroll.To(0)
	tap(t, g.page.words, "‹")
	g.pump()
	tap(t, g.page.words, "›")
	g.pump()
	if strings.Join(f.shown, " ") != "t0 t9" {
		t.Errorf("shown were %q, want t0 and t9", f.shown)
	}
}

func TestCallsAreAnswered(t *testing.T) {
	f := talked()
	_ = f.Send("c1", console.ChatMessage{Text: "What is the weather?"})
	f.finish(func(t *console.ChatTurn) {
		t.Calls = []console.ChatCall{{Name: "get_weather", Arguments: `{"city":"Bergen"}`}, {Name: "get_time", Arguments: `{}`}}
	})
	g := newStage(t, f, 1144, 690)
	g.draw()
	if s := g.seen(); !strings.Contains(s, "Calls get_weather") || !strings.Contains(s, `"city": "Bergen"`) {
		t.Errorf("the call is not shown:\n%s", s)
	}
	c := &g.page.composer
	if len(c.answers) != 2 || g.page.CanSend() {
		t.Fatalf("%d results are asked for, can send: %v", len(c.answers), g.page.CanSend())
	}
	if end := g.page.words.height + look.Gap - g.page.scroll.Size().Height; g.page.scroll.Offset() < end-1 {
		t.Errorf("the field for results hides the call: %g of %g", g.page.scroll.Offset(), end)
	}
	c.answers[0].SetText("rain")
	g.page.Send()
	g.pump()
	if m := f.sent[len(f.sent)-1]; len(m.Results) != 2 || m.Results[0] != "rain" || m.Results[1] != "" {
		t.Errorf("sent %+v", m)
	}

	f.finish(func(t *console.ChatTurn) { t.Calls = []console.ChatCall{{Name: "get_time"}} })
	g.draw()
	c.answers[0].SetText("noon")
	g.page.Send()
	g.pump()
	if m := f.sent[len(f.sent)-1]; m.Tool != "get_time" || m.Text != "noon" {
		t.Errorf("sent %+v", m)
	}
	if len(c.answers) != 0 || c.results.Visible() {
		t.Error("the fields for results stayed")
	}
}

func TestFillIsForOneMessage(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	c := &g.page.composer
	c.fill.SetSelectedIndex(3)
	if !g.page.CanSend() {
		t.Error("a fill alone can be sent")
	}
	g.page.Send()
	g.pump()
	if m := f.sent[len(f.sent)-1]; m.Fill != 32768 {
		t.Errorf("the fill is %d", m.Fill)
	}
	if c.fill.SelectedIndex() != 0 {
		t.Error("the fill stayed for the next message")
	}
}

func TestPicturesAreAttached(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	dir := t.TempDir()
	img := image.NewRGBA(image.Rect(0, 0, 30, 20))
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, "one.PNG")
	for path, data := range map[string][]byte{good: b.Bytes(), filepath.Join(dir, "suite.json"): []byte("{}")} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	others := g.page.Dropped([]string{good, filepath.Join(dir, "suite.json"), filepath.Join(dir, "none.jpg")})
	g.pump()
	if len(others) != 1 || !strings.HasSuffix(others[0], "suite.json") {
		t.Errorf("left over are %q", others)
	}
	if n := len(g.page.composer.images); n != 1 {
		t.Fatalf("%d pictures are attached, want 1", n)
	}
	if len(g.said) != 1 || !strings.Contains(g.said[0], "cannot attach none.jpg") {
		t.Errorf("said: %q", g.said)
	}
	g.page.Send()
	g.pump()
	if m := f.sent[len(f.sent)-1]; len(m.Images) != 1 || m.Images[0].MIME != "image/png" || !bytes.Equal(m.Images[0].Data, b.Bytes()) {
		t.Error("the picture was not sent as it is")
	}
	if len(g.page.composer.images) != 0 {
		t.Error("the picture stayed")
	}
	for range mostImages + 1 {
		g.page.AttachFile(good)
	}
	g.pump()
	if len(g.page.composer.images) != mostImages {
		t.Errorf("%d pictures are attached, want %d", len(g.page.composer.images), mostImages)
	}
	tap(t, g.page.composer.attached, "Remove")
	if len(g.page.composer.images) != mostImages-1 {
		t.Error("a picture cannot be removed")
	}
}

func TestLongTextsAreAttached(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	long := strings.Repeat("many words ", 40_000)
	fyne.CurrentApp().Clipboard().SetContent(long)
	e := g.page.composer.entry
	e.SetText("Sum this up.")
	e.TypedShortcut(&fyne.ShortcutPaste{Clipboard: fyne.CurrentApp().Clipboard()})
	if e.Text != "Sum this up." {
		t.Fatalf("%d bytes are in the field", len(e.Text))
	}
	g.page.Send()
	g.pump()
	if m := f.sent[len(f.sent)-1]; m.Text != "Sum this up.\n\n"+long {
		t.Errorf("%d bytes were sent", len(m.Text))
	}
	fyne.CurrentApp().Clipboard().SetContent("short")
	e.TypedShortcut(&fyne.ShortcutPaste{Clipboard: fyne.CurrentApp().Clipboard()})
	if e.Text != "short" {
		t.Errorf("a short text became %q", e.Text)
	}
}

// TestPicturesArePasted shows that Ctrl+V takes the picture where the clipboard has no text.
func TestPicturesArePasted(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	asked := 0
	g.page.Clipboard = func() ([]byte, string, error) {
		asked++
		if asked == 2 {
			return nil, "", errors.New("cannot paste a picture: there is none on the clipboard. Copy one first")
		}
		return []byte("\x89PNG"), "image/png", nil
	}
	e := g.page.composer.entry
	e.onPicture = g.page.PasteImage
	clip := fyne.CurrentApp().Clipboard()
	for _, text := range []string{"some text", "", ""} {
		clip.SetContent(text)
		e.TypedShortcut(&fyne.ShortcutPaste{Clipboard: clip})
		g.pump()
	}
	if e.Text != "some text" || asked != 2 || len(g.page.composer.images) != 1 || g.page.composer.images[0].MIME != "image/png" {
		t.Errorf("the field holds %q, asked %d times, %d pictures", e.Text, asked, len(g.page.composer.images))
	}
	if len(g.said) != 1 || !strings.Contains(g.said[0], "Copy one first") {
		t.Errorf("said %q", g.said)
	}
}

func TestCopies(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	g.draw()
	for _, b := range []string{"Copy", "JSON", "cURL", "Copy code"} {
		g.page.scroll.To(0)
		if b != "Copy code" {
			g.page.toEnd()
		}
		tap(t, g.page.words, b)
		g.pump()
	}
	g.page.CopyAs("curl")
	g.pump()
	if strings.Join(f.texts, ",") != "t1 markdown,t1 json,t1 curl,t1 curl" {
		t.Errorf("asked for %q", f.texts)
	}
	if len(g.copied) != 5 || !strings.HasPrefix(g.copied[3], "// Rate is in tokens/s.") {
		t.Errorf("copied %q", g.copied)
	}
}

func TestSelectionIsTheText(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	g.draw()
	w := g.page.words
	w.TypedShortcut(&fyne.ShortcutSelectAll{})
	all := w.Selected()
	for _, want := range []string{"How is the decode rate of a run defined?", "The decode rate is the number of tokens after the first chunk over the time from the first chunk to the last:\n", "func Rate(n, n1 int, d time.Duration) float64 {\n    if d <= 0 {\n", "512\t1\t12.1 s\t42.2 tok/s"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in what is selected:\n%s", want, all)
		}
	}
	// A part of it, dragged from within one line to within another.
	var from, to fyne.Position
	for _, v := range w.turns {
		for _, p := range v.parts {
			for i := range p.lines {
				l := &p.lines[i]
				y := v.y + p.y + l.y + l.h/2
				if strings.HasPrefix(l.text(), "The decode rate is") {
					from = fyne.NewPos(xOf(l, len("The ")), y)
				}
				if strings.Contains(l.text(), "divide their") {
					to = fyne.NewPos(xOf(l, strings.Index(l.text(), "divide")+len("divide")), y)
				}
			}
		}
	}
	w.MouseDown(&desktop.MouseEvent{PointEvent: fyne.PointEvent{Position: from}, Button: desktop.MouseButtonPrimary})
	w.Dragged(&fyne.DragEvent{PointEvent: fyne.PointEvent{Position: to}})
	got := w.Selected()
	if !strings.HasPrefix(got, "decode rate is the number") || !strings.HasSuffix(got, "divide") || !strings.Contains(got, "n1, those of the first chunk;\n") {
		t.Errorf("selected is %q", got)
	}
	w.TypedShortcut(&fyne.ShortcutCopy{Clipboard: fyne.CurrentApp().Clipboard()})
	if len(g.copied) != 1 || g.copied[0] != got {
		t.Errorf("copied %q", g.copied)
	}
}

func TestOnlyWhatIsInViewHasObjects(t *testing.T) {
	f := talked()
	_ = f.Send("c1", console.ChatMessage{Text: "Write a book."})
	f.stream("", longAnswer(200_000), 60)
	f.finish(nil)
	g := newStage(t, f, 1144, 690)
	g.draw()
	w := g.page.words
	if n := len(test.WidgetRenderer(w).Objects()); n > 400 || n < 20 {
		t.Errorf("%d objects show %g units of text", n, w.height)
	}
	if w.height < 20_000 {
		t.Errorf("200,000 characters are %g units high", w.height)
	}
	if g.page.scroll.Offset() < w.height-2000 {
		t.Errorf("the end is not in view: %g of %g", g.page.scroll.Offset(), w.height)
	}
	w.TypedKey(&fyne.KeyEvent{Name: fyne.KeyHome})
	if g.page.scroll.Offset() != 0 || g.page.follow {
		t.Error("home does not show the beginning")
	}
	w.TypedKey(&fyne.KeyEvent{Name: fyne.KeyEnd})
	if g.page.scroll.Offset() < w.height-2000 || !g.page.follow {
		t.Error("end does not show the end")
	}
}

// TestALongAnswerIsWhole shows that of 200,000 characters none is lost: while they stream in pieces of any
// size, and as Markdown when they have ended.
func TestALongAnswerIsWhole(t *testing.T) {
	marks := func(s string) string { // letters and digits, which Markdown has all of
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, s)
	}
	f := talked()
	g := newStage(t, f, 1144, 690)
	g.page.composer.entry.SetText("more")
	g.page.Send()
	g.pump()
	g.draw()
	whole := longAnswer(200_000)
	for n, step := 0, 1; n < len(whole); step = step*3%9973 + 50 {
		n = min(n+step, len(whole))
		for n < len(whole) && !utf8.RuneStart(whole[n]) {
			n++
		}
		f.stream("", whole[:n], 1+float64(n)/400)
		g.page.Prepare(f.Live(), look.Now())()
	}
	shown := func() string {
		g.page.words.TypedShortcut(&fyne.ShortcutSelectAll{})
		return g.page.words.Selected()
	}
	if got := shown(); !strings.Contains(strings.Join(strings.Fields(got), ""), strings.Join(strings.Fields(whole), "")) {
		t.Errorf("while it streams %d characters of %d are shown, or others", len(got), len(whole))
	}
	f.finish(nil)
	g.draw()
	got := marks(shown())
	if want := marks(whole); !strings.Contains(got, want) {
		t.Errorf("when it has ended %d letters of %d are shown, or others", len(got), len(want))
	}
}

// TestReadingIsNotDisturbed shows that what streams in does not move what the user has scrolled to.
func TestReadingIsNotDisturbed(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	g.page.composer.entry.SetText("more")
	g.page.Send()
	g.pump()
	f.stream("", longAnswer(20_000), 2)
	g.draw()
	if !g.page.follow || g.page.scroll.Offset() < 100 {
		t.Fatalf("the end is not followed: %g", g.page.scroll.Offset())
	}
	g.page.scroll.To(120)
	for i := range 3 {
		f.stream("", longAnswer(20_000+5000*i), 3+float64(i))
		g.draw()
		if got := g.page.scroll.Offset(); got != 120 {
			t.Fatalf("the view moved to %g", got)
		}
	}
	g.page.toEnd()
	f.stream("", longAnswer(40_000), 8)
	g.draw()
	if g.page.words.height-g.page.scroll.Offset() > 1000 {
		t.Error("back at the end, it is not followed again")
	}
}

func TestSearchAndDelete(t *testing.T) {
	f := talked()
	_, _ = f.NewChat("e1", "m")
	f.chats[0].Title = "Another"
	g := newStage(t, f, 1144, 690)
	if len(g.page.list.chats) != 2 || g.page.Selected() != "c2" {
		t.Fatalf("%d chats, %q is open", len(g.page.list.chats), g.page.Selected())
	}
	g.page.list.search.SetText("decode")
	g.pump()
	if len(g.page.list.chats) != 1 || g.page.Selected() != "c2" {
		t.Errorf("%d chats found, %q is open", len(g.page.list.chats), g.page.Selected())
	}
	g.page.list.search.SetText("nowhere")
	g.pump()
	if !strings.Contains(g.page.list.none.Text(), "No chat holds") {
		t.Errorf("the list says %q", g.page.list.none.Text())
	}
	g.page.list.search.SetText("")
	g.pump()
	g.page.Next()
	g.pump()
	if g.page.Selected() != "c1" {
		t.Errorf("below is %q", g.page.Selected())
	}
	g.page.Delete()
	if len(g.asked) != 1 || len(f.chats) != 2 {
		t.Fatal("a chat is deleted without a question")
	}
	g.asked[0]()
	g.pump()
	if len(f.chats) != 1 || g.page.Selected() != "c2" {
		t.Errorf("%d chats left, %q is open", len(f.chats), g.page.Selected())
	}
}

func TestParametersAreChecked(t *testing.T) {
	f := talked()
	g := newStage(t, f, 1144, 690)
	g.page.Parameters()
	g.pump()
	m := &g.page.form
	for _, c := range []struct {
		entry      *look.Entry
		bad, words string
	}{{m.temperature, "hot", "Temperature is not a number"}, {m.topK, "1.5", "Top k is not a whole number"}, {m.seed, "x", "Seed is not a whole number"}} {
		c.entry.SetText(c.bad)
		m.apply()
		g.pump()
		if !strings.Contains(m.why.Text(), c.words) || len(f.params) != 0 {
			t.Errorf("%q: said %q, kept %d", c.bad, m.why.Text(), len(f.params))
		}
		c.entry.SetText("")
	}
	m.tools.SetText("{}")
	m.apply()
	g.pump()
	if !strings.Contains(m.why.Text(), "Tools cannot be read") {
		t.Errorf("said %q", m.why.Text())
	}
	m.tools.SetText("")
	m.system.SetText("Be brief.")
	m.temperature.SetText("0,7")
	m.seed.SetText("9007199254740993")
	m.reasoning.SetSelected("Off")
	m.apply()
	g.pump()
	if len(f.params) != 1 || m.view.Visible() {
		t.Fatalf("kept %d, said %q", len(f.params), m.why.Text())
	}
	p := f.params[0]
	if p.System != "Be brief." || *p.Temperature != 0.7 || *p.Seed != 9007199254740993 || p.Reasoning != console.ReasoningOff || p.TopP != nil || p.MaxTokens != nil {
		t.Errorf("kept %+v", p)
	}
}

// TestEverythingIsReachedByKeys goes through the page with the tab key.
func TestEverythingIsReachedByKeys(t *testing.T) {
	g := newStage(t, talked(), 1144, 690)
	g.draw()
	seen := map[string]bool{}
	for range 80 {
		test.FocusNext(g.window.Canvas())
		switch o := g.window.Canvas().Focused().(type) {
		case *look.PushButton:
			seen[o.Text] = true
		case *look.Help:
			seen["help: "+o.Title()] = true
		case *prompt:
			seen["field"] = true
		case *look.Entry:
			seen["search"] = true
		case *transcript:
			seen["transcript"] = true
		}
	}
	for _, want := range []string{"field", "search", "transcript", "New chat", "Rename…", "Delete…", "Parameters", "Copy chat", "Attach image…", "Copy", "cURL", "Turn", "PNG", "help: TTFT", "help: Gap, p90"} {
		if !seen[want] {
			t.Errorf("%q is not reached; reached are %v", want, seen)
		}
	}
}
