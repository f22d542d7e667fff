package server

import (
	"encoding/json"
	"math"
	"net/http"
	"time"

	"velo/engine/host"
)

// telemetry is what /health tells of the engine. The names of the first part are those that
// dashboards of such engines read; mode is how tokens are guessed ahead, none for not at all.
type telemetry struct {
	Mode      string  `json:"mode"`
	Width     int     `json:"tp_width"`
	Updated   int64   `json:"updated_ms"`
	StepP50   float64 `json:"step_ms_p50"`
	StepP90   float64 `json:"step_ms_p90"`
	Steps     uint64  `json:"step_samples"`
	Model     string  `json:"model"`
	Device    string  `json:"device"`
	Context   int     `json:"context"`
	Lanes     int     `json:"lanes"`
	Running   int     `json:"running"`
	Waiting   int     `json:"waiting"`
	Busy      bool    `json:"busy"`
	PagesUsed int     `json:"pages_used"`
	PagesKept int     `json:"pages_cached"`
	Pages     int     `json:"pages"`
	Cached    int64   `json:"cached_tokens"`
	Hits      uint64  `json:"cache_hits"`
	Misses    uint64  `json:"cache_misses"`
	Prompt    uint64  `json:"prompt_tokens"`
	Reused    uint64  `json:"prompt_tokens_cached"`
	Generated uint64  `json:"generation_tokens"`
	Preempted uint64  `json:"preempted"`
	Rejected  uint64  `json:"rejected"`
	// LastStep is how long ago the last step was, in seconds; a busy engine with an old one hangs.
	LastStep float64       `json:"last_step_age_seconds"`
	Emitter  *emitterState `json:"emitter,omitempty"`
	GPU      *gpuState     `json:"gpu,omitempty"`
	Untold   string        `json:"gpu_untold,omitempty"` // why the GPU tells nothing, or of its memory alone
}

// gpuState is what the GPU told last. What it does not tell is left out.
type gpuState struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Age         float64  `json:"age_seconds"`
	Utilisation *float64 `json:"utilization,omitempty"` // 0 to 1
	MemoryBusy  *float64 `json:"memory_busy,omitempty"` // 0 to 1
	Power       *float64 `json:"power_w,omitempty"`
	PowerLimit  *float64 `json:"power_limit_w,omitempty"`
	SMClock     *float64 `json:"sm_clock_hz,omitempty"`
	MemoryClock *float64 `json:"memory_clock_hz,omitempty"`
	Temperature *float64 `json:"temperature_c,omitempty"`
	Used        *int64   `json:"memory_used_bytes,omitempty"`
	Total       *int64   `json:"memory_total_bytes,omitempty"`
	Source      string   `json:"memory_source,omitempty"` // nvml; meminfo: the memory is the machine's, which the GPU shares
	Throttled   []string `json:"throttled,omitzero"`      // why its clocks are kept down, in words; empty: they are not
}

func gpuOf(g host.GPU, now time.Time) *gpuState {
	number := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	s := &gpuState{ID: g.ID, Name: g.Name, Age: max(0, now.Sub(g.At).Seconds()), Utilisation: number(g.Utilisation), MemoryBusy: number(g.MemoryBusy),
		Power: number(g.Power), PowerLimit: number(g.PowerLimit), SMClock: number(g.SMClock), MemoryClock: number(g.MemoryClock),
		Temperature: number(g.Temperature), Throttled: g.Throttled}
	if g.Total > 0 {
		s.Used, s.Total, s.Source = &g.Used, &g.Total, "nvml"
		if g.Unified {
			s.Source = "meminfo"
		}
	}
	return s
}

type emitterState struct {
	Sent    uint64 `json:"sent"`
	Dropped uint64 `json:"dropped"`
	Failed  uint64 `json:"failed"`
	Queued  uint64 `json:"queued"`
	Error   string `json:"last_error,omitempty"`
}

// health serves /health: 200, or 503 when the engine's loop has ended.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	st := s.o.Scheduler.Status()
	now := time.Now()
	t := telemetry{Mode: "none", Width: 1, Updated: now.UnixMilli(),
		StepP50: float64(st.StepP50) / 1e6, StepP90: float64(st.StepP90) / 1e6, Steps: min(st.Steps, 256),
		Model: s.o.Model, Device: s.o.Engine.Device, Context: s.o.Engine.Context, Lanes: st.Lanes, Running: st.Running, Waiting: st.Waiting,
		Busy: st.Busy, PagesUsed: st.PagesUsed, PagesKept: st.PagesCached, Pages: st.Pages, Cached: st.CachedTokens, Hits: st.Hits, Misses: st.Misses,
		Prompt: st.PromptTokens, Reused: st.ReusedTokens, Generated: st.GeneratedTokens, Preempted: st.Preempted, Rejected: st.Rejected}
	if !st.LastStep.IsZero() {
		t.LastStep = now.Sub(st.LastStep).Seconds()
	}
	if s.o.Emitter != nil {
		e := s.o.Emitter.Status()
		t.Emitter = &emitterState{e.Sent, e.Dropped, e.Failed + e.Rejected, e.Queued, e.LastError}
	}
	if s.o.GPU != nil {
		if g, ok := s.o.GPU(); ok {
			t.GPU = gpuOf(g, now)
		}
	}
	if s.o.GPUUntold != nil {
		t.Untold = s.o.GPUUntold()
	}
	word, code := "ok", http.StatusOK
	if !st.Alive {
		word, code = "dead", http.StatusServiceUnavailable
	}
	b, err := json.Marshal(struct {
		Status    string    `json:"status"`
		Message   string    `json:"message,omitempty"`
		Telemetry telemetry `json:"telemetry"`
	}{word, st.Failure, t})
	if err != nil {
		panic(err) // it has nothing that JSON does not
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n'))
}

// metrics serves /metrics.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.o.Meter == nil {
		writeError(w, fail(NotFound, "", "cannot find /metrics: this server keeps none"))
		return
	}
	s.o.Meter.Handler().ServeHTTP(w, r)
}

// Loading is what is served while the model loads: /health says so, everything else is unavailable.
func Loading(origin string) http.Handler {
	s := &Server{o: Options{Origin: origin}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.allowOrigin(w, r) {
			return
		}
		if r.URL.Path == "/health" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("{\"status\":\"loading\"}\n"))
			return
		}
		w.Header().Set("Retry-After", "5")
		writeError(w, fail(Unavailable, "", "cannot take the request: the model is still loading; try again in 5 seconds"))
	})
}
