package telemetrypage

import (
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2/test"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/ui/look"
)

// TestCallsAreListed with what their spans say, and what they do not say is a dash.
func TestCallsAreListed(t *testing.T) {
	defer test.NewTempApp(t).Quit()
	v := newCalls(&Page{})
	if v.none.Text() != callsRead || v.table.Visible() {
		t.Errorf("before the first reading it says %q", v.none.Text())
	}
	v.fill(nil, false)
	if v.none.Text() != noCall {
		t.Errorf("without any span it says %q", v.none.Text())
	}
	v.fill(nil, true)
	if v.none.Text() != noModelCall || !v.none.Visible() || v.table.Visible() {
		t.Errorf("with other spans it says %q", v.none.Text())
	}
	began := time.Date(2026, 11, 30, 12, 34, 56, 0, time.Local)
	v.fill([]otlp.Call{
		{Service: "shop", Model: "qwen3", Began: began.UnixNano(), Duration: 1.25, TTFT: 0.05, Prompt: 1200, Completion: 34, Finish: "stop"},
		{Service: "shop", Duration: measure.Missing, TTFT: measure.Missing, Prompt: measure.Missing, Completion: measure.Missing, Error: "too many\nrequests"},
	}, true)
	if v.none.Visible() || !v.table.Visible() || v.count.Text() != "2 calls" {
		t.Errorf("none is visible: %v; %q", v.none.Visible(), v.count.Text())
	}
	lines := strings.Split(strings.TrimSpace(v.table.TSV()), "\n")
	want := []string{"Time\tService\tModel\tDuration\tTTFT\tInput tokens\tOutput tokens\tFinish\tError",
		began.Format(time.RFC3339Nano) + "\tshop\tqwen3\t1.25\t0.05\t1200\t34\tstop\t—",
		"—\tshop\t—\t—\t—\t—\t—\t—\ttoo many requests"}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("it lists\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	x := otlp.Call{Began: began.UnixNano(), Duration: 1.25, Prompt: 1200, Error: "refused"}
	for column, want := range map[int]string{0: "12:34:56", 3: "1.25 s", 5: "1,200", 8: "refused"} {
		if got := callCell(&x, column).Text; got != want {
			t.Errorf("column %d is %q, want %q", column, got, want)
		}
	}
	if callCell(&x, 8).Ink != look.Red {
		t.Error("an error is not red")
	}
}
