package ui

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"fyne.io/fyne/v2"

	"velo/ui/look"
)

// notices is what the window has to tell, above the page.
type notices struct {
	bar      *look.Notice
	told     int      // of the console's, how many were shown
	standing []string // of those, the ones that nobody has dismissed
	offered  int      // counts what can be undone, so that only the latest is forgotten
}

// standingLines bounds how many of the console's notices are written out at once.
const standingLines = 6

func (n *notices) text() string {
	list := n.standing
	more := ""
	if len(list) > standingLines {
		more = fmt.Sprintf("\n… and %d more.", len(list)-standingLines)
		list = list[:standingLines]
	}
	return strings.Join(list, "\n") + more
}

func (s *Shell) buildNotices() {
	n := &s.notices
	n.bar = look.NewNotice(func() {
		if s.middle != nil {
			s.middle.Refresh()
		}
	})
	s.notice = n.bar
	n.bar.OnDismiss = func() {
		if n.bar.Text() == n.text() {
			n.standing = nil
		} else if len(n.standing) > 0 { // they were covered by what has just been dismissed
			s.say(look.OnAmber, n.text())
		}
	}
}

// say shows a message above the page. A failure can be copied with what is needed to report it.
func (s *Shell) say(t look.Tone, text string) {
	if t != look.OnRed {
		s.notice.Say(t, text)
		return
	}
	s.notice.Say(t, text, look.Button("Copy details", func() {
		s.copy(fmt.Sprintf("%s\n\nVelo %s, %s/%s, %s page, %s\n", text, s.Console.Version(), runtime.GOOS, runtime.GOARCH, s.current, time.Now().UTC().Format(time.RFC3339)))
	}))
}

func (s *Shell) copy(text string) { fyne.CurrentApp().Clipboard().SetContent(text) }

// offer shows a message with a button that takes something back.
func (s *Shell) offer(text, undo string, onUndo func()) (forget func()) {
	s.notices.offered++
	n := s.notices.offered
	hide := func() {
		if s.notices.offered == n {
			s.notice.Close()
		}
	}
	s.notice.Say(look.OnAccent, text, look.Button(undo, func() {
		hide()
		onUndo()
	}))
	return hide
}

// tellNotices shows what the console has to say since it was last asked: at the start and whenever
// there is more.
func (s *Shell) tellNotices() {
	s.Thread.Work(func() func() {
		st := s.Console.Status()
		return func() {
			s.status.keep(st)
			n := &s.notices
			if len(st.Notices) > n.told {
				n.standing = append(n.standing, st.Notices[n.told:]...)
				n.told = len(st.Notices)
				s.say(look.OnAmber, n.text())
			}
		}
	})
}

// Foreground tells that the window has the user's attention, or has it no more.
func (s *Shell) Foreground(on bool) { s.unwatched = !on }

// longWork is from when on the end of something is told by the desktop, where nobody looks.
const longWork = 30 * time.Second

// ended tells through the desktop that long work has ended while the window is not in front.
func (s *Shell) ended(title, text string, took time.Duration) {
	if !s.unwatched || took < longWork {
		return
	}
	n := fyne.NewNotification(title, text)
	app := fyne.CurrentApp()
	s.Thread.Work(func() func() { // the desktop may take its time
		app.SendNotification(n)
		return nil
	})
}
