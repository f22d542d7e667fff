package app

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"velo/bench"
	"velo/engine/enginetest"
	"velo/ui/console"
)

// A talker is a server that keeps the bodies of requests and answers as it is told.
type talker struct {
	mu     sync.Mutex
	owner  string
	answer func(body map[string]json.RawMessage) (status int, text string)
	bodies []map[string]json.RawMessage
	header http.Header // of the last request
}

func (s *talker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/models") {
		fmt.Fprintf(w, `{"data":[{"id":"m","owned_by":%q}]}`, s.owner)
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	var body map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	s.bodies, s.header = append(s.bodies, body), r.Header
	status, text := 200, ""
	if s.answer != nil {
		status, text = s.answer(body)
	}
	if text == "" {
		text = streamed(`{"content":"Yes."}`)
	}
	if status != 200 {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// streamed is a stream of deltas and its proper end.
func streamed(deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", d)
	}
	return b.String() + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n"
}

func (s *talker) last() map[string]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[len(s.bodies)-1]
}

func (s *talker) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func listening(t *testing.T, s *talker) (*theConsole, console.Conversation) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return talkingTo(t, server.URL, "m")
}

func given[T any](v T) *T { return &v }

func TestChatSendsItsParameters(t *testing.T) {
	s := &talker{}
	c, k := listening(t, s)
	p := console.ChatParameters{
		System: "Be brief.", Temperature: given(0.5), TopP: given(0.9), MinP: given(0.05), TopK: given(40), MaxTokens: given(99),
		Seed: given(int64(-7)), Extra: json.RawMessage(`{"top_k": 20, "stop": ["\n"], "presence_penalty": 1.5}`),
		Tools: json.RawMessage(`[{"type":"function","function":{"name":"f","parameters":{}}}]`),
	}
	if err := c.Chats().SetChatParameters(k.ID, p); err != nil {
		t.Fatal(err)
	}
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Is it so?"})
	if u.Status != bench.OK || len(u.Remarks) != 0 {
		t.Errorf("got %+v", u)
	}
	for name, want := range map[string]string{
		"model": `"m"`, "messages": `[{"role":"system","content":"Be brief."},{"role":"user","content":"Is it so?"}]`,
		"temperature": "0.5", "top_p": "0.9", "min_p": "0.05", "top_k": "20", "max_tokens": "99", "seed": "-7", "stop": `["\n"]`,
		"presence_penalty": "1.5", "stream": "true", "stream_options": `{"include_usage":true}`,
		"tools": `[{"type":"function","function":{"name":"f","parameters":{}}}]`, "reasoning_effort": "", "chat_template_kwargs": "",
	} {
		if got := string(s.last()[name]); got != want {
			t.Errorf("%s was sent as %s, want %s", name, got, want)
		}
	}
	// What is not set is not sent.
	if err := c.Chats().SetChatParameters(k.ID, console.ChatParameters{}); err != nil {
		t.Fatal(err)
	}
	asked(t, c, k.ID, console.ChatMessage{Text: "And now?"})
	want := `[{"role":"user","content":"Is it so?"},{"role":"assistant","content":"Yes."},{"role":"user","content":"And now?"}]`
	if got := s.last(); len(got) != 4 || string(got["messages"]) != want {
		t.Errorf("sent was %s", got)
	}
}

