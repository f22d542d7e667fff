package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"velo/bench"
	"velo/bench/measure"
)

// writeSummaryCSV writes the exact figures, one metric a row.
func writeSummaryCSV(w io.Writer, r *Report) error {
	c := csv.NewWriter(w)
	c.Write(figureColumns)
	for _, f := range r.Figures {
		c.Write(f.fields())
	}
	c.Flush()
	return c.Error()
}

// requestColumns are the columns of the table of requests. The unit is the end of a name.
var requestColumns = []string{
	"request", "step", "suite_step", "repetition", "section", "title", "worker", "turn", "warmup",
	"status", "class", "ended_by", "finish", "http_status", "stamp", "source",
	"planned_s", "start_s", "prompt_tokens", "cached_tokens", "output_tokens", "answer_tokens", "reasoning_tokens", "unseen_tokens", "chunks", "reads",
	"ttfb_ms", "ttft_ms", "ttfo_ms", "ttst_ms", "e2e_ms", "close_ms", "latency_ms", "itl_ms", "tpot_ms", "max_gap_ms", "zero_gaps",
	"rate_tok_per_s", "peak_tok_per_s", "rolling_median_tok_per_s", "rolling_min_tok_per_s", "rolling_max_tok_per_s", "stability",
	"prefill_tok_per_s", "prefill_source", "acceptance", "cache_hit", "schedule_delay_ms", "written_delay_ms", "reused", "error",
}

// writeRequestsCSV writes one row a request, in order of number; what was not measured is empty.
func writeRequestsCSV(w io.Writer, r *Report) error {
	c := csv.NewWriter(w)
	c.Write(requestColumns)
	exchanges := map[int]*bench.Exchange{}
	for _, x := range r.Session.Exchanges {
		exchanges[x.Request.Number] = x
	}
	steps := map[int]*bench.Step{}
	for _, st := range r.Session.Steps {
		steps[st.Number] = st
	}
	for i := range r.Run.Requests {
		q := &r.Run.Requests[i]
		c.Write(requestRow(q, exchanges[q.Number], steps[q.Step]))
	}
	c.Flush()
	return c.Error()
}

func requestRow(q *measure.Request, x *bench.Exchange, st *bench.Step) []string {
	var suiteStep, repetition, section, title, planned, start, by, finish, reads, status, reused string
	if st != nil {
		suiteStep, repetition = strconv.Itoa(st.Index+1), strconv.Itoa(st.Repetition+1)
		section, title = st.Section, st.Title
	}
	if x != nil {
		planned = fixedSeconds(x.Request.Planned.Seconds())
		start = fixedSeconds(x.Request.Start.Seconds())
		if x.End != nil {
			by, finish, reads = x.End.By, x.End.Finish, strconv.Itoa(x.End.Reads)
		}
		if x.Conn != nil {
			reused = strconv.FormatBool(x.Conn.Reused)
			if x.Conn.Status != 0 {
				status = strconv.Itoa(x.Conn.Status)
			}
		}
	}
	counted := func(n int) string {
		if len(q.Arrivals) == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	source, stamp, zero := string(q.Source), string(q.Stamp), strconv.Itoa(q.ZeroGaps)
	if len(q.Arrivals) == 0 {
		source, stamp, zero = "", "", ""
	}
	s := func(v measure.Num) string { return fixed(measure.Seconds, v) }
	p := func(v measure.Num) string { return fixed(measure.PerSec, v) }
	t := func(v measure.Num) string { return fixed(measure.Tokens, v) }
	f := func(v measure.Num) string { return fixed(measure.Fraction, v) }
	prefillSource := ""
	if q.Prefill.Ok() {
		prefillSource = string(q.PrefillSource)
	}
	return []string{
		strconv.Itoa(q.Number), strconv.Itoa(q.Step), suiteStep, repetition, harmless(section), harmless(title),
		strconv.Itoa(q.Worker + 1), strconv.Itoa(q.Turn + 1), strconv.FormatBool(q.Warmup),
		harmless(string(q.Status)), harmless(q.Class), harmless(by), harmless(finish), status, stamp, source,
		planned, start, t(q.Prompt), t(q.Cached), counted(q.N), counted(q.Answer), counted(q.Thought), t(q.Unseen), strconv.Itoa(len(q.Arrivals)), reads,
		s(q.TTFB), s(q.TTFT), s(q.TTFO), s(q.TTST), s(q.E2E), s(q.Close), s(q.Latency), s(q.ITL), s(q.TPOT), s(q.MaxGap), zero,
		p(q.Rate), p(q.Peak), p(q.Rolling.Median), p(q.Rolling.Min), p(q.Rolling.Max), f(q.Rolling.Stability),
		p(q.Prefill), prefillSource, f(q.Acceptance), f(q.CacheHit), s(q.ScheduleDelay), s(q.WrittenDelay), reused, harmless(oneLine(q.Error, 400)),
	}
}

// fixedSeconds writes a session time; one that was not recorded is empty.
func fixedSeconds(s float64) string {
	if s < -1e9 {
		return ""
	}
	return fmt.Sprintf("%.6f", s)
}

// harmless guards text from outside against being taken for a formula by a spreadsheet: what begins
// like one gets an apostrophe in front.
func harmless(s string) string {
	s = oneLine(s, 400)
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
