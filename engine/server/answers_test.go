package server

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"velo/engine/enginetest"
	"velo/engine/sched"
)

// TestStops: nothing of a stop string is ever sent, streamed or not, and the answer ends with it.
func TestStops(t *testing.T) {
	r := start(t, nil)
	base := `{` + hello + `,"max_tokens":60,"temperature":0,"ignore_eos":true`
	whole := *r.ask(t, "/v1/chat/completions", base+`}`).Choices[0].Message.Content
	least := *r.ask(t, "/v1/chat/completions", base+`,"min_tokens":60}`).Choices[0].Message.Content // no end is chosen then
	runes := []rune(whole)
	if len(runes) < 20 {
		t.Fatalf("the answer is only %q", whole)
	}
	for _, span := range [][2]int{{0, 1}, {3, 6}, {7, 15}, {len(runes) - 3, len(runes)}} {
		stop := string(runes[span[0]:span[1]])
		if strings.ContainsRune(stop, '\uFFFD') {
			continue // bytes that are no character: their ends differ from the whole text's
		}
		want := whole[:strings.Index(whole, stop)]
		q, _ := json.Marshal([]string{"never there", stop})
		body := base + `,"stop":` + string(q)
		a := r.ask(t, "/v1/chat/completions", body+`}`)
		c := a.Choices[0]
		if *c.Message.Content != want || c.Finish != "stop" || c.Stop != stop {
			t.Errorf("stop %q gave %q (%s, %v), want %q", stop, *c.Message.Content, c.Finish, c.Stop, want)
		}
		if a.Usage.Completion >= 60 {
			t.Errorf("stop %q did not free the lane: %d tokens", stop, a.Usage.Completion)
		}
		content, _, finish := said(r.chunks(t, "/v1/chat/completions", body+`,"stream":true}`), 0)
		if content != want || finish != "stop" {
			t.Errorf("streamed, stop %q gave %q (%s), want %q", stop, content, finish, want)
		}
		// Before min_tokens it does not count.
		a = r.ask(t, "/v1/chat/completions", body+`,"min_tokens":60}`)
		if a.Usage.Completion != 60 || *a.Choices[0].Message.Content != least {
			t.Errorf("with min_tokens stop %q ended after %d tokens", stop, a.Usage.Completion)
		}
	}
}

