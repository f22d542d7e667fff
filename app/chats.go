package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/store"
	"velo/ui/console"
)

// theChats is the part of the console that converses.
type theChats struct {
	console *theConsole

	sending sync.Mutex // turns begin one after the other

	mu       sync.Mutex              // of what follows
	turn     *chatTurn               // that goes on, or the last one; nil = none yet
	sessions map[string]*chatSession // open ones, by chat
	refused  map[string][]string     // members of the body that a server refused, by refusalKey
	results  resultCache
	files    fileCache
}

var _ console.Chats = (*theChats)(nil)

func newChats(c *theConsole) *theChats {
	t := &theChats{console: c, sessions: map[string]*chatSession{}, refused: map[string][]string{}}
	t.settleCutOff()
	return t
}

// Chats implements console.Console.
func (c *theConsole) Chats() console.Chats { return c.chats }

// newChatTitle is what a chat is called until its first prompt is known.
const newChatTitle = "New chat"

// List implements console.Chats.
func (t *theChats) List(words string) ([]console.Chat, error) {
	var list []console.Chat
	if strings.TrimSpace(words) == "" {
		kept, err := t.console.store.Chats()
		for _, c := range kept {
			list = append(list, t.line(c, ""))
		}
		return list, err
	}
	found, err := t.console.store.SearchChats(words)
	for _, f := range found {
		list = append(list, t.line(f.Chat, f.Excerpt))
	}
	return list, err
}

func (t *theChats) line(c store.Chat, found string) console.Chat {
	return console.Chat{ID: c.ID, Title: c.Title, Endpoint: c.Endpoint, Model: c.Model, Began: c.Began, Changed: c.Changed, Turns: c.Turns, Found: found}
}

// NewChat implements console.Chats.
func (t *theChats) NewChat(endpointID, model string) (console.Conversation, error) {
	if endpointID == "" {
		endpointID = builtInID
	}
	e, err := t.console.endpoint(endpointID)
	if err != nil {
		return console.Conversation{}, err
	}
	if model == "" {
		model = e.Model
	}
	now := time.Now().UTC()
	c := store.Chat{ID: bench.NewID(now), Title: newChatTitle, EndpointID: e.ID, Endpoint: e.Name, Model: model, Began: now, Changed: now}
	if err := t.console.store.AddChat(c); err != nil {
		return console.Conversation{}, err
	}
	t.changed()
	return t.Chat(c.ID)
}

func (t *theChats) changed() { t.console.changed(console.ChangedChats) }

// Chat implements console.Chats.
func (t *theChats) Chat(id string) (console.Conversation, error) {
	c, turns, err := t.console.store.Chat(id)
	if err != nil {
		return console.Conversation{}, err
	}
	out := console.Conversation{Chat: t.line(c, ""), EndpointID: c.EndpointID}
	if out.Parameters, err = readParameters(c.Parameters); err != nil {
		return out, err
	}
	versions := map[string][]string{} // by parent
	for _, u := range turns {
		versions[u.Parent] = append(versions[u.Parent], u.ID)
	}
	branch := branchTo(turns, c.Shown)
	results := t.resultsOf(branch)
	for i, u := range branch {
		shown, err := t.show(id, u, versions[u.Parent])
		if err != nil {
			return out, err
		}
		if r := results[i]; r != nil {
			shown.Measured, shown.Source = r, r.Source
		} else if u.Status != "" && u.Session != "" {
			shown.Remarks = append(slices.Clip(shown.Remarks), "Its session was deleted, and its measurements with it.")
		}
		out.Turns = append(out.Turns, shown)
	}
	out.Chat.Turns = len(branch)
	return out, nil
}

