package app

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/store"
)

// headline are the numbers that the list of sessions shows, so that it need not compute each one.
func headline(r *measure.Run) map[string]float64 {
	m := map[string]float64{}
	put := func(id string, v measure.Num) {
		if v.Ok() {
			m[id] = float64(v)
		}
	}
	put("ttft", r.TTFT.Q(0.5).Value)
	put("rate", r.Rate.Q(0.5).Value)
	return m
}

// noteHeadline keeps them with the session.
func noteHeadline(st *store.Store, id string, r *measure.Run) error {
	if err := st.SetSummaryMetrics(id, headline(r)); err != nil {
		return err
	}
	return st.SetSummaryTokens(id, r.Tokens, string(r.Source))
}

// printTable prints the end of a run for a person.
func printTable(w io.Writer, r *report.Report, files []string) {
	run := r.Run
	fmt.Fprintf(w, "%s · %s · %s\n", r.Title, r.Session.Header.Endpoint.Model, r.Session.Header.Endpoint.URL)
	if r.Session.Header.Endpoint.BuiltIn {
		fmt.Fprintln(w, "This is the built-in scripted endpoint, not a real model.")
	}
	if r.Status != "" {
		fmt.Fprintln(w, r.Status)
	}
	printFigures(w, run)
	for i := range run.Objectives {
		o := &run.Objectives[i]
		fmt.Fprintf(w, "SLO %s: %s", o.Text, o.Result)
		if seen := report.Seen(o); o.Value.Ok() {
			fmt.Fprintf(w, " (%s)", seen)
		}
		if o.Result == measure.Missed && math.IsInf(float64(o.Value), 0) {
			fmt.Fprint(w, "; a request that failed counts as infinitely long")
		}
		fmt.Fprintln(w)
	}
	var doubts []string
	for _, c := range run.Trust {
		if c.Level == measure.Red || c.Level == measure.Amber {
			doubts = append(doubts, fmt.Sprintf("%s %s (%s)", c.Level, c.Name, c.Value))
		}
	}
	if len(doubts) > 0 {
		fmt.Fprintf(w, "Trust: %s\n", strings.Join(doubts, "; "))
	} else {
		fmt.Fprintf(w, "Trust: %s\n", run.Worst)
	}
	fmt.Fprintf(w, "Session %s\n", r.Session.Header.ID)
	for _, f := range files {
		fmt.Fprintln(w, f)
	}
}

// printFigures prints what was measured; where nothing was, that is said in the table's place.
func printFigures(w io.Writer, run *measure.Run) {
	if run.Attempted == 0 {
		failed := 0
		for i := range run.Requests {
			if r := &run.Requests[i]; r.Warmup && r.Fails() {
				failed++
			}
		}
		fmt.Fprint(w, "no request was measured")
		if failed > 0 {
			fmt.Fprintf(w, ": %d of %d warm-up requests failed", failed, run.Warm)
		}
		fmt.Fprintln(w)
		return
	}
	estimated := run.Source == measure.Estimate
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	rows := 0
	for _, d := range []*measure.Dist{&run.TTFT, &run.TTFO, &run.ITL, &run.TPOT, &run.Rate, &run.E2E} {
		if d.N == 0 {
			continue
		}
		if rows++; rows == 1 {
			fmt.Fprintln(tw, "metric\tp50\tp90\tp99\tmean\tn\t")
		}
		m, _ := measure.MetricByID(d.Metric)
		cell := func(v measure.Num, supported bool) string {
			if !supported || !v.Ok() {
				return "–" + mark(d.Source, estimated, false)
			}
			return number(m, v) + mark(d.Source, estimated, true)
		}
		quantile := func(q float64) string { x := d.Q(q); return cell(x.Value, x.Supported || q <= 0.5) }
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%d\t\n", m.Name, quantile(0.5), quantile(0.9), quantile(0.99), cell(d.Mean, true), d.N)
	}
	_ = tw.Flush()
	fmt.Fprintf(w, "%d of %d requests succeeded", run.OK, run.Attempted)
	if run.Tokens > 0 {
		fmt.Fprintf(w, ", %d tokens (%s)", run.Tokens, run.Source)
	}
	if m, ok := measure.MetricByID("output_rate"); ok && run.Whole.OutputRate.Ok() {
		fmt.Fprintf(w, ", %s%s all together", number(m, run.Whole.OutputRate), strings.TrimRight(mark(run.Source, estimated, true), " "))
	}
	if m, ok := measure.MetricByID("request_rate"); ok && run.Whole.RequestRate.Ok() {
		fmt.Fprintf(w, ", %s", number(m, run.Whole.RequestRate))
	}
	fmt.Fprintln(w)
	if estimated {
		fmt.Fprintln(w, "~ estimate: the server does not say how many tokens each chunk has")
	}
}

// mark tells an estimate from what was measured, in a table in which there are estimates.
func mark(source measure.Source, estimated, value bool) string {
	switch {
	case value && source == measure.Estimate:
		return " ~"
	case estimated:
		return "  "
	}
	return ""
}

func number(m measure.Metric, v measure.Num) string {
	value, unit := report.FormatNum(m, v)
	return strings.TrimSpace(value + " " + unit)
}
