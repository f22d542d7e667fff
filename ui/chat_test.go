package ui

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/storage"

	"velo/bench"
	"velo/ui/console"
)

// converse asks a question over the window's own commands.
func converse(g *stage, text string) {
	g.t.Helper()
	for _, c := range text {
		f := g.window.Canvas().Focused()
		if f == nil {
			g.t.Fatal("nothing has the focus: there is nowhere to type")
		}
		f.TypedRune(c)
	}
	if !g.shell.Do("chat.send") {
		g.t.Fatal("it cannot be sent")
	}
	g.pump()
	g.draw()
}

func TestChatByCommands(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	for _, id := range []string{"chat.send", "chat.stop", "chat.again", "chat.delete", "chat.markdown"} {
		if g.shell.Do(id) {
			t.Errorf("%s can be done before there is a chat", id)
		}
	}
	g.shell.Do("chat.new")
	g.pump()
	if g.shell.Page() != ChatPage || len(f.chats.chats) != 1 {
		t.Fatalf("page %s, %d chats", g.shell.Page(), len(f.chats.chats))
	}
	converse(g, "Hello?")
	if len(f.chats.sent) != 1 || f.chats.sent[0].Text != "Hello?" {
		t.Fatalf("sent %+v", f.chats.sent)
	}
	if g.shell.Do("chat.send") || g.shell.Do("chat.again") {
		t.Error("something can be sent while a turn goes on")
	}
	f.chats.say("", "Hel")
	g.draw()
	g.window.Canvas().Unfocus()
	g.shell.typed(&fyne.KeyEvent{Name: fyne.KeyEscape})
	g.pump()
	g.draw()
	if turn := f.chats.chats[0].Turns[0]; turn.Status != bench.Stopped || turn.Answer != "Hel" {
		t.Errorf("after escape the turn is %+v", turn)
	}
	if !g.shell.Do("chat.again") {
		t.Fatal("it cannot be asked again")
	}
	g.pump()
	if last := f.chats.sent[len(f.chats.sent)-1]; last.Instead == "" || last.Text != "Hello?" {
		t.Errorf("asked again: %+v", last)
	}
	f.chats.finish(bench.OK)
	g.pump()
	g.draw()
	for _, id := range []string{"chat.markdown", "chat.json", "chat.curl"} {
		if !g.shell.Do(id) {
			t.Errorf("%s cannot be done", id)
		}
		g.pump()
	}
	if got := strings.Join(f.chats.texts, " "); got != "markdown json curl" {
		t.Errorf("copied as %q", got)
	}
}

// TestChatDrawsQuietly shows that the window draws once a second while a quiet run is measured, also when
// an answer streams.
func TestChatDrawsQuietly(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	g.shell.Do("chat.new")
	g.pump()
	converse(g, "Hello?")
	if next := g.shell.ticker.round(); next <= 0 || next > 250*time.Millisecond {
		t.Errorf("an answer is drawn every %v", next)
	}
	g.pump()
	f.running(2, 0.5)
	f.mu.Lock()
	f.state.Spec.Quiet = true
	f.mu.Unlock()
	if next := g.shell.ticker.round(); next != time.Second {
		t.Errorf("during a quiet run the next drawing is in %v, want 1s", next)
	}
	g.pump()
}

func TestDropOnTheChat(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	picture := filepath.Join(t.TempDir(), "a.png")
	file, err := os.Create(picture)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(file, image.NewRGBA(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	file.Close()
	both := []fyne.URI{storage.NewFileURI(picture), storage.NewFileURI("/tmp/suite.json")}
	g.shell.Do("chat.new")
	g.pump()
	g.shell.Dropped(both)
	g.pump()
	if len(f.opened) != 1 || f.opened[0] != "/tmp/suite.json" {
		t.Errorf("opened %q", f.opened)
	}
	g.shell.Show(ChatPage)
	g.pump()
	if !g.shell.Do("chat.send") {
		t.Fatal("a picture alone cannot be sent")
	}
	g.pump()
	if len(f.chats.sent) != 1 || len(f.chats.sent[0].Images) != 1 {
		t.Errorf("sent %+v", f.chats.sent)
	}
}

// TestChatIsNotCut looks at the texts of the chat page in its states.
func TestChatIsNotCut(t *testing.T) {
	if raced {
		t.Skip("drawn without the race detector")
	}
	long := strings.Repeat("a-word-that-does-not-end-", 12)
	for _, size := range sizes {
		t.Run(fmt.Sprint(size.Width), func(t *testing.T) {
			f := newFake().full()
			g := newStage(t, f, size.Width, size.Height)
			look := func(what string) {
				t.Helper()
				g.pump()
				g.draw()
				if m := g.window.Content().MinSize(); m.Width > size.Width || m.Height > size.Height {
					t.Errorf("%s needs %v, there is %v", what, m, size)
				}
				checkTexts(t, what, g.window.Content())
			}
			g.shell.Do("chat.new")
			look("a new chat")
			converse(g, "A question with "+long)
			look("waiting")
			f.chats.say("I think of "+long, "")
			look("reasoning")
			f.chats.say("", "# Head\n\n"+long+" and `code` in **a text**.\n\n- one\n- two\n\n```go\nfunc f() {}\n```\n\n|a|b|\n|-|-|\n|"+long+"|2|\n")
			look("streaming")
			f.chats.finish(bench.OK)
			look("finished")
			g.shell.Do("chat.edit")
			look("editing")
			g.shell.Do("chat.parameters")
			look("parameters")
			g.shell.Do("chat.parameters")
			f.chats.mu.Lock()
			turn := &f.chats.chats[0].Turns[0]
			turn.Calls = []console.ChatCall{{Name: long, Arguments: `{"a":"` + long + `"}`}, {Name: "b"}}
			turn.Status, turn.Error = bench.Failed, "the server "+long
			turn.Remarks = []string{long + " " + long}
			f.chats.chats[0].Title, f.chats.chats[0].Model = long, long
			f.chats.mu.Unlock()
			g.shell.chat.Reload()
			look("calls and a failure")
		})
	}
}
