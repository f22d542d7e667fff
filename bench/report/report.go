// Package report turns the stored events of a session into a report, and writes it. A report is a
// pure function of the events: the same session gives the same report, byte for byte, and an old
// session opened by a newer program is computed again.
//
// New builds the model (Report). Window, PDF, HTML, Markdown, CSV, JSON, benchstat lines and the
// vLLM-style JSON are views of it: none of them computes anything. docs/exports.md describes the
// formats for those who read them.
package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime/share"
	"velo/bench/report/chart"
)

// Options are the choices of a report; the zero value is the usual report.
type Options struct {
	Measure measure.Options
	Palette chart.Palette // of exported PNG and SVG charts; zero = chart.Light. PDF is always light, HTML has both
	Version string        // of the program that writes the report
	Beside  []Beside      // of a session that was recorded from telemetry: those that a client measured meanwhile
}

// New builds the report of a session. It takes whatever the session holds, also nothing at all, and
// says what is missing.
func New(s *bench.Session, o Options) *Report {
	if s == nil {
		s = &bench.Session{}
	}
	s = complete(s)
	b := &builder{s: s, run: measure.Compute(s, o.Measure), suite: suiteOf(s.Header.Suite), window: o.Measure.Window}
	if b.window <= 0 {
		b.window = time.Second
	}
	b.exchanges()
	b.split()
	r := &Report{
		Session: s, Run: b.run,
		Title: b.title(), Subtitle: b.subtitle(), Status: b.status(),
		Palette: o.Palette, Version: o.Version, Beside: o.Beside, Regimes: b.shares,
	}
	if r.Palette.Text == r.Palette.Background {
		r.Palette = chart.Light
	}
	r.Facts = b.facts(o.Version)
	r.Glance = b.glance()
	r.Figures = b.figures()
	r.Findings = b.findings()
	for _, section := range []func() Section{
		b.timeline, b.throughput, b.regimes, b.latency, b.tokens, b.steps, b.objectives, b.trust,
		func() Section { return b.sides(o.Beside) }, func() Section { return figuresSection(r.Figures) }, b.turns, b.tools, b.methodology,
	} {
		if sec := section(); sec.Text != "" || len(sec.Tiles)+len(sec.Tables)+len(sec.Charts) > 0 {
			r.Sections = append(r.Sections, sec)
		}
	}
	return r
}

// builder holds what the parts of a report are made from.
type builder struct {
	s     *bench.Session
	run   *measure.Run
	suite suiteHead

	window time.Duration // of the rolling rate

	measured     []*measure.Request       // in order of number, warm-up left out
	stepByNumber map[int]*bench.Step      // by Step.Number
	byNumber     map[int]*measure.Request // by Request.Number
	began        time.Duration            // first t0 of the session, or chunk of a stream whose start was missed, warm-up included
	ended        time.Duration            // last moment that anything is known of
	zeroGaps     int
	gaps         int
	stamps       map[bench.StampKind]int
	sources      map[measure.Source]int
	unended      int // requests without an End
	shares       []share.Share
	splits       int  // requests that these are of
	told         bool // an engine told of some of it: no client measured that
}

// complete leaves out what a damaged log can have: members that are nil, exchanges without a request.
// The session given is not touched.
func complete(s *bench.Session) *bench.Session {
	c := *s
	c.Exchanges = only(s.Exchanges, func(x *bench.Exchange) bool { return x != nil && x.Request != nil })
	c.Steps = only(s.Steps, func(x *bench.Step) bool { return x != nil })
	c.Samples = only(s.Samples, func(x *bench.Sample) bool { return x != nil })
	c.Notes = only(s.Notes, func(x *bench.Note) bool { return x != nil })
	return &c
}

// only is the members that pass; the slice itself where all do.
func only[T any](all []T, pass func(T) bool) []T {
	if !slices.ContainsFunc(all, func(x T) bool { return !pass(x) }) {
		return all
	}
	var some []T
	for _, x := range all {
		if pass(x) {
			some = append(some, x)
		}
	}
	return some
}

