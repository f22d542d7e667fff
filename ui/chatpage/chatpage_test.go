package chatpage

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fyne.io/fyne/v2"

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
