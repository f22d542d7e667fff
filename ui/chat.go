package ui

import (
	"fmt"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/storage"

	"velo/ui/chatpage"
	"velo/ui/clipboard"
	"velo/ui/console"
	"velo/ui/look"
)

func (s *Shell) newChatPage() *chatpage.Page {
	return chatpage.New(chatpage.Params{
		Chats: s.Console.Chats(), Thread: s.Thread,
		Chosen:      func() (console.Endpoint, string) { return s.chosen.endpoint, s.chosen.model },
		ChooseImage: s.choosePicture,
		Clipboard:   clipboard.Picture,
		Copy:        func(text string) { fyne.CurrentApp().Clipboard().SetContent(text) },
		Save:        s.saveFile, Say: s.say, Ask: s.ask, Prompt: s.prompt,
		Focus: func(o fyne.Focusable) { s.Window.Canvas().Focus(o) },
		Key:   s.typed, Redraw: s.wake, Changed: s.refreshCommands,
	})
}

// drawChat is the row of the chat page in the table of pages.
func (s *Shell) drawChat(f frame) (draw func(), next time.Duration) {
	live := s.Console.Chats().Live()
	draw = s.chat.Prepare(live, f.palette)
	if live.Active {
		next = 160 * time.Millisecond // the text; the figures change at most four times a second
		if s.SlowPaint {
			next = 250 * time.Millisecond
		}
	}
	return draw, next
}

func (s *Shell) chatChanged(what string) {
	switch what {
	case console.ChangedChats:
		s.noticeAnswer()
		if s.current == ChatPage {
			s.chat.Reload()
			s.wake()
		}
	case console.ChangedEndpoints:
		s.chat.ChosenChanged()
	}
}

// noticeAnswer tells of a long answer that has ended unseen, whichever page is in view.
func (s *Shell) noticeAnswer() {
	s.Thread.Work(func() func() {
		live := s.Console.Chats().Live()
		return func() {
			was := s.answering
			s.answering = ""
			if live.Active {
				s.answering = live.TurnID
				return
			}
			if was == "" || was != live.TurnID {
				return
			}
			text := "The turn ended without an answer."
			if n := live.AnswerTokens + live.ReasoningTokens; n > 0 {
				text = fmt.Sprintf("The answer has ended: %d tokens in %.0f s.", n, live.Elapsed.Seconds())
			}
			s.ended("Velo: chat", text, live.Elapsed)
		}
	})
}

// choosePicture asks for a picture to send.
func (s *Shell) choosePicture(then func(path string)) {
	d := dialog.NewFileOpen(func(r fyne.URIReadCloser, err error) {
		if err != nil {
			s.say(look.OnRed, "cannot open the picture: "+err.Error())
			return
		}
		if r == nil {
			return
		}
		path := r.URI().Path()
		_ = r.Close()
		then(path)
	}, s.Window)
	d.SetFilter(storage.NewExtensionFileFilter(chatpage.Extensions()))
	d.SetTitleText("Attach a picture (PNG, JPEG, GIF, WebP)")
	s.showFileDialog(d)
}

// saveFile writes a file to the folder of the last export, or to one that is chosen.
func (s *Shell) saveFile(write func(dir string) (file string, err error)) {
	save := func(dir string) {
		s.Thread.Work(func() func() {
			file, err := write(dir)
			return func() {
				if err != nil {
					s.say(look.OnRed, err.Error())
					return
				}
				s.exported(dir, []string{file})
			}
		})
	}
	if s.settings.ExportDir == "" {
		s.chooseFolder(save)
		return
	}
	save(s.settings.ExportDir)
}

// newChat begins a chat, from whichever page.
func (s *Shell) newChat() {
	s.Show(ChatPage)
	s.chat.NewChat()
}

// searchChats puts the caret into the search of chats.
func (s *Shell) searchChats() {
	s.Show(ChatPage)
	s.chat.FocusSearch()
}
