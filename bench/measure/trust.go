package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"velo/bench"
)

// Level is a verdict of the trust panel.
type Level string

// The levels.
const (
	Green   Level = "green"
	Amber   Level = "amber"
	Red     Level = "red"
	Unknown Level = "unknown" // could not be measured
)

// Check is one line of the trust panel.
type Check struct {
	ID     string // "client_cpu"
	Name   string // "Client CPU"
	Level  Level
	Value  string // as shown, with unit: "12 % of one core"
	Bound  string // "≤ 50 % of one core per reader thread"
	Detail string // what it means when it is not green, and what to do
}

// amberUpTo is the multiple of a bound up to which a line is amber.
const amberUpTo = 5

// levelOf judges a value against an upper bound.
func levelOf(v Num, bound float64) Level {
	switch f := float64(v); {
	case !v.Ok():
		return Unknown
	case f <= bound:
		return Green
	case f <= amberUpTo*bound:
		return Amber
	}
	return Red
}

// worse is the worse of two levels: red > amber > unknown > green.
func worse(a, b Level) Level {
	order := []Level{Green, Unknown, Amber, Red}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// trust fills in the trust panel, every line of it, in the order of docs/definitions.md.
func (c *computation) trust(measured []*Request, flows []*flow) {
	t := &panel{computation: c, measured: measured, flows: flows}
	for i, x := range c.exchanges {
		if !x.Request.Warmup {
			t.exchanges = append(t.exchanges, x)
			t.ofExchange = append(t.ofExchange, &c.run.Requests[i])
		}
	}
	c.run.Trust = []Check{
		t.clientCPU(), t.stampDelay(), t.multiReads(), t.gcPause(), t.scheduleDelay(), t.reuse(),
		t.concurrency(), t.lengths(), t.cacheHits(), t.buffered(), t.failures(), t.support(),
		t.clockStep(), t.stampKind(), t.drawing(), t.invariants(),
	}
	if t.told() {
		for i := range c.run.Trust {
			if k := &c.run.Trust[i]; slices.Contains(ofClient, k.ID) {
				*k = Check{ID: k.ID, Name: k.Name, Level: Unknown, Value: "no client measured", Bound: k.Bound,
					Detail: "The times are the emitter's, taken from its telemetry: what a measuring client can do wrong was not there to be checked."}
			}
		}
	}
	c.run.Worst = Green
	for i := range c.run.Trust {
		k := &c.run.Trust[i]
		c.run.Worst = worse(c.run.Worst, k.Level)
		if k.Level == Unknown && k.Value == "" {
			k.Value = "not measured"
		}
	}
}

// ofClient are the lines about the program that measures, and about what it asked for.
var ofClient = []string{"client_cpu", "stamp_delay", "multi_reads", "gc_pause", "schedule_delay", "reuse",
	"concurrency", "lengths", "clock_step", "stamp_kind", "drawing"}

// told tells whether requests of the session come from an engine's telemetry: no client measured them.
func (t *panel) told() bool {
	return slices.ContainsFunc(t.ofExchange, func(r *Request) bool { return r.Stamp == bench.EmitterStamp })
}

// panel is the trust panel on its way.
type panel struct {
	*computation
	measured   []*Request
	flows      []*flow
	exchanges  []*bench.Exchange // measured
	ofExchange []*Request        // of exchanges, in the same order
}

// clientCPU takes the highest use of CPU between two samples while requests were in flight, for each
// thread that can read at a time.
func (t *panel) clientCPU() Check {
	k := Check{ID: "client_cpu", Name: "Client CPU", Level: Unknown, Bound: "≤ 50 % of one core per reader thread",
		Detail: "A busy client stamps late and sends late. Use fewer streams, a faster machine, or one that does nothing else."}
	from, to := t.run.Whole.From, t.run.Whole.To
	highest, total, time := Missing, Num(0), Num(0)
	for i := 1; i < len(t.session.Samples); i++ {
		a, b := t.session.Samples[i-1], t.session.Samples[i]
		wall, cpu := between(a.At, b.At), between(a.CPU, b.CPU)
		if !(wall >= 0.05) || !(cpu >= 0) || t.run.Whole.None != "" || b.At < from || a.At > to {
			continue
		}
		readers := max(1, a.Readers, b.Readers)
		if cores := t.session.Header.Environment.Cores; cores > 0 {
			readers = min(readers, cores)
		}
		total += cpu
		time += wall
		if share := cpu / wall / Num(readers); !(share <= highest) {
			highest = share
		}
	}
	if highest.Ok() {
		k.Level = levelOf(highest, 0.5)
		k.Value = fmt.Sprintf("%s of one core per reader thread at most, %s of one core in the mean", percent(highest), percent(total/time))
	}
	return k
}

// stampDelay is what the client itself took from the kernel's receipt of a read to its return.
func (t *panel) stampDelay() Check {
	k := Check{ID: "stamp_delay", Name: "User − kernel stamp, p99", Level: Unknown, Bound: "≤ 1 ms",
		Detail: "The client came late to its reads. Where kernel stamps are used the times still hold, but reads that waited together bear one stamp."}
	var delays []float64
	for i, x := range t.exchanges {
		if t.ofExchange[i].ClockStep {
			continue
		}
		for j := range x.Chunks {
			c := &x.Chunks[j]
			if j > 0 && x.Chunks[j-1].Read == c.Read {
				continue
			}
			if d := between(c.Kernel, c.User); d.Ok() {
				delays = append(delays, float64(d))
			}
		}
	}
	if len(delays) > 0 {
		sortFloats(delays)
		p := Num(quantile(delays, 0.99))
		if !supported(float64(len(delays)), 0.99) {
			p = Num(delays[len(delays)-1])
		}
		k.Level = levelOf(p, 1e-3)
		k.Value = high(p, len(delays), "read")
	} else {
		k.Value = "no kernel stamps"
	}
	return k
}

func (t *panel) multiReads() Check {
	k := Check{ID: "multi_reads", Name: "Reads with more than one event", Level: Unknown, Bound: "≤ 5 %",
		Detail: "Events that are read together bear one time, so gaps between them read as zero. Something between the server and this program bundles them, or the client came late."}
	reads, multi := 0, 0
	for _, x := range t.exchanges {
		if x.End != nil && x.End.Reads > 0 && x.End.Multi >= 0 {
			reads += x.End.Reads
			multi += x.End.Multi
			continue
		}
		for j := 0; j < len(x.Chunks); reads++ {
			first := j
			for j < len(x.Chunks) && x.Chunks[j].Read == x.Chunks[first].Read {
				j++
			}
			if j-first > 1 {
				multi++
			}
		}
	}
	if reads > 0 {
		share := Num(multi) / Num(reads)
		k.Level = levelOf(share, 0.05)
		k.Value = fmt.Sprintf("%s of %d reads", percent(share), reads)
	}
	return k
}

func (t *panel) gcPause() Check {
	k := Check{ID: "gc_pause", Name: "GC pause, p99", Level: Unknown, Bound: "≤ 1 ms",
		Detail: "The garbage collector of this program held up its readers. Use fewer streams or give the machine more memory."}
	n := len(t.session.Samples)
	if n == 0 || !known(t.session.Samples[n-1].GCPauseP99) || t.session.Samples[n-1].GCPauseP99 < 0 {
		return k
	}
	s := t.session.Samples[n-1]
	p := seconds(s.GCPauseP99)
	k.Level, k.Value = levelOf(p, 1e-3), high(p, s.GCPauses, "pause")
	return k
}

// high writes a p99 of n values; of fewer than 100 it is the greatest, and is called that.
func high(p Num, n int, noun string) string {
	if supported(float64(n), 0.99) {
		return duration(p) + " over " + plural(n, noun)
	}
	return duration(p) + " at most, over " + plural(n, noun)
}

func (t *panel) scheduleDelay() Check {
	k := Check{ID: "schedule_delay", Name: "Schedule delay", Level: Unknown, Bound: "median ≤ 1 ms, p99 ≤ 5 ms",
		Detail: "Requests were sent later than planned, so that the load was not the one asked for. Latency from the plan includes the delay."}
	d := &t.run.ScheduleDelay
	if d.N == 0 {
		return k
	}
	mid, high := Num(quantile(d.Values, 0.5)), Num(quantile(d.Values, 0.99))
	k.Level = worse(levelOf(mid, 1e-3), levelOf(high, 5e-3))
	k.Value = fmt.Sprintf("median %s, p99 %s", duration(mid), duration(high))
	if t.session.Header.Plan.Rate > 0 {
		k.Value += fmt.Sprintf(", %d late", t.run.Late)
	} else {
		k.Value += " (closed loop)"
	}
	return k
}

// reuse leaves out each worker's first request where there was no warm-up: it has to connect.
func (t *panel) reuse() Check {
	k := Check{ID: "reuse", Name: "Connections reused after warm-up", Level: Unknown, Bound: "≥ 95 %",
		Detail: "Requests opened connections of their own, and their TTFT includes it. The server, or a proxy, closes them after each answer."}
	n, reused := 0, 0
	begun := map[int]bool{}
	for i := range t.run.Requests {
		if t.run.Requests[i].Warmup {
			begun[t.run.Requests[i].Worker] = true
		}
	}
	warm := len(begun) > 0
	for _, x := range t.exchanges {
		if x.Conn == nil {
			continue
		}
		if warm || begun[x.Request.Worker] {
			n++
			if x.Conn.Reused {
				reused++
			}
		}
		begun[x.Request.Worker] = true
	}
	if n == 0 {
		k.Value = "no request after the first of each worker"
		return k
	}
	share := Num(reused) / Num(n)
	k.Level, k.Value = levelOf(1-share, 0.05+1e-12), fmt.Sprintf("%s of %d", percent(share), n)
	return k
}

// concurrency compares the greatest number in flight with what was asked for, step by step; a step
// with fewer requests than streams cannot reach it and is left out.
func (t *panel) concurrency() Check {
	k := Check{ID: "concurrency", Name: "Concurrency seen = asked", Level: Unknown, Bound: "exactly",
		Detail: "Fewer requests were in flight than asked for: a limit of connections, failed requests, or answers that ended before all had started."}
	seen, asked, steps := 0, 0, 0
	for _, f := range t.flows {
		if len(f.measured) < f.target() || len(f.measured) == 0 || t.session.Header.Plan.Rate > 0 {
			continue
		}
		steps++
		most := t.curveOf(f.measured).most()
		if most != f.target() && (seen == asked || float64(most)/float64(f.target()) < float64(seen)/float64(asked)) {
			seen, asked = most, f.target()
		}
	}
	switch {
	case t.session.Header.Plan.Rate > 0:
		k.Level, k.Value = t.openConcurrency()
	case steps == 0:
	case asked == 0:
		k.Level, k.Value = Green, fmt.Sprintf("reached in %d steps", steps)
		if steps == 1 {
			k.Value = "reached"
		}
	default:
		k.Value = fmt.Sprintf("%d of %d", seen, asked)
		k.Level = levelOf(Num(math.Abs(float64(asked-seen))/float64(asked)), 0.05)
		k.Level = worse(k.Level, Amber)
	}
	return k
}

// openConcurrency: an open loop asks for arrivals, not for a number in flight; there is only its cap.
func (t *panel) openConcurrency() (Level, string) {
	workers := t.session.Header.Plan.Workers
	if t.run.Whole.None != "" {
		return Unknown, ""
	}
	if workers > 0 && t.run.Whole.InFlightMax >= workers {
		return Amber, fmt.Sprintf("open loop; its cap of %d was reached", workers)
	}
	return Green, fmt.Sprintf("open loop; %d in flight at most", t.run.Whole.InFlightMax)
}

// lengths takes, of the steps' median deviations between tokens seen and asked for, the greatest.
func (t *panel) lengths() Check {
	k := Check{ID: "lengths", Name: "Lengths seen against asked", Level: Unknown, Bound: "≤ 5 % off",
		Detail: "Prompts or answers were not as long as asked for, so that results with the same name are not comparable. Chat templates add tokens; not every server honours ignore_eos."}
	prompt, output := map[int][]float64{}, map[int][]float64{}
	asked := false
	for i, x := range t.exchanges {
		q, r := x.Request, t.ofExchange[i]
		if r.Status != bench.OK {
			continue
		}
		asked = asked || q.AskedPrompt > 0 || q.ExactOutput && q.AskedOutput > 0
		if q.AskedPrompt > 0 && r.Prompt.Ok() {
			prompt[q.Step] = append(prompt[q.Step], off(float64(r.Prompt), q.AskedPrompt))
		}
		if q.ExactOutput && q.AskedOutput > 0 && (r.Unseen.Ok() || r.Source == Server || r.Source == Tokenizer) {
			n := float64(r.N)
			if r.Unseen.Ok() {
				n += float64(r.Unseen)
			}
			output[q.Step] = append(output[q.Step], off(n, q.AskedOutput))
		}
	}
	if !asked {
		if len(t.exchanges) > 0 {
			k.Level, k.Value = Green, "no length was asked for"
		}
		return k
	}
	p, o := greatestMedian(prompt), greatestMedian(output)
	var parts []string
	for _, part := range []struct {
		name string
		v    Num
	}{{"prompt", p}, {"output", o}} {
		if part.v.Ok() {
			k.Level = worse(levelOf(part.v, 0.05), cleared(k.Level))
			parts = append(parts, part.name+" "+percent(part.v)+" off")
		}
	}
	k.Value = strings.Join(parts, ", ")
	return k
}

// cleared turns the unknown that a line starts with into green, so that what is measured decides.
func cleared(l Level) Level {
	if l == Unknown {
		return Green
	}
	return l
}

func off(seen float64, asked int) float64 { return math.Abs(seen-float64(asked)) / float64(asked) }

func greatestMedian(byStep map[int][]float64) Num {
	m := Missing
	for _, v := range byStep {
		if x := median(v); !(x <= m) {
			m = x
		}
	}
	return m
}

// cacheHits looks at the first turns only: later ones find their own conversation in the cache, as
// they should.
func (t *panel) cacheHits() Check {
	k := Check{ID: "cache_hits", Name: "Cache hits where none were wanted", Level: Unknown, Bound: "< 1 %",
		Detail: "Part of the prompts came out of a prefix cache, so that prefill was not measured in full. Salt the prompts, or restart the server. The same few tokens in each request of salted prompts are what the chat template puts before them: take longer prompts, or a server without that cache."}
	if t.session.Header.Plan.Prefix == bench.PrefixShared {
		k.Level, k.Value = Green, "a shared prefix was asked for"
		return k
	}
	cached, prompt, most := 0.0, 0.0, 0.0
	for _, r := range t.measured {
		if r.Turn == 0 && r.CacheHit.Ok() {
			most = max(most, float64(r.Cached))
			cached += float64(r.Cached)
			prompt += float64(r.Prompt)
		}
	}
	if prompt == 0 {
		k.Value = "the server does not say"
		return k
	}
	share := Num(cached / prompt)
	k.Level, k.Value = levelOf(share, 0.01), percent(share)
	if most > 0 {
		k.Value += ", " + plural(int(most), "token") + " of a request at most"
	}
	if share == 0.01 {
		k.Level = Amber
	}
	return k
}
