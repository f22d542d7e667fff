// Package sample makes sessions shaped like real ones, for the tests and benchmarks of package store.
package sample

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"velo/assets"
	"velo/bench"
)

// Shape says what a session looks like.
type Shape struct {
	Chunks  int           // in all
	Streams int           // at once
	Tokens  int           // chunks a request
	Gap     time.Duration // mean time between two chunks of a request
	Jitter  time.Duration // its standard deviation
	Delay   time.Duration // median of user − kernel stamp; log-normal, σ = 0.5
	Text    bool          // English prose; else empty texts
	Seed    uint64
}

// Load is 64 streams of 100 tokens/s that each carry 500 tokens a request.
func Load(chunks int, text bool) Shape {
	return Shape{
		Chunks: chunks, Streams: 64, Tokens: 500, Gap: 10 * time.Millisecond, Jitter: time.Millisecond,
		Delay: 100 * time.Microsecond, Text: text, Seed: 1,
	}
}

// Header returns the first event of a session.
func Header(id string) *bench.Header {
	return &bench.Header{
		Schema: bench.SchemaVersion, ID: id, Anchor: time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC),
		Title:    "Sanity & arithmetic",
		Endpoint: bench.Endpoint{Name: "local", URL: "http://localhost:8000/v1", Model: "some-model-7b"},
		Suite:    json.RawMessage(`{"id":"sanity","title":"Sanity & arithmetic","steps":[{"type":"section","title":"A"},{"type":"prompt","text":"2+2?"}]}`),
		Plan:     bench.Plan{Workers: 64, Repeat: 1, Prefix: bench.PrefixSalted, Failure: bench.FailureContinue, Protocol: "http/1.1"},
		Environment: bench.Environment{
			Velo: "0.1.0", Go: "go1.26", OS: "linux/amd64", Cores: 2, Extra: map[string]string{"note": "<&>"},
		},
		Drawing: bench.DrawingNone,
	}
}

// Events gives the events of a session to emit, in the order in which they would happen, without
// its header: one step, its requests, a sample a second, a finish.
func (s Shape) Events(emit func(bench.Event)) {
	random := rand.New(rand.NewPCG(s.Seed, 2))
	corpus := assets.Corpus()
	emit(&bench.Step{Section: "A", Title: "prompt", Kind: "prompt", Workers: s.Streams, Barrier: true, Released: time.Second})
	var queue streams
	number := 0
	begin := func(worker int, at time.Duration) {
		emit(&bench.Request{
			Number: number, Worker: worker, Session: fmt.Sprintf("%016x", random.Uint64()), Planned: at, Start: at,
			AskedOutput: s.Tokens, Prompt: fmt.Sprintf("[%08x] ", random.Uint32()) + corpus[:200], PromptBytes: 211, Parameters: json.RawMessage(`{"model":"some-model-7b","stream":true}`),
		})
		emit(&bench.Conn{
			Request: number, Reused: number >= s.Streams, Remote: "127.0.0.1:8000", DNS: bench.Unset, Connect: bench.Unset, TLS: bench.Unset,
			Wrote: at + 40*time.Microsecond, FirstByte: at + 180*time.Millisecond, Status: 200, Server: "uvicorn",
		})
		heap.Push(&queue, &stream{request: number, worker: worker, at: at + 180*time.Millisecond, text: pieces{corpus, number * s.Tokens * 5 % len(corpus)}})
		number++
	}
	for w := range s.Streams {
		begin(w, time.Second+time.Duration(random.Int64N(int64(time.Millisecond))))
	}
	sampled := time.Duration(0)
	var at time.Duration
	for range s.Chunks {
		st := queue[0]
		at = st.at
		if at-sampled >= time.Second {
			sampled = at
			emit(&bench.Sample{At: at, CPU: at / 3, Readers: s.Streams, InFlight: s.Streams, GCPauses: int(at / time.Second), Heap: 1 << 24})
		}
		if st.chunks == 0 || random.IntN(50) > 0 { // one in fifty shares the read of the one before
			st.read++
			st.delay = time.Duration(float64(s.Delay) * math.Exp(random.NormFloat64()/2))
			st.stamp = at
		}
		c := bench.Chunk{Request: st.request, Read: st.read, Kernel: st.stamp, User: st.stamp + st.delay, Usage: -1, Exact: -1}
		if s.Text {
			c.Text = st.text.next()
		}
		emit(bench.Chunks{c})
		st.chunks++
		st.at += max(0, s.Gap+time.Duration(random.NormFloat64()*float64(s.Jitter)))
		if st.chunks < s.Tokens {
			heap.Fix(&queue, 0)
			continue
		}
		heap.Pop(&queue)
		emit(&bench.End{
			Request: st.request, Status: bench.OK, By: bench.EndDone, Finish: "length", End: at + st.delay, Close: at + st.delay + 80*time.Microsecond,
			Stamp: bench.KernelStamp, Reads: int(st.read), Events: st.chunks, Bytes: int64(st.chunks) * 200,
			Usage: &bench.Usage{Prompt: 50, Completion: st.chunks, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1},
		})
		begin(st.worker, at+time.Millisecond)
	}
	emit(&bench.Finish{At: at + time.Second, State: bench.Done})
}

type stream struct {
	request, worker, chunks int
	read                    int32
	at, stamp, delay        time.Duration
	text                    pieces
}

// streams is a heap by time of the next chunk.
type streams []*stream

func (s streams) Len() int           { return len(s) }
func (s streams) Less(i, j int) bool { return s[i].at < s[j].at }
func (s streams) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *streams) Push(x any)        { *s = append(*s, x.(*stream)) }
func (s *streams) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	*s = (*s)[:last]
	return x
}

// pieces cuts prose into parts like a tokenizer's: a space and up to seven letters, or a mark.
type pieces struct {
	text string
	at   int
}

func (p *pieces) next() string {
	if p.at >= len(p.text) {
		p.at = 0
	}
	start := p.at
	for p.at++; p.at < len(p.text) && p.at-start < 8 && letter(p.text[p.at]); p.at++ {
	}
	return p.text[start:p.at]
}

func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b >= 0x80 }
