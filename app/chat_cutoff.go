package app

import (
	"fmt"
	"strings"

	"velo/bench"
	"velo/store"
)

// settleCutOff ends the turns that went on when the program was last killed: what of their answers had
// been recorded is theirs.
func (t *theChats) settleCutOff() {
	chats, err := t.console.store.Chats()
	if err != nil {
		t.console.notice("The chats could not be read: " + err.Error())
	}
	for _, c := range chats {
		if c.Running == "" {
			continue
		}
		if err := t.settle(c); err != nil {
			t.console.notice(fmt.Sprintf("A turn of the chat %q, which was cut off, could not be ended: %v", c.Title, err))
		}
	}
}

func (t *theChats) settle(c store.Chat) error {
	_, turns, err := t.console.store.Chat(c.ID)
	if err != nil {
		return err
	}
	for _, u := range turns {
		if u.ID != c.Running {
			continue
		}
		if u.Status == "" {
			if err := t.cutOff(&u); err != nil {
				return err
			}
		}
		return t.console.store.PutChatTurn(c.ID, u, nil, func(k *store.Chat) { k.Running = "" })
	}
	return t.console.store.ChangeChat(c.ID, func(k *store.Chat) { k.Running = "" })
}

// cutOff gives a turn what its session holds of it.
func (t *theChats) cutOff(u *store.ChatTurn) error {
	u.Status, u.Error = bench.Truncated, "Velo ended while the answer came: what had come by then is here. Ask again."
	if u.Session == "" {
		return nil
	}
	s, err := t.console.store.Session(u.Session)
	if err != nil {
		return nil // the session was not begun, or is damaged, which its own page says
	}
	x := exchangeOf(s, *u)
	if x == nil {
		return nil
	}
	var answer, reasoning, calls strings.Builder
	for _, k := range x.Chunks {
		switch k.Channel {
		case bench.Reasoning:
			reasoning.WriteString(k.Text)
		case bench.Tool:
			calls.WriteString(k.Text)
		default:
			answer.WriteString(k.Text)
		}
	}
	u.Answer, u.Reasoning = bounded(answer.String()), bounded(reasoning.String())
	if s.Header.Plan.Channel != "" {
		tags := tagRemover{on: true}
		u.Reasoning = tags.next(u.Reasoning)
	}
	if calls.Len() > 0 {
		u.Calls = []store.ChatCall{{Arguments: calls.String()}}
	}
	if x.End != nil {
		u.Status, u.Finish, u.Error = x.End.Status, x.End.Finish, x.End.Error
	}
	u.Sent = x.Request.Parameters
	return nil
}
