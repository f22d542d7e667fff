package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"velo/bench"
	"velo/bench/measure"
)

// jsonFormat names the schema of the JSON, which docs/exports.md describes. A change that breaks a
// reader takes the next number.
const jsonFormat = "velo-report/1"

// writeJSON writes everything: what was computed, and the raw events it was computed from. One entry
// of a list is one line.
func writeJSON(w io.Writer, r *Report) error {
	o := &object{w: bufio.NewWriterSize(w, 1<<16)}
	o.begin()
	putComputed(o, r, true)
	putEvents(o, r.Session)
	o.end()
	return o.close()
}

// WriteSummary writes one line of JSON: what writeJSON writes, without the requests and the raw
// events, and with the names of the files that were written beside it.
func WriteSummary(w io.Writer, r *Report, files []string) error {
	var text, line bytes.Buffer
	o := &object{w: bufio.NewWriter(&text)}
	o.begin()
	putComputed(o, r, false)
	o.put("files", append([]string{}, files...))
	o.end()
	if err := o.close(); err != nil {
		return err
	}
	if err := json.Compact(&line, text.Bytes()); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err := w.Write(line.Bytes())
	return err
}

// putComputed writes what was computed; the requests one by one only where they are wanted.
func putComputed(o *object, r *Report, requests bool) {
	o.put("format", jsonFormat)
	o.put("velo", r.Version)
	o.put("title", r.Title)
	o.put("subtitle", r.Subtitle)
	o.put("status", r.Status)
	o.put("header", headerJSON(r.Session.Header))
	o.put("findings", texts(r.Findings))
	putMetrics(o, r)
	o.put("whole", spanJSON(r.Run.Whole))
	o.put("steady", spanJSON(r.Run.Steady))
	o.put("errors", r.Run.Errors)
	o.put("broken", r.Run.Broken)
	o.list("steps", len(r.Run.Steps), func(i int) any { return stepJSON(&r.Run.Steps[i]) })
	if requests {
		o.list("requests", len(r.Run.Requests), func(i int) any { return requestJSON(&r.Run.Requests[i]) })
	}
	o.list("objectives", len(r.Run.Objectives), func(i int) any {
		x := r.Run.Objectives[i]
		return map[string]any{"metric": x.SLO.Metric, "quantile": measure.Num(x.SLO.Quantile), "bound": measure.Num(x.SLO.Bound), "text": x.Text, "value": x.Value, "result": x.Result, "n": x.N}
	})
	o.list("trust", len(r.Run.Trust), func(i int) any {
		c := r.Run.Trust[i]
		return map[string]any{"id": c.ID, "name": c.Name, "level": c.Level, "value": c.Value, "bound": c.Bound, "detail": c.Detail}
	})
	if len(r.Regimes) > 0 {
		o.list("regimes", len(r.Regimes), func(i int) any { return sharesJSON(&r.Regimes[i]) })
	}
	if len(r.Beside) > 0 {
		o.list("beside", len(r.Beside), func(i int) any { return besideJSON(&r.Beside[i]) })
	}
}

func texts(fs []Finding) []string {
	out := []string{}
	for _, f := range fs {
		out = append(out, f.Text)
	}
	return out
}

// putMetrics writes the distributions and the single numbers, in SI units at full precision.
func putMetrics(o *object, r *Report) {
	b := &builder{s: r.Session, run: r.Run, shares: r.Regimes}
	b.exchanges()
	ds := b.dists()
	o.key("metrics")
	o.raw("{")
	for i, x := range ds {
		if i > 0 {
			o.raw(",")
		}
		name, _ := json.Marshal(x.metric.ID)
		o.raw("\n " + string(name) + ": ")
		o.value(distJSON(x))
	}
	o.raw("\n}")
	o.key("numbers")
	o.raw("{")
	for i, x := range b.scalars() {
		if i > 0 {
			o.raw(",")
		}
		name, _ := json.Marshal(x.metric.ID)
		o.raw("\n " + string(name) + ": ")
		o.value(map[string]any{"name": x.metric.Name, "unit": x.metric.Unit, "source": x.source, "n": x.n, "value": x.v})
	}
	o.raw("\n}")
}