func TestChatParametersAreChecked(t *testing.T) {
	c, k := listening(t, &talker{})
	for says, p := range map[string]console.ChatParameters{
		"temperature":     {Temperature: given(-1.0)},
		"top_p":           {TopP: given(1.5)},
		"min_p":           {MinP: given(-0.1)},
		"top_k":           {TopK: given(-2)},
		"max_tokens":      {MaxTokens: given(0)},
		"effort":          {Reasoning: "very"},
		"JSON object":     {Extra: json.RawMessage(`[1]`)},
		"extra":           {Extra: json.RawMessage(`{`)},
		"messages":        {Extra: json.RawMessage(`{"messages":[]}`)},
		"stream":          {Extra: json.RawMessage(`{"stream":false}`)},
		"\"n\"":           {Extra: json.RawMessage(`{"n":2}`)},
		"array":           {Tools: json.RawMessage(`{"type":"function"}`)},
		"tool 1: its fun": {Tools: json.RawMessage(`[{"type":"function","function":{}}]`)},
	} {
		if err := c.Chats().SetChatParameters(k.ID, p); err == nil || !strings.Contains(err.Error(), strings.Split(says, ":")[0]) {
			t.Errorf("%s: %v", says, err)
		}
	}
	for says, m := range map[string]console.ChatMessage{
		"empty message":   {},
		"an empty":        {Text: " \n"},
		"fewer than 0":    {Fill: -1, Text: "x"},
		"are the most":    {Fill: maxChatFill + 1},
		"calls no tool":   {Text: "x", Tool: "f"},
		"17 pictures":     {Images: make([]console.ChatImage, 17)},
		"and it is text":  {Images: []console.ChatImage{{Name: "a.png", Data: []byte("hello")}}},
		"it is damaged":   {Images: []console.ChatImage{{Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\nxxxx")}}},
		"more than 20 Mi": {Images: []console.ChatImage{{Name: "a.png", Data: make([]byte, maxChatImage+1)}}},
	} {
		if err := c.Chats().Send(k.ID, m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// TestChatReasoning: off is sent as each family understands it, and the turn says what happened.
func TestChatReasoning(t *testing.T) {
	const kwargs = `{"enable_thinking":false,"thinking":false}`
	thinks := streamed(`{"reasoning_content":"Hm, "}`, `{"reasoning_content":"well."}`, `{"content":"Yes."}`)
	refuse := func(names ...string) func(map[string]json.RawMessage) (int, string) {
		return func(body map[string]json.RawMessage) (int, string) {
			for _, n := range names {
				name, value, _ := strings.Cut(n, "=")
				if raw, ok := body[name]; ok && (value == "" || string(raw) == value) {
					return 400, fmt.Sprintf(`{"error":{"message":"Unsupported value of '%s'."}}`, name)
				}
			}
			return 200, ""
		}
	}
	for _, c := range []struct {
		name, owner, level string
		answer             func(map[string]json.RawMessage) (int, string)
		sent               map[string]string
		remark             string
		requests           int
	}{
		{"vllm", "vllm", "off", nil, map[string]string{"chat_template_kwargs": kwargs, "reasoning_effort": ""}, "Reasoning was turned off by chat_template_kwargs.enable_thinking.", 1},
		{"sglang thinks", "sglang", "off", func(map[string]json.RawMessage) (int, string) { return 200, thinks }, map[string]string{"chat_template_kwargs": kwargs}, "; 2 reasoning tokens came all the same.", 1},
		{"llama.cpp", "llamacpp", "high", nil, map[string]string{"reasoning_effort": `"high"`, "chat_template_kwargs": `{"enable_thinking":true,"thinking":true,"reasoning_effort":"high"}`}, "Reasoning was asked for by reasoning_effort = high; none was seen.", 1},
		{"vllm low", "vllm", "low", func(map[string]json.RawMessage) (int, string) { return 200, thinks }, map[string]string{"reasoning_effort": `"low"`, "chat_template_kwargs": `{"enable_thinking":true,"thinking":true}`}, "reasoning_effort = low; 2 reasoning tokens came.", 1},
		{"ollama", "library", "off", nil, map[string]string{"reasoning_effort": `"none"`, "chat_template_kwargs": ""}, "Reasoning was turned off by reasoning_effort = none.", 1},
		{"unknown", "somebody", "off", nil, map[string]string{"chat_template_kwargs": kwargs}, "Reasoning was turned off by chat_template_kwargs", 1},
		{"unknown and strict", "somebody", "off", refuse("chat_template_kwargs"), map[string]string{"chat_template_kwargs": "", "reasoning_effort": `"none"`}, "Reasoning was turned off by reasoning_effort = none.", 2},
		{"takes nothing", "somebody", "off", refuse("chat_template_kwargs", "reasoning_effort"), map[string]string{"chat_template_kwargs": "", "reasoning_effort": ""}, "The server takes nothing that turns reasoning off.", 3},
		{"takes no level", "somebody", "high", refuse("reasoning_effort"), map[string]string{"reasoning_effort": ""}, "The server takes no level of reasoning; none was seen.", 2},
		{"hidden", "vllm", "off", func(map[string]json.RawMessage) (int, string) {
			return 200, strings.Replace(streamed(`{"content":"Yes."}`), `"completion_tokens":4`, `"completion_tokens":218,"completion_tokens_details":{"reasoning_tokens":1214}`, 1)
		}, nil, "; 1,214 reasoning tokens came all the same.", 1},
		{"estimated", "vllm", "off", func(map[string]json.RawMessage) (int, string) {
			return 200, strings.Replace(thinks, `"usage"`, `"none"`, 1)
		}, nil, "; about 3 reasoning tokens came all the same.", 1},
		{"in tags", "vllm", "off", func(map[string]json.RawMessage) (int, string) {
			return 200, streamed(`{"content":"<think>x</think>Yes."}`)
		}, nil, "; a <think> block came all the same.", 1},
		{"default", "vllm", "", func(map[string]json.RawMessage) (int, string) { return 200, thinks }, map[string]string{"chat_template_kwargs": "", "reasoning_effort": ""}, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &talker{owner: c.owner, answer: c.answer}
			con, k := listening(t, s)
			if err := con.Chats().SetChatParameters(k.ID, console.ChatParameters{Reasoning: c.level}); err != nil {
				t.Fatal(err)
			}
			u := asked(t, con, k.ID, console.ChatMessage{Text: "Is it so?"})
			if got := strings.Join(u.Remarks, " "); u.Status != bench.OK || !strings.Contains(got, c.remark) || (got == "") != (c.remark == "") {
				t.Errorf("%s %q, remarks %q", u.Status, u.Error, u.Remarks)
			}
			for name, want := range c.sent {
				if got := string(s.last()[name]); got != want {
					t.Errorf("%s was sent as %s, want %s", name, got, want)
				}
			}
			if n := s.count(); n != c.requests {
				t.Errorf("%d requests", n)
			}
			// What was refused is not tried again.
			if asked(t, con, k.ID, console.ChatMessage{Text: "Sure?"}); s.count() != c.requests+1 {
				t.Errorf("%d requests for the second turn", s.count()-c.requests)
			}
		})
	}
}

// TestReasoningOfHostedFamilies: servers that are told by their host.
func TestReasoningOfHostedFamilies(t *testing.T) {
	for address, want := range map[string]string{
		"https://api.openai.com/v1":                                `[reasoning_effort="none"; reasoning_effort="minimal"; reasoning_effort="low"; ]`,
		"https://x.openai.azure.com/openai/v1":                     `[reasoning_effort="none"; reasoning_effort="minimal"; reasoning_effort="low"; ]`,
		"https://openrouter.ai/api/v1":                             `[reasoning={"enabled":false}; reasoning_effort="none"; ]`,
		"https://api.deepseek.com/v1":                              `[thinking={"type":"disabled"}; ]`,
		"https://api.anthropic.com/v1":                             `[thinking={"type":"disabled"}; ]`,
		"https://generativelanguage.googleapis.com/v1beta/openai/": `[reasoning_effort="none"; reasoning_effort="minimal"; reasoning_effort="low"; ]`,
		"https://notopenai.com/v1":                                 `[chat_template_kwargs={"enable_thinking":false,"thinking":false}; reasoning_effort="none"; ]`,
	} {
		var got []string
		for _, o := range reasoningOptions(familyOf(console.Endpoint{}, address, "whoever"), console.ReasoningOff) {
			got = append(got, o.key())
		}
		if g := fmt.Sprint(got); strings.ReplaceAll(g, ";]", "; ]") != want && g != want {
			t.Errorf("%s: %s", address, g)
		}
	}
	for f, want := range map[family]string{
		familyDeepSeek:   `[reasoning_effort="high";thinking={"type":"enabled"}; reasoning_effort="high"; ]`,
		familyOpenRouter: `[reasoning={"effort":"high"}; reasoning_effort="high"; ]`,
		familyAnthropic:  `[thinking={"type":"enabled","budget_tokens":24576}; ]`,
		familyOpenAI:     `[reasoning_effort="high"; ]`,
	} {
		var got []string
		for _, o := range reasoningOptions(f, "high") {
			got = append(got, o.key())
		}
		if g := fmt.Sprint(got); g != want {
			t.Errorf("%s: %s", f, g)
		}
	}
	if f := familyOf(console.Endpoint{Engine: true}, "http://127.0.0.1:8000/v1", ""); f != familyVelo {
		t.Errorf("the engine is of the family %q", f)
	}
}

// TestChatRefusedParameters: each is left out once it was refused, and the turn says so; the session has
// the request that was answered, and a note.
func TestChatRefusedParameters(t *testing.T) {
	refused := []string{"top_k", "min_p", "max_tokens", "stream_options", "seed"}
	s := &talker{owner: "vllm", answer: func(body map[string]json.RawMessage) (int, string) {
		for _, name := range refused {
			if raw, ok := body[name]; ok && string(raw) != `"fine"` {
				return 422, fmt.Sprintf(`{"detail":[{"loc":["body",%q],"msg":"Extra inputs are not permitted","type":"extra_forbidden"}]}`, name)
			}
		}
		return 200, ""
	}}
	c, k := listening(t, s)
	p := console.ChatParameters{Temperature: given(0.1), TopK: given(1), MinP: given(0.1), MaxTokens: given(5), Extra: json.RawMessage(`{"seed":1}`)}
	if err := c.Chats().SetChatParameters(k.ID, p); err != nil {
		t.Fatal(err)
	}
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Is it so?"})
	remarks := strings.Join(u.Remarks, "\n")
	if u.Status != bench.OK || len(u.Remarks) != 4 || u.Request != 0 {
		t.Fatalf("%s %q, remarks %q", u.Status, u.Error, u.Remarks)
	}
	for _, want := range []string{"refused top_k, and it was left out", "refused min_p, and", "refused max_tokens; it was sent as max_completion_tokens", "refused seed, and it", "Extra inputs"} {
		if !strings.Contains(remarks, want) {
			t.Errorf("no remark says %q: %q", want, remarks)
		}
	}
	body := s.last()
	if string(body["max_completion_tokens"]) != "5" || string(body["temperature"]) != "0.1" || body["stream_options"] != nil || body["top_k"] != nil {
		t.Errorf("sent was %s", body)
	}
	n := s.count()
	if u = asked(t, c, k.ID, console.ChatMessage{Text: "Sure?"}); s.count() != n+1 || len(u.Remarks) != 4 || u.Request != 1 {
		t.Errorf("%d more requests, %+v", s.count()-n, u)
	}
	r, err := c.Report(u.Session)
	if err != nil || r.Run.OK != 2 || r.Run.Failed != 0 || len(r.Session.Notes) != n-1 {
		t.Errorf("the session has %d answers, %d failures, %d notes, %v", r.Run.OK, r.Run.Failed, len(r.Session.Notes), err)
	}
	// Another value is tried.
	p.TopK = given(2)
	if err := c.Chats().SetChatParameters(k.ID, p); err != nil {
		t.Fatal(err)
	}
	n = s.count()
	if asked(t, c, k.ID, console.ChatMessage{Text: "Sure?"}); s.count() != n+2 {
		t.Errorf("%d requests with another value", s.count()-n)
	}
	// What the user writes by hand wins over the level.
	q := console.ChatParameters{Reasoning: console.ReasoningOff, Extra: json.RawMessage(`{"chat_template_kwargs":{"enable_thinking":true}}`)}
	if err := c.Chats().SetChatParameters(k.ID, q); err != nil {
		t.Fatal(err)
	}
	u = asked(t, c, k.ID, console.ChatMessage{Text: "Sure?"})
	if got := s.last(); string(got["chat_template_kwargs"]) != `{"enable_thinking":true}` || got["reasoning_effort"] != nil || !strings.Contains(strings.Join(u.Remarks, " "), "level was not sent") {
		t.Errorf("sent was %s, remarks %q", got, u.Remarks)
	}
	// A refusal that names nothing is the user's to read.
	s.mu.Lock()
	s.answer = func(map[string]json.RawMessage) (int, string) {
		return 400, `{"error":{"message":"The prompt is too long: seeds and top_kinds do not count."}}`
	}
	s.mu.Unlock()
	n = s.count()
	if u = asked(t, c, k.ID, console.ChatMessage{Text: "Sure?"}); s.count() != n+1 || u.Status != bench.Failed || !strings.Contains(u.Error, "too long") {
		t.Errorf("%d requests, %+v", s.count()-n, u)
	}
}

// TestChatTools: calls are shown, results are sent as answers to them, and none is left open.
func TestChatTools(t *testing.T) {
	s := &talker{}
	s.answer = func(body map[string]json.RawMessage) (int, string) {
		if bytes.Contains(body["messages"], []byte(`"role":"tool"`)) {
			return 200, streamed(`{"content":"It rains."}`)
		}
		return 200, streamed(`{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"at\":"}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":"\"Ulm\"}"}}]}`, `{"tool_calls":[{"index":1,"id":"c2","function":{"name":"weather","arguments":"{}"}}]}`)
	}
	c, k := listening(t, s)
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Weather?"})
	want := []console.ChatCall{{Name: "weather", Arguments: `{"at":"Ulm"}`}, {Name: "weather", Arguments: "{}"}}
	if u.Status != bench.OK || !slices.Equal(u.Calls, want) || u.Answer != "" {
		t.Fatalf("got %+v", u)
	}
	if l := c.Chats().Live(); l.Call != `weather{"at":"Ulm"}weather{}` {
		t.Errorf("Live says %q", l.Call)
	}
	calls := `{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Ulm\"}"}},{"id":"c2","type":"function","function":{"name":"weather","arguments":"{}"}}]}`
	for _, x := range []struct {
		m    console.ChatMessage
		want string
	}{
		{console.ChatMessage{Text: "rain", Tool: "weather"}, `{"role":"tool","content":"rain","tool_call_id":"c1"},{"role":"tool","content":"No result was given.","tool_call_id":"c2"}`},
		{console.ChatMessage{Results: []string{"rain", "sun"}}, `{"role":"tool","content":"rain","tool_call_id":"c1"},{"role":"tool","content":"sun","tool_call_id":"c2"}`},
		{console.ChatMessage{Results: []string{"", "sun"}, Text: "Hurry."}, `{"role":"tool","content":"No result was given.","tool_call_id":"c1"},{"role":"tool","content":"sun","tool_call_id":"c2"},{"role":"user","content":"Hurry."}`},
		{console.ChatMessage{Text: "Never mind."}, `{"role":"tool","content":"No result was given.","tool_call_id":"c1"},{"role":"tool","content":"No result was given.","tool_call_id":"c2"},{"role":"user","content":"Never mind."}`},
	} {
		if err := c.Chats().ShowTurn(k.ID, u.ID); err != nil {
			t.Fatal(err)
		}
		v := readChat(t, c, k.ID).Turns
		if len(v) > 1 {
			x.m.Instead = v[1].ID
		}
		w := asked(t, c, k.ID, x.m)
		if got := string(s.last()["messages"]); got != `[{"role":"user","content":"Weather?"},`+calls+`,`+x.want+`]` {
			t.Errorf("%+v was sent as\n%s", x.m, got)
		}
		if w.Answer != "It rains." || w.Tool != x.m.Tool || !slices.Equal(w.Results, x.m.Results) || w.Parent != u.ID {
			t.Errorf("got %+v", w)
		}
	}
	turns := readChat(t, c, k.ID).Turns
	for says, m := range map[string]console.ChatMessage{
		"does not call it": {Text: "x", Tool: "f", Instead: turns[1].ID},
		"makes 2 calls":    {Results: []string{"a", "b", "c"}, Instead: turns[1].ID},
		"calls no tool":    {Text: "x", Tool: "weather"},
		"send the result":  {Text: "x", Tool: "weather", Fill: 9, Instead: turns[1].ID},
	} {
		if err := c.Chats().Send(k.ID, m); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// webp is a WebP picture of one pixel.
const webp = "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAgA0JaQAA3AA/vuUAAA="

func TestChatImages(t *testing.T) {
	picture := image.NewGray(image.Rect(0, 0, 3, 2))
	var asPNG, asJPEG, asGIF bytes.Buffer
	for _, err := range []error{png.Encode(&asPNG, picture), jpeg.Encode(&asJPEG, picture, nil), gif.Encode(&asGIF, picture, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	asWebP, err := base64.StdEncoding.DecodeString(webp)
	if err != nil {
		t.Fatal(err)
	}
	s := &talker{}
	c, k := listening(t, s)
	u := asked(t, c, k.ID, console.ChatMessage{Text: "What is it?", Images: []console.ChatImage{
		{Name: "a.png", MIME: "text/plain", Data: asPNG.Bytes()}, {Name: "b.jpg", Data: asJPEG.Bytes()}, {Data: asGIF.Bytes()}, {Name: "d.webp", Data: asWebP},
	}})
	var messages []struct {
		Content []struct {
			Type, Text string
			Image      struct{ URL string } `json:"image_url"`
		}
	}
	if err := json.Unmarshal(s.last()["messages"], &messages); err != nil || len(messages) != 1 || len(messages[0].Content) != 5 {
		t.Fatalf("sent was %.300s, %v", s.last()["messages"], err)
	}
	for i, want := range []struct{ mime, name string }{{"image/png", "a.png"}, {"image/jpeg", "b.jpg"}, {"image/gif", "picture 3"}, {"image/webp", "d.webp"}} {
		url := messages[0].Content[i+1].Image.URL
		data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(url, "data:"+want.mime+";base64,"))
		if got := u.Images[i]; err != nil || got.MIME != want.mime || got.Name != want.name || !bytes.Equal(data, got.Data) {
			t.Errorf("%s was sent as %.40s, and kept as %s %s (%v)", want.name, url, got.Name, got.MIME, err)
		}
	}
	// They are part of the conversation from then on, also after a restart.
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = reopened(t, c)
	asked(t, c, k.ID, console.ChatMessage{Text: "Sure?"})
	if got := s.last()["messages"]; !bytes.Contains(got, []byte("data:image/webp;base64,"+webp)) {
		t.Errorf("sent was %.300s", got)
	}
}

// TestChatFills: a fill has its size by the best count there is, and says which.
func TestChatFills(t *testing.T) {
	long := scenario(t, "instant")
	c, k := talking(t, long)
	plain := asked(t, c, k.ID, console.ChatMessage{Text: "What is it about?"})
	u := asked(t, c, k.ID, console.ChatMessage{Text: "What is it about?", Fill: 8192, Instead: plain.ID})
	if u.Fill != 8192 || u.FillBy != "server" || len(u.Remarks) != 0 || u.Status != bench.OK {
		t.Fatalf("got %+v", u)
	}
	if more := int(u.Measured.Prompt - plain.Measured.Prompt); more < 8190 || more > 8196 {
		t.Errorf("the server counted %d tokens more", more)
	}
	// The fill stays what it is: the next turn has it in its history.
	v := asked(t, c, k.ID, console.ChatMessage{Text: "Sure?"})
	if v.Measured.Prompt < u.Measured.Prompt {
		t.Errorf("the next prompt has %v tokens", v.Measured.Prompt)
	}
	s := &talker{}
	c, k = listening(t, s)
	u = asked(t, c, k.ID, console.ChatMessage{Fill: 2048})
	if u.FillBy != "estimate" || !strings.Contains(strings.Join(u.Remarks, " "), "estimate: the server has no /tokenize") || u.Fill < 2000 || u.Fill > 2100 {
		t.Errorf("got %d by %q, %q", u.Fill, u.FillBy, u.Remarks)
	}
	if n := len(s.last()["messages"]); n < 6000 || n > 14_000 {
		t.Errorf("a message of %d bytes", n)
	}
}

// TestChatFillIsChecked: a server whose count of the prompt contradicts its count of the fill is told of.
func TestChatFillIsChecked(t *testing.T) {
	s := &talker{} // which counts 9 prompt tokens, whatever comes
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/tokenize" {
			s.ServeHTTP(w, r)
			return
		}
		var q struct{ Prompt string }
		_ = json.NewDecoder(r.Body).Decode(&q)
		fmt.Fprintf(w, `{"count":%d}`, len(strings.Fields(q.Prompt)))
	}))
	defer server.Close()
	c, k := talkingTo(t, server.URL, "m")
	u := asked(t, c, k.ID, console.ChatMessage{Fill: 1024})
	if u.Fill != 1024 || u.FillBy != "server" || !strings.Contains(strings.Join(u.Remarks, " "), "counted 9 prompt tokens, fewer than the fill of 1,024") {
		t.Errorf("got %d by %q, %q", u.Fill, u.FillBy, u.Remarks)
	}
}

// TestChatWithTheEngine: the program's own engine counts with its model's tokenizer, and along.
func TestChatWithTheEngine(t *testing.T) {
	c, _ := configured(t, enginetest.Plain)
	key := "a-key-of-the-test"
	if err := c.Engine().SaveConfig(c.Engine().Config(), &key); err != nil {
		t.Fatal(err)
	}
	if err := c.Engine().Start(); err != nil {
		t.Fatal(err)
	}
	engineState(t, c, console.EngineReady)
	k, err := c.Chats().NewChat(console.EngineID, "")
	if err != nil {
		t.Fatal(err)
	}
	p := console.ChatParameters{MaxTokens: given(8), Reasoning: console.ReasoningOff, TopK: given(5), MinP: given(0.01)}
	if err := c.Chats().SetChatParameters(k.ID, p); err != nil {
		t.Fatal(err)
	}
	u := asked(t, c, k.ID, console.ChatMessage{Text: "Go.", Fill: 32})
	// This vocabulary is of bytes, so a length in words is met only nearly.
	if u.Status != bench.OK || u.Fill < 20 || u.Fill > 44 || u.FillBy != "tokenizer" || u.Measured.N == 0 {
		t.Fatalf("got %+v, %+v", u, u.Measured)
	}
	if u.Source != "server" || u.Measured.Counted != "continuous usage" {
		t.Errorf("tokens were counted by %s (%s)", u.Source, u.Measured.Counted)
	}
	for _, format := range []string{"markdown", "json", "curl"} {
		text, err := c.Chats().Text(k.ID, u.ID, format)
		if err != nil || strings.Contains(text, key) {
			t.Errorf("%s has the key in it, or %v", format, err)
		}
	}
}
