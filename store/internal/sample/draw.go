package sample

import (
	"encoding/json"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
)

// Draw makes any session of the given identity that keeps the order that a Sink is promised: a
// request's start, its connection, chunks, end. Requests interleave, times are in no order, some
// requests never end, and there may be no finish.
func Draw(t *rapid.T, id string) (*bench.Header, []bench.Event) {
	h := Header(id)
	h.Title = text.Draw(t, "title")
	h.Plan.SLO = []bench.SLO{{Metric: "ttft", Quantile: 0.95, Bound: rapid.Float64Range(0, 10).Draw(t, "bound")}}
	var events []bench.Event
	requests := rapid.IntRange(0, 5).Draw(t, "requests")
	left := make([]int, requests) // chunks still to come; -1: ended
	for i := range requests {
		events = append(events, request(t, i))
		if rapid.Bool().Draw(t, "has conn") {
			events = append(events, conn(t, i))
		}
		left[i] = rapid.IntRange(0, 20).Draw(t, "chunks")
	}
	for range rapid.IntRange(0, 60).Draw(t, "events") {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			events = append(events, &bench.Step{
				Number: rapid.IntRange(0, 9).Draw(t, "step"), Section: text.Draw(t, "section"), Kind: "prompt", Released: moment.Draw(t, "released"),
			})
		case 1:
			events = append(events, &bench.Sample{At: moment.Draw(t, "at"), CPU: phase.Draw(t, "cpu"), Offset: phase.Draw(t, "offset")})
		case 2:
			events = append(events, &bench.Note{At: moment.Draw(t, "at"), Text: text.Draw(t, "note")})
		default:
			if requests == 0 {
				continue
			}
			r := rapid.IntRange(0, requests-1).Draw(t, "request")
			if left[r] < 0 {
				continue
			}
			if left[r] == 0 {
				if rapid.Bool().Draw(t, "tokenizer") {
					events = append(events, &bench.Counts{Request: r, Tokenizer: text.Draw(t, "name"), Tokens: []int32{number.Draw(t, "tokens")}})
				}
				events = append(events, end(t, r))
				left[r] = -1
				continue
			}
			n := rapid.IntRange(1, left[r]).Draw(t, "burst")
			left[r] -= n
			events = append(events, chunks(t, r, n))
		}
	}
	if rapid.Bool().Draw(t, "finished") {
		events = append(events, &bench.Finish{At: moment.Draw(t, "at"), State: rapid.SampledFrom([]string{bench.Done, bench.Aborted, bench.Broken}).Draw(t, "state")})
	}
	return h, events
}

var (
	text   = rapid.StringOf(rapid.Rune())
	number = rapid.OneOf(rapid.Int32Range(-1, 300), rapid.Int32())
	moment = rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.OneOf(
			rapid.Int64Range(0, int64(time.Minute)),
			rapid.Int64(),
			rapid.Just(int64(bench.Unset)),
		).Draw(t, "moment"))
	})
	phase = moment
)

func request(t *rapid.T, i int) *bench.Request {
	r := &bench.Request{
		Number: i, Worker: i, Session: text.Draw(t, "session"), Planned: moment.Draw(t, "planned"), Start: moment.Draw(t, "start"),
		Prompt: text.Draw(t, "prompt"), Warmup: rapid.Bool().Draw(t, "warmup"),
	}
	if rapid.Bool().Draw(t, "more") {
		r.Images = []string{text.Draw(t, "image")}
		r.Parameters = json.RawMessage(`{"temperature":0.7,"stop":["<a&b>"]}`)
	}
	return r
}

func conn(t *rapid.T, i int) *bench.Conn {
	return &bench.Conn{
		Request: i, DNS: phase.Draw(t, "dns"), Connect: phase.Draw(t, "connect"), TLS: bench.Unset,
		Wrote: moment.Draw(t, "wrote"), FirstByte: moment.Draw(t, "first byte"), Status: 200,
	}
}

func chunks(t *rapid.T, request, n int) bench.Chunks {
	out := make(bench.Chunks, n)
	for i := range out {
		out[i] = bench.Chunk{
			Request: request, Read: number.Draw(t, "read"), User: moment.Draw(t, "user"), Kernel: moment.Draw(t, "kernel"),
			Channel: bench.Channel(rapid.IntRange(0, 3).Draw(t, "channel")), Usage: number.Draw(t, "usage"), Exact: number.Draw(t, "exact"),
			Text: string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")),
		}
	}
	return out
}

func end(t *rapid.T, i int) *bench.End {
	e := &bench.End{Request: i, Status: bench.OK, By: bench.EndDone, End: moment.Draw(t, "end"), Close: moment.Draw(t, "close"), Error: text.Draw(t, "error")}
	if rapid.Bool().Draw(t, "counted") {
		e.Usage = &bench.Usage{Prompt: -1, Completion: rapid.IntRange(-1, 1000).Draw(t, "completion")}
		e.Timings = &bench.Timings{PromptMS: rapid.Float64Range(0, 1e6).Draw(t, "prompt ms")}
	}
	return e
}
