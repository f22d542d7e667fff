package app

import (
	"fmt"
	"io"
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
	return st.SetSummarySource(id, string(r.Source))
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
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "metric\tp50\tp90\tp99\tmean\tn\t")
	for _, d := range []*measure.Dist{&run.TTFT, &run.TTFO, &run.ITL, &run.TPOT, &run.Rate, &run.E2E} {
		if d.N == 0 {
			continue
		}
		m, _ := measure.MetricByID(d.Metric)
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%d\t\n", m.Name, cell(m, d.Q(0.5)), cell(m, d.Q(0.9)), cell(m, d.Q(0.99)), number(m, d.Mean), d.N)
	}
	_ = tw.Flush()
	fmt.Fprintf(w, "%d of %d requests succeeded, %d tokens (%s)", run.OK, run.Attempted, run.Tokens, run.Source)
	if m, ok := measure.MetricByID("system_rate"); ok && run.Whole.OutputRate.Ok() {
		fmt.Fprintf(w, ", %s over all", number(m, run.Whole.OutputRate))
	}
	fmt.Fprintln(w)
	for _, o := range run.Objectives {
		fmt.Fprintf(w, "SLO %s: %s\n", o.Text, o.Result)
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

func cell(m measure.Metric, q measure.Quantile) string {
	if !q.Supported && q.Q > 0.5 {
		return "–"
	}
	return number(m, q.Value)
}

func number(m measure.Metric, v measure.Num) string {
	value, unit := report.FormatNum(m, v)
	return strings.TrimSpace(value + " " + unit)
}
