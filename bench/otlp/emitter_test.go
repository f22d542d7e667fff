package otlp

import (
	"context"
	"math"
	"testing"
	"time"

	"velo/bench/otlp/series"
	"velo/bench/otlp/stream"
	"velo/bench/sim"
)

// emitted runs an emitter against a receiver.
func emitted(t *testing.T, c Config, o sim.EmitOptions) (*Receiver, sim.EmitCounts) {
	t.Helper()
	r := started(t, c)
	if o.URL == "grpc" {
		o.URL = "grpc://" + r.at("gRPC")
	} else {
		o.URL = "http://" + r.at("HTTP")
	}
	n, err := sim.Emit(context.Background(), o)
	check(t, err)
	return r, n
}

// TestEmitterArrivesWhole: whatever the transport, what was sent is what is there.
func TestEmitterArrivesWhole(t *testing.T) {
	for name, o := range map[string]sim.EmitOptions{
		"gRPC": {URL: "grpc"}, "gRPC, gzip": {URL: "grpc", Gzip: true}, "HTTP, JSON": {}, "HTTP, protobuf, gzip": {Encoding: "protobuf", Gzip: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Rate, o.Records, o.Streams, o.Tokens, o.Usage = 10_000, 4*52, 4, 50, true
			r, n := emitted(t, loopback(), o)
			if n.Sent != n.Records+1 || n.Failed != 0 || n.Rejected != 0 { // and a status record
				t.Fatalf("emitted %+v", n)
			}
			s := r.Snapshot(Query{Lines: &series.Query{}})
			if s.State.Streams.Starts != n.Starts || s.State.Streams.Ends != n.Ends || s.State.Streams.Unreadable != 0 || s.State.Streams.Statuses != 1 {
				t.Errorf("streams counted %+v, emitted %+v", s.State.Streams, n)
			}
			whole := 0
			for _, x := range s.Streams {
				if x.State != stream.Ended {
					continue
				}
				whole++
				// four streams take turns: 2,500 tokens a second each, from 0.4 ms after the start on
				if x.Tokens != 50 || x.Lost != 0 || x.Source != "server" || math.Abs(float64(x.Rate)/2500-1) > 0.01 || math.Abs(float64(x.TTFT)-0.0004) > 1e-6 {
					t.Errorf("stream is %+v", x)
				}
			}
			if whole != 4 {
				t.Errorf("%d whole streams", whole)
			}
			found := 0.0
			for _, l := range s.Lines {
				if l.Name == "velogb10_generation_tokens_total" {
					found++
				}
			}
			if len(s.Engines) != 1 || s.Engines[0].Title != "Velo" || found != 1 {
				t.Errorf("engines %+v", s.Engines)
			}
		})
	}
}

// TestEmitterMisbehaves: records are lost, late and repeated, bodies malformed, engines restart. All of
// it is counted, nothing that was sound is refused, and no rate is negative.
func TestEmitterMisbehaves(t *testing.T) {
	r, n := emitted(t, loopback(), sim.EmitOptions{Rate: 5000, Records: 6000, Streams: 8, Tokens: 100, Drop: 0.02, Reorder: 0.05, Malformed: 0.5, Restart: 400 * time.Millisecond, Seed: 3})
	if n.Dropped == 0 || n.Reordered == 0 || n.Malformed == 0 || n.Refused != n.Malformed || n.Failed != 0 || n.Restarts == 0 {
		t.Fatalf("emitted %+v", n)
	}
	s := r.Snapshot(Query{Streams: stream.Query{Limit: 500}, Lines: &series.Query{Points: true}})
	if got := s.State.Counters; got.Malformed != n.Malformed || got.Logs != n.Sent {
		t.Errorf("counted %+v, emitted %+v", got, n)
	}
	if s.State.Streams.Reordered == 0 || s.State.Streams.Duplicates != 0 {
		t.Errorf("streams counted %+v", s.State.Streams)
	}
	lost := 0
	for _, x := range s.Streams {
		lost += x.Lost
		if x.Rate < 0 || x.TTFT < 0 || x.MaxGap < 0 {
			t.Errorf("negative: %+v", x)
		}
	}
	if lost == 0 || uint64(lost) > n.Dropped+n.Reordered {
		t.Errorf("%d lost, %d dropped", lost, n.Dropped)
	}
	for _, l := range s.Lines {
		for _, p := range l.Points {
			if p.Value < 0 {
				t.Errorf("%s fell below zero: %v", l.Name, p)
			}
		}
	}
}

// TestEmitterIsToldWhenItFloods: a receiver with a low bound drops, says so, and both sides count alike.
func TestEmitterIsToldWhenItFloods(t *testing.T) {
	c := loopback()
	c.Limits.Records = 500
	r, n := emitted(t, c, sim.EmitOptions{Rate: 10_000, Records: 5000})
	got := r.State().Counters
	if n.Rejected == 0 || got.Dropped != n.Rejected || got.Logs+got.Points+n.Rejected < n.Sent || got.RateLimited != n.Failed {
		t.Errorf("counted %+v, emitted %+v", got, n)
	}
}
