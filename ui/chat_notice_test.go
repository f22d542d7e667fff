package ui

import (
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"velo/bench"
)

func TestALongAnswerThatEndsUnseenIsTold(t *testing.T) {
	for _, c := range []struct {
		name    string
		watched bool
		took    time.Duration
		tokens  int
		want    string
	}{
		{"seen", true, time.Hour, 5, ""},
		{"short", false, time.Second, 5, ""},
		{"unseen", false, time.Minute, 4321, "The answer has ended: 4321 tokens in 60 s."},
		{"nothing came", false, time.Minute, 0, "The turn ended without an answer."},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake().full()
			g := newStage(t, f, 1280, 776)
			g.shell.Begin()
			g.shell.ticker.stop()
			g.shell.Do("chat.new")
			g.pump()
			converse(g, "Hello?")
			g.shell.Show(SuitesPage) // whichever page is in view
			g.pump()
			g.shell.Foreground(c.watched)
			f.chats.mu.Lock()
			f.chats.live.Elapsed, f.chats.live.AnswerTokens = c.took, c.tokens
			f.chats.mu.Unlock()
			var want *fyne.Notification
			if c.want != "" {
				want = fyne.NewNotification("Velo: chat", c.want)
			}
			test.AssertNotificationSent(t, want, func() { f.chats.finish(bench.OK); g.pump() })
			test.AssertNotificationSent(t, nil, func() { f.chats.finish(bench.OK); g.pump() }) // once
		})
	}
}
