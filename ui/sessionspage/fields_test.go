package sessionspage

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/ui/console"
	"velo/ui/look"
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

// TestTheColumnsFitASmallWindow: what the heads and the least widths ask for leaves the last column its place in
// a window of 1280 units.
func TestTheColumnsFitASmallWindow(t *testing.T) {
	defer test.NewTempApp(t).Quit()
	const list, gap, mark = 1096, 12, 14 // the width of the list there; between columns; of a source
	total := float32(0)
	s := &console.Session{Title: "Quick sample", Model: "Smollm2 135M 8k Instruct", Endpoint: "http://127.0.0.1:8000/v1", Workers: 64, Requests: 1280, Tokens: 123456, Rate: 123.4, TTFT: 1.234, Source: measure.Server}
	for _, f := range fields {
		w := fyne.Max(f.column.Least, fyne.MeasureText(f.column.Title, look.Small, fyne.TextStyle{Bold: true}).Width)
		if f.column.Unit != "" {
			w += fyne.MeasureText(f.column.Unit, look.Small, fyne.TextStyle{}).Width + look.Half
		}
		text := fyne.MeasureText(f.cell(s).Text, look.Small, fyne.TextStyle{Monospace: f.column.Right}).Width + mark
		if f.column.Stretch {
			text = fyne.Min(text, 96) // below that no column gives way
		}
		total += fyne.Max(w, text) + gap
	}
	if total > list {
		t.Errorf("the columns take %v units of %v", total, list)
	}
}
