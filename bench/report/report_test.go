package report

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
	"velo/bench/measure"
)

var update = flag.Bool("update", false, "write the golden reports anew; check.py must agree with them all the same")

var testOptions = Options{Version: "0.1.0-test"}

// textFormats are those whose golden reports are kept. The JSON is too large to keep for each
// session, and check.py reads it anyway.
var textFormats = []string{"md", "csv", "csv-summary", "benchstat", "vllm", "json"}

func TestGoldenReports(t *testing.T) {
	for _, g := range goldenSessions {
		r := New(g.session(), testOptions)
		for _, f := range textFormats {
			if (f == "json" || f == "vllm") && g.name != "stopped" {
				continue
			}
			t.Run(g.name+"/"+f, func(t *testing.T) {
				var b bytes.Buffer
				if err := Write(&b, r, f); err != nil {
					t.Fatal(err)
				}
				name := filepath.Join("testdata", g.name+"."+f+".golden")
				if *update {
					if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(b.Bytes(), want) {
					t.Errorf("the report differs from %s: %s", name, firstDifference(b.String(), string(want)))
				}
			})
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			other := "nothing"
			if i < len(w) {
				other = w[i]
			}
			return "line " + whole(i+1) + "\n got " + g[i] + "\nwant " + other
		}
	}
	return "it is shorter"
}

// The same session gives the same bytes, in every format and after having been reported before.
func TestReportsAreDeterministic(t *testing.T) {
	for f := range writers {
		var first, second bytes.Buffer
		if err := Write(&first, New(concurrentSession(), testOptions), f); err != nil {
			t.Fatal(err)
		}
		s := concurrentSession()
		New(s, testOptions)
		if err := Write(&second, New(s, testOptions), f); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two reports of one session differ", f)
		}
	}
}

// New only reads.
func TestNewLeavesTheSession(t *testing.T) {
	s, same := failingSession(), failingSession()
	r := New(s, testOptions)
	for f := range writers {
		if err := Write(&bytes.Buffer{}, r, f); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(s, same) {
		t.Error("the session was changed by reporting it")
	}
}

// What the session says of its end is on the report.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name string
		s    *bench.Session
		want string
	}{
		{"done", singleSession(), "finished"},
		{"stopped", stoppedSession(), "stopped by the user after"},
		{"cut off", cutOffSession(), "cut off: the record ends after"},
		{"empty", &bench.Session{}, "empty: the session holds no request"},
		{"broken", &bench.Session{Finish: &bench.Finish{State: bench.Broken, Reason: "the endpoint refuses connections"}}, "failed: the endpoint refuses connections"},
	} {
		if r := New(c.s, testOptions); !strings.HasPrefix(r.Status, c.want) {
			t.Errorf("%s: status %q, want %q…", c.name, r.Status, c.want)
		}
	}
}

// TestRecordingFromTelemetryIsNamed below its title: nothing of it was measured by a client.
func TestRecordingFromTelemetryIsNamed(t *testing.T) {
	s := singleSession()
	if r := New(s, testOptions); strings.Contains(r.Subtitle, "telemetry") {
		t.Errorf("a run of the client has the subtitle %q", r.Subtitle)
	}
	s.Header.Environment.Extra = map[string]string{bench.RecordedFromTelemetry: "yes"}
	if r := New(s, testOptions); !strings.Contains(r.Subtitle, "recorded from telemetry, no client measured") {
		t.Errorf("a recording has the subtitle %q", r.Subtitle)
	}
}

// A session of the built-in endpoint says so wherever it could be taken for a model's.
func TestBuiltInEndpointIsNamed(t *testing.T) {
	r := New(singleSession(), testOptions)
	for _, f := range []string{"html", "md"} {
		var b bytes.Buffer
		if err := Write(&b, r, f); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), "not a real model") {
			t.Errorf("%s does not say that the endpoint is not a real model", f)
		}
	}
	if !strings.Contains(r.Subtitle, "not a real model") || !strings.Contains(factValue(r, "Endpoint"), "not a real model") {
		t.Error("subtitle and facts must say that the endpoint is not a real model")
	}
}

func factValue(r *Report, label string) string {
	for _, f := range r.Facts {
		if f.Label == label {
			return f.Value
		}
	}
	return ""
}