// show is a turn as the window has it, without its measurements.
func (t *theChats) show(chat string, u store.ChatTurn, versions []string) (console.ChatTurn, error) {
	o := console.ChatTurn{
		ID: u.ID, Parent: u.Parent, Asked: u.Asked, Prompt: u.Prompt, Fill: u.Fill, FillBy: u.FillBy, Tool: u.Tool, Results: u.Results,
		Answer: u.Answer, Reasoning: u.Reasoning, Status: u.Status, Finish: u.Finish, Error: u.Error, Remarks: u.Remarks,
		Session: u.Session, Request: u.Request, Versions: versions, Version: slices.Index(versions, u.ID),
	}
	for _, c := range u.Calls {
		o.Calls = append(o.Calls, console.ChatCall{Name: c.Name, Arguments: c.Arguments})
	}
	for _, i := range u.Images {
		data, err := t.file(chat, i.Key)
		if err != nil {
			return o, err
		}
		o.Images = append(o.Images, console.ChatImage{Name: i.Name, MIME: i.MIME, Data: data})
	}
	return o, nil
}

// branchTo are the turns from the first to that one, in order. Turns are a tree, whatever a database
// says: none is taken twice.
func branchTo(turns []store.ChatTurn, last string) []store.ChatTurn {
	byID := make(map[string]*store.ChatTurn, len(turns))
	for i := range turns {
		byID[turns[i].ID] = &turns[i]
	}
	var branch []store.ChatTurn
	for id := last; byID[id] != nil; {
		u := byID[id]
		delete(byID, id)
		branch = append(branch, *u)
		id = u.Parent
	}
	slices.Reverse(branch)
	return branch
}

// newestAfter follows a turn to the end of a branch, by the newest version at each place.
func newestAfter(turns []store.ChatTurn, id string) string {
	next := map[string]string{}
	for _, u := range turns {
		next[u.Parent] = u.ID
	}
	for next[id] != "" {
		child := next[id]
		delete(next, id) // none is taken twice, whatever a database says
		id = child
	}
	return id
}

// RenameChat implements console.Chats.
func (t *theChats) RenameChat(id, title string) error {
	if title = strings.TrimSpace(title); title == "" {
		return errors.New("cannot rename the chat: a title needs at least one letter")
	}
	return t.change(id, func(c *store.Chat) { c.Title, c.Named = title, true })
}

func (t *theChats) change(id string, change func(*store.Chat)) error {
	if err := t.console.store.ChangeChat(id, change); err != nil {
		return err
	}
	t.changed()
	return nil
}

