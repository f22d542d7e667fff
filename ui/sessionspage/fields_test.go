package sessionspage

import (
	"testing"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/ui/console"
)

// TestFieldsOfARecording: what nobody asked for is a dash and not 0, counts are grouped on screen and plain when copied.
func TestFieldsOfARecording(t *testing.T) {
	s := &console.Session{Title: "Telemetry of sim", Workers: 0, Requests: 8, Tokens: 1234567, Rate: 25, TTFT: measure.Missing}
	want := map[string][2]string{"Workers": {report.Dash, ""}, "Requests": {"8", "8"}, "Tokens": {"1,234,567", "1234567"}, "TTFT": {report.Dash, ""}}
	seen := 0
	for _, f := range fields {
		if w, ok := want[f.column.Title]; ok {
			seen++
			if c := f.cell(s); c.Text != w[0] || c.Copy != w[1] {
				t.Errorf("%s is %q, copied as %q, want %q", f.column.Title, c.Text, c.Copy, w)
			}
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d columns are there", seen, len(want))
	}
	s.Workers = 16
	for _, f := range fields {
		if c := f.cell(s); f.column.Title == "Workers" && (c.Text != "16" || c.Copy != "16") {
			t.Errorf("16 workers are %+v", c)
		}
	}
}
