package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"velo/bench"
	"velo/bench/report"
	"velo/bench/sim"
	"velo/store"
	"velo/ui/console"
)

// talking makes a chat with an endpoint that follows a scenario.
func talking(t *testing.T, s sim.Scenario) (*theConsole, console.Conversation) {
	t.Helper()
	return talkingTo(t, endpoint(t, s), "")
}

func talkingTo(t *testing.T, url, model string) (*theConsole, console.Conversation) {
	t.Helper()
	c := opened(t)
	e, err := c.SaveEndpoint(console.Endpoint{URL: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := c.Chats().NewChat(e.ID, model)
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
	k := readChat(t, c, chat)
	u := k.Turns[len(k.Turns)-1]
	if l := c.Chats().Live(); l.Active || l.TurnID != u.ID || l.Answer != u.Answer || l.Reasoning != u.Reasoning {
		t.Errorf("after its end Live says %+v\nof %+v", l, u)
	}
	return u
}

func readChat(t *testing.T, c *theConsole, chat string) console.Conversation {
	t.Helper()
	k, err := c.Chats().Chat(chat)
	if err != nil || len(k.Turns) == 0 {
		t.Fatalf("Chat: %+v, %v", k, err)
	}
	return k
}

// prompts are those of the branch that is shown.
func prompts(k console.Conversation) string {
	var list []string
	for _, u := range k.Turns {
		list = append(list, u.Prompt)
	}
	return strings.Join(list, " ")
}

// until waits for the live turn to be as wanted.
func until(t *testing.T, c *theConsole, what string, ok func(console.ChatLive) bool) console.ChatLive {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		l := c.Chats().Live()
		if ok(l) {
			return l
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s: %+v", what, l)
		}
	}
}

func TestChatAnswers(t *testing.T) {
	c, k := talking(t, scenario(t, "reasoning"))
	if l := c.Chats().Live(); l.Active || l.TTFT.Ok() || l.Snapshot.Rate.Ok() {
		t.Errorf("before the first turn Live says %+v", l)
	}
	heard := make(chan string, 100)
	cancel := c.Changes(func(w string) { heard <- w })
	defer cancel()
	u := asked(t, c, k.ID, console.ChatMessage{Text: "How long does a cat sleep?"})
	if u.Status != bench.OK || u.Answer == "" || u.Reasoning == "" || u.Error != "" || u.Finish != "stop" || len(u.Remarks) != 0 {
		t.Fatalf("got %+v", u)
	}
	if m := u.Measured; m == nil || m.Answer != 12 || m.Thought != 12 || !m.TTFT.Ok() || u.Source == "" {
		t.Fatalf("measured %+v", m)
	}
	l := c.Chats().Live()
	if l.AnswerTokens != 12 || l.ReasoningTokens != 12 || l.TTFT != u.Measured.TTFT || !l.GapP50.Ok() || l.Context == 0 || l.Elapsed <= 0 || l.Phase != "" {
		t.Errorf("Live says %+v", l)
	}
	list, err := c.Chats().List("")
	if err != nil || len(list) != 1 || list[0].Title != "How long does a cat sleep?" || list[0].Turns != 1 || list[0].Model != "velo-sim" {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if heard := len(heard); heard < 2 || heard > 8 {
		t.Errorf("a turn was told of %d times", heard)
	}
	// A second turn is in the same session, and the model is told of the first.
	v := asked(t, c, k.ID, console.ChatMessage{Text: "And a dog?"})
	if v.Session != u.Session || v.Request != 1 || u.Request != 0 || v.Parent != u.ID || v.Measured.Prompt <= u.Measured.Prompt {
		t.Errorf("the turns are %+v and %+v", u, v)
	}
	for words, found := range map[string]int{"CAT dog": 1, "elephant": 0, strings.Fields(u.Answer)[0]: 1} {
		if list, err := c.Chats().List(words); err != nil || len(list) != found || found > 0 && list[0].Found == "" {
			t.Errorf("List(%q) is %+v, %v", words, list, err)
		}
	}
}

// TestChatIsASession: the report works on what a chat leaves behind, and says that it is a chat.
func TestChatIsASession(t *testing.T) {
	c, k := talking(t, scenario(t, "fast"))
	var turns []console.ChatTurn
	for range 3 {
		turns = append(turns, asked(t, c, k.ID, console.ChatMessage{Text: "Tell me more."}))
	}
	r, err := c.Report(turns[0].Session)
	if err != nil {
		t.Fatal(err)
	}
	var suite chatSuite
	if err := json.Unmarshal(r.Session.Header.Suite, &suite); err != nil || suite != (chatSuite{"Chat", chatKind, k.ID}) {
		t.Errorf("the session is of %+v, %v", suite, err)
	}
	if r.Run.OK != 3 || len(r.Run.Steps) != 3 || len(r.Run.Broken) != 0 || len(r.Session.Samples) < 6 {
		t.Errorf("the report has %d requests, %d steps, %d samples, broken: %v", r.Run.OK, len(r.Run.Steps), len(r.Session.Samples), r.Run.Broken)
	}
	for i, q := range r.Run.Requests {
		if m := turns[i].Measured; m.N != q.N || m.TTFT != q.TTFT && fmt.Sprint(m.TTFT) != fmt.Sprint(q.TTFT) && (m.TTFT-q.TTFT > 2e-6 || q.TTFT-m.TTFT > 2e-6) {
			t.Errorf("turn %d was measured as %d tokens, %v; the session says %d, %v", i, m.N, m.TTFT, q.N, q.TTFT)
		}
	}
	if _, err := report.Export(t.TempDir(), r, []string{"md", "json"}); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err := reopened(t, c).Sessions(); err != nil || len(list) != 1 || list[0].State != "done" || list[0].Suite != "Chat" || list[0].Requests != 3 || !list[0].TTFT.Ok() {
		t.Errorf("the sessions are %+v, %v", list, err)
	}
}

// TestChatFailures: whatever the server does, what came is kept, with what went wrong.
func TestChatFailures(t *testing.T) {
	for name, want := range map[string]struct {
		status bench.Status
		text   bool
		says   string
	}{
		"error-200":       {bench.Failed, false, "error"},
		"error-first":     {bench.Failed, false, "the server reports an error"},
		"error-mid":       {bench.Failed, true, "the server reports an error"},
		"malformed":       {bench.OK, true, ""},
		"truncated":       {bench.Truncated, true, "the connection was lost"},
		"reset":           {bench.Truncated, true, "the connection was lost"},
		"clean-eof":       {bench.Truncated, true, "without a finish reason"},
		"rate-limited":    {bench.Failed, false, "too many requests"},
		"unavailable":     {bench.Failed, false, "not ready"},
		"unauthorized":    {bench.Failed, false, "API key"},
		"html-error":      {bench.Failed, false, "web page"},
		"html-200":        {bench.Failed, false, "web page"},
		"json":            {bench.NotStreaming, true, "not as a stream"},
		"empty":           {bench.Empty, false, "without a token"},
		"refusal":         {bench.OK, true, ""},
		"no-finish":       {bench.OK, true, ""},
		"unicode":         {bench.OK, true, ""},
		"think-tags":      {bench.OK, true, ""},
		"usage-null-only": {bench.OK, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, k := talkingTo(t, endpoint(t, scenario(t, name)), "velo-sim")
			u := asked(t, c, k.ID, console.ChatMessage{Text: "Go."})
			if u.Status != want.status || (u.Answer != "") != want.text || !strings.Contains(u.Error, want.says) || (u.Error == "") != (want.says == "") {
				t.Errorf("the turn ended as %q with %q: %q", u.Status, u.Answer, u.Error)
			}
			if u.Measured == nil || u.Measured.Status != want.status {
				t.Errorf("measured %+v", u.Measured)
			}
			if name == "think-tags" && !strings.Contains(strings.Join(u.Remarks, " "), "set think tags") {
				t.Errorf("remarks %q", u.Remarks)
			}
			// The next turn is asked all the same.
			if v := asked(t, c, k.ID, console.ChatMessage{Text: "Again."}); v.Parent != u.ID || v.Request != 1 {
				t.Errorf("the next turn is %+v", v)
			} else if left := strings.Contains(strings.Join(v.Remarks, " "), "left out of the conversation"); left != (u.Answer == "") {
				t.Errorf("remarks %q", v.Remarks)
			}
		})
	}
}

func TestChatWithoutServer(t *testing.T) {
	c, k := talkingTo(t, "http://127.0.0.1:9", "")
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Go."})
	if u.Status != bench.Failed || !strings.Contains(u.Error, "127.0.0.1:9") || u.Measured != nil {
		t.Errorf("got %+v", u)
	}
	if err := c.Chats().SetChatModel(k.ID, k.EndpointID, "m"); err != nil { // the list of models is not needed then
		t.Fatal(err)
	}
	u = asked(t, c, k.ID, console.ChatMessage{Text: "Go.", Instead: u.ID})
	if u.Status != bench.Failed || !strings.Contains(u.Error, "nothing listens there") || u.Version != 1 || u.Measured == nil {
		t.Errorf("got %+v", u)
	}
	if err := c.DeleteEndpoint(k.EndpointID); err != nil {
		t.Fatal(err)
	}
	if err := c.Chats().Send(k.ID, console.ChatMessage{Text: "Go."}); err == nil || !strings.Contains(err.Error(), "removed") {
		t.Errorf("a chat with an endpoint that was removed: %v", err)
	}
	if err := c.Chats().SetChatModel(k.ID, builtInID, ""); err != nil {
		t.Fatal(err)
	}
	if u = asked(t, c, k.ID, console.ChatMessage{Text: "Go."}); u.Status != bench.OK {
		t.Errorf("with the built-in endpoint: %+v", u)
	}
}

func TestChatThinkTags(t *testing.T) {
	c, k := talking(t, scenario(t, "think-tags"))
	e, err := c.endpoint(k.EndpointID)
	if err != nil {
		t.Fatal(err)
	}
	e.ThinkTags = true
	if _, err := c.SaveEndpoint(e, nil); err != nil {
		t.Fatal(err)
	}
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Go."})
	if u.Reasoning == "" || strings.Contains(u.Reasoning+u.Answer, "think>") || u.Measured.Thought == 0 || len(u.Remarks) != 0 {
		t.Errorf("got %+v", u)
	}
}

func TestTagRemover(t *testing.T) {
	text := "<think>a < b, <thin air>, <</think>c</th"
	for size := 1; size <= len(text); size++ {
		r := tagRemover{on: true}
		got := ""
		for piece := range slices.Chunk([]byte(text), size) {
			got += r.next(string(piece))
		}
		if got+r.held != "a < b, <thin air>, <c</th" {
			t.Errorf("in pieces of %d: %q, held %q", size, got, r.held)
		}
	}
}

// TestChatStop: a stopped turn keeps what came, whenever it is stopped.
func TestChatStop(t *testing.T) {
	long := scenario(t, "fast")
	long.Tokens = 50_000
	c, k := talking(t, long)
	if err := c.Chats().Send(k.ID, console.ChatMessage{Text: "Go on and on."}); err != nil {
		t.Fatal(err)
	}
	if err := c.Chats().Send(k.ID, console.ChatMessage{Text: "Me too."}); err == nil || !strings.Contains(err.Error(), "a turn goes on") {
		t.Errorf("a second question at once: %v", err)
	}
	if list, err := c.Sessions(); err != nil || len(list) > 0 && list[0].State != "running" {
		t.Errorf("the sessions are %+v, %v", list, err)
	}
	if err := c.Start(console.RunSpec{SuiteID: "prebuilt-sanity", Workers: 1, Repeat: 1}); err == nil || !strings.Contains(err.Error(), "a chat is answered") {
		t.Errorf("a run beside a turn: %v", err)
	}
	if err := c.Chats().DeleteChat(k.ID); err == nil {
		t.Error("a chat was deleted under its turn")
	}
	l := until(t, c, "an answer", func(l console.ChatLive) bool { return len(l.Answer) > 200 && l.Snapshot.Rate.Ok() })
	if !l.Active || l.Phase != phaseAnswering || l.AnswerTokens < 20 || l.AnswerTokens != l.Snapshot.Tokens && l.AnswerTokens < l.Snapshot.Tokens || !l.TTFT.Ok() || !l.GapP90.Ok() || l.Source == "" {
		t.Errorf("Live says %+v", l)
	}
	c.Chats().StopChat()
	u := ended(t, c, k.ID)
	if u.Status != bench.Stopped || !strings.HasPrefix(u.Answer, l.Answer) || u.Error != "" || u.Measured == nil || u.Measured.N == 0 {
		t.Errorf("the stopped turn is %+v", u)
	}
	c.Chats().StopChat() // nothing goes on
}

// TestChatStopInPrefill stops before anything came, and while a server is silent for good.
func TestChatStopInPrefill(t *testing.T) {
	for _, name := range []string{"silence", "hang"} {
		c, k := talking(t, scenario(t, name))
		if err := c.Chats().Send(k.ID, console.ChatMessage{Text: "Go."}); err != nil {
			t.Fatal(err)
		}
		until(t, c, "the request", func(l console.ChatLive) bool {
			return name == "silence" && l.Phase == phaseWaiting && l.Elapsed > 0 || l.AnswerTokens >= 10
		})
		c.Chats().StopChat()
		if u := ended(t, c, k.ID); u.Status != bench.Stopped || (u.Answer != "") != (name == "hang") {
			t.Errorf("%s: the turn is %+v", name, u)
		}
	}
}

// TestChatLongAnswer: an answer of 200,000 characters comes through whole, and looking at it copies
// nothing.
func TestChatLongAnswer(t *testing.T) {
	long := scenario(t, "instant")
	long.Tokens, long.Regime = 60_000, "prose"
	c, k := talking(t, long)
	if err := c.Chats().Send(k.ID, console.ChatMessage{Text: "Write a novel."}); err != nil {
		t.Fatal(err)
	}
	seen := ""
	until(t, c, "the end", func(l console.ChatLive) bool {
		if !strings.HasPrefix(l.Answer, seen) {
			t.Fatal("an answer does not only grow")
		}
		seen = l.Answer
		return !l.Active
	})
	u := ended(t, c, k.ID)
	if len(u.Answer) < 200_000 || u.Measured.N != 60_000 || u.Status != bench.OK {
		t.Fatalf("an answer of %d bytes, %d tokens, %q: %s", len(u.Answer), u.Measured.N, u.Status, u.Error)
	}
	a, b := c.Chats().Live(), c.Chats().Live()
	if unsafe.StringData(a.Answer) != unsafe.StringData(b.Answer) {
		t.Error("Live copies the answer")
	}
}

func TestChatsAreManaged(t *testing.T) {
	c, k := talking(t, scenario(t, "instant"))
	if k.Title != newChatTitle || len(k.Turns) != 0 {
		t.Errorf("a new chat is %+v", k)
	}
	if err := c.Chats().RenameChat(k.ID, "  Mine "); err != nil {
		t.Fatal(err)
	}
	if err := c.Chats().RenameChat(k.ID, " "); err == nil {
		t.Error("a chat has no name")
	}
	u := asked(t, c, k.ID, console.ChatMessage{Text: "A prompt."})
	if k = readChat(t, c, k.ID); k.Title != "Mine" {
		t.Errorf("the user's title became %q", k.Title)
	}
	if _, err := c.Chats().NewChat("gone", ""); err == nil {
		t.Error("a chat with no endpoint was begun")
	}
	if err := c.Chats().DeleteChat(k.ID); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Chats().List(""); err != nil || len(list) != 0 {
		t.Errorf("left are %+v, %v", list, err)
	}
	if _, err := c.Report(u.Session); err == nil {
		t.Error("what was said in a deleted chat is still in its session")
	}
	if fills := c.Chats().Fills(); fills[0] != 1024 || fills[len(fills)-1] != 524_288 || len(fills) != 10 {
		t.Errorf("the fills are %v", fills)
	}
}

func TestChatTitles(t *testing.T) {
	for _, c := range []struct {
		m    console.ChatMessage
		want string
	}{
		{console.ChatMessage{Text: "  Hello\n\tworld "}, "Hello world"},
		{console.ChatMessage{Text: strings.Repeat("word ", 40)}, strings.TrimSpace(strings.Repeat("word ", 12)) + " …"},
		{console.ChatMessage{Text: strings.Repeat("ß", 100)}, strings.Repeat("ß", 60) + " …"},
		{console.ChatMessage{Images: []console.ChatImage{{Name: "cat.png"}}}, "cat.png"},
		{console.ChatMessage{Fill: 8192}, "Context fill of 8,192 tokens"},
		{console.ChatMessage{Text: " \n"}, newChatTitle},
	} {
		if got := titleOf(c.m); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestChatsBesideARun: a measured run is not disturbed.
func TestChatBesideARun(t *testing.T) {
	long := scenario(t, "fast")
	long.Tokens = 5000
	c, k := talking(t, long)
	what, err := c.Open(suiteFile(t, strings.Replace(short, `"tg": 8`, `"tg": 5000`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(console.RunSpec{EndpointID: k.EndpointID, SuiteID: what.ID, Workers: 1, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.Chats().Send(k.ID, console.ChatMessage{Text: "x"}); err == nil || !strings.Contains(err.Error(), "run") {
		t.Errorf("asked during a run: %v", err)
	}
	c.Stop()
	settled(t, c)
	if err := c.Chats().Send(k.ID, console.ChatMessage{Text: "x"}); err != nil {
		t.Errorf("asked after a run: %v", err)
	}
	c.Chats().StopChat()
	ended(t, c, k.ID)
}

// TestChatModelChanges: another endpoint or model begins another session, and the conversation goes on.
func TestChatModelChanges(t *testing.T) {
	c, k := talking(t, scenario(t, "instant"))
	a := asked(t, c, k.ID, console.ChatMessage{Text: "a"})
	e, err := c.SaveEndpoint(console.Endpoint{URL: endpoint(t, scenario(t, "fast"))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Chats().SetChatModel(k.ID, e.ID, "velo-sim"); err != nil {
		t.Fatal(err)
	}
	b := asked(t, c, k.ID, console.ChatMessage{Text: "b"})
	if b.Session == a.Session || b.Measured.N != 256 || b.Measured.Prompt <= a.Measured.Prompt {
		t.Errorf("the turns are %+v and %+v", a, b)
	}
	if err := c.Chats().SetChatModel(k.ID, "gone", ""); err == nil {
		t.Error("a chat has an endpoint that is not there")
	}
	r, err := c.Report(a.Session)
	if err != nil || r.Session.Finish == nil {
		t.Errorf("the first session was not ended (%v)", err)
	}
}

// TestChatSessionEndsWhenIdle: after a while without a turn its session is done, and can be deleted.
func TestChatSessionEndsWhenIdle(t *testing.T) {
	c, k := talking(t, scenario(t, "instant"))
	a := asked(t, c, k.ID, console.ChatMessage{Text: "a"})
	if list, err := c.Sessions(); err != nil || len(list) != 1 || list[0].State != "done" {
		t.Errorf("between two turns the sessions are %+v, %v", list, err)
	}
	c.chats.mu.Lock()
	s := c.chats.sessions[k.ID]
	c.chats.mu.Unlock()
	c.chats.closeIdle(s)
	c.chats.closeIdle(s) // its timer may fire while it is closed
	if list, err := c.Sessions(); err != nil || len(list) != 1 || list[0].State != "done" || !list[0].TTFT.Ok() {
		t.Errorf("the sessions are %+v, %v", list, err)
	}
	if b := asked(t, c, k.ID, console.ChatMessage{Text: "b"}); b.Session == a.Session {
		t.Error("an ended session was used again")
	} else if err := c.DeleteSession(b.Session); err != nil { // it is open
		t.Error(err)
	}
}

// TestBrokenTrees: a database may say anything of parents; nothing hangs.
func TestBrokenTrees(t *testing.T) {
	turns := []store.ChatTurn{{ID: "a", Parent: "b"}, {ID: "b", Parent: "a"}, {ID: "c", Parent: "c"}, {ID: "d", Parent: "gone"}}
	for _, u := range turns {
		if n := len(branchTo(turns, u.ID)); n > 2 {
			t.Errorf("the branch to %s has %d turns", u.ID, n)
		}
		newestAfter(turns, u.ID)
	}
}

// BenchmarkChatLive is what a look at a turn of 50,000 chunks costs.
func BenchmarkChatLive(b *testing.B) {
	clock := bench.StartClock()
	u := &chatTurn{clock: clock}
	live := u.begin(clock, 0, false)
	live.Append(&bench.Request{})
	for i := range 50_000 {
		chunk := bench.Chunks{{Read: int32(i), User: time.Duration(i) * time.Millisecond, Kernel: bench.Unset, Usage: -1, Exact: 1, Text: "word "}}
		u.chunks(chunk)
		live.Append(chunk)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		u.look()
	}
}
