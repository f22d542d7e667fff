package meter

import (
	"sync/atomic"

	"velo/engine/sched"
)

// Finished counts an answer. It is for the scheduler's loop.
func (m *Meter) Finished(_ *sched.Request, res sched.Result) {
	if m == nil {
		return
	}
	if !m.byRequest.Load() {
		m.requests[finishOf(res.Finish)].Inc()
	}
	if res.Reason == sched.ReasonBacklog {
		m.backlog.Inc()
	}
	m.prompt.Add(float64(res.Prompt))
	m.cached.Add(float64(res.Cached))
	m.generated.Add(float64(res.Generated))
	if !res.End.IsZero() {
		m.duration.Observe(res.End.Sub(res.Submitted).Seconds())
	}
	if res.First.IsZero() {
		return
	}
	m.first.Observe(res.First.Sub(res.Submitted).Seconds())
	if n, took := res.Prompt-res.Cached, res.First.Sub(res.Admitted); n > 0 && took > 0 && !res.Admitted.IsZero() {
		m.prefillRate.Observe(float64(n) / took.Seconds())
	}
	if n, took := res.Generated-1, res.End.Sub(res.First); n > 0 && took > 0 {
		m.decodeRate.Observe(float64(n) / took.Seconds())
	}
}

func finishOf(f sched.Finish) Finish {
	switch f {
	case sched.Stop:
		return Stop
	case sched.Length:
		return Length
	case sched.Failed:
		return Error
	default:
		return Cancelled
	}
}

// Stepped counts a step. It is for the scheduler's loop.
func (m *Meter) Stepped(s sched.Step) {
	if m == nil {
		return
	}
	m.step.Observe(s.Took.Seconds())
	m.prefillRows.Add(float64(s.Prefill))
	m.decodeRows.Add(float64(s.Decode))
}

// Rejected counts a request that was refused because too many were waiting.
func (m *Meter) Rejected() {
	if m != nil {
		m.rejected.Inc()
	}
}

// Speculated counts a verification: how many tokens were drafted, how many of
// those the model confirmed, and how many came out of it in all.
func (m *Meter) Speculated(drafted, accepted, emitted int) {
	if m == nil {
		return
	}
	m.rounds.Inc()
	m.drafted.Add(float64(drafted))
	m.accepted.Add(float64(accepted))
	m.speculated.Add(float64(emitted))
}

// Request is one request as its client sees it, who knows of tool calls, while
// the scheduler knows of answers, of which a request may have several.
type Request struct {
	meter *Meter
	ended atomic.Bool
}

// Request follows a request that the scheduler is about to get. Once there was
// one, requests_total counts Requests; without any it counts the answers that
// the scheduler reports.
func (m *Meter) Request() *Request {
	if m == nil {
		return nil
	}
	m.byRequest.Store(true)
	return &Request{meter: m}
}

// Finish counts the request; only the first Finish does. A finish that is not
// one of those above counts as an error.
func (r *Request) Finish(f Finish) {
	if r == nil || r.ended.Swap(true) {
		return
	}
	c, ok := r.meter.requests[f]
	if !ok {
		c = r.meter.requests[Error]
	}
	c.Inc()
}

// Close counts a request that was not finished as cancelled.
func (r *Request) Close() { r.Finish(Cancelled) }