// DeleteChat implements console.Chats.
func (t *theChats) DeleteChat(id string) error {
	t.mu.Lock()
	if t.turn.active(id) {
		t.mu.Unlock()
		return errors.New("cannot delete the chat: a turn of it goes on; stop it first")
	}
	s := t.sessions[id]
	delete(t.sessions, id)
	t.mu.Unlock()
	if s != nil {
		s.close()
	}
	c, _, err := t.console.store.Chat(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	for _, session := range c.Sessions {
		if err := t.console.store.Delete(session); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if err := t.console.store.DeleteChat(id); err != nil {
		return err
	}
	t.files.forget(id)
	t.changed()
	if len(c.Sessions) > 0 {
		t.console.changed(console.ChangedSessions)
	}
	return nil
}

// SetChatModel implements console.Chats.
func (t *theChats) SetChatModel(id, endpointID, model string) error {
	e, err := t.console.endpoint(endpointID)
	if err != nil {
		return err
	}
	if model == "" {
		model = e.Model
	}
	return t.change(id, func(c *store.Chat) { c.EndpointID, c.Endpoint, c.Model = e.ID, e.Name, model })
}

// SetChatParameters implements console.Chats.
func (t *theChats) SetChatParameters(id string, p console.ChatParameters) error {
	if err := checkParameters(p); err != nil {
		return err
	}
	if len(p.Extra) == 0 {
		p.Extra = nil
	}
	if len(p.Tools) == 0 {
		p.Tools = nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot keep the parameters: %w", err)
	}
	return t.change(id, func(c *store.Chat) { c.Parameters = text })
}

// ShowTurn implements console.Chats.
func (t *theChats) ShowTurn(chatID, turnID string) error {
	c, turns, err := t.console.store.Chat(chatID)
	if err != nil {
		return err
	}
	is := func(u store.ChatTurn) bool { return u.ID == turnID }
	if !slices.ContainsFunc(turns, is) {
		return fmt.Errorf("cannot show the turn %s: the chat does not have it", turnID)
	}
	if slices.ContainsFunc(branchTo(turns, c.Shown), is) {
		return nil
	}
	last := newestAfter(turns, turnID)
	n := len(branchTo(turns, last))
	return t.change(chatID, func(c *store.Chat) { c.Shown, c.Turns = last, n })
}

// Fills implements console.Chats.
func (t *theChats) Fills() []int {
	var sizes []int
	for n := 1 << 10; n <= 512<<10; n *= 2 {
		sizes = append(sizes, n)
	}
	return sizes
}

// close stops what goes on and closes the sessions.
func (t *theChats) close() {
	t.StopChat()
	t.mu.Lock()
	turn := t.turn
	t.mu.Unlock()
	if turn != nil {
		<-turn.done
	}
	t.mu.Lock()
	open := t.sessions
	t.sessions = map[string]*chatSession{}
	t.mu.Unlock()
	for _, s := range open {
		s.close()
	}
}

// readParameters reads what SetChatParameters kept.
func readParameters(text json.RawMessage) (p console.ChatParameters, err error) {
	if len(text) == 0 {
		return p, nil
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("cannot read the chat's parameters: %w", err)
	}
	for _, raw := range []*json.RawMessage{&p.Extra, &p.Tools} {
		if string(*raw) == "null" {
			*raw = nil
		}
	}
	return p, nil
}

// checkParameters refuses what no server takes, and what would make the request another one.
func checkParameters(p console.ChatParameters) error {
	between := func(name string, v *float64, low, high float64) error {
		if v != nil && !(*v >= low && *v <= high) {
			return fmt.Errorf("cannot send %s %v: it goes from %v to %v", name, *v, low, high)
		}
		return nil
	}
	atLeast := func(name string, v *int, low int) error {
		if v != nil && *v < low {
			return fmt.Errorf("cannot send %s %d: it starts at %d", name, *v, low)
		}
		return nil
	}
	for _, err := range []error{
		between("temperature", p.Temperature, 0, 10), between("top_p", p.TopP, 0, 1), between("min_p", p.MinP, 0, 1),
		atLeast("top_k", p.TopK, -1), atLeast("max_tokens", p.MaxTokens, 1),
	} {
		if err != nil {
			return err
		}
	}
	if !slices.Contains([]string{console.ReasoningDefault, console.ReasoningOff, "low", "medium", "high"}, p.Reasoning) {
		return fmt.Errorf("cannot reason with effort %q: it is off, low, medium, high or empty", p.Reasoning)
	}
	if len(p.Tools) > 0 {
		var tools []struct {
			Type     string                `json:"type"`
			Function struct{ Name string } `json:"function"`
		}
		if err := json.Unmarshal(p.Tools, &tools); err != nil {
			return fmt.Errorf("cannot read the tools: they are an array of definitions, [{\"type\":\"function\",\"function\":{\"name\":…}}]: %w", err)
		}
		for i, d := range tools {
			if d.Type == "function" && d.Function.Name == "" {
				return fmt.Errorf("cannot use tool %d: its function has no name", i+1)
			}
		}
	}
	extra, err := extraOf(p)
	if err != nil {
		return err
	}
	// The client knows which members it does not let go; nothing is sent.
	probe, err := client.New(client.Options{BaseURL: "http://127.0.0.1", Clock: bench.StartClock()})
	if err != nil {
		return err
	}
	defer probe.Close()
	_, err = probe.Prepare(client.Chat{Model: "m", Messages: []client.Message{{Role: "user"}}, Extra: extra})
	return err
}

func extraOf(p console.ChatParameters) (extra map[string]json.RawMessage, err error) {
	if len(p.Extra) > 0 {
		if err := json.Unmarshal(p.Extra, &extra); err != nil {
			return nil, fmt.Errorf("cannot read the extra parameters: they are a JSON object such as {\"top_k\":20}: %w", err)
		}
	}
	return extra, nil
}
