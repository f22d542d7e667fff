package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"velo/bench"
	"velo/bench/measure"
)

// steps: one line a step of the suite, over all its workers and repetitions.
func (b *builder) steps() Section {
	s := Section{ID: "steps", Title: "Steps"}
	if len(b.run.Steps) == 0 {
		return s
	}
	t := Table{ID: "steps", Columns: []Column{
		{Title: "#", Right: true}, {Title: "Step"}, {Title: "Workers", Right: true}, {Title: "Requests", Right: true}, {Title: "Failed", Right: true},
		{Title: "Tokens", Right: true}, {Title: "TTFT p50", Unit: "ms", Right: true}, {Title: "TTFT p95", Unit: "ms", Right: true},
		{Title: "Prefill", Unit: "tok/s", Right: true}, {Title: "Decode p50", Unit: "tok/s", Right: true},
		{Title: "System", Unit: "tok/s", Right: true}, {Title: "Steady", Unit: "tok/s", Right: true},
		{Title: "In flight", Right: true}, {Title: "Skew", Unit: "ms", Right: true},
	}}
	sources := map[measure.Source]bool{}
	var none string
	for i := range b.run.Steps {
		st := &b.run.Steps[i]
		steady := st.Steady.OutputRate
		if st.Steady.None != "" {
			steady, none = measure.Missing, oneLine(st.Steady.None, 160)
		}
		failed := count(st.Failed)
		if st.Failed > 0 {
			failed.Level = measure.Red
		}
		t.Rows = append(t.Rows, []Cell{
			text(b.stepLabel(i)), text(stepName(st.Section, st.Title, st.Kind, st.Depth, st.PP, st.TG)),
			count(st.Workers), count(st.Requests), failed, tokenCount(measure.Num(st.Tokens), st.Source),
			number(median(&st.TTFT), 1e3, measure.Clock), quantile(&st.TTFT, 0.95, 1e3, measure.Clock),
			number(median(&st.Prefill), 1, st.PrefillSource), number(median(&st.Rate), 1, st.Source),
			number(st.System.OutputRate, 1, st.Source), number(steady, 1, st.Source),
			number(st.System.InFlight, 1, measure.Clock), number(st.ReleaseSkew, 1e3, measure.Clock),
		})
		if st.Rate.N > 0 {
			sources[st.Source] = true
		}
		if st.Prefill.N > 0 {
			sources[st.PrefillSource] = true
		}
	}
	t.Note = legend(sources)
	s.Text = "A step is one line of the suite, all its workers and repetitions together; warm-up is left out. " +
		"System is every token received between the step's first t0 and its last chunk, over that time; steady counts only while the asked number of streams was in flight; " +
		"skew is how long after the release the last request was sent."
	if none != "" {
		s.Text += " Where steady is a dash: " + strings.TrimPrefix(none, "no steady state: ") + "."
	}
	s.Tables = []Table{t}
	return s
}

// stepLabel is the number of the step as tables and charts show it: from 1, as in the suite file.
func (b *builder) stepLabel(i int) string { return strconv.Itoa(b.run.Steps[i].Index + 1) }

// turns: one line a request, warm-up included and marked.
func (b *builder) turns() Section {
	s := Section{ID: "turns", Title: "Turns"}
	if len(b.run.Requests) == 0 {
		return s
	}
	t := Table{ID: "turns", Columns: []Column{
		{Title: "#", Right: true}, {Title: "Step"}, {Title: "Rep", Right: true}, {Title: "Worker", Right: true}, {Title: "Turn", Right: true},
		{Title: "Prompt", Right: true}, {Title: "Output", Right: true}, {Title: "TTFT", Unit: "ms", Right: true},
		{Title: "TTFO", Unit: "ms", Right: true}, {Title: "Prefill", Unit: "tok/s", Right: true}, {Title: "Rate", Unit: "tok/s", Right: true},
		{Title: "Lowest", Unit: "tok/s", Right: true}, {Title: "Highest", Unit: "tok/s", Right: true},
		{Title: "Max gap", Unit: "ms", Right: true}, {Title: "E2E", Unit: "s", Right: true}, {Title: "Status"},
	}}
	sources := map[measure.Source]bool{}
	for i := range b.run.Requests {
		q := &b.run.Requests[i]
		t.Rows = append(t.Rows, b.turn(q))
		if len(q.Arrivals) > 0 {
			sources[q.Source] = true
		}
		if q.Prefill.Ok() {
			sources[q.PrefillSource] = true
		}
	}
	if b.s.Header.Plan.Repeat <= 1 { // a column of ones says nothing
		t.Columns = slices.Delete(t.Columns, 2, 3)
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], 2, 3)
		}
	}
	t.Note = joinNotes("lowest and highest are of the rolling rate", legend(sources))
	s.Tables = []Table{t}
	return s
}

func (b *builder) turn(q *measure.Request) []Cell {
	step := Dash
	repetition := text(Dash)
	if st := b.stepByNumber[q.Step]; st != nil {
		step = fmt.Sprintf("%d %s", st.Index+1, shortName(st))
		repetition = count(st.Repetition + 1)
	}
	tokens := measure.Missing
	if len(q.Arrivals) > 0 {
		tokens = measure.Num(q.N)
	}
	status := text(statusWords(q))
	switch q.Status {
	case "ok":
	case "stopped", "":
		status.Level = measure.Amber
	default:
		status.Level = measure.Red
	}
	if q.Warmup {
		status.Text = "warm-up, " + status.Text
		if status.Level == "" {
			status.Grey = true
		}
	}
	return []Cell{
		count(q.Number), text(step), repetition, count(q.Worker + 1), count(q.Turn + 1),
		tokenCount(q.Prompt, measure.Server), tokenCount(tokens, q.Source), number(q.TTFT, 1e3, measure.Clock),
		number(q.TTFO, 1e3, measure.Clock), number(q.Prefill, 1, q.PrefillSource), number(q.Rate, 1, q.Source),
		number(q.Rolling.Min, 1, q.Source), number(q.Rolling.Max, 1, q.Source),
		number(q.MaxGap, 1e3, measure.Clock), number(q.E2E, 1, measure.Clock), status,
	}
}

// shortName is what tells a step from its neighbours, in a column that has little room.
func shortName(st *bench.Step) string {
	for _, name := range []string{st.Title, st.Section, st.Kind} {
		if name = oneLine(name, 28); name != "" {
			return name
		}
	}
	return Dash
}

// statusWords is how a request ended, with the class of its error.
func statusWords(q *measure.Request) string {
	switch {
	case q.Status == "":
		return "no end recorded"
	case q.Class != "" && q.Class != string(q.Status):
		return string(q.Status) + ": " + oneLine(q.Class, 40)
	}
	return string(q.Status)
}
