package runpage

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/bench/runner"
	"velo/ui/console"
	"velo/ui/look"
)

// figure is a number as written.
type figure struct{ value, unit, mark string }

// words is a state as written: everything that the page shows but the drawings.
type words struct {
	title, place, state    string
	tone                   look.Tone
	hero, median           figure
	spread                 string
	heroLabel              string
	ttft, maxGap           figure
	ttftNote               string
	tokens, mark, source   string
	requests, requestsNote string
	requestsInk            look.Ink
	elapsed, step, left    string
	share                  float32
	message                string
	messageInk             look.Ink
	nowLabel, medianLabel  string
}

var (
	rateMetric = metric("rate", measure.PerSec)
	ttftMetric = metric("ttft", measure.Seconds)
	gapMetric  = metric("max_gap", measure.Seconds)
)

func metric(id string, unit measure.Unit) measure.Metric {
	if m, ok := measure.MetricByID(id); ok {
		return m
	}
	return measure.Metric{ID: id, Unit: unit}
}

func write(m measure.Metric, v measure.Num, mark string) figure {
	value, unit := report.FormatNum(m, v)
	if !v.Ok() {
		mark = ""
	}
	return figure{value, unit, mark}
}

// written turns a state into words.
func written(s console.RunState) words {
	snap := s.Snapshot
	w := words{title: s.Title, mark: snap.Source.Mark()}
	w.place = s.Endpoint
	if s.Model != "" {
		w.place = s.Model + " · " + s.Endpoint
	}
	if s.BuiltIn && !strings.Contains(strings.ToLower(s.Endpoint), "scripted") {
		w.place += " (scripted, not a real model)"
	}
	w.state, w.tone = condition(s)
	w.median = write(rateMetric, snap.Median, w.mark)
	w.hero, w.heroLabel = write(rateMetric, snap.Rate, w.mark), "Decode rate now, all streams"
	if s.Finished != "" { // there is no now any more
		w.hero, w.heroLabel = w.median, "Decode rate, all streams, median"
	}
	if snap.Min.Ok() && snap.Max.Ok() {
		w.spread = write(rateMetric, snap.Min, "").value + " – " + write(rateMetric, snap.Max, "").value
	}
	w.ttft = write(ttftMetric, snap.TTFT, "")
	if m := write(ttftMetric, snap.TTFTMedian, ""); snap.TTFTMedian.Ok() {
		w.ttftNote = "median of this step " + m.value + " " + m.unit
	}
	w.maxGap = write(gapMetric, snap.MaxGap, "")
	w.tokens = group(snap.Tokens)
	if snap.Source != "" && snap.Source != measure.Clock {
		w.source = "by the " + string(snap.Source) + " " + w.mark
		if snap.Source == measure.Estimate {
			w.source = "estimate " + w.mark
		}
	}
	w.requests = group(snap.Requests)
	w.requestsNote = fmt.Sprintf("%s ok", group(snap.OK))
	if snap.Failed > 0 {
		w.requestsNote += fmt.Sprintf(", %s failed", group(snap.Failed))
		w.requestsInk = look.Red
	}
	w.elapsed = clock(s.Progress.Elapsed)
	if s.Progress.Elapsed == 0 {
		w.elapsed = clock(snap.At)
	}
	w.nowLabel = w.hero.value
	w.medianLabel = "median " + w.median.value
	w.progress(s)
	return w
}

func (w *words) progress(s console.RunState) {
	p := s.Progress
	if p.Total > 0 {
		w.share = float32(p.Done) / float32(p.Total)
	}
	switch s.Finished {
	case console.FinishedDone:
		w.step = "Done. The session is kept."
		w.share = 1
	case console.FinishedStopped:
		w.step = "Stopped. What was measured until then is kept."
	case console.FinishedFailed:
		w.step = "Failed. What was measured until then is kept."
		w.message, w.messageInk = s.Error, look.Red
	default:
		parts := []string{}
		if p.Steps > 0 {
			parts = append(parts, fmt.Sprintf("Step %d of %d", max(p.Step, 1), p.Steps))
		}
		if p.Section != "" {
			parts = append(parts, p.Section)
		}
		if p.Title != "" && p.Title != p.Section {
			parts = append(parts, p.Title)
		}
		switch p.State {
		case runner.Probing:
			parts = append(parts[:0], "Asking the server what it can do")
		case runner.Preparing:
			parts = append(parts, "preparing its requests")
		case runner.WarmingUp:
			parts = append(parts, "warm-up, not counted")
		}
		w.step = strings.Join(parts, " · ")
		w.left = remaining(s)
	}
	if w.message == "" && s.Snapshot.LastError != "" {
		w.message, w.messageInk = "Last failure: "+s.Snapshot.LastError, look.Amber
	}
}

// remaining says how much of a run is left. The time is what the requests so far took, carried
// forward: a guess, and named one.
func remaining(s console.RunState) string {
	p := s.Progress
	if p.Total == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of %s requests", group(p.Done), group(p.Total))
	if p.Done >= 3 && p.Done < p.Total && p.Elapsed > 5*time.Second {
		left := time.Duration(float64(p.Elapsed) * float64(p.Total-p.Done) / float64(p.Done))
		text += " · about " + rough(left) + " left"
	}
	return text
}

// condition is the word of the lamp.
func condition(s console.RunState) (string, look.Tone) {
	switch s.Finished {
	case console.FinishedDone:
		return "done", look.OnGreen
	case console.FinishedStopped:
		return "stopped", look.OnAmber
	case console.FinishedFailed:
		return "failed", look.OnRed
	}
	if !s.Active {
		return "idle", look.OnFaint
	}
	prefill := false
	for _, w := range s.Snapshot.Workers {
		switch w.State {
		case "decode":
			return "decode", look.OnAccent
		case "prefill":
			prefill = true
		}
	}
	if prefill {
		return "prefill", look.OnAmber
	}
	return "preparing", look.OnFaint
}

func clock(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	s := int(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "a minute"
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute)+1)
	}
	return fmt.Sprintf("%d h %d min", int(d/time.Hour), int(d/time.Minute)%60)
}

// group writes a count with a comma at each thousand.
func group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
