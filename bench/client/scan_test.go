package client

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"velo/bench"
)

// chunks are the shapes in which servers send a chunk, and what each says.
var chunks = []struct {
	name string
	data string
	want delta // Exact and Usage as given by none() unless set
	slow bool  // left to decodeChunk
}{
	{"role", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, delta{Choices: 1}, false},
	{"content", `{"choices":[{"index":0,"delta":{"content":"hi"}}]}`, delta{Choices: 1, Content: "hi"}, false},
	{"space", " {\n\t\"choices\" : [ { \"delta\" : { \"content\" : \"hi\" } } ] } ", delta{Choices: 1, Content: "hi"}, false},
	{"escapes", `{"choices":[{"delta":{"content":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}}]}`, delta{Choices: 1, Content: "\"\\/\b\f\n\r\té😀"}, false},
	{"half a pair", `{"choices":[{"delta":{"content":"a\ud83db"}}]}`, delta{Choices: 1, Content: "a\ufffdb"}, false},
	{"line separators", "{\"choices\":[{\"delta\":{\"content\":\"a\u2028b\u0085c\"}}]}", delta{Choices: 1, Content: "a\u2028b\u0085c"}, false},
	{"bad UTF-8", "{\"choices\":[{\"delta\":{\"content\":\"a\xffb\"}}]}", delta{Choices: 1, Content: "a\ufffdb"}, true},
	{"parts", `{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, delta{Choices: 1, Content: "ab"}, true},
	{"thinking parts", `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"b"}]}}]}`, delta{Choices: 1, Content: "b", Reasoning: "hm"}, true},
	{"reasoning_content", `{"choices":[{"delta":{"content":null,"reasoning_content":"r"}}]}`, delta{Choices: 1, Reasoning: "r"}, false},
	{"null hides nothing", `{"choices":[{"delta":{"reasoning_content":null,"reasoning":"r"}}]}`, delta{Choices: 1, Reasoning: "r"}, false},
	{"empty hides nothing", `{"choices":[{"delta":{"reasoning_content":"","reasoning":"","thinking":"t"}}]}`, delta{Choices: 1, Reasoning: "t"}, false},
	{"both count once", `{"choices":[{"delta":{"reasoning":"r","reasoning_content":"r"}}]}`, delta{Choices: 1, Reasoning: "r"}, false},
	{"reasoning then content", `{"choices":[{"delta":{"reasoning":"r","content":"c"}}]}`, delta{Choices: 1, Reasoning: "r", Content: "c"}, false},
	{"refusal", `{"choices":[{"delta":{"refusal":"no"}}]}`, delta{Choices: 1, Refusal: "no"}, false},
	{"tool call", `{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c","function":{"name":"f","arguments":"{\"a\""}}]}}]}`, delta{Choices: 1, Calls: []toolCall{{1, "f", `{"a"`, "c"}}}, true},
	{"tool arguments as JSON", `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}}]}`, delta{Choices: 1, Calls: []toolCall{{0, "f", `{"a":1}`, ""}}}, true},
	{"function call", `{"choices":[{"delta":{"function_call":{"arguments":"x"}}}]}`, delta{Choices: 1, Calls: []toolCall{{0, "", "x", ""}}}, true},
	{"no tool calls", `{"choices":[{"delta":{"content":"c","tool_calls":[],"function_call":null}}]}`, delta{Choices: 1, Content: "c"}, false},
	{"completion", `{"object":"text_completion","choices":[{"index":0,"text":"t","logprobs":null,"finish_reason":"length"}]}`, delta{Choices: 1, Content: "t", Finish: "length"}, false},
	{"other choices", `{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]}`, delta{Choices: 2, Ignored: 1, Content: "a"}, true},
	{"only another", `{"choices":[{"index":1,"delta":{"content":"b"}}]}`, delta{Choices: 1, Ignored: 1}, true},
	{"usage", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1,"accepted_prediction_tokens":5,"rejected_prediction_tokens":6}}}`, delta{HasUsage: true, Usage: bench.Usage{Prompt: 3, Completion: 4, Reasoning: 1, Cached: 2, Accepted: 5, Rejected: 6}}, false},
	{"usage at its root", `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"reasoning_tokens":0,"cached_tokens":1,"accepted_prediction_tokens":8,"rejected_prediction_tokens":9,"prompt_tokens_details":null}}`, delta{HasUsage: true, Usage: bench.Usage{Prompt: 3, Completion: 4, Reasoning: 0, Cached: 1, Accepted: 8, Rejected: 9}}, false},
	{"usage in the choice", `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":4}}]}`, delta{Choices: 1, Finish: "stop", HasUsage: true, Usage: bench.Usage{Prompt: 3, Completion: 4, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}}, false},
	{"cache hits", `{"usage":{"prompt_tokens":3,"prompt_cache_hit_tokens":2}}`, delta{HasUsage: true, Usage: bench.Usage{Prompt: 3, Completion: -1, Reasoning: -1, Cached: 2, Accepted: -1, Rejected: -1}}, false},
	{"usage null", `{"choices":[{"delta":{"content":"a"}}],"usage":null}`, delta{Choices: 1, Content: "a"}, false},
	{"usage empty", `{"choices":[],"usage":{}}`, delta{}, false},
	{"usage as floats", `{"choices":[],"usage":{"prompt_tokens":3.0,"completion_tokens":1e1}}`, delta{HasUsage: true, Usage: bench.Usage{Prompt: 3, Completion: 10, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}}, true},
	{"usage negative", `{"choices":[],"usage":{"prompt_tokens":-3,"completion_tokens":"4"}}`, delta{}, true},
	{"timings", `{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"prompt_n":5,"prompt_ms":12.5,"predicted_n":7,"predicted_ms":70.25,"draft_n":4,"draft_n_accepted":3}}`, delta{Choices: 1, Finish: "stop", HasTiming: true, Timings: bench.Timings{PromptN: 5, PromptMS: 12.5, PredictedN: 7, PredictedMS: 70.25, CacheN: -1, DraftN: 4, DraftAccepted: 3}}, true},
	{"logprobs", `{"choices":[{"delta":{"content":"ab"},"logprobs":{"content":[{"token":"a"},{"token":"b"}],"refusal":null}}]}`, delta{Choices: 1, Content: "ab", Exact: 2}, false},
	{"completion logprobs", `{"choices":[{"text":"ab","logprobs":{"tokens":["a","b","c"],"token_logprobs":[0,0,0]}}]}`, delta{Choices: 1, Content: "ab", Exact: 3}, false},
	{"token ids", `{"choices":[{"delta":{"content":"ab"},"token_ids":[5,6],"logprobs":{"content":[{}]}}]}`, delta{Choices: 1, Content: "ab", Exact: 2}, false},
	{"error", `{"error":{"message":"boom","code":500}}`, delta{Failed: true}, true},
	{"error text", `{"error":"boom"}`, delta{Failed: true}, true},
	{"error object", `{"object":"error","message":"boom"}`, delta{Failed: true}, true},
	{"error null", `{"error":null,"choices":[{"delta":{"content":"a"}}]}`, delta{Choices: 1, Content: "a"}, false},
	{"error empty", `{"error":"","choices":[]}`, delta{}, true},
	{"member twice", `{"choices":[{"delta":{"content":"a","content":"b"}}]}`, delta{Choices: 1, Content: "b"}, true},
	{"escaped name", `{"choices":[{"delta":{"cont\u0065nt":"a"}}]}`, delta{Choices: 1, Content: "a"}, true},
	{"other case", `{"Choices":[],"choices":[{"delta":{"Content":"a"}}]}`, delta{Choices: 1}, false},
	{"odd types", `{"choices":[{"delta":{"content":5,"refusal":{}},"finish_reason":1}],"usage":[1]}`, delta{Choices: 1}, true},
	{"no choices", `{"choices":null,"created":1e3,"x":[[],{},-0.5,true,false,null]}`, delta{}, false},
}

