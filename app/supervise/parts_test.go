package supervise

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"
)

func TestLinesOfTheLogAreTakenApart(t *testing.T) {
	for _, c := range []struct{ in, level, text string }{
		{"2026-11-30T20:15:04.123Z INFO loaded model=x y=1", "INFO", "loaded model=x y=1"},
		{"2026-11-30T20:15:04.123Z ERROR ", "ERROR", ""},
		{"2026-11-30T20:15:04.123Z LOUD what", "", "2026-11-30T20:15:04.123Z LOUD what"},
		{"panic: runtime error: index out of range", "", "panic: runtime error: index out of range"},
		{"", "", ""},
	} {
		l := parseLine(c.in)
		if l.Level != c.level || l.Text != c.text || l.String() != c.in {
			t.Errorf("%q is %+v, and written %q", c.in, l, l.String())
		}
	}
}

// TestLogKeepsTheLast holds for any number of lines, asked for from anywhere.
func TestLogKeepsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep, n, from := rapid.IntRange(1, 20).Draw(t, "keep"), rapid.IntRange(0, 60).Draw(t, "n"), rapid.Uint64Range(0, 70).Draw(t, "from")
		l := newLog(keep)
		for i := range n {
			l.add(strings.Repeat("x", i))
		}
		lines, next := l.Since(from)
		first := max(from, uint64(max(n-keep, 0)))
		want := max(n-int(first), 0)
		if next != uint64(n) || len(lines) != want {
			t.Fatalf("%d lines, next %d; want %d, %d", len(lines), next, want, n)
		}
		for i, line := range lines {
			if line.N != first+uint64(i) || len(line.Text) != int(line.N) {
				t.Fatalf("line %d is %d: %q", i, line.N, line.Text)
			}
		}
	})
}

func TestReadLinesLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab é\n\r"))).Draw(t, "text")
		var got []string
		readLines(strings.NewReader(text), func(l string) { got = append(got, l) })
		want := strings.Split(text, "\n")
		if want[len(want)-1] == "" || strings.Trim(want[len(want)-1], "\r") == "" {
			want = want[:len(want)-1]
		}
		for i := range want {
			want[i] = strings.TrimRight(want[i], "\r")
		}
		if strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Fatalf("%q gives %q", text, got)
		}
	})
}

func TestRate(t *testing.T) {
	var r rate
	at := time.Unix(100, 0)
	if v := r.add(at, 0); v != 0 {
		t.Errorf("a rate of %g from one reading", v)
	}
	for i := 1; i <= 100; i++ {
		v := r.add(at.Add(time.Duration(i)*100*time.Millisecond), int64(i)*1000)
		if v < 9999 || v > 10001 {
			t.Fatalf("reading %d: %g, want 10000", i, v)
		}
	}
	if len(r.at) > 70 {
		t.Errorf("%d readings are kept", len(r.at))
	}
	// It has come to rest: the rate falls to nothing.
	if v := r.add(at.Add(20*time.Second), 100_000); v > 700 {
		t.Errorf("%g after ten seconds of nothing", v)
	}
	for i := range 10000 {
		r.add(at.Add(20*time.Second+time.Duration(i)*time.Microsecond), 100_000)
	}
	if len(r.at) > 70 {
		t.Errorf("%d readings are kept of a flood", len(r.at))
	}
}

func TestReachable(t *testing.T) {
	for in, want := range map[string]string{
		"http://0.0.0.0:8000":   "http://127.0.0.1:8000",
		"http://[::]:8000":      "http://[::1]:8000",
		"http://127.0.0.1:8000": "http://127.0.0.1:8000",
		"http://example.org:80": "http://example.org:80",
	} {
		if got := Reachable(in); got != want {
			t.Errorf("%s is reached at %s, want %s", in, got, want)
		}
	}
}

// TestFigures: what has no value is not a number, and the rate is that of tokens as they are made.
func TestFigures(t *testing.T) {
	read := func(text string, last Figures, h health, at time.Time) Figures {
		t.Helper()
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return figures(families, last, h, at)
	}
	at := time.Unix(1000, 0)
	text := func(ended, rows int, more string) string {
		return fmt.Sprintf("velogb10_generation_tokens_total %d\nvelogb10_scheduler_rows_total{kind=\"prefill\"} 9000\nvelogb10_scheduler_rows_total{kind=\"decode\"} %d\n"+
			"velogb10_kv_pages 400\nvelogb10_kv_pages_used 100\n%s", ended, rows, more)
	}
	first := read(text(0, 10, ""), Figures{}, health{}, at)
	if !math.IsNaN(first.Rate) || !math.IsNaN(first.StepP50) || !math.IsNaN(first.Running) || !math.IsNaN(first.Cached) || first.KV != 0.25 || first.Tokens != 0 {
		t.Errorf("the first reading is %+v", first)
	}
	var h health
	if err := json.Unmarshal([]byte(`{"telemetry":{"step_ms_p50":0,"step_ms_p90":8}}`), &h); err != nil {
		t.Fatal(err)
	}
	second := read(text(0, 60, ""), first, h, at.Add(2*time.Second))
	if second.Rate != 25 || !math.IsNaN(second.StepP50) || second.StepP90 != 0.008 {
		t.Errorf("the second reading is %+v", second)
	}
	// With drafts a row is not a token.
	drafts := "velogb10_spec_draft_tokens_total 50\nvelogb10_spec_accepted_tokens_total 40\n"
	third := read(text(0, 60, drafts), Figures{}, health{}, at)
	fourth := read(text(30, 70, drafts), third, health{}, at.Add(time.Second))
	if fourth.Rate != 30 || fourth.Acceptance != 0.8 {
		t.Errorf("with drafts: %+v", fourth)
	}
	// A counter that fell is that of another engine.
	if f := read(text(0, 5, ""), second, health{}, at.Add(3*time.Second)); !math.IsNaN(f.Rate) {
		t.Errorf("a rate of %g after a counter fell", f.Rate)
	}
	empty := read("", second, health{}, at.Add(3*time.Second))
	if !math.IsNaN(empty.Rate) || !math.IsNaN(empty.KV) {
		t.Errorf("of nothing: %+v", empty)
	}
}

// FuzzParse: whatever the engine writes is a state that can be shown, or an error.
func FuzzParse(f *testing.F) {
	f.Add(`{"state":"loading","done":1,"total":2}`)
	f.Add(`{"state":"ready","url":"http://127.0.0.1:8000","model":"m","context":4096,"lanes":8}`)
	f.Add(`{"state":"failed","code":"port_taken"}`)
	f.Add(`[1`)
	f.Fuzz(func(t *testing.T, line string) {
		m, err := parse(line)
		if err != nil {
			return
		}
		if m.State == "loading" && (m.Total <= 0 || m.Done < 0 || m.Done > m.Total) {
			t.Errorf("%q is taken as %+v", line, m)
		}
		if m.State == "ready" && !strings.HasPrefix(m.URL, "http") && !strings.HasPrefix(strings.ToLower(m.URL), "http") {
			t.Errorf("%q is taken as %+v", line, m)
		}
	})
}
