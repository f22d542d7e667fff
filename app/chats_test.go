package app

import (
	"testing"
	"time"

	"velo/bench"
	"velo/bench/sim"
	"velo/ui/console"
)

// talking makes a chat with an endpoint that follows a scenario.
func talking(t *testing.T, s sim.Scenario) (*theConsole, console.Conversation) {
	t.Helper()
	return talkingTo(t, endpoint(t, s))
}

func talkingTo(t *testing.T, url string) (*theConsole, console.Conversation) {
	t.Helper()
	c := opened(t)
	key := ""
	e, err := c.SaveEndpoint(console.Endpoint{URL: url}, &key)
	if err != nil {
		t.Fatal(err)
	}
	k, err := c.Chats().NewChat(e.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	return c, k
}

// asked sends a message, waits for the end of its turn and returns it.
func asked(t *testing.T, c *theConsole, chat string, m console.ChatMessage) console.ChatTurn {
	t.Helper()
	if err := c.Chats().Send(chat, m); err != nil {
		t.Fatal(err)
	}
	return ended(t, c, chat)
}

func ended(t *testing.T, c *theConsole, chat string) console.ChatTurn {
	t.Helper()
	select {
	case <-c.chats.turn.done:
	case <-time.After(60 * time.Second):
		t.Fatal("the turn does not end")
	}
	k, err := c.Chats().Chat(chat)
	if err != nil || len(k.Turns) == 0 {
		t.Fatalf("Chat: %+v, %v", k, err)
	}
	u := k.Turns[len(k.Turns)-1]
	if l := c.Chats().Live(); l.Active || l.TurnID != u.ID || l.Answer != u.Answer || l.Reasoning != u.Reasoning {
		t.Errorf("after its end Live says %+v\nof %+v", l, u)
	}
	return u
}

func TestChatAnswers(t *testing.T) {
	c, k := talking(t, scenario(t, "reasoning"))
	u := asked(t, c, k.ID, console.ChatMessage{Text: "How long does a cat sleep?"})
	if u.Status != bench.OK || u.Answer == "" || u.Reasoning == "" || u.Error != "" || u.Finish != "stop" && u.Finish != "length" {
		t.Fatalf("got %+v", u)
	}
	if m := u.Measured; m == nil || m.Answer != 12 || m.Thought != 12 || !m.TTFT.Ok() || u.Source == "" {
		t.Fatalf("measured %+v", m)
	}
	list, err := c.Chats().List("")
	if err != nil || len(list) != 1 || list[0].Title != "How long does a cat sleep?" || list[0].Turns != 1 || list[0].Model != "velo-sim" {
		t.Errorf("the list is %+v, %v", list, err)
	}
}