// none fills in what a delta of nothing has.
func none(d delta) delta {
	if d.Exact == 0 {
		d.Exact = -1
	}
	if !d.HasUsage {
		d.Usage = noUsage
	}
	return d
}

func TestChunks(t *testing.T) {
	for _, c := range chunks {
		t.Run(c.name, func(t *testing.T) {
			want := none(c.want)
			got, err := decodeChunk([]byte(c.data))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("decodeChunk = %+v, %v, want %+v", got, err, want)
			}
			got, ok := scanChunk([]byte(c.data))
			if ok == c.slow {
				t.Errorf("scanChunk reads it: %v", ok)
			}
			if ok && !reflect.DeepEqual(got, want) {
				t.Errorf("scanChunk = %+v, want %+v", got, want)
			}
		})
	}
}

func TestMalformedChunks(t *testing.T) {
	for _, data := range []string{"", "null", "5", `"x"`, "[]", "{", `{"choices":[}`, `{"choices":[]}x`, `{"a":01}`, `{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":+1}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a" 1}`, `{"a":tru}`, `{,}`, `{"a":1,}`, `{"a":[1,]}`, "{\"a\":\"\\"} {
		if d, err := decodeChunk([]byte(data)); err == nil {
			t.Errorf("decodeChunk(%q) = %+v, want an error", data, d)
		}
		if d, ok := scanChunk([]byte(data)); ok {
			t.Errorf("scanChunk(%q) = %+v, want none", data, d)
		}
	}
}

