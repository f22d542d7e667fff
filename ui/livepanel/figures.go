package livepanel

import (
	"fmt"
	"strconv"
	"time"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/ui/console"
	"velo/ui/look"
)

// figure is a number as the panel shows, explains and copies it.
type figure struct {
	name, value, unit, mark, note string
	help                          string // definition and source
	exact                         string // full precision with its unit
	ink                           look.Ink
}

// The figures of the panel, in its order.
const (
	fRate = iota
	fMedian
	fRange
	fTTFT
	fTTFO
	fElapsed
	fGapP50
	fGapP90
	fGapMax
	fOutput
	fContext
	fAcceptance
	figureCount
)

type figures [figureCount]figure

// made writes a number of a metric of bench/measure.
func made(name, id string, v measure.Num, source measure.Source, what string) figure {
	m, ok := measure.MetricByID(id)
	if !ok {
		m = measure.Metric{ID: id, Unit: measure.Count}
	}
	f := figure{name: name, exact: report.Exact(m, v)}
	f.value, f.unit = report.FormatNum(m, v)
	if m.Counts && v.Ok() {
		f.mark = source.Mark()
	}
	f.help = what
	if m.Definition != "" {
		f.help += " " + m.Definition
	}
	f.help += "\n" + sourceWords(m.Counts, v, source)
	if v.Ok() {
		f.help += " Exactly: " + f.exact + "."
	}
	return f
}

// sourceWords says where a number comes from.
func sourceWords(counts bool, v measure.Num, s measure.Source) string {
	switch {
	case !v.Ok():
		return "Not measured yet, or there is nothing to measure it by."
	case !counts:
		return "Source: this program's clock."
	case s == measure.Server:
		return "Source: times by this program's clock, tokens counted by the server ▪."
	case s == measure.Tokenizer:
		return "Source: times by this program's clock, tokens counted with the model's tokenizer ▫."
	case s == measure.Estimate:
		return "Source: times by this program's clock, tokens estimated from the text ~."
	}
	return "Source: this program's clock."
}

// written writes the range of two numbers.
func written(low, high measure.Num) string {
	m, _ := measure.MetricByID("rate")
	if !low.Ok() || !high.Ok() {
		return report.Dash
	}
	a, _ := report.FormatNum(m, low)
	b, _ := report.FormatNum(m, high)
	return a + "–" + b
}

func rangeOf(low, high measure.Num, source measure.Source) figure {
	f := made("Range, tok/s", "rolling", low, source, "The lowest and the highest sample of the rolling rate.")
	f.value, f.unit, f.mark = written(low, high), "", ""
	if low.Ok() && high.Ok() {
		f.mark = source.Mark()
	}
	if low.Ok() && high.Ok() {
		m, _ := measure.MetricByID("rolling")
		f.exact = report.Exact(m, low) + " to " + report.Exact(m, high)
	}
	return f
}

// output writes how many tokens came, by channel.
func output(answer, reasoning int, source measure.Source) figure {
	f := figure{name: "Output tokens", value: group(answer + reasoning), mark: source.Mark()}
	if answer+reasoning == 0 {
		f.value, f.mark = report.Dash, ""
	}
	if reasoning > 0 {
		f.note = group(answer) + " + " + group(reasoning)
	}
	f.exact = fmt.Sprintf("%d tokens: %d of the answer, %d of the reasoning", answer+reasoning, answer, reasoning)
	f.help = "Tokens received: of the answer " + group(answer) + ", of the reasoning " + group(reasoning) + ".\n" +
		sourceWords(true, measure.Num(answer+reasoning), source)
	return f
}

func contextOf(prompt, cached measure.Num) figure {
	f := figure{name: "Prompt tokens", value: report.Dash, exact: report.Dash,
		help: "Tokens of everything that was sent, by the server's usage. Not known before the turn ends, or where the server gives no usage."}
	if prompt.Ok() && prompt > 0 {
		f.value, f.mark = group(int(prompt)), measure.Server.Mark()
		f.exact = strconv.Itoa(int(prompt)) + " tokens"
		f.help = "Tokens of everything that was sent.\nSource: the server's usage ▪."
		if cached.Ok() && cached > 0 {
			f.note = group(int(cached)) + " cached"
			f.help += " Of these, " + group(int(cached)) + " were found in a prefix cache."
		}
	}
	return f
}

func elapsed(d time.Duration, what string) figure {
	f := figure{name: "Elapsed", value: report.Dash, exact: report.Dash, help: what + "\nSource: this program's clock."}
	if d > 0 {
		s := d.Seconds()
		f.exact = strconv.FormatFloat(s, 'f', -1, 64) + " s"
		switch {
		case s < 100:
			f.value, f.unit = strconv.FormatFloat(s, 'f', 1, 64), "s"
		default:
			f.value = fmt.Sprintf("%d:%02d", int(s)/60, int(s)%60)
			f.unit = "min"
		}
	}
	return f
}

func acceptance(v measure.Num) figure {
	return made("Acceptance", "acceptance", v, measure.Server, "")
}

