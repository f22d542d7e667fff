package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/runner"
	"velo/store"
	"velo/ui/console"
)

// Send implements console.Chats.
func (t *theChats) Send(chatID string, m console.ChatMessage) error {
	if t.console.Run().Active {
		return errors.New("cannot ask while a run is measured: it would disturb it; wait for its end, or stop it")
	}
	images, err := checkImages(m.Images)
	if err != nil {
		return err
	}
	t.sending.Lock()
	defer t.sending.Unlock()
	if t.busy() {
		return errors.New("cannot ask a second question at once: a turn goes on; stop it, or wait for its end")
	}
	c, turns, err := t.console.store.Chat(chatID)
	if err != nil {
		return err
	}
	if _, err := t.console.endpoint(c.EndpointID); err != nil {
		return err
	}
	p, err := readParameters(c.Parameters)
	if err != nil {
		return err
	}
	parent := c.Shown
	if m.Instead != "" {
		i := slices.IndexFunc(turns, func(u store.ChatTurn) bool { return u.ID == m.Instead })
		if i < 0 {
			return fmt.Errorf("cannot replace the turn %s: the chat does not have it", m.Instead)
		}
		parent = turns[i].Parent
	}
	branch := branchTo(turns, parent)
	var before *store.ChatTurn // that the model remembers
	for i := range branch {
		if answered(&branch[i]) {
			before = &branch[i]
		}
	}
	if err := checkMessage(m, before); err != nil {
		return err
	}
	asked := time.Now()
	u := store.ChatTurn{
		ID: bench.NewID(asked), Parent: parent, Asked: asked.UTC(), Prompt: m.Text, Fill: m.Fill, Tool: m.Tool, Results: m.Results,
		System: p.System, Endpoint: c.Endpoint, Model: c.Model,
	}
	var files [][]byte
	for _, i := range images {
		u.Images = append(u.Images, store.ChatImage{Name: i.Name, MIME: i.MIME, Key: store.ChatFileKey(i.Data)})
		files = append(files, i.Data)
	}
	err = t.console.store.PutChatTurn(chatID, u, files, func(k *store.Chat) {
		k.Changed, k.Shown, k.Running, k.Turns = u.Asked, u.ID, u.ID, len(branch)+1
		if !k.Named && len(turns) == 0 {
			k.Title = titleOf(m)
		}
		c = *k
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	turn := &chatTurn{chat: chatID, id: u.ID, asked: asked, cancel: cancel, done: make(chan struct{}), phase: phasePreparing, start: bench.Unset}
	t.mu.Lock()
	t.turn = turn
	t.mu.Unlock()
	go t.ask(ctx, turn, c, append(branch, u), p)
	go t.changed()
	return nil
}

// titleOf makes a chat's title out of its first prompt.
func titleOf(m console.ChatMessage) string {
	const most = 60 // characters
	line := strings.Join(strings.FieldsFunc(m.Text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	switch {
	case line == "" && len(m.Images) > 0 && m.Images[0].Name != "":
		return m.Images[0].Name
	case line == "" && m.Fill > 0:
		return fmt.Sprintf("Context fill of %s tokens", grouped(m.Fill))
	case line == "":
		return newChatTitle
	case utf8.RuneCountInString(line) <= most:
		return line
	}
	cut := string([]rune(line)[:most])
	if i := strings.LastIndexByte(cut, ' '); i > most/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,.;:") + " …"
}

// ask asks the last of the turns and keeps what comes of it.
func (t *theChats) ask(ctx context.Context, live *chatTurn, c store.Chat, branch []store.ChatTurn, p console.ChatParameters) {
	defer close(live.done)
	defer live.cancel()
	u := &branch[len(branch)-1]
	s, err := t.session(ctx, c)
	if err == nil {
		err = t.exchange(ctx, live, s, branch, p)
	}
	if err != nil && u.Status == "" { // it did not get to the server
		u.Status, u.Error = bench.Failed, err.Error()
		if ctx.Err() != nil {
			u.Status, u.Error = bench.Stopped, ""
		}
	}
	model := ""
	if s != nil {
		model = s.header.Endpoint.Model
		if rec := s.rec.Load(); rec != nil {
			if err := rec.Flush(); err != nil { // a report is asked for as soon as the turn has ended
				u.Remarks = append(u.Remarks, err.Error())
			}
		}
	}
	err = t.console.store.PutChatTurn(c.ID, *u, nil, func(k *store.Chat) {
		k.Running, k.Changed = "", time.Now().UTC()
		if k.Model == "" && k.EndpointID == c.EndpointID {
			k.Model = model
		}
	})
	if err != nil {
		t.console.notice(fmt.Sprintf("The end of a turn of the chat %q could not be kept: %v", c.Title, err))
	}
	live.mu.Lock()
	live.over, live.phase = true, ""
	if live.live != nil && live.ended == 0 {
		live.ended = live.clock.Now()
	}
	live.took = time.Since(live.asked)
	if live.start != bench.Unset {
		live.took = live.ended - live.start
	}
	live.mu.Unlock()
	if s != nil {
		s.idle.Reset(chatIdle)
	}
	t.changed()
	if u.Session != "" {
		t.console.changed(console.ChangedSessions)
	}
}

// exchange sends the question, again without a parameter as often as the server refuses one.
func (t *theChats) exchange(ctx context.Context, live *chatTurn, s *chatSession, branch []store.ChatTurn, p console.ChatParameters) error {
	u := &branch[len(branch)-1]
	p = t.console.withModel(s.target.endpoint, s.header.Endpoint.Model, p)
	u.URL, u.Model, u.Endpoint = s.header.Endpoint.URL, s.header.Endpoint.Model, s.header.Endpoint.Name
	if u.Fill > 0 {
		if err := t.fill(ctx, s, u); err != nil {
			return err
		}
	}
	messages, left, err := t.messages(s.chat, branch)
	if err != nil {
		return err
	}
	if left == 1 {
		u.Remarks = append(u.Remarks, "An earlier turn that had no answer was left out of the conversation.")
	} else if left > 1 {
		u.Remarks = append(u.Remarks, fmt.Sprintf("%d earlier turns that had no answer were left out of the conversation.", left))
	}
	key := s.target.endpoint + "\n" + s.header.Endpoint.Model
	t.mu.Lock()
	refused := t.refused[key]
	t.mu.Unlock()
	plan, err := newParameterPlan(p, s.family, refused)
	if err != nil {
		return err
	}
	if err := s.record(); err != nil {
		return err
	}
	// As in a run, garbage is collected less often while tokens come.
	defer debug.SetGCPercent(debug.SetGCPercent(quietGC))
	rec := s.rec.Load()
	defer runner.Watch(s.client, s.clock, rec)()
	u.Session, u.Request = s.header.ID, s.requests
	// Kept before it is sent: should the program be killed, the answer's beginning is found again.
	err = t.console.store.PutChatTurn(s.chat, *u, nil, func(k *store.Chat) {
		if !slices.Contains(k.Sessions, u.Session) {
			k.Sessions = append(k.Sessions, u.Session)
		}
	})
	if err != nil {
		return err
	}
	for {
		call, err := s.client.Prepare(client.Chat{Model: s.header.Endpoint.Model, Messages: messages, Extra: plan.extra()})
		if err != nil {
			u.Session = ""
			return err
		}
		sink := &chatSink{turn: live, rec: rec, told: t.console.telemetry.measured(s.clock), live: live.begin(s.clock, s.requests, s.target.think), step: &bench.Step{
			Number: s.requests, Index: s.requests, Section: "Chat", Title: fmt.Sprintf("Turn %d", len(branch)), Kind: "prompt", Workers: 1, Barrier: true,
		}}
		sink.live.Ended(func(r *measure.Request) { sink.result = r })
		result := call.Do(ctx, requestOf(s, u, p, len(branch)-1), sink)
		if !sink.through && refuses(result.End) {
			if o, by := plan.drop(result.End.Error); o != nil {
				t.mu.Lock()
				t.refused[key] = append(t.refused[key], o.key())
				t.mu.Unlock()
				rec.Append(&bench.Note{At: s.clock.Now(), Text: fmt.Sprintf("The server refused %s; the request was sent again without it: %s", by.name, result.End.Error)})
				continue
			}
		}
		sink.pass()
		s.requests++
		u.Sent = call.Parameters()
		t.finish(live, s, u, p, plan, sink, result)
		return nil
	}
}

// requestOf is the event that a request of a turn begins with.
func requestOf(s *chatSession, u *store.ChatTurn, p console.ChatParameters, turn int) *bench.Request {
	q := &bench.Request{
		Number: s.requests, Step: s.requests, Turn: turn, Fill: u.FillBy, Prompt: u.Prompt,
		Session: fmt.Sprintf("velo-%s-%06d", s.header.ID, s.requests),
	}
	if p.MaxTokens != nil {
		q.AskedOutput = *p.MaxTokens
	}
	for _, i := range u.Images {
		q.Images = append(q.Images, i.Name)
	}
	return q
}

// finish takes what came of a request over into its turn.
func (t *theChats) finish(live *chatTurn, s *chatSession, u *store.ChatTurn, p console.ChatParameters, plan *parameterPlan, sink *chatSink, result client.Result) {
	end := result.End
	u.Answer, u.Reasoning = bounded(result.Answer), bounded(result.Reasoning)
	for _, c := range result.Calls() {
		u.Calls = append(u.Calls, store.ChatCall(c))
	}
	u.Status, u.Finish, u.Error = end.Status, end.Finish, end.Error
	r := sink.computed()
	t.results.put(u.Session, u.Request, r)
	hidden := 0
	if end.Usage != nil {
		hidden = max(0, end.Usage.Reasoning)
	}
	u.Remarks = append(u.Remarks, plan.remarks()...)
	tags := strings.HasPrefix(strings.TrimSpace(u.Answer), "<think>")
	if reasoning := plan.choice("reasoning"); reasoning != nil && end.Status != bench.Failed {
		u.Remarks = append(u.Remarks, reasoningRemark(p.Reasoning, reasoning.option().sentAs(), r, hidden, tags))
	}
	if tags && !s.target.think {
		u.Remarks = append(u.Remarks, "The answer begins with <think>: set think tags for this endpoint, and thoughts are split off the answer.")
	}
	if u.FillBy == "server" || u.FillBy == "tokenizer" {
		if r.Prompt.Ok() && int(r.Prompt) < u.Fill {
			u.Remarks = append(u.Remarks, fmt.Sprintf("The server counted %s prompt tokens, fewer than the fill of %s: what counted the fill is not the model's tokenizer, or the server cut the prompt.", grouped(int(r.Prompt)), grouped(u.Fill)))
		}
	}
	live.mu.Lock()
	followed := measure.Followed(r)
	live.ended, live.last = s.clock.Now(), &followed
	if r.Prompt.Ok() {
		live.context = int(r.Prompt)
	}
	if known := r.Ended; known != bench.Unset {
		live.ended = known
	}
	// What was held back of a tag, or came as a whole, is there now.
	if u.Reasoning != live.reasoning.String() {
		live.reasoning.Reset()
		live.reasoning.WriteString(u.Reasoning)
	}
	if u.Answer != live.answer.String() {
		live.answer.Reset()
		live.answer.WriteString(u.Answer)
	}
	live.mu.Unlock()
}

// sentAs is how a remark calls an option; empty when nothing is sent.
func (o *option) sentAs() string {
	if len(o.members) == 0 {
		return ""
	}
	return o.how
}

// bounded cuts a text at what a chat keeps; the session keeps all of it.
func bounded(s string) string {
	if len(s) <= store.MaxChatText {
		return s
	}
	return strings.ToValidUTF8(s[:store.MaxChatText], "")
}

// maxChatFill is the largest context fill, tokens.
const maxChatFill = 1 << 20

// fill makes the context fill of a turn and keeps it.
func (t *theChats) fill(ctx context.Context, s *chatSession, u *store.ChatTurn) error {
	if s.ruler == nil {
		var counter bench.TokenCounter
		if s.target.endpoint == console.EngineID {
			var err error
			if counter, err = t.console.tokenizers.open(t.console.engine.Status().Config.Model); err != nil {
				u.Remarks = append(u.Remarks, "The engine's tokenizer could not be read here, its server counts: "+err.Error())
			}
		} else {
			e, err := t.console.endpoint(s.target.endpoint)
			if err != nil {
				return err
			}
			m, err := t.console.store.Model(e.ID, s.header.Endpoint.Model)
			if err != nil {
				return err
			}
			var notes []string
			if counter, notes, err = t.console.tokenizerOf(ctx, s.client, e, m, s.header.Endpoint.OwnedBy); err != nil {
				return err
			}
			u.Remarks = append(u.Remarks, notes...)
		}
		ruler, err := runner.NewRuler(ctx, s.client, s.header.Endpoint.Model, counter)
		if err != nil {
			return err
		}
		s.ruler = ruler
	}
	f, err := s.ruler.Fill(ctx, u.Fill, rand.Uint64())
	if err != nil {
		return err
	}
	asked := u.Fill
	u.Fill, u.FillBy, u.FillKey = f.Tokens, f.Source, store.ChatFileKey([]byte(f.Text))
	switch {
	case f.Why != "":
		u.Remarks = append(u.Remarks, fmt.Sprintf("The size of the context fill is an estimate: %s.", f.Why))
	case f.Tokens != asked:
		u.Remarks = append(u.Remarks, fmt.Sprintf("The context fill has %s tokens, the nearest to %s that could be made.", grouped(f.Tokens), grouped(asked)))
	}
	return t.console.store.PutChatTurn(s.chat, *u, [][]byte{[]byte(f.Text)}, func(*store.Chat) {})
}
