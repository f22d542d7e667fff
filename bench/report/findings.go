package report

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"velo/bench"
	"velo/bench/measure"
)

// mostFindings is how many sentences a report opens with; a longer list is not read.
const mostFindings = 6

// findings derives sentences by rule, those that change how the numbers must be read first. A rule
// that does not apply says nothing.
func (b *builder) findings() []Finding {
	var fs []Finding
	for _, rule := range []struct {
		id  string
		say func() string
	}{
		{"no-data", b.sayNoData},
		{"trust", b.sayTrust},
		{"failures", b.sayFailures},
		{"objectives", b.sayObjectives},
		{"steps", b.saySteps},
		{"prefill", b.sayPrefill},
		{"stall", b.sayStall},
		{"tail", b.sayTail},
		{"decay", b.sayDecay},
		{"workers", b.sayWorkers},
		{"reasoning", b.sayReasoning},
		{"repetitions", b.sayRepetitions},
		{"decode", b.sayDecode},
	} {
		if text := rule.say(); text != "" {
			fs = append(fs, Finding{rule.id, text})
		}
		if len(fs) == mostFindings {
			break
		}
	}
	return fs
}

func (b *builder) rateWords(v measure.Num) string {
	return quantity(b.dist("rate").metric, v, b.run.Source)
}

// rangeWords is an interval of a decode rate: "62.5 to 65.3 tok/s".
func (b *builder) rangeWords(i measure.Interval) string {
	lo, _ := FormatNum(b.dist("rate").metric, i.Lo)
	return lo + " to " + b.rateWords(i.Hi)
}

func timeWords(v measure.Num) string {
	return quantity(measure.Metric{Unit: measure.Seconds}, v, measure.Clock)
}

func (b *builder) sayNoData() string {
	switch {
	case len(b.s.Exchanges) == 0:
		return "The session holds no request, so there is nothing to measure."
	case b.run.Attempted == 0:
		return "No measured request was recorded; what there is belongs to the warm-up."
	case len(b.sources) == 0:
		return fmt.Sprintf("None of %s brought a token, so there is neither a rate nor a time to first token.", plural(b.run.Attempted, "request"))
	}
	return ""
}

func (b *builder) sayTrust() string {
	var red []string
	for _, c := range b.run.Trust {
		if c.Level == measure.Red && c.ID != "failures" { // the next rule tells of those
			red = append(red, oneLine(c.Name, 40)+" ("+oneLine(orDash(c.Value), 60)+")")
		}
	}
	switch {
	case len(red) == 0:
		return ""
	case len(red) > 3:
		red = append(red[:3], fmt.Sprintf("%d more", len(red)-3))
	}
	return "The trust panel is red for " + listed(red) + ": read the numbers with that in mind."
}