// ofLive are the figures of a turn that runs.
func ofLive(s *console.ChatLive) figures {
	n := &s.Snapshot
	var f figures
	f[fRate] = made("Decode rate now", "rolling", n.Rate, s.Source, "")
	f[fMedian] = made("Median", "rolling", n.Median, s.Source, "The median of the samples so far.")
	f[fRange] = rangeOf(n.Min, n.Max, s.Source)
	f[fTTFT] = made("TTFT", "ttft", s.TTFT, s.Source, "")
	f[fTTFO] = made("TTFO", "ttfo", s.TTFO, s.Source, "")
	f[fElapsed] = elapsed(s.Elapsed, "Since the request was handed to the connection.")
	f[fGapP50] = made("Gap, median", "icl", s.GapP50, s.Source, "Half of the gaps so far are shorter.")
	f[fGapP90] = made("Gap, p90", "icl", s.GapP90, s.Source, "Nine of ten gaps so far are shorter.")
	f[fGapMax] = made("Gap, longest", "max_gap", s.GapMax, s.Source, "")
	f[fOutput] = output(s.AnswerTokens, s.ReasoningTokens, s.Source)
	f[fContext] = contextOf(measure.Num(s.Context), measure.Missing)
	f[fAcceptance] = acceptance(measure.Missing)
	return f
}

// ofNothing are the figures before there is anything.
func ofNothing() figures {
	none := measure.Missing
	s := console.ChatLive{GapP50: none, GapP90: none, GapMax: none, TTFT: none, TTFO: none}
	s.Snapshot = measure.Snapshot{Rate: none, Median: none, Min: none, Max: none}
	f := ofLive(&s)
	f[fRate].name = "Decode rate"
	return f
}

// ofTurns are the figures of turns that have ended: of one, or of all of a chat.
func ofTurns(st *console.ChatStatistics, chat bool) figures {
	if st.Run == nil || len(st.Requests) == 0 {
		return ofNothing()
	}
	r := st.Run
	var f figures
	of := func(d *measure.Dist) (measure.Num, string) {
		if chat {
			return d.Q(0.5).Value, "The median over the turns."
		}
		return d.Min, "" // of one turn there is one value
	}
	one := &st.Requests[0]
	rate, over := one.Rate, ""
	ttft, ttfo := one.TTFT, one.TTFO
	if chat {
		rate, over = of(&r.Rate)
		ttft, _ = of(&r.TTFT)
		ttfo, _ = of(&r.TTFO)
	}
	f[fRate] = made("Decode rate", "rate", rate, r.Source, over)
	f[fMedian] = made("Median", "rolling", r.Rolling.Median, r.Source, "The median of the samples.")
	f[fRange] = rangeOf(r.Rolling.Min, r.Rolling.Max, r.Source)
	f[fTTFT] = made("TTFT", "ttft", ttft, r.Source, over)
	f[fTTFO] = made("TTFO", "ttfo", ttfo, r.Source, over)
	if chat {
		f[fElapsed] = figure{name: "Turns", value: group(len(st.Requests)), exact: strconv.Itoa(len(st.Requests)) + " turns", help: "The turns of the branch that is shown whose raw events are kept."}
	} else {
		f[fElapsed] = made("E2E", "e2e", one.E2E, r.Source, "")
	}
	f[fGapP50] = made("Gap, median", "icl", r.ICL.Q(0.5).Value, r.Source, "Half of the gaps are shorter.")
	p90 := r.ICL.Q(0.9)
	f[fGapP90] = made("Gap, p90", "icl", p90.Value, r.Source, "Nine of ten gaps are shorter.")
	if !p90.Supported && p90.Value.Ok() {
		f[fGapP90].note = fmt.Sprintf("max of %d", r.ICL.N)
		f[fGapP90].help = "There are too few gaps for a p90: this is the longest of them. " + f[fGapP90].help
	}
	f[fGapMax] = made("Gap, longest", "max_gap", r.MaxGap.Max, r.Source, "")
	f[fOutput] = output(r.Answer, r.Thought, r.Source)
	f[fContext] = contextOf(r.Prompt, r.Cached)
	f[fAcceptance] = acceptance(r.Acceptance)
	if !r.Acceptance.Ok() && r.AcceptedEstimate.Ok() && r.AcceptedEstimate > 1.05 {
		f[fAcceptance] = made("Tokens a chunk", "accepted_estimate", r.AcceptedEstimate, measure.Estimate, "The server gives no counters of acceptance.")
	}
	return f
}

// ofKinds are the decode rates of turns that have ended by the kind of text that came.
func ofKinds(st *console.ChatStatistics) []figure {
	var out []figure
	for _, o := range st.Shares {
		f := made("Rate, "+o.Regime.String(), "rate", o.Rate, o.Source, "Of the chunks of this kind: their tokens over the gaps before them.")
		f.note = group(o.Tokens) + " tokens"
		out = append(out, f)
	}
	return out
}

// group writes a count with a comma at each thousand.
func group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
