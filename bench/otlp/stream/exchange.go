package stream

import (
	"time"
	"unsafe"

	"velo/bench"
)

// Stamp is the StampKind of a stream's times: the clock of the emitter, not of this machine.
const Stamp bench.StampKind = "emitter"

// sessionTime is a time of a stream as a session with that anchor has it.
func sessionTime(at, anchor int64) time.Duration {
	if at == unset {
		return bench.Unset
	}
	return time.Duration(at - anchor)
}

// exchange is the stream as a request of a session whose monotonic zero is at anchor (nanoseconds
// since 1970 on the stream's clock). chunks is what of the stream it is to hold; nil = all of it.
func (s *Stream) exchange(number int, anchor int64, chunks []chunk) *bench.Exchange {
	if chunks == nil {
		chunks = s.chunks
	}
	return &bench.Exchange{Request: s.request(number, 0, anchor), Chunks: convert(chunks, s.text, number, anchor), End: s.closing(number, anchor)}
}

func (s *Stream) request(number, worker int, anchor int64) *bench.Request {
	start := bench.Unset
	if s.started {
		start = sessionTime(s.start, anchor)
	}
	// Nobody here planned it: it has no schedule delay and no latency from its plan.
	return &bench.Request{Number: number, Worker: worker, Session: s.key.Conversation, Planned: bench.Unset, Start: start}
}

// convert makes the chunks of a request. Their texts are parts of text, whose bytes must not change;
// those of a Stream never do.
func convert(chunks []chunk, text []byte, number int, anchor int64) bench.Chunks {
	if len(chunks) == 0 {
		return nil
	}
	whole := unsafe.String(unsafe.SliceData(text), len(text))
	out := make(bench.Chunks, len(chunks))
	for i := range chunks {
		c := &chunks[i]
		out[i] = bench.Chunk{Request: number, Read: int32(i), User: sessionTime(c.at, anchor), Kernel: bench.Unset, Channel: c.channel,
			Usage: c.usage, Exact: c.exact, Text: whole[c.from : c.from+c.size]}
	}
	return out
}

// closing is the request's end; nil while the stream runs.
func (s *Stream) closing(number int, anchor int64) *bench.End {
	if !s.done {
		return nil
	}
	e := &bench.End{Request: number, Status: bench.OK, By: bench.EndFinish, Finish: s.finish, Stamp: Stamp,
		End: sessionTime(s.ended, anchor), Close: sessionTime(s.ended, anchor), Usage: s.usage, Events: len(s.chunks)}
	switch {
	case s.failed != "":
		e.Status, e.By, e.Class, e.Error = bench.Failed, bench.EndError, "in-stream", s.failed
	case s.finish == "error":
		e.Status, e.By, e.Class, e.Error = bench.Failed, bench.EndError, "in-stream", "the engine ended the generation with an error"
	case s.finish == "abort" || s.finish == "cancelled" || s.finish == "canceled":
		e.Status, e.By = bench.Stopped, bench.EndCancel
	case len(s.chunks) == 0 && s.cut == 0:
		e.Status = bench.Empty
	}
	return e
}
