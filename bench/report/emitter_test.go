package report

import (
	"strings"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/otlp/offset"
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

// TestReportOfTelemetryThatWasCutOff: a recording that a crash ended has streams without an end. Their times
// are the emitter's all the same.
func TestReportOfTelemetryThatWasCutOff(t *testing.T) {
	s := told()
	s.Header.Environment.Extra = map[string]string{bench.RecordedFromTelemetry: "yes"}
	for _, x := range s.Exchanges {
		x.End = nil
	}
	r := New(s, Options{})
	if !strings.HasPrefix(r.Status, "cut off") {
		t.Errorf("its status is %q", r.Status)
	}
	for i := range r.Run.Requests {
		if k := r.Run.Requests[i].Stamp; k != bench.EmitterStamp {
			t.Errorf("the stamps of request %d are told as %q", i, k)
		}
	}
}

// TestServerBesideClient: a session recorded from telemetry lists the requests that a client measured too;
// without any it says what is known of the clock.
func TestServerBesideClient(t *testing.T) {
	a := offset.Alignment{Bounds: offset.Bounds{Low: -3 * time.Millisecond, High: 2 * time.Millisecond, Pairs: 1}, Unmatched: 1, Median: 0.004,
		Pairs: []offset.Pair{{Session: "s-1", Service: "engine", Low: -3 * time.Millisecond, High: 2 * time.Millisecond, ServerTTFT: 0.1, ClientTTFT: 0.104}}}
	r := New(told(), Options{Beside: []Beside{{ID: "0191aaaaaaaa00000002", Title: "Measured", Alignment: a}}})
	s := r.Section("sides")
	if s == nil || len(s.Tables) != 1 || len(s.Tables[0].Rows) != 1 {
		t.Fatalf("the section is %+v", s)
	}
	var row []string
	for _, c := range s.Tables[0].Rows[0] {
		row = append(row, c.Text)
	}
	if got, want := strings.Join(row, "|"), "s-1|Measured|100|104|4.00|−3.0 ms to +2.0 ms"; got != want {
		t.Errorf("the row is %q, want %q", got, want)
	}
	for _, want := range []string{"1 request on both sides, 1 of the telemetry only", "4.00 ms later", "between −3.0 ms and +2.0 ms"} {
		if !strings.Contains(s.Text, want) {
			t.Errorf("%q is not in %q", want, s.Text)
		}
	}
	for format, want := range map[string]string{"json": `"client_ttft":0.104`, "md": "s-1", "html": "s-1"} {
		var b strings.Builder
		if err := Write(&b, r, format); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s has no %q (%v)", format, want, err)
		}
	}

	alone := told()
	alone.Notes = append(alone.Notes, &bench.Note{Text: "engine, " + offset.Said + ": offset plus least delay +1.5 ms; 0 requests measured on both sides, 9 records"})
	s = New(alone, Options{}).Section("sides")
	if s == nil || len(s.Tables) != 0 || !strings.Contains(s.Text, "offset plus least delay +1.5 ms") {
		t.Errorf("without a client the section is %+v", s)
	}
	client := told()
	for _, x := range client.Exchanges {
		x.End.Stamp = bench.KernelStamp
	}
	if s := New(client, Options{}).Section("sides"); s != nil {
		t.Error("a session that the client measured has the section too")
	}
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
