package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/ui/console"
)

// fakeChats are chats in memory. A question is answered when the test says so (finish).
type fakeChats struct {
	fake *fake

	mu    sync.Mutex
	chats []console.Conversation // latest first
	turns map[string][]console.ChatTurn
	live  console.ChatLive
	sent  []console.ChatMessage
	texts []string // formats that were asked for
	next  int
	fail  error
}

var _ console.Chats = (*fakeChats)(nil)

func (f *fake) Chats() console.Chats { return &f.chats }

func (c *fakeChats) lock() func() { c.mu.Lock(); return c.mu.Unlock }

func (c *fakeChats) find(id string) *console.Conversation {
	for i := range c.chats {
		if c.chats[i].ID == id {
			return &c.chats[i]
		}
	}
	return nil
}

func (c *fakeChats) change(id string, do func(*console.Conversation)) error {
	defer c.fake.change(console.ChangedChats)
	defer c.lock()()
	if c.fail != nil {
		return c.fail
	}
	k := c.find(id)
	if k == nil {
		return errors.New("cannot find the chat " + id)
	}
	do(k)
	return nil
}

func (c *fakeChats) List(words string) ([]console.Chat, error) {
	defer c.lock()()
	var out []console.Chat
	for _, k := range c.chats {
		text := k.Title
		for _, t := range c.turns[k.ID] {
			text += " " + t.Prompt + " " + t.Answer
		}
		all := true
		for _, w := range strings.Fields(words) {
			all = all && strings.Contains(strings.ToLower(text), strings.ToLower(w))
		}
		if all {
			line := k.Chat
			line.Turns = len(k.Turns)
			if words != "" {
				line.Found = text[:min(len(text), 80)]
			}
			out = append(out, line)
		}
	}
	return out, c.fail
}

func (c *fakeChats) NewChat(endpointID, model string) (console.Conversation, error) {
	defer c.fake.change(console.ChangedChats)
	defer c.lock()()
	if c.fail != nil {
		return console.Conversation{}, c.fail
	}
	c.next++
	now := time.Date(2026, 11, 30, 9, c.next, 0, 0, time.UTC)
	k := console.Conversation{Chat: console.Chat{ID: fmt.Sprint("chat", c.next), Title: "New chat", Model: model, Began: now, Changed: now}, EndpointID: endpointID}
	c.chats = slices.Insert(c.chats, 0, k)
	return k, nil
}

func (c *fakeChats) Chat(id string) (console.Conversation, error) {
	defer c.lock()()
	k := c.find(id)
	if k == nil {
		return console.Conversation{}, errors.New("cannot find the chat " + id)
	}
	out := *k
	out.Turns = slices.Clone(k.Turns)
	return out, c.fail
}

func (c *fakeChats) RenameChat(id, title string) error {
	return c.change(id, func(k *console.Conversation) { k.Title = title })
}

func (c *fakeChats) DeleteChat(id string) error {
	return c.change(id, func(*console.Conversation) {
		c.chats = slices.DeleteFunc(c.chats, func(k console.Conversation) bool { return k.ID == id })
	})
}

func (c *fakeChats) SetChatModel(id, endpointID, model string) error {
	return c.change(id, func(k *console.Conversation) { k.EndpointID, k.Model = endpointID, model })
}

func (c *fakeChats) SetChatParameters(id string, p console.ChatParameters) error {
	return c.change(id, func(k *console.Conversation) { k.Parameters = p })
}

// branch puts the turns up to one in view, with their versions.
func (c *fakeChats) branch(k *console.Conversation, last string) {
	k.Turns = nil
	all := c.turns[k.ID]
	for id := last; id != ""; {
		i := slices.IndexFunc(all, func(t console.ChatTurn) bool { return t.ID == id })
		t := all[i]
		t.Versions = nil
		for _, v := range all {
			if v.Parent == t.Parent {
				if v.ID == t.ID {
					t.Version = len(t.Versions)
				}
				t.Versions = append(t.Versions, v.ID)
			}
		}
		k.Turns = slices.Insert(k.Turns, 0, t)
		id = t.Parent
	}
}

func (c *fakeChats) ShowTurn(chatID, turnID string) error {
	return c.change(chatID, func(k *console.Conversation) { c.branch(k, turnID) })
}

func (c *fakeChats) Send(chatID string, m console.ChatMessage) error {
	return c.change(chatID, func(k *console.Conversation) {
		c.sent = append(c.sent, m)
		c.next++
		t := console.ChatTurn{ID: fmt.Sprint("turn", c.next), Prompt: m.Text, Images: m.Images, Fill: m.Fill, Tool: m.Tool, Results: m.Results, Asked: k.Changed}
		if n := len(k.Turns); n > 0 {
			t.Parent = k.Turns[n-1].ID
		} else {
			k.Title = m.Text
		}
		for _, old := range c.turns[chatID] {
			if old.ID == m.Instead {
				t.Parent = old.Parent
			}
		}
		if c.turns == nil {
			c.turns = map[string][]console.ChatTurn{}
		}
		c.turns[chatID] = append(c.turns[chatID], t)
		c.branch(k, t.ID)
		none := measure.Missing
		c.live = console.ChatLive{Active: true, ChatID: chatID, TurnID: t.ID, Phase: "waiting", GapP50: none, GapP90: none, GapMax: none, TTFT: none, TTFO: none,
			Snapshot: measure.Snapshot{Rate: none, Median: none, Min: none, Max: none, TTFT: none, TTFTMedian: none, MaxGap: none}}
	})
}

// say lets an answer grow.
func (c *fakeChats) say(reasoning, answer string) {
	defer c.lock()()
	c.live.Reasoning += reasoning
	c.live.Answer += answer
	c.live.Phase = "answering"
}

// finish ends the turn that goes on.
func (c *fakeChats) finish(status bench.Status) {
	c.mu.Lock()
	if c.live.Active {
		c.live.Active, c.live.Phase = false, ""
		list := c.turns[c.live.ChatID]
		for i := range list {
			if list[i].ID == c.live.TurnID {
				list[i].Answer, list[i].Reasoning, list[i].Status = c.live.Answer, c.live.Reasoning, status
			}
		}
		c.branch(c.find(c.live.ChatID), c.live.TurnID)
	}
	c.mu.Unlock()
	c.fake.change(console.ChangedChats)
}

func (c *fakeChats) StopChat() { c.finish(bench.Stopped) }

func (c *fakeChats) Live() console.ChatLive { defer c.lock()(); return c.live }

func (c *fakeChats) Statistics(chatID, turnID string) (console.ChatStatistics, error) {
	defer c.lock()()
	return console.ChatStatistics{}, c.fail
}

func (c *fakeChats) Text(chatID, turnID, format string) (string, error) {
	defer c.lock()()
	c.texts = append(c.texts, format)
	return chatID + " " + turnID + " as " + format, c.fail
}

func (c *fakeChats) Fills() []int { return []int{1 << 10, 8 << 10, 512 << 10} }
