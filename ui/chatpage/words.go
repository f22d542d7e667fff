package chatpage

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/report"
	"velo/ui/console"
)

// number writes a metric with its unit and the mark of its source; a dash where it was not measured.
func number(id string, v measure.Num, mark string) string {
	m, ok := measure.MetricByID(id)
	if !ok || !v.Ok() {
		return report.Dash
	}
	value, unit := report.FormatNum(m, v)
	if !m.Counts {
		mark = ""
	}
	return strings.TrimRight(value+" "+unit+" "+mark, " ")
}

// summary is the line below a finished turn.
func summary(t *console.ChatTurn) string {
	r := t.Measured
	if r == nil || r.N == 0 {
		return ""
	}
	mark := t.Source.Mark()
	parts := []string{}
	if r.Rate.Ok() {
		parts = append(parts, number("rate", r.Rate, mark))
	}
	if r.TTFT.Ok() {
		parts = append(parts, "TTFT "+number("ttft", r.TTFT, ""))
	}
	tokens := group(r.N) + " tokens"
	if r.Prompt.Ok() {
		tokens = group(int(r.Prompt)) + " in, " + group(r.N) + " out"
	}
	parts = append(parts, strings.TrimSpace(tokens+" "+mark))
	if r.E2E.Ok() {
		parts = append(parts, number("e2e", r.E2E, ""))
	}
	if t.Finish != "" {
		parts = append(parts, t.Finish)
	}
	return strings.Join(parts, " · ")
}

// condition says how a turn ended, where that needs words; bad is true for failures.
func condition(t *console.ChatTurn) (text string, bad bool) {
	kept := " What came is kept."
	if t.Answer == "" && t.Reasoning == "" {
		kept = ""
	}
	switch t.Status {
	case "", bench.OK:
		return "", false
	case bench.Stopped:
		return "Stopped by you." + kept, false
	case bench.Truncated:
		text = "The stream ended without a finish reason and without [DONE]: the answer may be cut."
	case bench.Empty:
		text = "The server ended the stream without a single token."
	default:
		text = "The turn failed (" + string(t.Status) + ")."
	}
	if t.Error != "" {
		c, n := utf8.DecodeRuneInString(t.Error)
		text = string(unicode.ToUpper(c)) + t.Error[n:]
		if !strings.HasSuffix(text, ".") {
			text += "."
		}
	}
	return text + kept, true
}

// waiting says what a turn that runs waits for.
func waiting(phase string, elapsed time.Duration) string {
	word := "Waiting for the first token"
	switch phase {
	case "preparing":
		word = "Preparing the context fill"
	case "reasoning":
		word = "Reasoning"
	case "answering":
		word = "Answering"
	}
	return fmt.Sprintf("%s · %.1f s", word, elapsed.Seconds())
}

// reasoned is the head of the reasoning.
func reasoned(tokens int, known bool, mark string) string {
	if !known {
		return "Reasoning"
	}
	return strings.TrimSpace("Reasoning · " + plural(tokens, "token") + " " + mark)
}

// fillWords says how much was put before a prompt.
func fillWords(t *console.ChatTurn) string {
	text := "After a context fill of " + plural(t.Fill, "token")
	switch t.FillBy {
	case "":
	case "estimate":
		text += " (estimate)"
	default:
		text += ", counted by the " + t.FillBy
	}
	return text
}

// fillName is a size of context fill as a list offers it.
func fillName(n int) string {
	if n == 0 {
		return "No context fill"
	}
	if n%1024 == 0 {
		return fmt.Sprintf("Fill %dK tokens", n/1024) // 1K = 1024
	}
	return "Fill " + group(n) + " tokens"
}

// when writes a moment of the past.
func when(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	t, now = t.Local(), now.Local()
	y, m, d := now.Date()
	switch today := time.Date(y, m, d, 0, 0, 0, 0, now.Location()); {
	case !t.Before(today):
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2006-01-02")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return group(n) + " " + noun + "s"
}

// group writes a count with a comma at each thousand.
func group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