type intervalObject struct {
	Lo     measure.Num `json:"lo"`
	Hi     measure.Num `json:"hi"`
	Method string      `json:"method"`
}

// intervalJSON is null where there is no interval.
func intervalJSON(i measure.Interval) *intervalObject {
	if i.Method == "" {
		return nil
	}
	return &intervalObject{i.Lo, i.Hi, i.Method}
}

type quantileObject struct {
	Value     measure.Num     `json:"value"`
	Supported bool            `json:"supported"`
	Interval  *intervalObject `json:"interval"`
}

type distObject struct {
	Name        string                    `json:"name"`
	Long        string                    `json:"long,omitempty"`
	Unit        measure.Unit              `json:"unit"`
	Source      measure.Source            `json:"source"`
	Definition  string                    `json:"definition,omitempty"`
	N           int                       `json:"n"`
	Mean        measure.Num               `json:"mean"`
	SD          measure.Num               `json:"sd"`
	Min         measure.Num               `json:"min"`
	Max         measure.Num               `json:"max"`
	Quantiles   map[string]quantileObject `json:"quantiles"`
	MeanOf      *intervalObject           `json:"mean_interval"`
	BetweenRuns *intervalObject           `json:"between_runs"`
	Repetitions []measure.Num             `json:"repetition_means,omitempty"`
}

func distJSON(x dist) distObject {
	o := distObject{Name: x.metric.Name, Long: x.metric.Long, Unit: x.metric.Unit, Source: x.source, Definition: x.metric.Definition,
		N: x.d.N, Mean: x.d.Mean, SD: x.d.SD, Min: x.d.Min, Max: x.d.Max, Quantiles: map[string]quantileObject{},
		MeanOf: intervalJSON(x.d.MeanInterval), BetweenRuns: intervalJSON(x.d.BetweenRuns), Repetitions: x.d.RepetitionMean}
	if x.d.N == 0 {
		o.Mean, o.SD, o.Min, o.Max = measure.Missing, measure.Missing, measure.Missing, measure.Missing
	}
	for name, q := range map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999} {
		v := measure.Quantile{Value: measure.Missing}
		if x.d.N > 0 {
			v = x.d.Q(q)
		}
		o.Quantiles[name] = quantileObject{v.Value, v.Supported, intervalJSON(v.Interval)}
	}
	return o
}

func spanJSON(s measure.Span) map[string]any {
	m := map[string]any{"from_ns": int64(s.From), "to_ns": int64(s.To), "paused_ns": int64(s.Paused), "tokens": s.Tokens, "requests": s.Requests,
		"output_rate": s.OutputRate, "request_rate": s.RequestRate, "in_flight": s.InFlight, "in_flight_max": s.InFlightMax, "none": nil}
	if s.None != "" {
		m["none"] = s.None
	}
	return m
}

func stepJSON(st *measure.Step) map[string]any {
	m := map[string]any{"index": st.Index, "numbers": st.Numbers, "section": st.Section, "title": st.Title, "kind": st.Kind,
		"workers": st.Workers, "repetitions": st.Repetitions, "depth": st.Depth, "pp": st.PP, "tg": st.TG,
		"requests": st.Requests, "failed": st.Failed, "warmup": st.Warm, "tokens": st.Tokens, "source": st.Source,
		"system": spanJSON(st.System), "steady": spanJSON(st.Steady), "release_skew": st.ReleaseSkew}
	for id, d := range map[string]*measure.Dist{"ttft": &st.TTFT, "ttfo": &st.TTFO, "itl": &st.ITL, "tpot": &st.TPOT, "e2e": &st.E2E, "icl": &st.ICL, "rate": &st.Rate} {
		m[id] = stepDistJSON(d)
	}
	prefill := stepDistJSON(&st.Prefill)
	prefill["source"] = st.PrefillSource
	m["prefill"] = prefill
	return m
}