// exchanges gathers what several parts need, in one pass.
func (b *builder) exchanges() {
	b.stepByNumber = map[int]*bench.Step{}
	for _, st := range b.s.Steps {
		b.stepByNumber[st.Number] = st
		b.ended = max(b.ended, st.Released)
	}
	b.byNumber = map[int]*measure.Request{}
	b.stamps = map[bench.StampKind]int{}
	b.told = b.s.Header.Told()
	b.sources = map[measure.Source]int{}
	first := true
	for _, x := range b.s.Exchanges {
		if start := x.Request.Start; start != bench.Unset { // that of a stream whose beginning was missed is not known
			if first || start < b.began {
				b.began, first = start, false
			}
			b.ended = max(b.ended, start)
		}
		if x.End == nil {
			b.unended++
		} else {
			b.ended = max(b.ended, x.End.End, x.End.Close)
			b.told = b.told || x.End.Stamp == bench.EmitterStamp
		}
	}
	for i := range b.run.Requests {
		q := &b.run.Requests[i]
		b.byNumber[q.Number] = q
		if n := len(q.Arrivals); n > 0 {
			if at := q.Arrivals[0].At; first || at < b.began {
				b.began, first = at, false
			}
			b.ended = max(b.ended, q.Arrivals[n-1].At)
		}
		if q.Warmup {
			continue
		}
		b.measured = append(b.measured, q)
		b.zeroGaps += q.ZeroGaps
		b.gaps += len(q.ICL)
		if len(q.Arrivals) > 0 {
			b.stamps[q.Stamp]++
			b.sources[q.Source]++
		}
	}
	if b.s.Finish != nil {
		b.ended = max(b.ended, b.s.Finish.At)
	}
	for _, n := range b.s.Samples {
		b.ended = max(b.ended, n.At)
	}
}

// suiteHead is what a report says of the suite file.
type suiteHead struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

func suiteOf(raw json.RawMessage) suiteHead {
	var h suiteHead
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &h) // a suite that cannot be read has no title: the report says so by a dash
	}
	return h
}

func (b *builder) title() string {
	for _, t := range []string{b.s.Header.Title, b.suite.Title, b.suite.ID} {
		if t = oneLine(t, 120); t != "" {
			return t
		}
	}
	return "Untitled session"
}

func (b *builder) subtitle() string {
	h := &b.s.Header
	var parts []string
	switch {
	case h.Endpoint.BuiltIn:
		parts = append(parts, "built-in scripted endpoint, not a real model")
	case h.Endpoint.Model != "":
		parts = append(parts, oneLine(h.Endpoint.Model, 80))
	}
	if h.Told() {
		parts = append(parts, "recorded from telemetry, no client measured")
	}
	if w := h.Plan.Workers; w > 0 {
		parts = append(parts, plural(w, "worker"))
	}
	if n := h.Plan.Repeat; n > 1 {
		parts = append(parts, plural(n, "repetition"))
	}
	if !h.Anchor.IsZero() {
		parts = append(parts, h.Anchor.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return strings.Join(parts, " · ")
}

func (b *builder) status() string {
	switch f := b.s.Finish; {
	case f == nil && len(b.s.Exchanges) == 0:
		return "empty: the session holds no request"
	case f == nil:
		return "cut off: the record ends after " + durationText(b.ended) + " without a closing entry; what came before is complete"
	case f.State == bench.Done:
		return "finished"
	case f.State == bench.Aborted:
		return "stopped by the user after " + durationText(f.At) + "; what had arrived was kept"
	default:
		why := oneLine(f.Reason, 300)
		if why == "" {
			why = "no reason was recorded"
		}
		return "failed: " + why
	}
}

// stepName names a step of the suite in few words.
func stepName(section, title, kind string, depth, pp, tg int) string {
	name := oneLine(title, 60)
	if s := oneLine(section, 60); s != "" && s != name {
		if name != "" {
			name = s + " · " + name
		} else {
			name = s
		}
	}
	if pp > 0 || depth > 0 {
		if shape := fmt.Sprintf("pp%d tg%d d%d", pp, tg, depth); !strings.Contains(name, fmt.Sprintf("pp%d", pp)) {
			if name != "" {
				name += " · "
			}
			name += shape
		}
	}
	if name == "" {
		name = kind
	}
	if name == "" {
		name = "unnamed step"
	}
	return name
}
