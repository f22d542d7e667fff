package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"velo/bench/measure"
)

// durationText writes a duration as people say it: 420 ms, 12.3 s, 4 min 5 s, 1 h 2 min.
func durationText(d time.Duration) string {
	switch {
	case d < 0:
		return Dash
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond)/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return whole(n) + " " + noun + "s"
}

// oneLine makes untrusted text fit a line: control characters and invalid bytes become spaces, runs
// of space one, and what is longer than n runes ends in an ellipsis.
func oneLine(s string, n int) string {
	var b strings.Builder
	space, count := false, 0
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			space = b.Len() > 0
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
			count++
		}
		if count >= n {
			return strings.TrimRight(b.String(), " ") + "…"
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}

// quantity is value and unit in one string, with the mark of the source.
func quantity(m measure.Metric, v measure.Num, src measure.Source) string {
	s, u := FormatNum(m, v)
	switch {
	case u == "":
	case u == "%":
		s += " %"
	default:
		s += " " + u
	}
	if v.Ok() && src == measure.Estimate {
		s += " (estimate)"
	}
	return s
}

// listed joins words as prose does.
func listed(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
