// Package meter counts what the engine does and shows it to Prometheus.
//
// Names and buckets are those of veloGB10, so that dashboards made for that
// need no change; what it has no name for comes after, under the same prefix.
// The registry is the package's own and has no Go or process collectors: of
// those the names here have what matters, and nothing is exposed twice.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package meter

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"velo/engine/host"
	"velo/engine/sched"
)

const prefix = "velogb10_"

// Build says which program it is; the labels of build_info.
type Build struct {
	Version, Commit string
	Dirty           bool   // built from changed sources
	Kernel          string // build id of the backend's kernels; "" where there are none
}

// Sources are where numbers come from that others keep. Each may be nil, and
// its metric is then 0.
type Sources struct {
	Graphs           func() int    // captured CUDA graphs
	LogDropped       func() uint64 // lines that the log queue dropped
	TelemetryDropped func() uint64 // records that the emitter dropped
	// LeastMemory is the least available memory that a watchdog saw, bytes;
	// nil = the least that was seen when metrics were asked for.
	LeastMemory func() int64
	// GPU is what the GPU told last; false: nothing is known. nil: there is none.
	GPU func() (host.GPU, bool)
}

// Finish is how a request ended, the label of requests_total.
type Finish string

// The ways to end.
const (
	Stop      Finish = "stop"
	Length    Finish = "length"
	ToolCalls Finish = "tool_calls"
	Error     Finish = "error"
	Cancelled Finish = "cancelled"
)

var finishes = []Finish{Stop, Length, ToolCalls, Error, Cancelled}

// Meter counts. It is a sched.Observer; its methods may be called from any
// goroutine, do not block, and on a nil Meter do nothing.
type Meter struct {
	registry *prometheus.Registry
	handler  http.Handler

	byRequest atomic.Bool // there are Requests: answers are not counted as such

	requests                  map[Finish]prometheus.Counter
	prompt, cached, generated prometheus.Counter
	rejected, backlog         prometheus.Counter
	drafted, accepted         prometheus.Counter
	rounds, speculated        prometheus.Counter
	prefillRows, decodeRows   prometheus.Counter
	first, duration           prometheus.Histogram
	prefillRate, decodeRate   prometheus.Histogram
	step                      prometheus.Histogram
}

var _ sched.Observer = (*Meter)(nil)

// New makes a meter. status is asked whenever metrics are; it must not be nil,
// and may be asked before the scheduler runs.
func New(build Build, status func() sched.Status, sources Sources) *Meter {
	return newMeter(build, &gauges{status: status, sources: sources, began: time.Now(), now: time.Now,
		memory: host.ReadMemory, process: host.ReadProcess})
}

func newMeter(build Build, g *gauges) *Meter {
	m := &Meter{registry: prometheus.NewRegistry(), requests: map[Finish]prometheus.Counter{}}
	counter := func(name, help string, labels prometheus.Labels) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help, ConstLabels: labels})
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets})
		m.registry.MustRegister(h)
		return h
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "build_info", Help: "The program, always 1.",
		ConstLabels: prometheus.Labels{"version": build.Version, "commit": build.Commit, "dirty": strconv.FormatBool(build.Dirty), "kernel_build": build.Kernel}})
	info.Set(1)
	m.registry.MustRegister(info, g)

	for _, f := range finishes {
		m.requests[f] = counter("requests_total", "Requests that ended, by how.", prometheus.Labels{"finish": string(f)})
	}
	m.prompt = counter("prompt_tokens_total", "Prompt tokens of requests that ended, cached ones included.", nil)
	m.cached = counter("prompt_tokens_cached_total", "Prompt tokens that were in the prefix cache.", nil)
	m.generated = counter("generation_tokens_total", "Tokens generated for requests that ended.", nil)
	m.rejected = counter("requests_rejected_total", "Requests refused because too many were waiting.", nil)
	m.backlog = counter("streams_cancelled_backlog_total", "Streams ended because their reader left too much.", nil)
	m.drafted = counter("spec_draft_tokens_total", "Tokens drafted by speculation.", nil)
	m.accepted = counter("spec_accepted_tokens_total", "Drafted tokens that the model confirmed.", nil)
	m.rounds = counter("spec_rounds_total", "Verifications of drafts.", nil)
	m.speculated = counter("spec_emitted_tokens_total", "Tokens that came out of verifications: the confirmed ones and the model's own.", nil)

	m.first = histogram("time_to_first_token_seconds", "From the request's arrival in the queue to its first token.",
		.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300)
	m.duration = histogram("request_duration_seconds", "From the request's arrival in the queue to its end.",
		.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
	m.prefillRate = histogram("prefill_tokens_per_second", "Prompt tokens computed over the time from admission to the first token.",
		100, 250, 500, 1000, 2000, 3000, 4000, 6000, 8000, 12000)
	m.decodeRate = histogram("decode_tokens_per_second", "Tokens after the first over the time from the first token to the end, one request.",
		5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500)

	m.step = histogram("scheduler_step_seconds", "Duration of a step.",
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5)
	rows := "Rows computed, of prompts (prefill) and of running answers (decode)."
	m.prefillRows = counter("scheduler_rows_total", rows, prometheus.Labels{"kind": "prefill"})
	m.decodeRows = counter("scheduler_rows_total", rows, prometheus.Labels{"kind": "decode"})

	m.handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: false, // text 0.0.4
		ErrorHandling:     promhttp.ContinueOnError,
	})
	return m
}

// Handler answers GET /metrics in Prometheus's text format 0.0.4.
func (m *Meter) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	return m.handler
}

// Gatherer gives the same metrics to the emitter.
func (m *Meter) Gatherer() prometheus.Gatherer {
	if m == nil {
		return prometheus.NewRegistry()
	}
	return m.registry
}
