package series

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"velo/bench/measure"
)

// role is what a metric says about an engine.
type role uint8

const (
	running role = iota + 1
	waiting
	kvUse       // fraction
	kvUsed      // pages or tokens
	kvTotal     // of these, all there are
	cacheRate   // fraction
	cacheHits   // counter
	cacheAsked  // counter: hits and misses
	cacheMisses // counter
	accepted    // counter of tokens
	drafted     // counter of tokens
	rounds      // counter of verifications
	acceptRate  // fraction
	acceptLen   // tokens a verification
	output      // counter of tokens
	outputRate  // tokens/s
	prompt      // counter of tokens
	promptRate  // tokens/s
	usage       // histogram of tokens a request, by gen_ai.token.type
	firstToken  // histogram of seconds
	perToken    // histogram of seconds
	duration    // histogram of seconds
	stepTime    // histogram of seconds
	steps       // counter, or a histogram with one observation a step
	preempted   // counter
	info        // only says which engine it is
)

// vocabulary has the names that engines give these, without the engine's prefix and _total. Names
// that changed between versions stand beside each other. Sources: the engines' own documentation of
// their metrics, and the semantic conventions for generative AI.
var vocabulary = map[string]struct {
	title string
	names map[string]role
}{
	"vllm_": {"vLLM", map[string]role{
		"num_requests_running": running, "num_requests_waiting": waiting,
		"kv_cache_usage_perc": kvUse, "gpu_cache_usage_perc": kvUse,
		"prefix_cache_hits": cacheHits, "prefix_cache_queries": cacheAsked, "gpu_prefix_cache_hits": cacheHits, "gpu_prefix_cache_queries": cacheAsked,
		"gpu_prefix_cache_hit_rate":       cacheRate,
		"spec_decode_num_accepted_tokens": accepted, "spec_decode_num_draft_tokens": drafted, "spec_decode_num_drafts": rounds,
		"spec_decode_draft_acceptance_rate": acceptRate,
		"generation_tokens":                 output, "prompt_tokens": prompt, "avg_generation_throughput_toks_per_s": outputRate, "avg_prompt_throughput_toks_per_s": promptRate,
		"time_to_first_token_seconds": firstToken, "inter_token_latency_seconds": perToken, "time_per_output_token_seconds": perToken,
		"e2e_request_latency_seconds": duration, "iteration_tokens": steps, "num_preemptions": preempted,
	}},
	"sglang_": {"SGLang", map[string]role{
		"num_running_reqs": running, "num_queue_reqs": waiting, "token_usage": kvUse, "cache_hit_rate": cacheRate,
		"gen_throughput": outputRate, "generation_tokens": output, "prompt_tokens": prompt, "cached_tokens": cacheHits,
		"spec_accept_length": acceptLen, "spec_accept_rate": acceptRate,
		"time_to_first_token_seconds": firstToken, "inter_token_latency_seconds": perToken, "time_per_output_token_seconds": perToken,
		"e2e_request_latency_seconds": duration, "num_retracted_reqs": info,
	}},
	"llamacpp_": {"llama.cpp", map[string]role{
		"requests_processing": running, "requests_deferred": waiting, "kv_cache_usage_ratio": kvUse,
		"tokens_predicted": output, "prompt_tokens": prompt, "predicted_tokens_seconds": outputRate, "prompt_tokens_seconds": promptRate,
		"n_decode": steps, "n_busy_slots_per_decode": info,
	}},
	"velogb10_": {"Velo", map[string]role{
		"requests_running": running, "requests_waiting": waiting, "kv_pages_used": kvUsed, "kv_pages": kvTotal,
		"prompt_tokens": prompt, "prompt_tokens_cached": cacheHits, "generation_tokens": output,
		"spec_draft_tokens": drafted, "spec_accepted_tokens": accepted, "spec_rounds": rounds,
		"time_to_first_token_seconds": firstToken, "request_duration_seconds": duration, "scheduler_step_seconds": stepTime, "scheduler_steps": steps,
		"requests_preempted": preempted, "build_info": info,
	}},
	"gen_ai_": {"gen_ai", map[string]role{
		"server_time_to_first_token": firstToken, "server_time_per_output_token": perToken, "server_request_duration": duration,
		"client_operation_duration": duration, "client_operation_time_to_first_chunk": firstToken, "client_operation_time_per_output_chunk": perToken,
		"client_token_usage": usage, "usage_tokens": usage,
	}},
}

