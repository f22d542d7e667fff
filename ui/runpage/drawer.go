package runpage

import (
	"math"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/plot"
)

// mostLines is the greatest number of workers whose lines and rows are drawn.
const mostLines = 64

// drawer draws the timeline and the workers, on one goroutine at a time. Its axes shrink between
// runs only.
type drawer struct {
	session string
	active  bool
	rates   plot.Timeline
	rows    plot.Workers
}

// follow notices that another run began.
func (d *drawer) follow(s console.RunState) {
	if s.Active && !d.active || s.SessionID != d.session && d.session != "" && s.SessionID != "" {
		d.rates.Reset()
		d.rows.Reset()
	}
	d.active, d.session = s.Active, s.SessionID
}

func (d *drawer) timeline(v *plot.View, s console.RunState, p look.Palette, w words) bool {
	img, scale := v.Back()
	if img == nil {
		return false
	}
	r := plot.Rates{Sum: s.Snapshot.Sum, Median: math.NaN(), Now: math.NaN(), Label: w.nowLabel, Middle: w.medianLabel}
	if s.Snapshot.Median.Ok() {
		r.Median = float64(s.Snapshot.Median)
	}
	if s.Active && s.Snapshot.Rate.Ok() && len(r.Sum) > 0 {
		r.Now = r.Sum[len(r.Sum)-1].Rate
	}
	for i, worker := range s.Snapshot.Workers {
		if i < mostLines {
			r.Workers = append(r.Workers, worker.Points)
		}
	}
	d.rates.Draw(img, scale, p, r)
	return true
}

func (d *drawer) workers(v *plot.View, s console.RunState, p look.Palette) bool {
	if len(s.Snapshot.Workers) < 2 {
		return false
	}
	img, scale := v.Back()
	if img == nil {
		return false
	}
	var rows []plot.Worker
	for i, w := range s.Snapshot.Workers {
		if i == mostLines {
			break
		}
		ttft := write(ttftMetric, w.TTFT, "")
		row := plot.Worker{Number: w.Worker + 1, State: w.State, Rate: write(rateMetric, w.Rate, "").value,
			Tokens: group(w.Tokens), TTFT: "—", Points: w.Points}
		if w.TTFT.Ok() {
			row.TTFT = ttft.value + " " + ttft.unit
		}
		rows = append(rows, row)
	}
	d.rows.Draw(img, scale, p, rows)
	return true
}
