package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/bench"
	"velo/engine/enginetest"
	"velo/ui/console"
)

// A counting server answers with one text, says how many tokens it has, counts tokens for others where it
// is told to, and refuses members of the body.
type countingServer struct {
	mu       sync.Mutex
	text     string
	tokens   int    // of the text, as usage says it; 0 = no usage
	hidden   int    // reasoning tokens among them that are not shown
	tokenize string // the form of /tokenize: "vllm", "llama.cpp" or "" for none
	refuse   []string
	quotes   bool // every question is answered by a 401 that quotes the key
	bodies   []map[string]json.RawMessage
	key      string
}

func (s *countingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = r.Header.Get("Authorization")
	data, _ := io.ReadAll(r.Body)
	var body map[string]json.RawMessage
	_ = json.Unmarshal(data, &body)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		fmt.Fprint(w, `{"data":[{"id":"m","owned_by":"vllm"}]}`)
		return
	case strings.HasSuffix(r.URL.Path, "/tokenize"):
		member := map[string]string{"vllm": "prompt", "llama.cpp": "content"}[s.tokenize]
		var text string
		if member == "" || json.Unmarshal(body[member], &text) != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"tokens":[%s]}`, strings.TrimSuffix(strings.Repeat("1,", len(text)), ","))
		return
	}
	if s.quotes {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s. Keys look otherwise."}}`, strings.TrimPrefix(s.key, "Bearer "))
		return
	}
	s.bodies = append(s.bodies, body)
	for _, name := range s.refuse {
		if body[name] != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"%s is not permitted"}}`, name)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for piece := range strings.SplitAfterSeq(s.text, " ") {
		word, _ := json.Marshal(piece)
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", word)
	}
	fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
	if s.tokens > 0 {
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":30,\"completion_tokens\":%d,\"completion_tokens_details\":{\"reasoning_tokens\":%d}}}\n\n", s.tokens, s.hidden)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// with changes or reads the server between two questions.
func (s *countingServer) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// asked is how many questions came.
func (s *countingServer) asked() (n int) {
	s.with(func() { n = len(s.bodies) })
	return n
}

// bodyOf is the body of the last request.
func (s *countingServer) bodyOf() map[string]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[len(s.bodies)-1]
}

const riverText = "The river Aare carries 557 cubic metres a second where it meets the Rhine, and on 22 August 2005 it stood over the bridges of Bern."

// counted opens a console with an endpoint that counts.
func counted(t *testing.T, s *countingServer) (*theConsole, console.Endpoint) {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	c := opened(t)
	e, err := c.SaveEndpoint(console.Endpoint{URL: web.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, e
}

func TestModelSettingsAreChecked(t *testing.T) {
	c, e := counted(t, &countingServer{})
	good := console.ModelSettings{Parameters: map[string]string{"temperature": "0,7", "top_k": " 20 ", "seed": "-9007199254740993", "stop": "END", "min_p": ""},
		Extra: `{"logit_bias": {"50256": -100}}`, Reasoning: "off", Tokenizer: " /models/m "}
	if err := c.SaveModel(e.ID, "m", good); err != nil {
		t.Fatal(err)
	}
	kept, err := c.store.Model(e.ID, "m")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"temperature": "0.7", "top_k": "20", "seed": "-9007199254740993", "stop": `["END"]`, "logit_bias": `{"50256":-100}`}
	all := members(kept.Parameters)
	for name, value := range want {
		if string(all[name]) != value {
			t.Errorf("%s was kept as %s, not %s", name, all[name], value)
		}
	}
	if len(all) != len(want) {
		t.Errorf("kept was %s", kept.Parameters)
	}
	m, err := c.Model(e.ID, "m")
	if err != nil || m.Settings.Parameters["stop"] != "END" || m.Settings.Parameters["temperature"] != "0.7" || m.Settings.Tokenizer != "/models/m" || !strings.Contains(m.Settings.Extra, "50256") {
		t.Errorf("it came back as %+v, %v", m, err)
	}
	if err := c.SaveModel(e.ID, "m", m.Settings); err != nil { // what comes back is taken again, and is the same
		t.Fatal(err)
	}
	if again, _ := c.Model(e.ID, "m"); !reflect.DeepEqual(again.Settings, m.Settings) {
		t.Errorf("after a second save it is %+v", again.Settings)
	}
	for says, bad := range map[string]console.ModelSettings{
		"a number, 0 to 10":   {Parameters: map[string]string{"temperature": "hot"}},
		"cannot use top_p":    {Parameters: map[string]string{"top_p": "1.01"}},
		"cannot use min_p":    {Parameters: map[string]string{"min_p": "NaN"}},
		"cannot use seed":     {Parameters: map[string]string{"seed": "1.5"}},
		"from 1 on":           {Parameters: map[string]string{"max_tokens": "0"}},
		"cannot use stop":     {Parameters: map[string]string{"stop": `["a", 1]`}},
		"further parameters":  {Parameters: map[string]string{"logit_bias": "{}"}},
		"a JSON object":       {Extra: "[1]"},
		"twice":               {Parameters: map[string]string{"top_k": "1"}, Extra: `{"top_k": 2}`},
		`"stream" must be`:    {Extra: `{"stream": false}`},
		`"n" must be 1`:       {Extra: `{"n": 3}`},
		"request itself":      {Extra: `{"messages": []}`},
		"goes to the keyring": {Extra: `{"API_key": "sk-1"}`},
		"effort":              {Reasoning: "much"},
	} {
		if err := c.SaveModel(e.ID, "m", bad); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, which does not say %q", bad, err, says)
		}
	}
	if now, _ := c.store.Model(e.ID, "m"); string(now.Parameters) != string(kept.Parameters) {
		t.Error("what was refused has changed what was kept")
	}
}

// TestModelSettingsHoldInRunsAndChats sends what is set for a model, says what a server refuses, and lets
// the suite and the chat win.
func TestModelSettingsHoldInRunsAndChats(t *testing.T) {
	s := &countingServer{text: "Yes.", tokens: 2, refuse: []string{"min_p"}}
	c, e := counted(t, s)
	set := console.ModelSettings{Parameters: map[string]string{"temperature": "0.25", "top_k": "20", "min_p": "0.1", "max_tokens": "77"}, Reasoning: console.ReasoningOff}
	if err := c.SaveModel(e.ID, "m", set); err != nil {
		t.Fatal(err)
	}
	what, err := c.Open(suiteFile(t, short))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(console.RunSpec{EndpointID: e.ID, SuiteID: what.ID, Workers: 1, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
	run := settled(t, c)
	if run.Finished != console.FinishedDone {
		t.Fatalf("the run ended as %+v", run)
	}
	b := s.bodyOf()
	if string(b["temperature"]) != "0.25" || string(b["top_k"]) != "20" || b["min_p"] != nil || string(b["max_tokens"]) != "8" || !strings.Contains(string(b["chat_template_kwargs"]), `"enable_thinking":false`) {
		t.Errorf("the run sent %s", b)
	}
	session, err := c.store.Session(run.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	notes := ""
	for _, n := range session.Notes {
		notes += n.Text + "\n"
	}
	for _, want := range []string{"The server refuses min_p", `Reasoning "off", as set for the model: sent as chat_template_kwargs.enable_thinking; no reasoning was seen.`} {
		if !strings.Contains(notes, want) {
			t.Errorf("the session does not say %q:\n%s", want, notes)
		}
	}
	k, err := c.Chats().NewChat(e.ID, "m")
	if err != nil {
		t.Fatal(err)
	}
	hot := 1.5
	if err := c.Chats().SetChatParameters(k.ID, console.ChatParameters{Temperature: &hot}); err != nil {
		t.Fatal(err)
	}
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Is it so?"})
	b = s.bodyOf()
	if string(b["temperature"]) != "1.5" || string(b["top_k"]) != "20" || string(b["max_tokens"]) != "77" || b["min_p"] != nil {
		t.Errorf("the chat sent %s", b)
	}
	if said := strings.Join(u.Remarks, "\n"); !strings.Contains(said, "refused min_p") || !strings.Contains(said, "Reasoning was turned off") {
		t.Errorf("the turn says %q", said)
	}
}

// TestReasoningWayOfTheEndpoint sends what the user chose, whatever the server calls itself.
func TestReasoningWayOfTheEndpoint(t *testing.T) {
	for _, test := range []struct{ preset, way, member, value string }{
		{"", "", "chat_template_kwargs", `{"enable_thinking":false,"thinking":false}`},
		{"openai", "", "reasoning_effort", `"none"`},
		{"together", "", "reasoning", `{"enabled":false}`},
		{"openai", string(familyDeepSeek), "thinking", `{"type":"disabled"}`},
		{"vllm", string(familyNone), "", ""},
	} {
		s := &countingServer{text: riverText, tokens: 60}
		c, e := counted(t, s)
		e.Preset, e.Reasoning = test.preset, test.way
		e, err := c.SaveEndpoint(e, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SaveModel(e.ID, "m", console.ModelSettings{Reasoning: console.ReasoningOff}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.TryModel(t.Context(), e.ID, "m"); err != nil {
			t.Fatal(err)
		}
		b := s.bodyOf()
		for _, member := range []string{"chat_template_kwargs", "reasoning_effort", "reasoning", "thinking"} {
			want := ""
			if member == test.member {
				want = test.value
			}
			if got := string(b[member]); got != want {
				t.Errorf("%s, %s: %s was sent as %q, not %q", test.preset, test.way, member, got, want)
			}
		}
	}
	c := opened(t)
	if _, err := c.SaveEndpoint(console.Endpoint{URL: "http://127.0.0.1:1", Reasoning: "telepathy"}, nil); err == nil {
		t.Error("a way of reasoning that nobody knows was kept")
	}
	for _, p := range presets {
		if !knownWay(p.Reasoning) {
			t.Errorf("the preset %s has an unknown way of reasoning", p.Name)
		}
		if p.URL == "" {
			continue
		}
		if e, err := c.SaveEndpoint(console.Endpoint{URL: p.URL, Preset: p.ID}, nil); err != nil || e.URL != p.URL {
			t.Errorf("the preset %s was kept as %s, %v", p.Name, e.URL, err)
		}
	}
}

func TestTokenizersAreVerified(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Plain)
	counter, err := openTokenizer(folder)
	if err != nil {
		t.Fatal(err)
	}
	n := counter.Count(riverText)
	if n < 2*trialLeast {
		t.Fatalf("the text has %d tokens", n)
	}
	bytes := len(riverText)
	for _, test := range []struct {
		name      string
		server    *countingServer
		tokenizer string
		verdict   string
		why       string
	}{
		{"the same", &countingServer{text: riverText, tokens: n}, folder, console.TokenizerVerified, "as the server does"},
		{"an end token", &countingServer{text: riverText, tokens: n + 1}, folder, console.TokenizerVerified, "end token"},
		{"a file", &countingServer{text: riverText, tokens: n}, filepath.Join(folder, "tokenizer.json"), console.TokenizerVerified, ""},
		{"another model's", &countingServer{text: riverText, tokens: n / 4}, folder, console.TokenizerWrong, "the server counts"},
		{"far more", &countingServer{text: riverText, tokens: 2 * n}, folder, console.TokenizerWrong, "the server counts"},
		{"no usage", &countingServer{text: riverText}, folder, console.TokenizerUnclear, "nothing to compare with"},
		{"hidden reasoning", &countingServer{text: riverText, tokens: n + 500, hidden: 500}, folder, console.TokenizerUnclear, "does not show"},
		{"a short answer", &countingServer{text: "Yes.", tokens: 4}, folder, console.TokenizerUnclear, "too few"},
		{"a file that is not there", &countingServer{text: riverText, tokens: n}, filepath.Join(folder, "no"), console.TokenizerUnclear, "Cannot use the tokenizer"},
		{"of vLLM", &countingServer{text: riverText, tokens: bytes, tokenize: "vllm"}, console.TokenizerServer, console.TokenizerVerified, ""},
		{"of llama.cpp", &countingServer{text: riverText, tokens: bytes, tokenize: "llama.cpp"}, console.TokenizerServer, console.TokenizerVerified, ""},
		{"of a server that counts otherwise", &countingServer{text: riverText, tokens: bytes / 4, tokenize: "vllm"}, console.TokenizerServer, console.TokenizerWrong, ""},
		{"of none", &countingServer{text: riverText, tokens: n}, console.TokenizerServer, console.TokenizerUnclear, "neither form"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, e := counted(t, test.server)
			if err := c.SaveModel(e.ID, "m", console.ModelSettings{Tokenizer: test.tokenizer}); err != nil {
				t.Fatal(err)
			}
			if m, _ := c.Model(e.ID, "m"); m.Verdict != console.TokenizerNotTried {
				t.Errorf("before the trial it is %q", m.Verdict)
			}
			m, err := c.TryModel(t.Context(), e.ID, "m")
			if err != nil || m.Verdict != test.verdict || !strings.Contains(m.Why, test.why) || m.Tried.IsZero() {
				t.Errorf("it is %q, because %q, %v", m.Verdict, m.Why, err)
			}
		})
	}
}

// TestOnlyVerifiedTokenizersCount runs with a tokenizer that is the model's, then with the same after its
// file and after the server changed.
func TestOnlyVerifiedTokenizersCount(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Plain)
	counter, err := openTokenizer(folder)
	if err != nil {
		t.Fatal(err)
	}
	s := &countingServer{text: riverText, tokens: counter.Count(riverText)}
	c, e := counted(t, s)
	if err := c.SaveModel(e.ID, "m", console.ModelSettings{Tokenizer: folder}); err != nil {
		t.Fatal(err)
	}
	what, err := c.Open(suiteFile(t, short))
	if err != nil {
		t.Fatal(err)
	}
	measured := func() (counted bool, notes string) {
		if err := c.Start(console.RunSpec{EndpointID: e.ID, SuiteID: what.ID, Workers: 1, Repeat: 1}); err != nil {
			t.Fatal(err)
		}
		run := settled(t, c)
		session, err := c.store.Session(run.SessionID)
		if err != nil || run.Finished != console.FinishedDone {
			t.Fatalf("%+v, %v", run, err)
		}
		for _, n := range session.Notes {
			notes += n.Text + "\n"
		}
		return session.Exchanges[len(session.Exchanges)-1].Counts != nil, notes
	}
	if counted, notes := measured(); !counted {
		t.Errorf("a tokenizer that is the model's was not used:\n%s", notes)
	}
	if m, _ := c.Model(e.ID, "m"); m.Verdict != console.TokenizerVerified {
		t.Errorf("after a run it is %q", m.Verdict)
	}
	// The server serves another model under the name: the run finds out.
	s.with(func() { s.tokens *= 2 })
	if counted, notes := measured(); counted || !strings.Contains(notes, "it is not the model's") {
		t.Errorf("counted: %v\n%s", counted, notes)
	}
	if m, _ := c.Model(e.ID, "m"); m.Verdict != console.TokenizerWrong || !strings.Contains(m.Why, "the server counts") {
		t.Errorf("after the run that showed it the tokenizer is %q: %s", m.Verdict, m.Why)
	}
	before := s.asked()
	if counted, notes := measured(); counted || !strings.Contains(notes, "was not used, since it is not verified") {
		t.Errorf("counted: %v\n%s", counted, notes)
	}
	if n := s.asked() - before; n > 2 { // warm-up and request: no new trial
		t.Errorf("the run asked %d times", n)
	}
	// Another file under the name is another tokenizer.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(folder, "tokenizer.json"), later, later); err != nil {
		t.Fatal(err)
	}
	if m, _ := c.Model(e.ID, "m"); m.Verdict != console.TokenizerNotTried || !strings.Contains(m.Why, "changed") {
		t.Errorf("after its file changed it is %q: %s", m.Verdict, m.Why)
	}
}

// TestRatio weighs what is seen by its tokens, and takes nothing that cannot be.
func TestRatio(t *testing.T) {
	s := &countingServer{text: strings.Repeat("abc ", 100), tokens: 150}
	c, e := counted(t, s)
	try := func() console.Model {
		m, err := c.TryModel(t.Context(), e.ID, "m")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := try(); m.RatioTokens != 150 || m.Ratio < 1.4 || m.Ratio > 1.6 { // 400 bytes are 100 tokens by their length
		t.Errorf("the ratio is %v of %d tokens", m.Ratio, m.RatioTokens)
	}
	first, _ := c.Model(e.ID, "m")
	s.with(func() { s.tokens = 450 })
	if m := try(); m.RatioTokens != 600 || float64(m.Ratio) < 2.5*float64(first.Ratio)-0.2 || float64(m.Ratio) > 2.5*float64(first.Ratio)+0.2 {
		t.Errorf("the ratio went from %v to %v of %d tokens", first.Ratio, m.Ratio, m.RatioTokens)
	}
	was, _ := c.Model(e.ID, "m")
	for _, tokens := range []int{9000, 20, 0} { // beyond belief, too few, not said
		s.with(func() { s.tokens = tokens })
		if m := try(); m.Ratio != was.Ratio || m.RatioTokens != was.RatioTokens {
			t.Errorf("%d tokens changed the ratio to %v", tokens, m.Ratio)
		}
	}
}

func TestModelsNamedByHand(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	c := opened(t)
	e, err := c.SaveEndpoint(console.Endpoint{URL: web.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Models(t.Context(), e.ID); err == nil {
		t.Error("a server without a list has one")
	}
	for _, bad := range []string{" ", "a\nb"} {
		if err := c.AddModel(e.ID, bad); err == nil {
			t.Errorf("the model %q was added", bad)
		}
	}
	if err := c.AddModel(e.ID, " mine "); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Models(t.Context(), e.ID); err != nil || !slices.Equal(list, []string{"mine"}) {
		t.Errorf("the models are %q, %v", list, err)
	}
	if err := c.DeleteEndpoint(e.ID); err != nil {
		t.Fatal(err)
	}
	if list, _ := c.NamedModels(e.ID); len(list) != 0 {
		t.Errorf("models outlive their endpoint: %+v", list)
	}
}

func TestLimits(t *testing.T) {
	dir := t.TempDir()
	c := openedAt(t, dir)
	if c.timeouts() != defaultTimeout {
		t.Errorf("without a choice the limits are %+v", c.timeouts())
	}
	for _, bad := range []console.Limits{{}, {Connect: time.Second, Idle: time.Millisecond}, {Connect: time.Second, Total: -1}, {Connect: 48 * time.Hour}} {
		if err := c.SaveLimits(bad); err == nil {
			t.Errorf("%+v was kept", bad)
		}
	}
	want := console.Limits{Connect: 3 * time.Second, FirstByte: time.Minute, Total: time.Hour}
	if err := c.SaveLimits(want); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openedAt(t, dir)
	defer c.Close()
	if c.Limits() != want || c.timeouts() != (bench.Timeout{Connect: 3 * time.Second, FirstByte: time.Minute, Total: time.Hour}) {
		t.Errorf("after a start they are %+v", c.Limits())
	}
}

// TestSettingsAreNotLost changes different settings from many sides at once, and reads them back after a
// start: the window's own and the program's are one document.
func TestSettingsAreNotLost(t *testing.T) {
	dir := t.TempDir()
	c := openedAt(t, dir)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() { c.SaveSettings(console.Settings{Theme: "light", TextSize: 115}) })
		all.Go(func() { c.SelectEndpoint(fmt.Sprint("e", i%3)) })
		all.Go(func() {
			if err := c.SaveLimits(console.Limits{Connect: time.Duration(i+1) * time.Second}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	selected, limits := c.SelectedEndpoint(), c.Limits()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openedAt(t, dir)
	defer c.Close()
	if s := c.Settings(); s.Theme != "light" || s.TextSize != 115 || c.SelectedEndpoint() != selected || c.Limits() != limits {
		t.Errorf("after a start: %+v, %s, %+v; before: %s, %+v", s, c.SelectedEndpoint(), c.Limits(), selected, limits)
	}
}

// TestKeysStayWhereKeysAre uses an endpoint with a key in every way there is, and looks for the key in all
// that is written.
func TestKeysStayWhereKeysAre(t *testing.T) {
	const key = "sk-velo-4f1c9a77e2"
	s := &countingServer{text: riverText, tokens: 60}
	c, e := counted(t, s)
	k := key
	e, err := c.SaveEndpoint(e, &k)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SaveModel(e.ID, "m", console.ModelSettings{Parameters: map[string]string{"top_k": "4"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.TryModel(t.Context(), e.ID, "m"); err != nil {
		t.Fatal(err)
	}
	s.with(func() {
		if s.key != "Bearer "+key {
			t.Errorf("the server was shown %q", s.key)
		}
	})
	what, err := c.Open(suiteFile(t, short))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(console.RunSpec{EndpointID: e.ID, SuiteID: what.ID, Workers: 1, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
	run := settled(t, c)
	talk, err := c.Chats().NewChat(e.ID, "m")
	if err != nil {
		t.Fatal(err)
	}
	asked(t, c, talk.ID, console.ChatMessage{Text: "Is it so?"})
	out := t.TempDir()
	if _, err := c.Export(run.SessionID, []string{"pdf", "png", "svg", "html", "md", "csv", "json", "benchstat", "vllm"}, out); err != nil {
		t.Fatal(err)
	}
	if err := c.ExportFile(run.SessionID, filepath.Join(out, "one.velo")); err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, format := range []string{"markdown", "json", "curl"} {
		text, err := c.Chats().Text(talk.ID, "", format)
		if err != nil {
			t.Fatal(err)
		}
		said += text
	}
	// An error of the server that quotes the key.
	s.with(func() { s.quotes = true })
	if _, err := c.TryModel(context.Background(), e.ID, "m"); err == nil {
		t.Error("a server that takes no key was tried")
	} else {
		said += err.Error()
	}
	asked(t, c, talk.ID, console.ChatMessage{Text: "And now?"})
	if err := c.Start(console.RunSpec{EndpointID: e.ID, SuiteID: what.ID, Workers: 1, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
	settled(t, c)
	if _, err := c.MakeBackup(); err != nil {
		t.Fatal(err)
	}
	shown, _ := json.Marshal([]any{c.Endpoints(), c.Status(), c.Settings(), c.Data(), c.Run()})
	said += string(shown)
	if strings.Contains(said, key) {
		t.Errorf("the key is in what is shown or copied")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, dir := range []string{c.dir, out} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			if strings.Contains(string(data), key) && filepath.Base(path) != "keys.json" { // where there is no keyring
				t.Errorf("the key is in %s", path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 8 {
		t.Errorf("%d files were looked at", files)
	}
}

// TestContextFillOfAChat is counted by the tokenizer that is set for the model, once that is verified.
func TestContextFillOfAChat(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Plain)
	counter, err := openTokenizer(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		factor int // by which the server counts otherwise
		by     string
	}{{1, "tokenizer"}, {3, "estimate"}} {
		s := &countingServer{text: riverText, tokens: test.factor * counter.Count(riverText)}
		c, e := counted(t, s)
		if err := c.SaveModel(e.ID, "m", console.ModelSettings{Tokenizer: folder}); err != nil {
			t.Fatal(err)
		}
		talk, err := c.Chats().NewChat(e.ID, "m")
		if err != nil {
			t.Fatal(err)
		}
		u := asked(t, c, talk.ID, console.ChatMessage{Text: "Go on.", Fill: 1024})
		if u.Status != bench.OK || u.FillBy != test.by {
			t.Errorf("by a factor of %d: the fill is counted by %q: %v", test.factor, u.FillBy, u.Remarks)
		}
		// Of a vocabulary of bytes a word is many tokens: not every number can be met.
		if test.by == "tokenizer" && (u.Fill < 1008 || u.Fill > 1040 || u.Fill != 1024 && !strings.Contains(strings.Join(u.Remarks, " "), "the nearest to 1,024")) {
			t.Errorf("the fill has %d tokens: %v", u.Fill, u.Remarks)
		}
		if said := strings.Join(u.Remarks, " "); test.factor > 1 && !strings.Contains(said, "was not used, since it is not verified") {
			t.Errorf("the turn says %q", said)
		}
	}
}
