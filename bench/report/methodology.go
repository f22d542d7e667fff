package report

import (
	"fmt"
	"strings"

	"velo/bench/measure"
)

// methodology: how the numbers were made, so that somebody else can make them again.
func (b *builder) methodology() Section {
	r := b.run
	s := Section{ID: "methodology", Title: "Methodology"}
	var ps []string
	ps = append(ps,
		"Times are monotonic, in nanoseconds, from one clock. t0 is taken just before the request is handed to the connection pool. "+b.stampParagraph(),
		fmt.Sprintf("The whole run lasts from the first measured t0 to the last measured chunk%s. Steady state is the longest span inside one step in which at least 95 %% of the asked streams were in flight, dips under 50 ms ignored%s.",
			spanWords(r.Whole), steadyWords(r.Steady)),
		"Percentiles interpolate linearly between order statistics (Hyndman–Fan type 7). A quantile q needs n ≥ 1/(1 − q) values: p90 10, p95 20, p99 100, p99.9 1000; below that a cell says “max of n”. "+
			"Intervals are at 95 %: order statistics for percentiles of requests, BCa bootstrap by request (B = 2,000, seeded by the session) for means and ratios, Woodruff with variance clustered by request for percentiles of tokens, Student t between three or more repetitions.",
		b.warmupParagraph(),
	)
	switch {
	case b.gaps > 0 && b.zeroGaps == 0:
		ps = append(ps, fmt.Sprintf("None of %s between chunks is zero: no socket read carried two chunks. ITL is shown only where the tokens of each chunk are known and not estimated.", plural(b.gaps, "gap")))
	case b.gaps > 0:
		ps = append(ps, fmt.Sprintf("Chunks of one socket read arrive together: %s of %s (%s %%) are zero; they are kept in ICL. ITL is shown only where the tokens of each chunk are known and not estimated.",
			whole(b.zeroGaps), plural(b.gaps, "gap"), significant(100*float64(b.zeroGaps)/float64(b.gaps))))
	}
	ps = append(ps, b.sourceSentence()+" Sources are marked ▪ server, ▫ tokenizer, ~ estimate; a number without a mark is made of times only. What was not measured is a dash, never 0.")
	if p := b.s.Header.Plan; p.Prefix != "" {
		ps = append(ps, fmt.Sprintf("Prompts: %s. Seed %d. Connections are kept alive and pooled; nothing is retried. After a failed request: %s.", prefixWords(p.Prefix), p.Seed, orDash(oneLine(p.Failure, 40))))
	}
	if d := drawing(b.s.Header.Drawing); d != "" {
		ps = append(ps, "The window while measuring: "+d+".")
	}
	s.Text = strings.Join(ps, "\n\n")
	t := Table{ID: "definitions", Title: "Definitions", Columns: []Column{{Title: "Metric"}, {Title: "Unit"}, {Title: "Definition"}}}
	for _, m := range measure.Metrics() {
		name := m.Name
		if m.Long != "" && m.Long != m.Name {
			name += ", " + m.Long
		}
		t.Rows = append(t.Rows, []Cell{text(name), text(string(m.Unit)), text(m.Definition)})
	}
	if len(t.Rows) > 0 {
		s.Tables = []Table{t}
	}
	return s
}

func (b *builder) stampParagraph() string {
	w := b.stampWords()
	if w == "" {
		return "No chunk arrived, so no stamp was taken."
	}
	return "Chunk times: " + w + "; the two are never mixed within a request."
}

func spanWords(s measure.Span) string {
	if s.None != "" || s.To <= s.From {
		return ""
	}
	words := ", " + durationText(s.Time())
	if s.Paused > 0 {
		words += fmt.Sprintf(" without the %s of warm-up steps between, whose time and tokens count nowhere", durationText(s.Paused))
	}
	return words
}

func steadyWords(s measure.Span) string {
	if s.None != "" {
		return "; here there is none: " + strings.TrimPrefix(oneLine(s.None, 160), "no steady state: ")
	}
	return spanWords(s)
}

func (b *builder) warmupParagraph() string {
	if n := b.run.Warm; n > 0 {
		return fmt.Sprintf("Warm-up: %s ran before the measured ones; they are kept and marked, and left out of every number on requests.", plural(n, "request"))
	}
	return "There was no warm-up: the first requests include whatever the server does only once."
}
