package app

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"velo/bench"
	"velo/store"
	"velo/ui/console"
)

// reopened is the console of the same folder, started anew.
func reopened(t *testing.T, old *theConsole) *theConsole {
	t.Helper()
	return openedIn(t, old.dir)
}

func openedIn(t *testing.T, dir string) *theConsole {
	t.Helper()
	st, err := store.Open(dir, store.Options{Wait: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c := newConsole(st, dir)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestChatsSurviveARestart(t *testing.T) {
	c, k := talking(t, scenario(t, "reasoning"))
	p := console.ChatParameters{System: "Be brief.", Temperature: new(float64), Extra: []byte(`{"x":1}`)}
	if err := c.Chats().SetChatParameters(k.ID, p); err != nil {
		t.Fatal(err)
	}
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Go."})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = reopened(t, c)
	k = readChat(t, c, k.ID)
	v := k.Turns[0]
	if v.Answer != u.Answer || v.Reasoning != u.Reasoning || v.Status != u.Status || v.Measured == nil || v.Measured.N != u.Measured.N || v.Source != u.Source {
		t.Errorf("the turn came back as %+v", v)
	}
	if k.Parameters.System != "Be brief." || *k.Parameters.Temperature != 0 || string(k.Parameters.Extra) != `{"x":1}` {
		t.Errorf("the parameters came back as %+v", k.Parameters)
	}
	if c.Chats().Live().Active {
		t.Error("a turn goes on after a restart")
	}
}

// TestChatKilled kills a program in the middle of an answer: what had come is there at the next start.
func TestChatKilled(t *testing.T) {
	if dir := os.Getenv("VELO_TEST_CHAT_DIR"); dir != "" {
		talkUntilKilled(t, dir)
		return
	}
	slow := scenario(t, "fast")
	slow.Tokens, slow.Reasoning.Tokens = 100_000, 50
	url := endpoint(t, slow)
	dir := t.TempDir()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestChatKilled$")
	cmd.Env = append(os.Environ(), "VELO_TEST_CHAT_DIR="+dir, "VELO_TEST_CHAT_URL="+url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4096)
	n, err := out.Read(said) // it says a word when part of the answer is there
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil || !strings.Contains(string(said[:n]), "answering") {
		t.Fatalf("it said %q, %v", said[:n], err)
	}
	c := openedIn(t, dir)
	list, err := c.Chats().List("")
	if err != nil || len(list) != 1 {
		t.Fatalf("the chats are %+v, %v", list, err)
	}
	u := readChat(t, c, list[0].ID).Turns[0]
	if u.Status != bench.Truncated || !strings.Contains(u.Error, "Velo ended") || len(u.Answer) < 100 || u.Reasoning == "" || u.Measured == nil || u.Measured.N == 0 {
		t.Errorf("the turn is %q: %q, %d bytes, %d of reasoning, %+v", u.Status, u.Error, len(u.Answer), len(u.Reasoning), u.Measured)
	}
	// The chat goes on from there.
	if err := c.Chats().Send(list[0].ID, console.ChatMessage{Text: "Go on."}); err != nil {
		t.Fatal(err)
	}
	until(t, c, "an answer", func(l console.ChatLive) bool { return l.Answer != "" })
	c.Chats().StopChat()
	if v := ended(t, c, list[0].ID); v.Parent != u.ID || v.Session == u.Session {
		t.Errorf("the next turn is %+v", v)
	}
}

// talkUntilKilled is the program that is killed.
func talkUntilKilled(t *testing.T, dir string) {
	c := openedIn(t, dir)
	e, err := c.SaveEndpoint(console.Endpoint{URL: os.Getenv("VELO_TEST_CHAT_URL")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := c.Chats().NewChat(e.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Chats().Send(k.ID, console.ChatMessage{Text: "Go on and on."}); err != nil {
		t.Fatal(err)
	}
	until(t, c, "an answer", func(l console.ChatLive) bool { return len(l.Answer) > 400 })
	time.Sleep(2 * store.CommitInterval) // so much may be lost
	os.Stdout.WriteString("answering\n")
	time.Sleep(time.Minute)
}