// roleOf finds what a metric says: separators of any kind and the suffix _total do not matter.
func roleOf(name string) (title string, r role) {
	name = strings.NewReplacer(":", "_", ".", "_", "/", "_", "-", "_").Replace(strings.ToLower(name))
	name = strings.TrimSuffix(name, "_total")
	for prefix, v := range vocabulary {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			return v.title, v.names[rest]
		}
	}
	return "", 0
}

// engine is a service that sends metrics with known names.
type engine struct {
	service string
	title   string
	model   string
	roles   map[role][]*series
	got     time.Duration
	hidden  bool
	history map[string][]Sample
}

func (e *engine) drop(s *series) {
	for r, all := range e.roles {
		e.roles[r] = slices.DeleteFunc(all, func(x *series) bool { return x == s })
	}
}

// engine takes note that a series has a new point.
func (t *Table) engine(now time.Duration, s *series) {
	title, r := roleOf(s.name)
	if r == 0 {
		return
	}
	e := t.engines[s.service]
	if e == nil {
		e = &engine{service: s.service, roles: map[role][]*series{}, history: map[string][]Sample{}}
		t.engines[s.service] = e
	}
	if e.title == "" || e.title == "gen_ai" {
		e.title = title
	}
	if m := cmp.Or(s.attrs["model_name"], s.attrs["gen_ai.response.model"], s.attrs["gen_ai.request.model"], s.attrs["model"]); m != "" {
		e.model = m
	}
	if !slices.Contains(e.roles[r], s) {
		e.roles[r] = append(e.roles[r], s)
	}
	e.got, e.hidden = now, false
}

// Gauge is one figure of an engine, with its history of the last ten minutes, a point a second.
type Gauge struct {
	Name   string         // "Running"
	Unit   string         // "", "fraction", "tok/s", "s"
	Value  measure.Num    // Missing where the engine does not say
	Source measure.Source // Estimate where it is inferred, Server where the engine counts it itself
	Note   string         // what it is computed from, in words
	Points []Sample
}

// The names of an engine's gauges, in the order in which they are shown.
const (
	Running      = "Running"
	Waiting      = "Waiting"
	KVUse        = "KV use"
	CacheHits    = "Cache hits"
	Acceptance   = "Acceptance"
	MeanAccepted = "Mean accepted length"
	StepTime     = "Step time"
	OutputRate   = "Output rate"
	PromptRate   = "Prompt rate"
	TTFT         = "TTFT"
	TPOT         = "TPOT"
	E2E          = "E2E"
)

// Engine is one engine and its gauges.
type Engine struct {
	Service string
	Title   string // "vLLM", "SGLang", "llama.cpp", "Velo", "gen_ai"
	Model   string
	Age     time.Duration // since its latest point came
	Gauges  []Gauge       // those that the engine says something about
}

// Engines are the engines seen, by service.
func (t *Table) Engines(now time.Duration) []Engine {
	out := make([]Engine, 0, len(t.engines))
	for _, e := range t.engines {
		if e.hidden {
			continue
		}
		x := Engine{Service: e.service, Title: e.title, Model: e.model, Age: max(0, now-e.got)}
		for _, g := range e.gauges() {
			g.Points = slices.Clone(e.history[g.Name])
			x.Gauges = append(x.Gauges, g)
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b Engine) int { return strings.Compare(a.Service, b.Service) })
	return out
}

// mostHistory is ten minutes of points a second apart.
const mostHistory = 600

// Sweep notes the engines' gauges. It is to be called once a second.
func (t *Table) Sweep(now time.Duration) {
	for _, e := range t.engines {
		if e.hidden {
			continue
		}
		for _, g := range e.gauges() {
			if !g.Value.Ok() {
				continue
			}
			h := append(e.history[g.Name], Sample{now, float64(g.Value)})
			e.history[g.Name] = h[max(0, len(h)-mostHistory):]
		}
	}
}

// sum adds up the values of a role over its series; Missing without any.
func (e *engine) sum(r role, of func(*series) float64) measure.Num {
	total, n := 0.0, 0
	for _, s := range e.roles[r] {
		if v := of(s); !math.IsNaN(v) {
			total += v
			n++
		}
	}
	if n == 0 {
		return measure.Missing
	}
	return measure.Num(total)
}

