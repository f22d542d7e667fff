package meter

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"velo/engine/host"
	"velo/engine/sched"
)

// gauges collects what is the case when metrics are asked for; each source is
// asked once.
type gauges struct {
	status  func() sched.Status
	sources Sources
	began   time.Time
	least   atomic.Int64 // available memory seen here, bytes; 0 = none yet

	now     func() time.Time
	memory  func() (host.Memory, error)
	process func() (host.Process, error)
}

type described struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func describe(kind prometheus.ValueType, name, help string) described {
	return described{prometheus.NewDesc(prefix+name, help, nil, nil), kind}
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var (
	alive        = describe(gauge, "engine_alive", "1 while the scheduler runs.")
	uptime       = describe(gauge, "uptime_seconds", "Since the engine started.")
	maxBatch     = describe(gauge, "max_batch", "Requests that can run at a time.")
	running      = describe(gauge, "requests_running", "Requests that run, at most max_batch.")
	waiting      = describe(gauge, "requests_waiting", "Requests that wait for a place.")
	rss          = describe(gauge, "process_rss_bytes", "Resident memory of the process.")
	threads      = describe(gauge, "thread_count", "Threads of the process.")
	fds          = describe(gauge, "open_fds", "File descriptors that the process has open.")
	available    = describe(gauge, "mem_available_bytes", "Memory that may still be used: the machine's, or the control group's if that is less.")
	minAvailable = describe(gauge, "mem_min_available_bytes", "The least of it that was seen since the start.")
	busy         = describe(gauge, "scheduler_busy", "1 while there is something to compute.")
	stepAge      = describe(gauge, "scheduler_last_step_age_seconds", "Since the last step began or ended, or since the start if there was none.")
	graphs       = describe(gauge, "graph_cache_entries", "Captured CUDA graphs.")
	steps        = describe(counter, "scheduler_steps_total", "Steps computed.")
	logDropped   = describe(counter, "log_lines_dropped_total", "Log lines dropped because their reader was too slow.")

	telemetryDropped = describe(counter, "telemetry_records_dropped_total", "Telemetry records dropped because the receiver was too slow.")
	preempted        = describe(counter, "requests_preempted_total", "Requests whose memory was taken away and computed again.")
	pages            = describe(gauge, "kv_pages", "Pages of the KV cache.")
	pagesUsed        = describe(gauge, "kv_pages_used", "Pages held by running requests.")
	pagesCached      = describe(gauge, "kv_pages_cached", "Pages held by the prefix cache alone, given back when needed.")
	prefixTokens     = describe(gauge, "prefix_cache_tokens", "Tokens of different prefixes in the prefix cache.")
	prefixHits       = describe(counter, "prefix_cache_hits_total", "Requests that began from a cached prefix.")
	prefixMisses     = describe(counter, "prefix_cache_misses_total", "Requests that did not, with the cache on.")
)

// Describe is for prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []described{alive, uptime, maxBatch, running, waiting, rss, threads, fds, available, minAvailable, busy, stepAge,
		graphs, steps, logDropped, telemetryDropped, preempted, pages, pagesUsed, pagesCached, prefixTokens, prefixHits, prefixMisses} {
		to <- d.desc
	}
	for _, d := range gpuDescriptions {
		to <- d
	}
}

// Collect is for prometheus.Collector. What cannot be read is left out.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	put := func(d described, v float64) { to <- prometheus.MustNewConstMetric(d.desc, d.kind, v) }
	truth := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	dropped := func(from func() uint64) float64 {
		if from == nil {
			return 0
		}
		return float64(from())
	}
	now, s := g.now(), g.status()
	put(alive, truth(s.Alive))
	put(uptime, now.Sub(g.began).Seconds())
	put(maxBatch, float64(s.Lanes))
	put(running, float64(s.Running))
	put(waiting, float64(s.Waiting))
	put(busy, truth(s.Busy))
	last := s.LastStep
	if last.IsZero() {
		last = g.began
	}
	put(stepAge, max(0, now.Sub(last).Seconds()))
	put(steps, float64(s.Steps))
	put(preempted, float64(s.Preempted))
	put(pages, float64(s.Pages))
	put(pagesUsed, float64(s.PagesUsed))
	put(pagesCached, float64(s.PagesCached))
	put(prefixTokens, float64(s.CachedTokens))
	put(prefixHits, float64(s.Hits))
	put(prefixMisses, float64(s.Misses))

	captured := 0
	if g.sources.Graphs != nil {
		captured = g.sources.Graphs()
	}
	put(graphs, float64(captured))
	put(logDropped, dropped(g.sources.LogDropped))
	put(telemetryDropped, dropped(g.sources.TelemetryDropped))

	if g.sources.GPU != nil {
		if gpu, ok := g.sources.GPU(); ok {
			collectGPU(gpu, to)
		}
	}
	if p, err := g.process(); err == nil {
		put(rss, float64(p.RSS))
		put(threads, float64(p.Threads))
		if p.Files >= 0 {
			put(fds, float64(p.Files))
		}
	}
	if m, err := g.memory(); err == nil {
		put(available, float64(m.Available))
		put(minAvailable, float64(g.leastMemory(m.Available)))
	}
}

// leastMemory is the least available memory seen so far, now included.
func (g *gauges) leastMemory(now int64) int64 {
	for {
		least := g.least.Load()
		if least != 0 && least <= now || g.least.CompareAndSwap(least, now) {
			break
		}
	}
	least := g.least.Load()
	if g.sources.LeastMemory != nil {
		if w := g.sources.LeastMemory(); w > 0 {
			least = min(least, w)
		}
	}
	return least
}