// The numbers of known sessions, by hand: the first request of the stopped session waits 95 ms and
// the second 99 ms.
func TestGlanceOfAKnownSession(t *testing.T) {
	r := New(stoppedSession(), testOptions)
	tile := func(label string) Tile {
		for _, x := range r.Glance {
			if x.Label == label {
				return x
			}
		}
		t.Fatalf("no tile %q", label)
		return Tile{}
	}
	if x := tile("Time to first token"); x.Value != "97.0" || x.Unit != "ms" || math.Abs(float64(x.Raw)-0.097) > 1e-12 {
		t.Errorf("TTFT tile %+v, want 97.0 ms", x)
	}
	if x := tile("Output tokens"); x.Value == Dash {
		t.Errorf("tokens tile %+v", x)
	}
	if r.Glance[0].Label != "Decode rate" {
		t.Errorf("the hero number of a single stream is %q", r.Glance[0].Label)
	}
	if c := New(concurrentSession(), testOptions); c.Glance[0].Label != "System output rate" {
		t.Errorf("the hero number of four workers is %q", c.Glance[0].Label)
	}
}

// Estimates carry the word, and what was not measured is a dash.
func TestEstimatesAndDashes(t *testing.T) {
	r := New(failingSession(), testOptions)
	hero := r.Glance[1] // two workers: the system comes first
	if hero.Mark != "~" || !strings.Contains(hero.Note, "estimate") {
		t.Errorf("a rate without usage must be marked as an estimate: %+v", hero)
	}
	empty := New(&bench.Session{}, testOptions)
	for _, x := range empty.Glance {
		if x.Raw.Ok() && x.Metric.Unit != measure.Count {
			t.Errorf("%s of an empty session is %s %s, want a dash", x.Label, x.Value, x.Unit)
		}
	}
	if len(empty.Findings) == 0 || !strings.Contains(empty.Findings[0].Text, "no request") {
		t.Errorf("findings of an empty session: %v", empty.Findings)
	}
}

// A percentile that n does not support is "max of n" in grey, never a number.
func TestUnsupportedQuantiles(t *testing.T) {
	r := New(stoppedSession(), testOptions)
	row := tableRow(t, r, "latencies", "TTFT")
	for _, i := range []int{6, 7, 8} {
		if c := row[i]; c.Text != "max of 2" || !c.Grey || c.Raw.Ok() {
			t.Errorf("column %d of TTFT with two requests: %+v", i, c)
		}
	}
	for _, f := range r.Figures {
		if f.Metric.ID == "ttft" && (f.P90.Ok() || f.P95.Ok() || f.P99.Ok() || !f.P50.Ok()) {
			t.Errorf("exact figures of TTFT with two requests: %+v", f)
		}
	}
}

func tableRow(t *testing.T, r *Report, id, first string) []Cell {
	t.Helper()
	tab := r.table(id)
	if tab == nil {
		t.Fatalf("no table %q", id)
	}
	for _, row := range tab.Rows {
		if row[0].Text == first {
			return row
		}
	}
	t.Fatalf("no row %q in table %q", first, id)
	return nil
}

// Every row of every table is as wide as its head, and every number of a table is finite or a dash.
func TestTablesAreWhole(t *testing.T) {
	for _, g := range goldenSessions {
		r := New(g.session(), testOptions)
		for _, s := range r.Sections {
			for _, tab := range s.Tables {
				for _, row := range tab.Rows {
					if len(row) != len(tab.Columns) {
						t.Errorf("%s: a row of %q has %d cells for %d columns", g.name, tab.ID, len(row), len(tab.Columns))
					}
					for _, c := range row {
						if strings.Contains(c.Text, "NaN") || strings.Contains(c.Text, "-922337") {
							t.Errorf("%s: table %q shows %q", g.name, tab.ID, c.Text)
						}
					}
				}
			}
		}
	}
}

// All that a report must contain is there.
func TestSections(t *testing.T) {
	r := New(concurrentSession(), testOptions)
	for _, id := range []string{"timeline", "throughput", "latency", "tokens", "steps", "turns", "slo", "trust", "figures", "methodology"} {
		if r.Section(id) == nil {
			t.Errorf("no section %q", id)
		}
	}
	charts := map[string]bool{}
	for _, c := range r.Charts() {
		charts[c.ID] = true
	}
	for _, id := range []string{"timeline", "rate-histogram", "gap-histogram", "ttft-by-step", "rate-by-step"} {
		if !charts[id] {
			t.Errorf("no chart %q", id)
		}
	}
	if n := len(r.Findings); n == 0 || n > mostFindings {
		t.Errorf("%d findings", n)
	}
	if New(singleSession(), testOptions).Section("slo") != nil {
		t.Error("a section on objectives where none were asked for")
	}
}

