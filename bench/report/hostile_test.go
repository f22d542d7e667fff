package report

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"velo/bench"
)

// eventsFrom makes a session of arbitrary bytes: each picks an event and its fields, so that a fuzzer
// finds orders and values that no client would write.
func eventsFrom(data []byte) *bench.Session {
	s := &bench.Session{}
	next := func() byte {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return b
	}
	when := func() time.Duration {
		switch b := next(); {
		case b < 8:
			return []time.Duration{0, -1, bench.Unset, math.MaxInt64, -time.Hour, math.MinInt64 + 1, 1, 1 << 61}[b]
		case b < 128:
			return time.Duration(b) * time.Duration(next()) * time.Millisecond
		default:
			var w [8]byte
			for i := range w {
				w[i] = next()
			}
			return time.Duration(binary.LittleEndian.Uint64(w[:]))
		}
	}
	number := func() float64 {
		switch b := next(); {
		case b < 6:
			return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e300}[b]
		default:
			return float64(b) / 16
		}
	}
	text := func() string {
		n := min(int(next())%24, len(data))
		t := string(data[:n])
		data = data[n:]
		return t
	}
	small := func() int { return int(int8(next())) }
	for len(data) > 0 {
		switch next() % 9 {
		case 0:
			s.Append(&bench.Header{ID: text(), Title: text(), Suite: json.RawMessage(text()), Anchor: time.Unix(0, int64(when())), Drawing: text(),
				Endpoint:    bench.Endpoint{URL: text(), Model: text(), BuiltIn: next()%2 == 0},
				Plan:        bench.Plan{Workers: small(), Repeat: small(), Rate: number(), SLO: []bench.SLO{{Metric: text(), Quantile: number(), Bound: number()}, {Metric: "ttft", Quantile: 0.9, Bound: number()}}},
				Environment: bench.Environment{CPU: text(), MemoryGB: number(), Extra: map[string]string{text(): text()}}})
		case 1:
			s.Append(&bench.Step{Number: small(), Index: small(), Repetition: small(), Section: text(), Title: text(), Workers: small(), Warmup: next()%2 == 0, Released: when(), PP: small(), Depth: small()})
		case 2:
			s.Append(&bench.Request{Number: int(next()), Step: small(), Worker: small(), Turn: small(), Warmup: next()%4 == 0, Planned: when(), Start: when(), Parameters: json.RawMessage(text())})
		case 3:
			s.Append(&bench.Conn{Request: int(next()), DNS: when(), FirstByte: when(), Wrote: when(), Status: small()})
		case 4, 5:
			var cs bench.Chunks
			n := int(next())
			for range 1 + next()%16 {
				cs = append(cs, bench.Chunk{Request: n, Read: int32(small()), User: when(), Kernel: when(), Channel: bench.Channel(next()), Usage: int32(small()), Exact: int32(small()), Text: text()})
			}
			s.Append(cs)
		case 6:
			e := &bench.End{Request: int(next()), Status: bench.Status(text()), Class: text(), Error: text(), End: when(), Close: when(), Stamp: bench.StampKind(text())}
			if next()%2 == 0 {
				e.Status = bench.OK
				e.Usage = &bench.Usage{Prompt: small(), Completion: small(), Reasoning: small(), Cached: small(), Accepted: small(), Rejected: small()}
				e.Timings = &bench.Timings{PromptN: small(), PromptMS: number(), PredictedMS: number(), DraftN: small()}
			}
			s.Append(e)
		case 7:
			s.Append(&bench.Sample{At: when(), CPU: when(), GCPauseMax: when(), Offset: when()})
			s.Append(&bench.Note{At: when(), Text: text()})
		case 8:
			s.Append(&bench.Finish{At: when(), State: text(), Reason: text()})
		}
	}
	return s
}

// writeAll writes a report in every format of one file.
func writeAll(t *testing.T, r *Report) {
	t.Helper()
	for f := range writers {
		if err := Write(io.Discard, r, f); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// Whatever the log holds, there is a report, and it can be written.
func FuzzReport(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 3, 'a', 'b', 'c'})
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 9, 1, 4, 0, 3, 0, 9, 2, 2, 0, 9, 9, 9, 9, 1, 'x', 6, 0, 2, 'o', 'k'})
	f.Add(bytes.Repeat([]byte{2, 0, 0, 0, 0, 9, 1, 9, 1, 4, 0, 15, 0, 10, 3, 10, 3, 0, 1, 1, 2, 'h', 'i'}, 8))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		r := New(eventsFrom(data), Options{Version: "fuzz"})
		if r.Status == "" || r.Title == "" {
			t.Error("a report without status or title")
		}
		for f := range writers {
			if (f == "pdf" || f == "html") && len(data)%64 != 0 {
				continue // fonts and charts take a hundred times longer under the fuzzer; TestReportsOfRandomSessions writes them all
			}
			if err := Write(io.Discard, r, f); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
	})
}

// The same with random bytes, all formats.
func TestReportsOfRandomSessions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 40 {
		data := make([]byte, rng.IntN(1500))
		for i := range data {
			data[i] = byte(rng.IntN(256))
			if i > 0 && rng.IntN(3) == 0 {
				data[i] = byte(rng.IntN(9)) // more events, and numbers that meet
			}
		}
		writeAll(t, New(eventsFrom(data), testOptions))
	}
}

// The holes that a damaged log can have.
func TestReportsOfDamagedSessions(t *testing.T) {
	for name, s := range map[string]*bench.Session{
		"nil":               nil,
		"nothing":           {},
		"header only":       {Header: bench.Header{ID: "x", Title: "only a header"}},
		"nil members":       {Steps: []*bench.Step{nil}, Exchanges: []*bench.Exchange{nil, {}}, Samples: []*bench.Sample{nil}, Notes: []*bench.Note{nil}},
		"request, no end":   cutOffSession(),
		"step, no request":  {Steps: []*bench.Step{{Number: 0, Title: "x"}}, Finish: &bench.Finish{State: bench.Done}},
		"request, no step":  {Exchanges: []*bench.Exchange{{Request: &bench.Request{Step: 7}, Chunks: bench.Chunks{{User: 1, Kernel: bench.Unset, Text: "x"}}}}},
		"year out of range": {Header: bench.Header{Anchor: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(s, testOptions)
			if r.Status == "" {
				t.Error("no status")
			}
			writeAll(t, r)
		})
	}
}
