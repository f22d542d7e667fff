package chatpage

import (
	"velo/ui/console"
	"velo/ui/look"
)

func (g *Page) copyTurn(turn, format string) {
	id := g.chat.ID
	g.Thread.Work(func() func() {
		text, err := g.Chats.Text(id, turn, format)
		return func() {
			if err != nil {
				g.Say(look.OnRed, err.Error())
				return
			}
			name := map[string]string{"markdown": "Markdown", "json": "JSON", "curl": "a cURL command, without the key"}[format]
			g.copyText("the turn as "+name, text)
		}
	})
}

func (g *Page) copyText(what, text string) {
	g.Copy(text)
	g.Say(look.OnAccent, "Copied "+what+", "+plural(len([]rune(text)), "character")+".")
}

// CopyChat copies the conversation as Markdown.
func (g *Page) CopyChat() { g.CopyAs("markdown") }

// CopyAs copies the conversation in a format of console.Chats.Text. The command of cURL is that of the
// last turn.
func (g *Page) CopyAs(format string) {
	if !g.loaded || len(g.chat.Turns) == 0 {
		return
	}
	turn := ""
	if format == "curl" {
		turn = g.chat.Turns[len(g.chat.Turns)-1].ID
	}
	id := g.chat.ID
	g.Thread.Work(func() func() {
		text, err := g.Chats.Text(id, turn, format)
		return func() {
			if err != nil {
				g.Say(look.OnRed, err.Error())
				return
			}
			what := map[string]string{"markdown": "the chat as Markdown", "json": "the chat as JSON", "curl": "the last turn as a cURL command, without the key"}[format]
			g.copyText(what, text)
		}
	})
}

// Rename asks for another title.
func (g *Page) Rename() {
	if !g.loaded {
		return
	}
	id := g.chat.ID
	g.Prompt("Rename chat", "Title", g.chat.Title, "Rename", func(title string) {
		g.change(id, func() error { return g.Chats.RenameChat(id, title) })
	})
}

// Delete asks, and deletes the chat.
func (g *Page) Delete() {
	if g.open == "" {
		return
	}
	id := g.open
	g.Ask("Delete chat", "“"+g.chat.Title+"” and what was measured of it are deleted for good.", "Delete chat", func() {
		g.Thread.Work(func() func() {
			err := g.Chats.DeleteChat(id)
			return func() {
				if err != nil {
					g.Say(look.OnRed, err.Error())
					return
				}
				if g.open == id {
					g.open, g.loaded, g.chat = "", false, console.Conversation{}
					g.words.set(nil)
					g.composer.clear()
					g.panel.Clear()
				}
				g.update()
				g.list.reload()
			}
		})
	})
}

// useChosen takes the endpoint and the model of the top bar for the next turns.
func (g *Page) useChosen() {
	e, model := g.Chosen()
	id := g.chat.ID
	g.change(id, func() error { return g.Chats.SetChatModel(id, e.ID, model) })
}

func (g *Page) change(id string, change func() error) {
	g.Thread.Work(func() func() {
		err := change()
		return func() {
			if err != nil {
				g.Say(look.OnRed, err.Error())
				return
			}
			g.list.reload()
			if id == g.open {
				g.read(id)
			}
		}
	})
}

// chooseImage asks for a picture to send.
func (g *Page) chooseImage() { g.ChooseImage(g.AttachFile) }

// AttachFile attaches a picture.
func (g *Page) AttachFile(path string) {
	g.Thread.Work(func() func() {
		i, err := readPicture(path)
		return func() {
			if err == nil {
				err = g.composer.attach(i)
			}
			if err != nil {
				g.Say(look.OnRed, err.Error()+".")
			}
		}
	})
}

// Dropped attaches the pictures among files that were dropped on the window while the page is in view,
// and returns the other files.
func (g *Page) Dropped(paths []string) (others []string) {
	for _, path := range paths {
		if g.writable() && IsPicture(path) {
			g.AttachFile(path)
		} else {
			others = append(others, path)
		}
	}
	return others
}

// PasteImage attaches the picture on the clipboard.
func (g *Page) PasteImage() {
	if g.Clipboard == nil || !g.writable() {
		return
	}
	g.Thread.Work(func() func() {
		data, kind, err := g.Clipboard()
		return func() {
			if err == nil {
				err = g.composer.attach(console.ChatImage{Name: "pasted picture", MIME: kind, Data: data})
			}
			if err != nil {
				g.Say(look.OnAmber, err.Error()+".")
			}
		}
	})
}
