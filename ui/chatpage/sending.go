package chatpage

import (
	"errors"

	"velo/ui/console"
	"velo/ui/look"
)

// NewChat begins a chat with the endpoint and the model of the top bar.
func (g *Page) NewChat() { g.begin(nil) }

// begin begins a chat, and sends its first message; nil: none yet. What is written stays until it is sent.
func (g *Page) begin(first *console.ChatMessage) {
	e, model := g.Chosen()
	if e.ID == "" {
		what := "The chat was not begun"
		if first != nil {
			what = "The message was not sent"
		}
		g.Say(look.OnAmber, what+": pick an endpoint in the bar above first.")
		return
	}
	g.sending = g.sending || first != nil
	g.update()
	g.Thread.Work(func() func() {
		c, err := g.Chats.NewChat(e.ID, model)
		return func() {
			if first != nil {
				g.sending = false
			}
			if err != nil {
				g.Say(look.OnRed, err.Error())
				g.update()
				return
			}
			var draft *console.ChatMessage
			if g.open == "" && !g.composer.empty() {
				m := g.composer.message()
				draft = &m
			}
			g.list.search.SetText("")
			g.list.reload()
			g.Open(c.ID)
			if draft != nil {
				g.composer.set(*draft)
			}
			if first != nil {
				g.post(c.ID, *first, g.composer.clear)
			}
		}
	})
}

var errRunning = errors.New("The message was not sent: a turn goes on. Stop it first, or wait for its end.") //nolint:staticcheck // a sentence that is shown

// Send sends what was written.
func (g *Page) Send() {
	switch {
	case g.active || g.sending:
		g.Say(look.OnAmber, errRunning.Error())
		return
	case !g.writable() || g.composer.empty():
		return
	}
	m := g.composer.message()
	if g.open == "" {
		g.begin(&m)
		return
	}
	g.post(g.chat.ID, m, g.composer.clear)
}

// post sends a message to a chat; done is called when the program has taken it.
func (g *Page) post(id string, m console.ChatMessage, done func()) {
	if g.active || g.sending {
		g.Say(look.OnAmber, errRunning.Error())
		return
	}
	g.sending = true
	g.update()
	g.Thread.Work(func() func() {
		err := g.Chats.Send(id, m)
		return func() {
			g.sending = false
			if err != nil {
				g.Say(look.OnRed, err.Error())
				g.update()
				return
			}
			g.active, g.ending, g.follow, g.scope = true, false, true, ""
			if done != nil {
				done()
			}
			g.toText = true
			g.read(id)
			g.Redraw()
			g.update()
		}
	})
}

// Stop ends the turn that goes on; what came is kept.
func (g *Page) Stop() {
	if !g.active {
		return
	}
	g.Thread.Work(func() func() {
		g.Chats.StopChat()
		return g.Redraw
	})
}

// escape stops the turn that goes on, else it leaves what is edited.
func (g *Page) escape() {
	switch {
	case g.active:
		g.Stop()
	case g.form.view.Visible():
		g.toggleForm()
	case g.composer.instead != "":
		g.composer.cancel()
	}
}

// edit puts a question back into the field; what is sent becomes another version of it.
func (g *Page) edit(t *console.ChatTurn) {
	g.composer.set(console.ChatMessage{Text: t.Prompt, Images: t.Images, Fill: t.Fill, Instead: t.ID})
	g.focus(g.composer.entry)
}

// EditLast edits the last question.
func (g *Page) EditLast() {
	for i := len(g.chat.Turns) - 1; i >= 0 && g.loaded; i-- {
		if t := &g.chat.Turns[i]; t.Tool == "" && len(t.Results) == 0 && t.Status != "" {
			g.edit(t)
			return
		}
	}
}

// sendAgain asks the same again, as another version.
func (g *Page) sendAgain(t *console.ChatTurn) {
	g.post(g.chat.ID, console.ChatMessage{Text: t.Prompt, Images: t.Images, Fill: t.Fill, Tool: t.Tool, Results: t.Results, Instead: t.ID}, nil)
}

// SendAgain asks the last question again.
func (g *Page) SendAgain() {
	if n := len(g.chat.Turns); n > 0 && g.loaded {
		g.sendAgain(&g.chat.Turns[n-1])
	}
}

// version shows the branch of another version.
func (g *Page) version(turn string) {
	id := g.chat.ID
	g.Thread.Work(func() func() {
		err := g.Chats.ShowTurn(id, turn)
		return func() {
			if err != nil {
				g.Say(look.OnRed, err.Error())
				return
			}
			g.scope = ""
			g.read(id)
		}
	})
}