// TestSeeds: a seed gives the same answer again, and each of n answers what its seed gives alone.
func TestSeeds(t *testing.T) {
	r := start(t, nil)
	ask := func(seed, n int) []string {
		a := r.ask(t, "/v1/chat/completions", fmt.Sprintf(`{%s,"max_tokens":20,"temperature":1.5,"top_p":1,"top_k":0,"seed":%d,"n":%d}`, hello, seed, n))
		if len(a.Choices) != n || a.Usage.Completion > 20*n || a.Usage.Prompt > 100 {
			t.Fatalf("n %d gave %+v", n, a)
		}
		var texts []string
		for i, c := range a.Choices {
			if c.Index != i {
				t.Errorf("choice %d has index %d", i, c.Index)
			}
			texts = append(texts, *c.Message.Content+c.Message.Reasoning)
		}
		return texts
	}
	three := ask(5, 3)
	for i, text := range three {
		if alone := ask(5+i, 1)[0]; alone != text {
			t.Errorf("answer %d is %q, alone %q", i, text, alone)
		}
	}
	if three[0] == three[1] && three[1] == three[2] {
		t.Errorf("three seeds gave the same answer %q", three[0])
	}
	chunks := r.chunks(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":20,"temperature":1.5,"top_p":1,"top_k":0,"seed":5,"n":3,"stream":true}`)
	for i, text := range three {
		content, reasoning, finish := said(chunks, i)
		if content+reasoning != text || finish == "" {
			t.Errorf("streamed, answer %d is %q (%s), not %q", i, content, finish, text)
		}
	}
	if last := chunks[len(chunks)-1]; last.Usage == nil || last.Usage.Completion < 3 {
		t.Errorf("the last chunk is %+v", last)
	}
}

func TestLogProbs(t *testing.T) {
	r := start(t, nil)
	body := `{` + hello + `,"max_tokens":10,"temperature":0,"ignore_eos":true,"logprobs":true,"top_logprobs":3`
	a := r.ask(t, "/v1/chat/completions", body+`}`)
	list := a.Choices[0].Logprob.Content
	if len(list) != 10 {
		t.Fatalf("10 tokens have %d log-probabilities", len(list))
	}
	var text []byte
	for i, l := range list {
		if len(l.Top) != 3 || l.Logprob > 0 || l.Top[0].Logprob < l.Top[1].Logprob || l.Token != l.Top[0].Token || math.Abs(l.Logprob-l.Top[0].Logprob) > 1e-6 {
			t.Errorf("token %d has %+v", i, l)
		}
		for _, b := range l.Raw {
			text = append(text, byte(b))
		}
	}
	if got, want := string(text), *a.Choices[0].Message.Content; strings.ToValidUTF8(got, "\uFFFD") != want && !strings.Contains(want, "\uFFFD") {
		t.Errorf("the bytes say %q, the answer %q", got, want)
	}
	streamed := 0
	for _, c := range r.chunks(t, "/v1/chat/completions", body+`,"stream":true}`) {
		if len(c.Choices) > 0 && c.Choices[0].Logprob != nil {
			for _, l := range c.Choices[0].Logprob.Content {
				if l.Logprob != list[streamed].Logprob || l.Token != list[streamed].Token {
					t.Errorf("streamed, token %d is %+v, not %+v", streamed, l, list[streamed])
				}
				streamed++
			}
		}
	}
	if streamed != 10 {
		t.Errorf("%d log-probabilities were streamed", streamed)
	}
	a = r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":2,"logprobs":true}`)
	if l := a.Choices[0].Logprob.Content; len(l) == 0 || len(l[0].Top) != 0 {
		t.Errorf("without top_logprobs they are %+v", l)
	}
	plain := r.ask(t, "/v1/completions", `{"prompt":"the","max_tokens":5,"temperature":0,"ignore_eos":true,"logprobs":2}`).Choices[0]
	if l := plain.Logprob; len(l.Tokens) != 5 || len(l.Values) != 5 || len(l.Top) != 5 || len(l.Top[0]) == 0 || len(l.Where) != 5 || l.Where[0] != 0 || l.Where[1] == 0 {
		t.Errorf("the plain log-probabilities are %+v", plain.Logprob)
	}
}

func TestCompletions(t *testing.T) {
	r := start(t, nil)
	one := r.ask(t, "/v1/completions", `{"prompt":"the hour","temperature":0,"ignore_eos":true}`)
	if one.Object != "text_completion" || !strings.HasPrefix(one.ID, "cmpl-") || one.Usage.Completion != 16 || one.Choices[0].Finish != "length" || one.Session != "" {
		t.Errorf("the completion is %+v", one)
	}
	ids := r.ask(t, "/completions", fmt.Sprintf(`{"prompt":%s,"temperature":0,"ignore_eos":true}`, idList(r.engine.Text("the hour"))))
	if ids.Choices[0].Text != one.Choices[0].Text || one.Choices[0].Text == "" {
		t.Errorf("as ids it is %q, as text %q", ids.Choices[0].Text, one.Choices[0].Text)
	}
	many := r.ask(t, "/v1/completions", `{"prompt":["a","the hour","b"],"n":2,"temperature":0,"ignore_eos":true}`)
	if len(many.Choices) != 6 || many.Choices[2].Text != one.Choices[0].Text || many.Choices[3].Text != one.Choices[0].Text || many.Usage.Completion != 6*16 {
		t.Errorf("three prompts gave %+v", many)
	}
	if want := len(r.engine.Text("a")) + len(r.engine.Text("the hour")) + len(r.engine.Text("b")); many.Usage.Prompt != want {
		t.Errorf("the prompts have %d tokens, not %d", many.Usage.Prompt, want)
	}
	both := r.ask(t, "/v1/completions", `{"prompt":[[100,101],[102]],"max_tokens":1}`)
	if len(both.Choices) != 2 || both.Usage.Prompt != 3 {
		t.Errorf("two prompts of ids gave %+v", both)
	}
	chunks := r.chunks(t, "/v1/completions", `{"prompt":["the hour","a"],"temperature":0,"ignore_eos":true,"stream":true}`)
	if text, _, finish := said(chunks, 0); text != one.Choices[0].Text || finish != "length" {
		t.Errorf("streamed it is %q (%s), not %q", text, finish, one.Choices[0].Text)
	}
	if last := chunks[len(chunks)-1]; last.Usage == nil || last.Usage.Completion != 32 || last.Timings["predicted_n"] != 32 {
		t.Errorf("a streamed completion ends with %+v", last)
	}
	cut := r.ask(t, "/v1/completions", `{"prompt":"a long prompt of which two tokens stay","truncate_prompt_tokens":2,"max_tokens":1}`)
	if cut.Usage.Prompt != 2 {
		t.Errorf("a prompt cut to 2 tokens has %d", cut.Usage.Prompt)
	}
	long := r.ask(t, "/v1/completions", `{"prompt":"`+strings.Repeat("word ", 2000)+`","truncate_prompt_tokens":-1,"max_tokens":9}`)
	if long.Usage.Prompt != 511 || long.Usage.Completion != 1 {
		t.Errorf("a prompt cut to what fits has usage %+v", long.Usage)
	}
}

func TestTokenize(t *testing.T) {
	r := start(t, nil)
	type tokens struct {
		Tokens []int32
		Count  int
		Max    int      `json:"max_model_len"`
		Texts  []string `json:"token_strs"`
		Prompt string
	}
	get := func(path, body string) (v tokens) {
		code, _, b := r.post(t, path, body)
		if err := json.Unmarshal(b, &v); err != nil || code != 200 {
			t.Fatalf("%s %s gave %d %s", path, body, code, b)
		}
		return v
	}
	v := get("/v1/tokenize", `{"prompt":"the hour<|im_end|>","return_token_strs":true}`)
	if v.Count != len(v.Tokens) || v.Max != 512 || v.Tokens[v.Count-1] != enginetest.First+2 || strings.Join(v.Texts, "") != "the hour<|im_end|>" {
		t.Errorf("tokens are %+v", v)
	}
	if back := get("/detokenize", fmt.Sprintf(`{"tokens":%s}`, idList(v.Tokens))); back.Prompt != "the hour<|im_end|>" {
		t.Errorf("they say %q", back.Prompt)
	}
	if back := get("/v1/detokenize", fmt.Sprintf(`{"tokens":%s,"skip_special_tokens":true}`, idList(v.Tokens))); back.Prompt != "the hour" {
		t.Errorf("without special ones they say %q", back.Prompt)
	}
	if empty := get("/v1/detokenize", `{"tokens":[]}`); empty.Prompt != "" {
		t.Errorf("no tokens say %q", empty.Prompt)
	}
	if empty := get("/v1/tokenize", `{"prompt":""}`); empty.Count != 0 || empty.Tokens == nil {
		t.Errorf("no text is %+v", empty)
	}
	rendered := get("/tokenize", `{`+hello+`}`)
	a := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":1}`)
	if rendered.Count != a.Usage.Prompt {
		t.Errorf("tokenize counts %d, chat %d", rendered.Count, a.Usage.Prompt)
	}
	if cut := get("/tokenize", `{`+hello+`,"truncate_prompt_tokens":4}`); cut.Count != 4 || cut.Tokens[3] != rendered.Tokens[rendered.Count-1] {
		t.Errorf("the last 4 are %+v", cut)
	}
}

// TestContext: an answer never goes beyond the context, and a conversation can be cut to fit.
func TestContext(t *testing.T) {
	r := start(t, nil)
	a := r.ask(t, "/v1/chat/completions", `{`+hello+`,"ignore_eos":true}`)
	if a.Usage.Total != 512 || a.Choices[0].Finish != "length" {
		t.Errorf("an answer without a limit has usage %+v (%s)", a.Usage, a.Choices[0].Finish)
	}
	a = r.ask(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"`+strings.Repeat("word ", 1000)+`"}],"truncate_prompt_tokens":100,"max_tokens":5,"ignore_eos":true}`)
	if a.Usage.Prompt != 100 || a.Usage.Completion != 5 {
		t.Errorf("a conversation cut to 100 tokens has usage %+v", a.Usage)
	}
	a = r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":4,"max_completion_tokens":2,"ignore_eos":true}`)
	if a.Usage.Completion != 2 {
		t.Errorf("max_completion_tokens does not win: %d tokens", a.Usage.Completion)
	}
}

