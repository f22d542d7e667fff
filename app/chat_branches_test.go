package app

import (
	"slices"
	"strings"
	"testing"
	"time"

	"velo/ui/console"
)

// TestChatBranches: edit and resend makes a version beside the first, and both stay.
func TestChatBranches(t *testing.T) {
	c, k := talking(t, scenario(t, "instant"))
	a := asked(t, c, k.ID, console.ChatMessage{Text: "a"})
	b := asked(t, c, k.ID, console.ChatMessage{Text: "b"})
	d := asked(t, c, k.ID, console.ChatMessage{Text: "c"})
	b2 := asked(t, c, k.ID, console.ChatMessage{Text: "b2", Instead: b.ID})
	if k = readChat(t, c, k.ID); prompts(k) != "a b2" || k.Chat.Turns != 2 {
		t.Errorf("shown is %q", prompts(k))
	}
	if u := k.Turns[1]; u.Version != 1 || !slices.Equal(u.Versions, []string{b.ID, b2.ID}) || u.Parent != a.ID {
		t.Errorf("the version is %+v", u)
	}
	if u := k.Turns[0]; u.Version != 0 || !slices.Equal(u.Versions, []string{a.ID}) {
		t.Errorf("the first turn is %+v", u)
	}
	show := func(id, want string) {
		t.Helper()
		if err := c.Chats().ShowTurn(k.ID, id); err != nil {
			t.Fatal(err)
		}
		if k := readChat(t, c, k.ID); prompts(k) != want {
			t.Errorf("shown is %q, want %q", prompts(k), want)
		}
	}
	show(b.ID, "a b c")
	show(a.ID, "a b c") // it is on the branch already
	show(b2.ID, "a b2")
	show(d.ID, "a b c")
	a2 := asked(t, c, k.ID, console.ChatMessage{Text: "a2", Instead: a.ID})
	if k := readChat(t, c, k.ID); prompts(k) != "a2" || a2.Parent != "" || a2.Measured.Prompt >= b.Measured.Prompt {
		t.Errorf("shown is %q, %+v", prompts(k), a2)
	}
	show(a.ID, "a b2") // the newest that it leads to
	for _, err := range []error{c.Chats().ShowTurn(k.ID, "nothing"), c.Chats().Send(k.ID, console.ChatMessage{Text: "x", Instead: "nothing"}), c.Chats().ShowTurn("nothing", a.ID)} {
		if err == nil {
			t.Error("a turn was found that is not there")
		}
	}
	one, err := c.Chats().Statistics(k.ID, b.ID)
	if err != nil || len(one.Requests) != 1 || one.Run.OK != 1 {
		t.Errorf("of a turn of another branch: %+v, %v", one.Requests, err)
	}
	all, err := c.Chats().Statistics(k.ID, "")
	if err != nil || len(all.Requests) != 2 || all.Run.OK != 2 || len(all.Starts) != 2 || all.Starts[1] <= 0 || len(all.Run.Broken) != 0 {
		t.Errorf("of the branch: %d, %+v, %v", len(all.Requests), all.Starts, err)
	}
}

func TestChatStatisticsOfTwoSessions(t *testing.T) {
	c, k := talking(t, scenario(t, "fast"))
	a := asked(t, c, k.ID, console.ChatMessage{Text: "a"})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = reopened(t, c)
	b := asked(t, c, k.ID, console.ChatMessage{Text: "b"})
	if a.Session == b.Session {
		t.Error("two starts of the program share a session")
	}
	st, err := c.Chats().Statistics(k.ID, "")
	if err != nil || len(st.Requests) != 2 || st.Run.OK != 2 || len(st.Run.Broken) != 0 || len(st.Gaps) < 200 || len(st.Rolling) == 0 {
		t.Fatalf("got %+v, %v", st, err)
	}
	tokens := 0
	for _, o := range st.Shares {
		tokens += o.Tokens
	}
	if len(st.Kinds) != 2 || len(st.Kinds[1]) != len(st.Requests[1].Arrivals) || tokens != st.Run.Tokens {
		t.Errorf("%d requests have kinds of text, and %d of %d tokens", len(st.Kinds), tokens, st.Run.Tokens)
	}
	if d := st.Requests[1].Start - st.Requests[0].Ended; d <= 0 {
		t.Errorf("the second turn begins %v after the first", d)
	}
	for i := 1; i < len(st.Rolling); i++ {
		if st.Rolling[i].At <= st.Rolling[i-1].At {
			t.Fatalf("the line goes back at %d: %v", i, st.Rolling[i])
		}
	}
	if last := st.Rolling[len(st.Rolling)-1].At; last > st.Starts[1]+3*time.Second {
		t.Errorf("the line has a pause: %v", last)
	}
	again, err := c.Chats().Statistics(k.ID, "")
	if err != nil || again.Run != st.Run {
		t.Errorf("the statistics were computed twice (%v)", err)
	}
	// Without its session a turn keeps its texts and says so.
	if err := c.DeleteSession(a.Session); err != nil {
		t.Fatal(err)
	}
	c.chats.results = resultCache{}
	k = readChat(t, c, k.ID)
	if u := k.Turns[0]; u.Measured != nil || u.Answer != a.Answer || !strings.Contains(strings.Join(u.Remarks, " "), "deleted") {
		t.Errorf("got %+v", u)
	}
	if st, err = c.Chats().Statistics(k.ID, ""); err != nil || len(st.Requests) != 1 {
		t.Errorf("got %d, %v", len(st.Requests), err)
	}
}
