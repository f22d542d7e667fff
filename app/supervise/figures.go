package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Figures is what the engine says of its work. A number that it does not give is NaN.
type Figures struct {
	At               time.Time // zero: none were read yet
	Running, Waiting float64   // requests
	KV               float64   // share of the pages of keys and values in use, 0 to 1
	Cached           float64   // share of prompt tokens that came from the prefix cache, since the start
	Acceptance       float64   // share of drafted tokens that were accepted, since the start
	Tokens           float64   // generated for requests that have ended
	Rate             float64   // generated a second, between the last two readings
	StepP50, StepP90 float64   // seconds
	Device           string    // that it computes on, in the engine's words
	GPU              *GPU      // nil: nothing is known of one
	GPUUntold        string    // why its GPU tells nothing, or of its memory alone; empty: it does, or there is none

	generated float64 // grows with every token: what Rate is computed of
}

// prefix is that of the engine's metrics.
const prefix = "velogb10_"

// unwell is how many health checks in a row must fail before it is told: one may well be late on a
// busy machine.
const unwell = 3

// largestReply bounds what is read of a reply, bytes.
const largestReply = 4 << 20

// health is the reply of GET /health.
type health struct {
	Status    string `json:"status"`
	Telemetry struct {
		StepP50 *float64 `json:"step_ms_p50"`
		StepP90 *float64 `json:"step_ms_p90"`
		Device  string   `json:"device"`
		GPU     *GPU     `json:"gpu"`
		Untold  string   `json:"gpu_untold"`
	} `json:"telemetry"`
}

// GPU is what the engine's GPU tells, as /health has it; what it does not tell is nil.
type GPU struct {
	Name        string   `json:"name"`
	Utilisation *float64 `json:"utilization"` // 0 to 1
	MemoryBusy  *float64 `json:"memory_busy"` // 0 to 1
	Power       *float64 `json:"power_w"`
	PowerLimit  *float64 `json:"power_limit_w"`
	SMClock     *float64 `json:"sm_clock_hz"`
	MemoryClock *float64 `json:"memory_clock_hz"`
	Temperature *float64 `json:"temperature_c"`
	Used        *float64 `json:"memory_used_bytes"`
	Total       *float64 `json:"memory_total_bytes"`
	Source      string   `json:"memory_source"` // nvml, or meminfo: the machine's
	Throttled   []string `json:"throttled"`     // empty: nothing keeps its clocks down
}

// probe waits for the first health check that passes, and then reads the figures until the engine
// is stopping or gone.
func (s *Supervisor) probe(p *process, base string) {
	base = Reachable(base)
	for failed := 1; ; failed++ {
		_, err := s.health(p, base)
		if err == nil {
			break
		}
		if failed == unwell {
			s.whileWatched(p, func(st *Status) {
				st.Ill = err.Error()
				s.become(*st)
			})
		}
		select {
		case <-p.watched.Done():
			return
		case <-time.After(s.o.Check):
		}
	}
	if !s.whileWatched(p, func(st *Status) {
		st.State, st.Checking, st.Ill = Ready, false, ""
		s.become(*st)
	}) {
		return
	}
	ticks := time.NewTicker(s.o.Poll)
	defer ticks.Stop()
	var last Figures
	for ill := 0; ; {
		h, err := s.health(p, base)
		now, readErr := s.read(p, base, last, h)
		if err == nil {
			err = readErr
		}
		if err != nil {
			ill++
		} else {
			ill, last = 0, now
		}
		s.whileWatched(p, func(st *Status) {
			st.Figures = last
			was := st.Ill
			st.Ill = ""
			if ill >= unwell {
				st.Ill = err.Error()
			}
			if (was == "") != (st.Ill == "") {
				s.become(*st)
			} else {
				s.status = *st
			}
		})
		select {
		case <-p.watched.Done():
			return
		case <-ticks.C:
		}
	}
}