// TestBoundaries: the ends of messages are found as numbers of tokens, and a second turn finds the
// first one in the cache.
func TestBoundaries(t *testing.T) {
	r := start(t, nil)
	body := `{"messages":[{"role":"system","content":"be brief, in all that follows here"},{"role":"user","content":"the hour and the day"},{"role":"assistant","content":"noon"},{"role":"user","content":"and then"}]}`
	o, e := newObject([]byte(body), InvalidBody, "", "")
	if e != nil {
		t.Fatal(e)
	}
	j, e := r.server.readChat(o, "")
	if e != nil {
		t.Fatal(e)
	}
	if len(j.boundaries) != 3 {
		t.Fatalf("the boundaries are %v", j.boundaries)
	}
	want := []string{"<|im_start|>system\nbe brief, in all that follows here<|im_end|>\n", "noon<|im_end|>\n", "and then<|im_end|>\n"}
	for i, b := range j.boundaries {
		if text := r.engine.Tokenizer.Decode(j.prompts[0][:b]); !strings.HasSuffix(text, want[i]) {
			t.Errorf("boundary %d is behind %q", i, text)
		}
	}
	long := strings.Repeat("the hour and the day ", 10)
	first := `{"role":"user","content":"` + long + `"}`
	a := r.ask(t, "/v1/chat/completions", `{"messages":[`+first+`],"max_tokens":4,"temperature":0}`)
	if a.Usage.Details.Cached != 0 {
		t.Errorf("a first turn has %d cached tokens", a.Usage.Details.Cached)
	}
	b := r.ask(t, "/v1/chat/completions", `{"messages":[`+first+`,{"role":"assistant","content":"other words"},{"role":"user","content":"more"}],"max_tokens":4}`)
	if b.Usage.Details.Cached < 60 || b.Timings["cache_n"] != float64(b.Usage.Details.Cached) {
		t.Errorf("the second turn has %d cached tokens of %d", b.Usage.Details.Cached, b.Usage.Prompt)
	}
	if b.Session != a.Session {
		t.Errorf("the second turn is session %s, the first %s", b.Session, a.Session)
	}
}

