package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"velo/bench"
	"velo/bench/measure"
)

// writeBenchstat writes lines in the format of Go benchmarks, which benchstat reads: one a step and
// repetition, so that its significance test has a sample a repetition. Values are means over the
// requests of that step and repetition that have them.
func writeBenchstat(w io.Writer, r *Report) error {
	b := bufio.NewWriter(w)
	h := &r.Session.Header
	if os, arch, ok := strings.Cut(h.Environment.OS, "/"); ok {
		fmt.Fprintf(b, "goos: %s\ngoarch: %s\n", word(os), word(arch))
	}
	fmt.Fprintln(b, "pkg: velo")
	if h.Environment.CPU != "" {
		fmt.Fprintf(b, "cpu: %s\n", oneLine(h.Environment.CPU, 80))
	}
	type key struct{ index, repetition int }
	groups := map[key][]*measure.Request{}
	titles := map[key]*bench.Step{}
	steps := map[int]*bench.Step{}
	var order []key
	for _, st := range r.Session.Steps {
		steps[st.Number] = st
	}
	for i := range r.Run.Requests {
		q := &r.Run.Requests[i]
		if q.Warmup || q.Status != bench.OK {
			continue
		}
		k := key{index: -1}
		st := steps[q.Step]
		if st != nil {
			k = key{st.Index, st.Repetition}
		}
		if _, ok := groups[k]; !ok {
			order = append(order, k)
			titles[k] = st
		}
		groups[k] = append(groups[k], q)
	}
	model := h.Endpoint.Model
	if h.Endpoint.BuiltIn {
		model = "built-in-scripted-endpoint"
	}
	for _, k := range order {
		step := "all"
		workers := h.Plan.Workers
		if st := titles[k]; st != nil {
			step = fmt.Sprintf("%d-%s", st.Index+1, word(stepName(st.Section, st.Title, st.Kind, st.Depth, st.PP, st.TG)))
			workers = st.Workers
		}
		mean := func(of func(*measure.Request) measure.Num) measure.Num {
			var vs []measure.Num
			for _, q := range groups[k] {
				vs = append(vs, of(q))
			}
			return meanOf(vs)
		}
		line := fmt.Sprintf("BenchmarkModel/name=%s/step=%s/workers=%d 1", word(model), step, max(workers, 1))
		some := false
		put := func(v measure.Num, scale float64, unit string) {
			if v.Ok() {
				line += fmt.Sprintf(" %.3f %s", float64(v)*scale, unit)
				some = true
			}
		}
		put(mean(func(q *measure.Request) measure.Num { return q.TPOT }), 1e9, "ns/token")
		put(mean(func(q *measure.Request) measure.Num { return q.Rate }), 1, "token/sec")
		put(mean(func(q *measure.Request) measure.Num { return q.TTFT }), 1e9, "ttft-ns")
		put(mean(func(q *measure.Request) measure.Num { return q.E2E }), 1e9, "e2e-ns")
		put(mean(func(q *measure.Request) measure.Num { return q.Prefill }), 1, "prefill-token/sec")
		if some {
			fmt.Fprintln(b, line)
		}
	}
	return b.Flush()
}

// word makes text fit a name of a benchmark: letters, digits, dot, colon, hyphen and underscore.
func word(s string) string {
	var b strings.Builder
	for _, c := range oneLine(s, 80) {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("._:", c):
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if w := strings.Trim(b.String(), "-"); w != "" {
		return w
	}
	return "unnamed"
}