// whileWatched changes the status of a process that is still the one, and was not asked to end.
func (s *Supervisor) whileWatched(p *process, change func(*Status)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != p || p.watched.Err() != nil {
		return false
	}
	st := s.status
	change(&st)
	return true
}

// Reachable is the address at which an engine of this machine is asked: of one that listens on all
// addresses, that of the machine to itself.
func Reachable(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil && ip.IsUnspecified() {
		host := "127.0.0.1"
		if ip.To4() == nil {
			host = "::1"
		}
		u.Host = net.JoinHostPort(host, u.Port())
	}
	return u.String()
}

// get asks the engine and returns the body of a reply of 200.
func (s *Supervisor) get(ctx context.Context, key, address string) (*http.Response, io.Reader, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, nil, fmt.Errorf("%s answers %s", address, res.Status)
	}
	return res, io.LimitReader(res.Body, largestReply), nil
}

func (s *Supervisor) health(p *process, base string) (h health, err error) {
	res, body, err := s.get(p.watched, p.command.Key, base+"/health")
	if err != nil {
		return h, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(body).Decode(&h); err != nil {
		return h, fmt.Errorf("%s/health does not answer in JSON: %w", base, err)
	}
	return h, nil
}

// read reads the metrics, and the rate since the last reading.
func (s *Supervisor) read(p *process, base string, last Figures, h health) (Figures, error) {
	res, body, err := s.get(p.watched, p.command.Key, base+"/metrics")
	if err != nil {
		return last, err
	}
	defer res.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return last, fmt.Errorf("%s/metrics is not readable: %w", base, err)
	}
	if len(families) == 0 {
		return last, errors.New("the engine gives no metrics")
	}
	return figures(families, last, h, time.Now()), nil
}

func figures(families map[string]*dto.MetricFamily, last Figures, h health, now time.Time) Figures {
	// labelled is the metric of a name that has a label of that value, or none where it is empty.
	labelled := func(name, label string) float64 {
		var m *dto.Metric
		for _, one := range families[prefix+name].GetMetric() {
			if label == "" || slices.ContainsFunc(one.Label, func(l *dto.LabelPair) bool { return l.GetValue() == label }) {
				m = one
				break
			}
		}
		switch {
		case m == nil:
			return math.NaN()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Untyped != nil:
			return m.Untyped.GetValue()
		}
		return math.NaN()
	}
	value := func(name string) float64 { return labelled(name, "") }
	share := func(part, whole string) float64 {
		p, w := value(part), value(whole)
		if !(w > 0) {
			return math.NaN()
		}
		return p / w
	}
	ms := func(v *float64) float64 {
		if v == nil || *v == 0 { // no step was made yet
			return math.NaN()
		}
		return *v / 1e3
	}
	f := Figures{
		At: now, Running: value("requests_running"), Waiting: value("requests_waiting"),
		KV:         share("kv_pages_used", "kv_pages"),
		Cached:     share("prompt_tokens_cached_total", "prompt_tokens_total"),
		Acceptance: share("spec_accepted_tokens_total", "spec_draft_tokens_total"),
		Tokens:     value("generation_tokens_total"), Rate: math.NaN(),
		StepP50: ms(h.Telemetry.StepP50), StepP90: ms(h.Telemetry.StepP90),
		Device: h.Telemetry.Device, GPU: h.Telemetry.GPU, GPUUntold: h.Telemetry.Untold,
	}
	// Tokens are counted when their request ends; rows of decoding while it runs, one a token unless
	// tokens are drafted.
	f.generated = f.Tokens
	if rows := labelled("scheduler_rows_total", "decode"); !math.IsNaN(rows) && math.IsNaN(f.Acceptance) {
		f.generated = rows
	}
	if took := now.Sub(last.At).Seconds(); !last.At.IsZero() && took > 0 && f.generated >= last.generated {
		f.Rate = (f.generated - last.generated) / took
	}
	return f
}
