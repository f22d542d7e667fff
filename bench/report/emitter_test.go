package report

import (
	"strings"
	"testing"
	"time"

	"velo/bench"
)

// told is a session of an engine's telemetry: a stream whose beginning was missed, and a whole one.
func told() *bench.Session {
	s := &bench.Session{}
	s.Append(&bench.Header{Schema: bench.SchemaVersion, ID: "0191aaaaaaaa00000001", Title: "Telemetry"})
	for i, start := range []time.Duration{bench.Unset, 10 * time.Second} {
		first := 4 * time.Second
		if start != bench.Unset {
			first = start + time.Second
		}
		s.Append(&bench.Request{Number: i, Worker: i, Planned: bench.Unset, Start: start})
		for k := range 5 {
			s.Append(bench.Chunks{{Request: i, Read: int32(k), User: first + time.Duration(k)*time.Second, Kernel: bench.Unset, Usage: -1, Exact: 1, Text: "word "}})
		}
		end := first + 5*time.Second
		s.Append(&bench.End{Request: i, Status: bench.OK, By: bench.EndFinish, Stamp: bench.EmitterStamp, End: end, Close: end})
	}
	return s
}

func TestReportOfTelemetry(t *testing.T) {
	r := New(told(), Options{})
	facts := map[string]string{}
	for _, f := range r.Facts {
		facts[f.Label] = f.Value
	}
	if got := facts["Time stamps"]; !strings.Contains(got, "emitter's clock") {
		t.Errorf("the time stamps are told as %q", got)
	}
	if got := facts["Duration"]; got != "12 s" && got != "12.0 s" { // from the first chunk of the first stream to the end of the second
		t.Errorf("the session took %q", got)
	}
	var md strings.Builder
	if err := writeMarkdown(&md, r); err != nil || !strings.Contains(md.String(), "Stamps: emitter.") {
		t.Error("the Markdown does not say whose the stamps are")
	}
}