func TestSessions(t *testing.T) {
	r := start(t, nil)
	session := func(header, metadata string) string {
		var h []string
		if header != "" {
			h = []string{"X-Session-Id", header}
		}
		code, _, b := r.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":1`+metadata+`}`, h...)
		if code != 200 {
			t.Fatalf("%d %s", code, b)
		}
		return decode(t, b).Session
	}
	if got := session("h", `,"metadata":{"session_id":"s","conversation_id":"c"}`); got != "h" {
		t.Errorf("the header gave %q", got)
	}
	if got := session("", `,"metadata":{"conversation_id":"c","session_id":"s"}`); got != "s" {
		t.Errorf("session_id gave %q", got)
	}
	if got := session("", `,"metadata":{"conversation_id":"c"}`); got != "c" {
		t.Errorf("conversation_id gave %q", got)
	}
	if a, b := session("", ""), session("", ""); a == b || !strings.HasPrefix(a, "sess-") || len(a) != 17 {
		t.Errorf("two conversations are %q and %q", a, b)
	}
}

// TestLoops ends an answer that repeats itself.
func TestLoops(t *testing.T) {
	r := start(t, func(_ *Options, so *sched.Options) { so.LoopWindow, so.LoopRepeats = 20, 3 })
	a := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":400,"ignore_eos":true,"temperature":0,"logit_bias":{"65":100}}`)
	if c := a.Choices[0]; c.Finish != "stop" || c.Stop != "loop_detected" || a.Usage.Completion >= 400 || !strings.HasPrefix(*c.Message.Content, strings.Repeat("b", 10)) && !strings.Contains(*c.Message.Content, "aa") && a.Usage.Completion < 20 {
		t.Errorf("a loop gave %s %v after %d tokens: %q", c.Finish, c.Stop, a.Usage.Completion, *c.Message.Content)
	}
}
