package server

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"velo/engine/chat"
	"velo/engine/sched"
)

// BenchmarkChunk is what a token of a stream costs the server: its text, the parser, the chunk.
func BenchmarkChunk(b *testing.B) {
	r := start(b, nil)
	j := &job{stream: true, copies: 1, top: -1, stops: []string{"never"}, style: chat.Style{Think: true, Format: chat.Tagged, Tools: chat.Tools{"f": {}}}}
	f := r.server.chatForm()
	a := &answer{reader: r.server.newReader(j), parser: chat.NewParser(j.style), begun: newCallStream(j.style), stop: -1}
	a.logprobs.want = -1
	out := newEvents(httptest.NewRecorder(), writeTimeout)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		f.say(r.server, out, a, a.push(sched.Token{ID: int32(97 + i%20)}, false))
		out.buf = out.buf[:0]
	}
}

// BenchmarkRead is what a request costs before it is submitted: a conversation of so many messages.
func BenchmarkRead(b *testing.B) {
	r := startOn(b, folders(), 2048, nil)
	for _, n := range []int{1, 15} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			body := `{"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"`+strings.Repeat("the hour and ", 10)+`"},{"role":"assistant","content":"x"},`, n), ",") + `]}`
			for b.Loop() {
				if e := checkJSON([]byte(body)); e != nil {
					b.Fatal(e)
				}
				o, e := newObject([]byte(body), InvalidBody, "", "")
				if e != nil {
					b.Fatal(e)
				}
				if _, e := r.server.readChat(o, ""); e != nil {
					b.Fatal(e)
				}
			}
		})
	}
}

// BenchmarkForced is what forcing a call of one of many tools costs.
func BenchmarkForced(b *testing.B) {
	var tools []tool
	for i := range 100 {
		tools = append(tools, tool{name: fmt.Sprintf("tool_%d", i), parameters: []byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"enum":["x","y"]},"d":{"type":"array","items":{"type":"number"}}},"required":["a"],"additionalProperties":false}`)})
	}
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, e := callGrammar(tools[:n], chat.Tagged, false, true); e != nil {
					b.Fatal(e)
				}
			}
		})
	}
}
