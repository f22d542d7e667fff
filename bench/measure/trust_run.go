package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"velo/bench"
)

// shareLevel judges a share of requests that should be none at all.
func shareLevel(n, of int) Level {
	switch {
	case of == 0:
		return Unknown
	case n == 0:
		return Green
	case 20*n <= of:
		return Amber
	}
	return Red
}

func (t *panel) buffered() Check {
	k := Check{ID: "buffered", Name: "Buffered streams", Level: Unknown, Bound: "none",
		Detail: "Answers came all at once at their end: something buffers them, and TTFT and the times between tokens mean nothing."}
	n, of := 0, 0
	for _, r := range t.measured {
		if r.N > 0 {
			of++
			if r.Buffered {
				n++
			}
		}
	}
	if k.Level = shareLevel(n, of); of > 0 {
		k.Value = outOf(n, of)
	}
	return k
}

func (t *panel) failures() Check {
	k := Check{ID: "failures", Name: "Failures", Level: Unknown, Bound: "none",
		Detail: "Failed requests are left out of latencies and rates; percentiles with failures count them as endless."}
	r := t.run
	if r.Attempted == 0 {
		return k
	}
	k.Level, k.Value = shareLevel(r.Failed, r.Attempted), outOf(r.Failed, r.Attempted)
	var classes []string
	for c := range r.Errors {
		classes = append(classes, c)
	}
	slices.Sort(classes)
	for i, c := range classes {
		classes[i] = fmt.Sprintf("%s %d", c, r.Errors[c])
	}
	if len(classes) > 0 {
		k.Value += ": " + strings.Join(classes, ", ")
	}
	if r.Unfinished > 0 {
		k.Value += fmt.Sprintf("; %d not finished", r.Unfinished)
		k.Level = worse(k.Level, Amber)
	}
	return k
}

// support wants the 99th percentile to be more than the greatest value; a fifth of that supports the
// 95th.
func (t *panel) support() Check {
	k := Check{ID: "support", Name: "Sample support", Level: Unknown, Bound: "≥ 100 requests, for a p99",
		Detail: "There are too few requests for the high percentiles: where they stand, the greatest of the values is shown. Repeat the suite."}
	n := t.run.TTFT.N
	switch {
	case t.run.Attempted == 0:
		return k
	case n >= 100:
		k.Level = Green
	default:
		// Never red: what too few requests do not support is greyed where it stands, and what they do
		// support is as true as ever.
		k.Level = Amber
	}
	k.Value = plural(n, "request") + " with a TTFT"
	return k
}

// clockStep counts the requests during which the wall clock was set, and the steps between samples.
func (t *panel) clockStep() Check {
	k := Check{ID: "clock_step", Name: "Clock steps", Level: Unknown, Bound: "none",
		Detail: "The wall clock was set during the run. Requests that it touched use the read's return instead of the kernel's stamp."}
	touched, ended := 0, 0
	for _, x := range t.exchanges {
		if x.End != nil {
			ended++
			if x.End.ClockStep {
				touched++
			}
		}
	}
	steps := 0
	for i := 1; i < len(t.session.Samples); i++ {
		a, b := t.session.Samples[i-1], t.session.Samples[i]
		if d := between(a.Offset, b.Offset); math.Abs(float64(d)) > float64(seconds(stepSize))+float64(seconds(max(0, a.OffsetError)+max(0, b.OffsetError))) {
			steps++
		}
	}
	if ended == 0 || len(t.session.Samples) == 0 && touched == 0 {
		return k
	}
	k.Level = shareLevel(touched, ended)
	k.Value = "none"
	if touched > 0 || steps > 0 {
		k.Level = worse(k.Level, Amber)
		k.Value = fmt.Sprintf("%d, %s requests touched", max(steps, 1), outOf(touched, ended))
	}
	return k
}

func (t *panel) stampKind() Check {
	k := Check{ID: "stamp_kind", Name: "Stamps", Level: Unknown, Bound: "kernel",
		Detail: "Times are those at which this program's reads returned, not those at which the network stack received the bytes: they include the client's own delay."}
	n, of := 0, 0
	for _, r := range t.measured {
		if len(r.Arrivals) > 0 {
			of++
			if r.Stamp != bench.KernelStamp {
				n++
			}
		}
	}
	switch {
	case of == 0:
		return k
	case n == 0:
		k.Level, k.Value = Green, "kernel"
	case n == of:
		k.Level, k.Value = Amber, "user"
	default:
		k.Level, k.Value = Amber, fmt.Sprintf("user for %d of %d requests, kernel for the others", n, of)
	}
	return k
}

func (t *panel) drawing() Check {
	k := Check{ID: "drawing", Name: "Drawing meanwhile", Level: Unknown, Bound: "quiet",
		Detail: "The window drew live charts while it measured, which takes CPU from the readers. Choose quiet drawing for figures to publish."}
	switch d := t.session.Header.Drawing; d {
	case bench.DrawingNone, bench.DrawingQuiet:
		k.Level, k.Value = Green, d
	case bench.DrawingLive:
		k.Level, k.Value = Amber, d
	}
	return k
}

func (t *panel) invariants() Check {
	k := Check{ID: "invariants", Name: "Invariants", Level: Unknown, Bound: "hold",
		Detail: "Numbers that must agree do not: something is wrong with the server's counts, the clocks or this program."}
	switch n := len(t.run.Broken); {
	case t.run.Attempted == 0 && n == 0:
	case n == 0:
		k.Level, k.Value = Green, "hold"
	default:
		k.Level, k.Value = Red, fmt.Sprintf("%d broken: %s", n, t.run.Broken[0])
	}
	return k
}

func outOf(n, of int) string {
	if n == 0 {
		return fmt.Sprintf("none of %d", of)
	}
	return fmt.Sprintf("%d of %d", n, of)
}

// percent writes a share with the digits that matter.
func percent(v Num) string {
	f := 100 * float64(v)
	if f != 0 && math.Abs(f) < 10 {
		return fmt.Sprintf("%.1f %%", f)
	}
	return fmt.Sprintf("%.0f %%", f)
}

// duration writes seconds in the unit that fits.
func duration(v Num) string {
	switch f := math.Abs(float64(v)); {
	case f == 0:
		return "0 ms"
	case f < 1e-3:
		return fmt.Sprintf("%.3g µs", 1e6*v)
	case f < 1:
		return fmt.Sprintf("%.3g ms", 1e3*v)
	}
	return fmt.Sprintf("%.3g s", v)
}