func (e *engine) mean(r role, of func(*series) float64) measure.Num {
	n := 0.0
	for _, s := range e.roles[r] {
		if !math.IsNaN(of(s)) {
			n++
		}
	}
	return e.sum(r, of) / measure.Num(n)
}

func value(s *series) float64 { return s.value }

// rateOf is the rate of a counter; NaN until there are two points.
func rateOf(s *series) float64 {
	if !s.rated {
		return math.NaN()
	}
	return s.rate
}

// observed is the mean of a histogram role over all its series' last intervals.
func (e *engine) observed(r role) measure.Num {
	sum, n := 0.0, 0.0
	for _, s := range e.roles[r] {
		if s.interval.count > 0 && !math.IsNaN(s.interval.sum) {
			sum += s.interval.sum
			n += float64(s.interval.count)
		}
	}
	if n == 0 {
		return measure.Missing
	}
	return measure.Num(sum / n)
}

// usageRate is tokens a second out of histograms of tokens a request.
func (e *engine) usageRate(kinds ...string) measure.Num {
	return e.sum(usage, func(s *series) float64 {
		if !slices.Contains(kinds, s.attrs["gen_ai.token.type"]) || s.interval.count == 0 {
			return math.NaN()
		}
		return s.interval.mean() * s.rate
	})
}

func ratio(a, b measure.Num) measure.Num {
	if !(b > 0) || !(a >= 0) {
		return measure.Missing
	}
	return a / b
}

// first is the first of some numbers that was measured.
func first(v ...measure.Num) measure.Num {
	for _, x := range v {
		if x.Ok() {
			return x
		}
	}
	return measure.Missing
}

// gauges computes what the engine says about itself; what it does not speak of is left out.
func (e *engine) gauges() []Gauge {
	var out []Gauge
	add := func(name, unit, note string, v measure.Num, source measure.Source, from ...role) {
		for _, r := range from {
			if len(e.roles[r]) > 0 {
				out = append(out, Gauge{Name: name, Unit: unit, Note: note, Value: v, Source: source})
				return
			}
		}
	}
	server, clock := measure.Server, measure.Clock
	add(Running, "", "requests that run", e.sum(running, value), server, running)
	add(Waiting, "", "requests that wait", e.sum(waiting, value), server, waiting)
	add(KVUse, "fraction", "of the KV cache", first(e.mean(kvUse, value), ratio(e.sum(kvUsed, value), e.sum(kvTotal, value))), server, kvUse, kvUsed)
	hits := e.sum(cacheHits, rateOf)
	asked := first(e.sum(cacheAsked, rateOf), plus(hits, e.sum(cacheMisses, rateOf)), e.sum(prompt, rateOf))
	add(CacheHits, "fraction", "cached over prompt tokens, in the last interval", first(ratio(hits, asked), e.mean(cacheRate, value)), server, cacheHits, cacheRate)
	taken, drawn := e.sum(accepted, rateOf), e.sum(drafted, rateOf)
	add(Acceptance, "fraction", "accepted over drafted tokens, in the last interval", first(ratio(taken, drawn), e.mean(acceptRate, value)), server, drafted, acceptRate)
	length := ratio(taken, e.sum(rounds, rateOf)) + 1
	add(MeanAccepted, "tokens", "1 + accepted tokens over verifications, in the last interval", first(length, e.mean(acceptLen, value)), server, rounds, acceptLen)
	if len(e.roles[stepTime]) > 0 {
		add(StepTime, "s", "mean of the last interval that had any", e.observed(stepTime), clock, stepTime)
	} else {
		add(StepTime, "s", "1 / steps a second: true while the engine is busy", ratio(1, e.sum(steps, rateOf)), measure.Estimate, steps)
	}
	add(OutputRate, "tok/s", "generated tokens", first(e.sum(output, rateOf), e.sum(outputRate, value), e.usageRate("output", "completion")), server, output, outputRate, usage)
	add(PromptRate, "tok/s", "prompt tokens", first(e.sum(prompt, rateOf), e.sum(promptRate, value), e.usageRate("input", "prompt")), server, prompt, promptRate, usage)
	add(TTFT, "s", "mean of the last interval that had any, the engine's own", e.observed(firstToken), clock, firstToken)
	add(TPOT, "s", "mean of the last interval that had any, the engine's own", e.observed(perToken), clock, perToken)
	add(E2E, "s", "mean of the last interval that had any, the engine's own", e.observed(duration), clock, duration)
	return out
}

func plus(a, b measure.Num) measure.Num { return a + b }