// stepDistJSON is a distribution in few words: its metric is described under "metrics".
func stepDistJSON(d *measure.Dist) map[string]any {
	m := map[string]any{"n": d.N, "mean": measure.Missing, "p50": measure.Missing, "p90": measure.Missing, "p95": measure.Missing, "p99": measure.Missing, "min": measure.Missing, "max": measure.Missing}
	if d.N > 0 {
		m["mean"], m["p50"], m["min"], m["max"] = d.Mean, median(d), d.Min, d.Max
		m["p90"], m["p95"], m["p99"] = supported(d, 0.9), supported(d, 0.95), supported(d, 0.99)
	}
	return m
}

// requestJSON is what was computed of one request; times are in seconds.
func requestJSON(q *measure.Request) map[string]any {
	tokens := make([]int, len(q.Arrivals))
	for i := range q.Arrivals {
		tokens[i] = q.Arrivals[i].Tokens
	}
	return map[string]any{"request": q.Number, "step": q.Step, "worker": q.Worker, "turn": q.Turn, "warmup": q.Warmup,
		"status": q.Status, "class": q.Class, "error": q.Error, "stamp": q.Stamp, "source": q.Source,
		"tokens": q.N, "tokens_first_chunk": q.N1, "tokens_by_chunk": tokens, "answer_tokens": q.Answer, "reasoning_tokens": q.Thought,
		"unseen": q.Unseen, "prompt": q.Prompt, "cached": q.Cached,
		"ttfb": q.TTFB, "ttft": q.TTFT, "ttfo": q.TTFO, "ttst": q.TTST, "e2e": q.E2E, "close": q.Close, "itl": q.ITL, "tpot": q.TPOT,
		"rate": q.Rate, "peak": q.Peak, "max_gap": q.MaxGap, "prefill": q.Prefill, "prefill_source": q.PrefillSource,
		"latency": q.Latency, "ttft_planned": q.TTFTPlanned, "schedule_delay": q.ScheduleDelay, "written_delay": q.WrittenDelay,
		"acceptance": q.Acceptance, "cache_hit": q.CacheHit, "tokens_per_chunk": q.MeanChunk, "short_gaps": q.ShortGaps,
		"rolling":   map[string]any{"median": q.Rolling.Median, "min": q.Rolling.Min, "max": q.Rolling.Max, "stability": q.Rolling.Stability},
		"zero_gaps": q.ZeroGaps, "buffered": q.Buffered, "broken": q.Broken}
}

// headerJSON is the header without what must not leave the machine or cannot be written as JSON.
func headerJSON(h bench.Header) any {
	h.Endpoint.URL = withoutUser(h.Endpoint.URL)
	if len(h.Suite) > 0 && !json.Valid(h.Suite) {
		h.Suite, _ = json.Marshal(string(h.Suite))
	}
	if y := h.Anchor.Year(); y < 1 || y > 9999 {
		h.Anchor = time.Time{}
	}
	h.Anchor = h.Anchor.UTC()
	finite := func(f float64) float64 {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return 0
		}
		return f
	}
	h.Plan.Rate, h.Environment.MemoryGB = finite(h.Plan.Rate), finite(h.Environment.MemoryGB)
	slo := append([]bench.SLO(nil), h.Plan.SLO...)
	for i := range slo {
		slo[i].Bound, slo[i].Quantile = finite(slo[i].Bound), finite(slo[i].Quantile)
	}
	h.Plan.SLO = slo
	return h
}

// at is a session time in nanoseconds; null where it was not recorded.
func at(d time.Duration) *int64 {
	if d == bench.Unset {
		return nil
	}
	n := int64(d)
	return &n
}