func TestFormatNum(t *testing.T) {
	for _, c := range []struct {
		unit  measure.Unit
		v     float64
		value string
		u     string
	}{
		{measure.Seconds, 0.1234567, "123", "ms"},
		{measure.Seconds, 0.00098765, "988", "µs"},
		{measure.Seconds, 0.0009997, "1.00", "ms"},
		{measure.Seconds, 0.9996, "1.00", "s"},
		{measure.Seconds, 0.0256, "25.6", "ms"},
		{measure.Seconds, 83.456, "83.5", "s"},
		{measure.Seconds, 0, "0", "ms"},
		{measure.Seconds, -0.0123, "-12.3", "ms"},
		{measure.PerSec, 57.349, "57.3", "tok/s"},
		{measure.PerSec, 9.996, "10.0", "tok/s"},
		{measure.PerSec, 99.96, "100", "tok/s"},
		{measure.PerSec, 1234.5, "1230", "tok/s"},
		{measure.PerSec, 12345, "12,300", "tok/s"},
		{measure.PerSec, 0.012345, "0.0123", "tok/s"},
		{measure.Fraction, 0.98765, "98.8", "%"},
		{measure.Tokens, 123456, "123,456", "tokens"},
		{measure.Tokens, 2.345, "2.35", "tokens"},
		{measure.Count, 12, "12", ""},
		{measure.Seconds, math.NaN(), Dash, ""},
		{measure.Seconds, math.Inf(1), "∞", "s"},
	} {
		value, u := FormatNum(measure.Metric{Unit: c.unit}, measure.Num(c.v))
		if value != c.value || u != c.u {
			t.Errorf("FormatNum(%s, %v) = %q %q, want %q %q", c.unit, c.v, value, u, c.value, c.u)
		}
	}
}

// Three digits are within half a unit of the third one.
func TestFormatNumIsClose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1e-6, 1e9).Draw(t, "v")
		s := significant(v)
		var back float64
		if _, err := fmt.Sscan(strings.ReplaceAll(s, ",", ""), &back); err != nil {
			t.Fatalf("significant(%v) = %q: %v", v, s, err)
		}
		if math.Abs(back-v) > 0.00501*v {
			t.Fatalf("significant(%v) = %q", v, s)
		}
		if digits := strings.Trim(strings.NewReplacer(".", "", ",", "").Replace(s), "0"); len(digits) > 3 {
			t.Fatalf("significant(%v) = %q has more than three digits", v, s)
		}
	})
}

func TestExactReadsBack(t *testing.T) {
	m := measure.Metric{Unit: measure.Seconds}
	if got := Exact(m, 0.12345678901234568); got != "0.12345678901234568 s" {
		t.Errorf("Exact = %q", got)
	}
	if got := Exact(m, measure.Missing); got != Dash {
		t.Errorf("Exact of what was not measured = %q", got)
	}
}

func TestDurationText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		420 * time.Millisecond: "420 ms", 12340 * time.Millisecond: "12.3 s", 245 * time.Second: "4 min 5 s", 62 * time.Minute: "1 h 2 min", -1: Dash,
	} {
		if got := durationText(d); got != want {
			t.Errorf("durationText(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{"a\r\n b\x00c\x1b[31m", 40, "a b c [31m"},
		{"  spaced  out  ", 40, "spaced out"},
		{"long text here", 6, "long t…"},
		{"bad \xff\xfe bytes", 40, "bad bytes"},
		{"", 5, ""},
	} {
		if got := oneLine(c.in, c.n); got != c.want {
			t.Errorf("oneLine(%q, %d) = %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

// Another window is named where its rates are shown.
func TestWindowIsNamed(t *testing.T) {
	o := testOptions
	o.Measure.Window = 250 * time.Millisecond
	if c := New(singleSession(), o).Section("timeline").Charts[0].Caption; !strings.Contains(c, "windows of 250 ms") {
		t.Errorf("caption %q", c)
	}
	if c := New(singleSession(), testOptions).Section("timeline").Charts[0].Caption; !strings.Contains(c, "windows of 1 s") {
		t.Errorf("caption %q", c)
	}
}