func (b *builder) sayFailures() string {
	if b.run.Failed == 0 {
		return ""
	}
	type class struct {
		name string
		n    int
	}
	var cs []class
	for name, n := range b.run.Errors {
		cs = append(cs, class{oneLine(name, 40), n})
	}
	sort.Slice(cs, func(i, j int) bool { return cs[i].n > cs[j].n || cs[i].n == cs[j].n && cs[i].name < cs[j].name })
	var parts []string
	for i, c := range cs {
		if i == 3 {
			parts = append(parts, "others")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s", whole(c.n), c.name))
	}
	s := fmt.Sprintf("%s of %s failed", whole(b.run.Failed), plural(b.run.Attempted, "request"))
	if len(parts) > 0 {
		s += ": " + listed(parts)
	}
	return s + "."
}

func (b *builder) sayObjectives() string {
	var missed, few []string
	for _, o := range b.run.Objectives {
		switch o.Result {
		case "met":
		case "missed":
			missed = append(missed, fmt.Sprintf("%s (seen %s)", oneLine(o.Text, 60), quantity(objectiveMetric(o.SLO.Metric), o.Value, measure.Clock)))
		default:
			few = append(few, oneLine(o.Text, 60))
		}
	}
	switch {
	case len(b.run.Objectives) == 0:
		return ""
	case len(missed) > 0:
		return "Missed: " + listed(missed) + "."
	case len(few) > 0:
		return "Not enough requests to judge " + listed(few) + "."
	}
	return fmt.Sprintf("Met: all %s.", plural(len(b.run.Objectives), "objective"))
}

// saySteps compares the fastest and the slowest step, where they differ by 5 % or more.
func (b *builder) saySteps() string {
	slow, fast := -1, -1
	for i := range b.run.Steps {
		v := median(&b.run.Steps[i].Rate)
		if !v.Ok() || v <= 0 {
			continue
		}
		if slow < 0 || v < median(&b.run.Steps[slow].Rate) {
			slow = i
		}
		if fast < 0 || v > median(&b.run.Steps[fast].Rate) {
			fast = i
		}
	}
	if slow < 0 || slow == fast {
		return ""
	}
	lo, hi := median(&b.run.Steps[slow].Rate), median(&b.run.Steps[fast].Rate)
	if hi < 1.05*lo {
		return ""
	}
	return fmt.Sprintf("Step %s decoded fastest at %s, step %s slowest at %s: %s %% less.",
		b.stepTitle(fast), b.rateWords(hi), b.stepTitle(slow), b.rateWords(lo), significant(100*float64(1-lo/hi)))
}

func (b *builder) stepTitle(i int) string {
	st := &b.run.Steps[i]
	return b.stepLabel(i) + " (" + stepName(st.Section, st.Title, st.Kind, st.Depth, st.PP, st.TG) + ")"
}

// sayPrefill tells how the wait grows with the prompt, over the steps that ask for a length.
func (b *builder) sayPrefill() string {
	short, long := -1, -1
	length := func(i int) int { return b.run.Steps[i].Depth + b.run.Steps[i].PP }
	for i := range b.run.Steps {
		if length(i) == 0 || b.run.Steps[i].TTFT.N == 0 {
			continue
		}
		if short < 0 || length(i) < length(short) {
			short = i
		}
		if long < 0 || length(i) > length(long) {
			long = i
		}
	}
	if short < 0 || length(long) < 2*length(short) {
		return ""
	}
	return fmt.Sprintf("The first token took %s with %s of prompt and %s with %s.",
		timeWords(median(&b.run.Steps[short].TTFT)), plural(length(short), "token"),
		timeWords(median(&b.run.Steps[long].TTFT)), plural(length(long), "token"))
}

// sayStall points at the longest gap where it is far from the usual one.
func (b *builder) sayStall() string {
	usual := median(&b.run.ICL)
	if !usual.Ok() {
		return ""
	}
	var worst *measure.Request
	for _, q := range b.measured {
		if q.MaxGap.Ok() && (worst == nil || q.MaxGap > worst.MaxGap) {
			worst = q
		}
	}
	if worst == nil || worst.MaxGap < 0.1 || worst.MaxGap < 10*usual || usual <= 0 {
		return ""
	}
	return fmt.Sprintf("The longest gap, %s in request %d, is %s times the median gap of %s.",
		timeWords(worst.MaxGap), worst.Number, significant(float64(worst.MaxGap/usual)), timeWords(usual))
}

// sayTail tells of an uneven stream: the slowest hundredth of gaps against the usual one.
func (b *builder) sayTail() string {
	mid, tail := median(&b.run.ICL), supported(&b.run.ICL, 0.99)
	if !mid.Ok() || !tail.Ok() || mid <= 0 || tail < 2*mid {
		return ""
	}
	return fmt.Sprintf("One gap in a hundred is longer than %s, %s times the median of %s.",
		timeWords(tail), significant(float64(tail/mid)), timeWords(mid))
}

// sayDecay tells of a rate that fell. Over steps of different shapes it would fall by design.
func (b *builder) sayDecay() string {
	if len(b.run.Steps) > 1 {
		return ""
	}
	if v := b.run.Stability; v.Ok() && v < 0.85 {
		return fmt.Sprintf("The rate did not hold: in the last 30 %% of decode time it was %s %% of the run's high level (p95).", significant(100*float64(v)))
	}
	return ""
}

// sayWorkers tells whether the streams were served alike.
func (b *builder) sayWorkers() string {
	if !b.concurrent() {
		return ""
	}
	sum, n := map[int]float64{}, map[int]int{}
	for _, q := range b.measured {
		if q.Rate.Ok() && q.Status == bench.OK {
			sum[q.Worker] += float64(q.Rate)
			n[q.Worker]++
		}
	}
	if len(n) < 2 {
		return ""
	}
	lo, hi := math.Inf(1), 0.0
	for w, k := range n {
		mean := sum[w] / float64(k)
		lo, hi = math.Min(lo, mean), math.Max(hi, mean)
	}
	s := b.scalar("output_rate")
	text := ""
	if s.v.Ok() {
		text = fmt.Sprintf("%s together put out %s; one stream decodes at %s.", plural(len(n), "worker"), b.rateWords(s.v), b.rateWords(median(&b.run.Rate)))
	}
	if hi > 1.25*lo && lo > 0 {
		text += fmt.Sprintf(" They were not served alike: the fastest averaged %s, the slowest %s.", b.rateWords(measure.Num(hi)), b.rateWords(measure.Num(lo)))
	}
	return text
}

func (b *builder) sayReasoning() string {
	r := b.run
	if r.Thought == 0 || r.Tokens == 0 {
		return ""
	}
	s := significant(100*float64(r.Thought)/float64(r.Tokens)) + " % of the tokens were reasoning"
	if r.TTFO.N > 0 && r.TTFT.N > 0 {
		s += fmt.Sprintf(": the first token came after %s, the first of the answer after %s (medians)", timeWords(median(&r.TTFT)), timeWords(median(&r.TTFO)))
	}
	return s + "."
}

func (b *builder) sayRepetitions() string {
	i := b.run.Rate.BetweenRuns
	if len(b.run.Rate.RepetitionMean) < 3 || !i.Lo.Ok() || !i.Hi.Ok() {
		return ""
	}
	return fmt.Sprintf("Between %s the mean decode rate lies from %s (95 %%, %s).",
		plural(len(b.run.Rate.RepetitionMean), "repetition"), b.rangeWords(i), i.Method)
}

func (b *builder) sayDecode() string {
	v := median(&b.run.Rate)
	if !v.Ok() {
		return ""
	}
	s := fmt.Sprintf("The median request of %s decoded at %s", whole(b.run.Rate.N), b.rateWords(v))
	if i := b.run.Rate.Q(0.5).Interval; i.Method != "" && i.Lo.Ok() && i.Hi.Ok() {
		s += fmt.Sprintf(", between %s at 95 %%", strings.Replace(b.rangeWords(i), " to ", " and ", 1))
	}
	return s + "."
}