// putEvents writes the raw events. Times are nanoseconds since the anchor of the header. Chunks are
// one object a request, of arrays that run in parallel.
func putEvents(o *object, s *bench.Session) {
	o.key("events")
	in := &object{w: o.w, err: o.err}
	in.begin()
	in.put("time_unit", "ns since header.anchor")
	in.list("steps", len(s.Steps), func(i int) any { return s.Steps[i] })
	in.list("requests", len(s.Exchanges), func(i int) any { return rawRequest(s.Exchanges[i].Request) })
	var conns []*bench.Conn
	var chunks []bench.Chunks
	var ends []*bench.End
	for _, x := range s.Exchanges {
		if x.Conn != nil {
			conns = append(conns, x.Conn)
		}
		if len(x.Chunks) > 0 {
			chunks = append(chunks, x.Chunks)
		}
		if x.End != nil {
			ends = append(ends, x.End)
		}
	}
	in.list("conns", len(conns), func(i int) any {
		c := conns[i]
		return map[string]any{"request": c.Request, "reused": c.Reused, "remote": c.Remote, "dns": at(c.DNS), "connect": at(c.Connect), "tls": at(c.TLS),
			"wrote": at(c.Wrote), "first_byte": at(c.FirstByte), "status": c.Status, "server": c.Server}
	})
	in.list("chunks", len(chunks), func(i int) any { return rawChunks(chunks[i]) })
	in.list("ends", len(ends), func(i int) any { return rawEnd(ends[i]) })
	in.list("samples", len(s.Samples), func(i int) any { return s.Samples[i] })
	in.list("notes", len(s.Notes), func(i int) any { return s.Notes[i] })
	in.put("finish", s.Finish)
	in.raw("\n}")
	o.err = in.err
}

// rawRequest is a request as recorded; parameters that are not JSON become a string.
func rawRequest(q *bench.Request) any {
	if len(q.Parameters) > 0 && !json.Valid(q.Parameters) {
		c := *q
		c.Parameters, _ = json.Marshal(string(q.Parameters))
		return &c
	}
	return q
}

func rawEnd(e *bench.End) any {
	t := e.Timings
	if t == nil || finiteTimings(t) {
		return e
	}
	c := *e
	fixed := *t
	for _, f := range []*float64{&fixed.PromptMS, &fixed.PredictedMS} {
		if math.IsNaN(*f) || math.IsInf(*f, 0) {
			*f = -1 // as for what a server did not give
		}
	}
	c.Timings = &fixed
	return &c
}

func finiteTimings(t *bench.Timings) bool {
	sum := t.PromptMS - t.PredictedMS
	return !math.IsNaN(sum) && !math.IsInf(sum, 0)
}

// rawChunks writes the arrays by hand: a session of a million chunks is mostly this.
func rawChunks(cs bench.Chunks) json.RawMessage {
	var b bytes.Buffer
	b.Grow(len(cs) * 64)
	fmt.Fprintf(&b, `{"request":%d`, cs[0].Request)
	column := func(name string, element func(c *bench.Chunk)) {
		fmt.Fprintf(&b, `,"%s":[`, name)
		for i := range cs {
			if i > 0 {
				b.WriteByte(',')
			}
			element(&cs[i])
		}
		b.WriteByte(']')
	}
	number := func(n int64, missing bool) {
		if missing {
			b.WriteString("null")
			return
		}
		b.Write(strconv.AppendInt(b.AvailableBuffer(), n, 10))
	}
	column("read", func(c *bench.Chunk) { number(int64(c.Read), false) })
	column("user", func(c *bench.Chunk) { number(int64(c.User), c.User == bench.Unset) })
	column("kernel", func(c *bench.Chunk) { number(int64(c.Kernel), c.Kernel == bench.Unset) })
	column("channel", func(c *bench.Chunk) { b.WriteString(`"` + c.Channel.String() + `"`) })
	column("usage", func(c *bench.Chunk) { number(int64(c.Usage), c.Usage < 0) })
	column("exact", func(c *bench.Chunk) { number(int64(c.Exact), c.Exact < 0) })
	column("text", func(c *bench.Chunk) {
		if plain(c.Text) {
			b.WriteByte('"')
			b.WriteString(c.Text)
			b.WriteByte('"')
			return
		}
		s, _ := json.Marshal(c.Text) // a string always marshals
		b.Write(s)
	})
	b.WriteByte('}')
	return b.Bytes()
}

// plain tells whether text stands in JSON as it is.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
