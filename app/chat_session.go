package app

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/runner"
	"velo/store"
	"velo/ui/console"
)

// chatIdle is how long a chat's session stays open for the next turn. While it is open, no backup is
// made and the list says that it goes on.
const chatIdle = 5 * time.Minute

// chatKind is the kind of a session that is a chat, as its header says it: see chatHeader.
const chatKind = "chat"

// chatSession is what the turns of a chat share while this program runs: connections, a clock, and the
// session that they are recorded in. Another endpoint or model begins another one.
type chatSession struct {
	console *theConsole
	chat    string
	target  chatTarget
	asked   string // model that was asked for; empty = the server's first
	clock   bench.Clock
	client  *client.Client
	family  family
	header  bench.Header
	ruler   *runner.Ruler // nil until a fill was made

	rec      atomic.Pointer[store.Recorder] // nil until a request is sent
	requests int                            // that were recorded
	idle     *time.Timer
}

// chatTarget is what a session is tied to.
type chatTarget struct {
	endpoint, url, key string
	think              bool
}

// fits tells whether a turn with a model can be recorded in the session.
func (s *chatSession) fits(target chatTarget, model string) bool {
	return s.target == target && (model == s.asked || model == s.header.Endpoint.Model)
}

// chatSuite stands in a session's header where a run has its suite: it says that this is a chat, and
// which.
type chatSuite struct {
	Title string `json:"title"`
	Kind  string `json:"kind"`
	Chat  string `json:"chat"`
}

// session returns the open session of a chat, or opens one. The turn that goes on calls it, and nobody
// else uses the session meanwhile.
func (t *theChats) session(ctx context.Context, chat store.Chat) (*chatSession, error) {
	e, key, err := t.console.connect(ctx, chat.EndpointID)
	if err != nil {
		return nil, err
	}
	target := chatTarget{e.ID, e.URL, key, e.ThinkTags}
	t.mu.Lock()
	s := t.sessions[chat.ID]
	if s != nil && !s.fits(target, chat.Model) {
		delete(t.sessions, chat.ID)
	}
	t.mu.Unlock()
	if s != nil {
		s.idle.Stop()
		if s.fits(target, chat.Model) {
			return s, nil
		}
		s.close()
	}
	if s, err = t.console.openChatSession(ctx, e, target, chat); err != nil {
		return nil, err
	}
	s.idle = time.AfterFunc(chatIdle, func() { t.closeIdle(s) })
	s.idle.Stop()
	t.mu.Lock()
	t.sessions[chat.ID] = s
	t.mu.Unlock()
	return s, nil
}

func (c *theConsole) openChatSession(ctx context.Context, e console.Endpoint, target chatTarget, chat store.Chat) (*chatSession, error) {
	clock, timeout := bench.StartClock(), c.timeouts()
	cl, err := client.New(client.Options{BaseURL: target.url, Key: target.key, Timeout: timeout, Clock: clock, Connections: 1, ThinkTags: target.think})
	if err != nil {
		return nil, err
	}
	model, owner, err := pickModel(ctx, cl, chat.Model)
	if err != nil {
		cl.Close()
		return nil, err
	}
	suite, err := json.Marshal(chatSuite{"Chat", chatKind, chat.ID})
	if err != nil {
		cl.Close()
		return nil, err
	}
	channel := ""
	if target.think {
		channel = "think-tags"
	}
	return &chatSession{
		console: c, chat: chat.ID, target: target, asked: chat.Model, clock: clock, client: cl, family: familyOf(e, cl.BaseURL(), owner),
		header: bench.Header{
			Schema: bench.SchemaVersion, ID: bench.NewID(clock.Anchor()), Anchor: clock.Anchor(), Title: "Chat: " + chat.Title, Suite: suite,
			Endpoint:    bench.Endpoint{Name: e.Name, URL: cl.BaseURL(), Model: model, OwnedBy: owner, BuiltIn: e.BuiltIn},
			Plan:        bench.Plan{Workers: 1, Repeat: 1, Prefix: bench.PrefixShared, Failure: bench.FailureContinue, Protocol: "http/1.1", Channel: channel, Timeouts: timeout},
			Environment: environment(), Drawing: bench.DrawingLive,
		},
	}, nil
}

// record begins the recording, if it has not begun.
func (s *chatSession) record() error {
	if s.rec.Load() == nil {
		rec, err := s.console.store.Record(&s.header)
		if err != nil {
			return err
		}
		s.rec.Store(rec)
	}
	return nil
}

// close ends the recording and lets the connections go.
func (s *chatSession) close() {
	s.idle.Stop()
	s.client.Close()
	rec := s.rec.Load()
	if rec == nil {
		return
	}
	rec.Append(&bench.Finish{At: s.clock.Now(), State: bench.Done})
	if err := rec.Close(); err != nil {
		s.console.notice(fmt.Sprintf("The session of the chat %q could not be kept: %v", s.header.Title, err))
	}
	s.console.noteHeadline(s.header.ID)
	s.console.changed(console.ChangedSessions)
}

// atRest tells whether a session that is still open belongs to a chat in which nothing goes on: for the
// user it is done.
func (t *theChats) atRest(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sessionOf(id)
	return s != nil && !t.turn.active(s.chat)
}

// sessionOf is the open session of an identity, nil where there is none. t.mu is held.
func (t *theChats) sessionOf(id string) *chatSession {
	for _, s := range t.sessions {
		if s.header.ID == id {
			return s
		}
	}
	return nil
}

// release closes the session of a chat in which nothing goes on.
func (t *theChats) release(id string) {
	t.mu.Lock()
	s := t.sessionOf(id)
	t.mu.Unlock()
	if s != nil {
		t.closeIdle(s)
	}
}

// busy tells whether a turn goes on.
func (t *theChats) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.turn.active("")
}

// closeIdle closes a session that nothing was asked in for long.
func (t *theChats) closeIdle(s *chatSession) {
	t.mu.Lock()
	idle := t.sessions[s.chat] == s && !t.turn.active(s.chat)
	if idle {
		delete(t.sessions, s.chat)
	}
	t.mu.Unlock()
	if idle {
		s.close()
	}
}