// agree requires that what scanChunk reads it reads as decodeChunk does.
func agree(t interface {
	Fatalf(string, ...any)
	Helper()
}, data []byte) {
	t.Helper()
	fast, ok := scanChunk(data)
	if !ok {
		return
	}
	slow, err := decodeChunk(data)
	if err != nil || !reflect.DeepEqual(fast, slow) {
		t.Fatalf("%q:\nscan   %+v\ndecode %+v, %v", data, fast, slow, err)
	}
}

func FuzzScan(f *testing.F) {
	for _, c := range chunks {
		f.Add([]byte(c.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, data) })
}

// TestScanAgrees builds chunks out of the members that matter, with values of all kinds.
func TestScanAgrees(t *testing.T) {
	names := []string{"choices", "index", "delta", "content", "reasoning", "reasoning_content", "thinking", "refusal", "tool_calls", "function_call", "text", "finish_reason", "logprobs", "tokens", "token_ids", "usage", "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens", "completion_tokens_details", "reasoning_tokens", "accepted_prediction_tokens", "error", "object", "timings", "x"}
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(
			rapid.Just(any(nil)), rapid.Just(any(0)), rapid.Just(any(json.Number("7"))), rapid.Just(any("")),
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Float64(), func(f float64) any { return f }),
			rapid.Map(rapid.IntRange(-2, 2000000000), func(n int) any { return n }),
			rapid.Just(any(true)), rapid.Just(any("chat.completion.chunk")), rapid.Just(any("stop")),
		)
		if depth == 0 {
			return leaf
		}
		object := rapid.Map(rapid.MapOfN(rapid.SampledFrom(names), value(depth-1), 0, 6), func(m map[string]any) any { return m })
		list := rapid.Map(rapid.SliceOfN(value(depth-1), 0, 2), func(l []any) any { return l })
		return rapid.OneOf(leaf, object, list)
	}
	read := 0
	rapid.Check(t, func(t *rapid.T) {
		choice := rapid.MapOfN(rapid.SampledFrom(names), value(2), 0, 5).Draw(t, "choice")
		if rapid.Bool().Draw(t, "ordinary") {
			choice["delta"] = rapid.MapOfN(rapid.SampledFrom(names), value(0), 0, 5).Draw(t, "delta")
			choice["index"] = 0
		}
		top := rapid.MapOfN(rapid.SampledFrom(names), value(2), 0, 3).Draw(t, "top")
		top["choices"] = []any{choice}
		data, err := json.Marshal(top)
		if err != nil {
			t.Skip()
		}
		if _, ok := scanChunk(data); ok {
			read++
		}
		agree(t, data)
	})
	if read == 0 {
		t.Error("scanChunk read none of them")
	}
}
