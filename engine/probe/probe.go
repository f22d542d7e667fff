package probe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"velo/engine/backend"
	"velo/engine/host"
	"velo/engine/kv"
	"velo/engine/memory"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
	"velo/engine/weights"
)

// Options say what to probe.
type Options struct {
	Open     func() (*weights.Model, error) // the model; nil: the device alone
	Rows     []int                          // sequences of a decode step, each a step of its own; 1 if empty
	Context  int                            // positions behind each sequence, at least 1
	KV       string                         // how the backend stores keys and values, as backend.Options has it
	Time     time.Duration                  // after which nothing new is begun; 60 s if 0
	Estimate string                         // one of Targets; "": none
	Say      func(sentence string)          // what is being done; may be nil
	Progress func(done, total int64)        // bytes of weights taken over; may be nil
}

// Check refuses what cannot be probed, before a driver is asked.
func (o *Options) Check() error {
	if _, ok := Targets[o.Estimate]; !ok && o.Estimate != "" {
		return fmt.Errorf("cannot estimate for %q: it is gb10", o.Estimate)
	}
	for _, n := range o.Rows {
		if n < 1 || n > mostRows {
			return fmt.Errorf("cannot probe a step of %d rows: it is 1 to %d", n, mostRows)
		}
	}
	if o.Context < 0 || o.Context > mostContext {
		return fmt.Errorf("cannot probe with %d positions behind: it is 1 to %d", o.Context, mostContext)
	}
	return nil
}

// A decode step has as many rows at most.
const (
	mostRows    = 64
	mostContext = 1 << 20
)

// Run probes the device of b. It ends with what it has when the time is over or ctx is.
func Run(ctx context.Context, b backend.Prober, o Options) (r *Report, err error) {
	defer ops.Recover(&err) // of what sequences do on the device
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Time <= 0 {
		o.Time = time.Minute
	}
	if len(o.Rows) == 0 {
		o.Rows = []int{1}
	}
	o.Context = max(o.Context, 1)
	say := func(format string, a ...any) {
		if o.Say != nil {
			o.Say(fmt.Sprintf(format, a...))
		}
	}
	begin := time.Now()
	end := begin.Add(o.Time)
	if t, ok := ctx.Deadline(); ok && t.Before(end) {
		end = t
	}
	r = &Report{Device: describe(b.Facts()), Estimate: o.Estimate}
	sensor, _ := backend.OpenSensor(b) // what it does not tell is left out
	defer sensor.Close()
	if sensor != nil {
		r.Device.Driver = sensor.Driver()
	}
	say("measuring the bandwidth of %s", r.Device.Name)
	c, err := b.Ceilings()
	if err != nil {
		return nil, err
	}
	r.Ceilings = Ceilings{Bytes: c.Bytes, Read: c.Read, Copy: c.Copy, Launch: us(c.Launch), Round: us(c.Round), GraphLaunch: us(c.GraphLaunch),
		GraphRound: us(c.GraphRound), Node: us(c.Node), Dependent: us(c.Dependent)}
	if o.Open != nil && ctx.Err() == nil {
		if r.Model, err = probeModel(ctx, b, &o, r, end, say); err != nil {
			return nil, err
		}
	}
	if sensor != nil {
		if g, err := sensor.Read(); err == nil {
			r.State = state(g)
		}
	}
	r.Seconds = time.Since(begin).Seconds()
	return r, nil
}

// state is what the GPU tells, as a report has it.
func state(g host.GPU) *State {
	number := func(v, unit float64) float64 {
		if math.IsNaN(v) {
			return 0
		}
		return v * unit
	}
	return &State{Power: number(g.Power, 1), SMClock: number(g.SMClock, 1e-6), MemoryClock: number(g.MemoryClock, 1e-6), Temperature: number(g.Temperature, 1),
		Throttled: g.Throttled}
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// describe is the device of a report.
func describe(f *backend.Facts) Device {
	d := Device{Name: f.Name, Capability: fmt.Sprintf("%d.%d", f.Major, f.Minor), SMs: f.SMs, Memory: f.Memory, Free: f.Free, L2: f.L2, Shared: f.Shared,
		Clock: f.Clock / 1000, MemoryClock: f.MemoryClock / 1000, Integrated: f.Integrated, CUDA: fmt.Sprintf("%d.%d", f.Driver/1000, f.Driver%1000/10)}
	d.KernelSet, d.KernelReason = f.KernelSet()
	return d
}

// probeModel makes the model and measures a decode step for each number of rows.
func probeModel(ctx context.Context, b backend.Prober, o *Options, r *Report, end time.Time, say func(string, ...any)) (*Model, error) {
	w, err := o.Open()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	most := slices.Max(o.Rows)
	if most > b.Rows() {
		return nil, fmt.Errorf("cannot probe a step of %d rows: the backend was made for %d", most, b.Rows())
	}
	if n := w.Config.MaxPosition; n > 0 && o.Context >= n {
		return nil, fmt.Errorf("cannot probe with %d positions behind: the model was made for %d", o.Context, n)
	}
	// A sequence more than are measured, whose pages lie apart.
	plan, err := memory.Reckon(w, memory.Sizes{Backend: backend.CUDA, KV: o.KV, Context: o.Context + 1, Lanes: most + 1, Tokens: most * (o.Context + 2*ops.PageTokens),
		Rows: b.Rows(), Outputs: most, Shared: b.Facts().Integrated, Available: backend.PlaceOn(b.Facts()).Room(0)})
	if err == nil {
		err = plan.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot probe %s: %w", name(w), err)
	}
	z := plan.Sizes
	result := &Model{Name: name(w), Weights: plan.Weights, Steps: []Step{}}
	say("making %s ready, %.2f GB of weights", result.Name, float64(result.Weights)/1e9)
	begin := time.Now()
	source := w.Counted(o.Progress)
	m, err := model.New(&w.Config, source, b, model.Options{Tokens: z.Tokens, Context: z.Context, Sequences: z.Lanes, Outputs: z.Outputs})
	if err != nil {
		return nil, fmt.Errorf("cannot probe %s: %w", result.Name, err)
	}
	source.End()
	result.Load = time.Since(begin).Seconds()
	for i, n := range o.Rows {
		if ctx.Err() != nil || time.Now().After(end) {
			result.Left = o.Rows[i:]
			break
		}
		say("measuring a decode step, rows: %d, positions behind each: %d", n, o.Context)
		s, err := probeStep(b, m, n, o.Context, end)
		if err != nil {
			return nil, err
		}
		s.budget(&r.Ceilings, Targets[o.Estimate])
		result.Steps = append(result.Steps, *s)
	}
	return result, nil
}

// name is what the model is called: of a path its last part.
func name(w *weights.Model) string {
	path := strings.TrimRight(w.Path, "/\\")
	return path[strings.LastIndexAny(path, "/\\")+1:]
}

// usual is how a token is chosen where nobody says how.
func usual(row int) sample.Pick {
	p := sample.Usual
	return sample.Pick{Temperature: p.Temperature, TopP: p.TopP, TopK: p.TopK, Uniform: float64(row%10)/10 + 0.05, Top: sample.NoLogProbs}
}

// probeStep measures a step of one row for each of n sequences.
func probeStep(b backend.Prober, m *model.Model, n, behind int, end time.Time) (*Step, error) {
	step := m.NewStep()
	fill := func() (free func(), err error) {
		var all []*kv.Sequence
		free = func() {
			for _, s := range all {
				s.Free()
			}
		}
		step.Reset()
		for i := range n {
			s, err := m.Pool().NewSequence()
			if err == nil {
				all = append(all, s)
				if err = s.Reserve(behind); err == nil {
					s.Advance(behind)
					err = step.Add(s, []int32{7}, 1)
				}
			}
			if err != nil {
				free()
				return nil, err
			}
			step.Pick(i, usual(i), false) // where the backend can; else the logits come
		}
		return free, nil
	}
	run := func() (time.Duration, error) {
		free, err := fill()
		if err != nil {
			return 0, err
		}
		defer free()
		begin := time.Now()
		_, err = m.Run(step)
		return time.Since(begin), err
	}
	var times []time.Duration
	for i := range 12 {
		took, err := run()
		if err != nil {
			return nil, err
		}
		if i > 2 { // by then the step is a graph
			times = append(times, took)
		}
		if time.Now().After(end) && len(times) > 0 {
			break
		}
	}
	slices.Sort(times)
	free, err := fill()
	if err != nil {
		return nil, err
	}
	defer free()
	cost, err := b.StepCost(func() error { _, err := m.Run(step); return err }, end)
	if err != nil {
		return nil, err
	}
	s := &Step{Rows: n, Context: behind, Launches: cost.Launches, Bytes: cost.Bytes, Graph: us(cost.Graph), Step: us(times[len(times)/2])}
	for _, c := range cost.Costs {
		s.Costs = append(s.Costs, Cost{Kernel: c.Kernel, Shape: c.Shape, Launches: c.Launches, Bytes: c.Bytes, Time: us(c.Time)})
	}
	return s, nil
}

// Unmeasured is how many kinds of launches have no time: there was none left to measure them, or they take less than
// emptying the cache before them varies by.
func (s *Step) Unmeasured() (n int) {
	for i := range s.Costs {
		if s.Costs[i].Time <= 0 {
			n++
		}
	}
	return n
}

// budget works out what follows from the times: target is the bytes a second of the device that
// estimates are for, 0 for none.
func (s *Step) budget(c *Ceilings, target float64) {
	s.Roofline = float64(s.Bytes) / c.Read * 1e6
	if s.Graph > 0 {
		s.Share = s.Roofline / s.Graph
	}
	s.Gap = s.Graph - s.Roofline
	if s.Step > 0 {
		s.Rate = float64(s.Rows) / s.Step * 1e6
	}
	if target > 0 {
		s.Estimate = float64(s.Bytes) / target * 1e6
	}
	s.Kernels = 0
	for i := range s.Costs {
		k := &s.Costs[i]
		s.Kernels += k.Time
		if k.Time > 0 {
			k.Share = float64(k.Bytes) / (k.Time / 1e6) / c.Read
		}
		if target > 0 {
			k.Estimate = float64(k.Bytes) / target * 1e6
		}
	}
	if s.Between = 0; s.Unmeasured() == 0 {
		s.Between = s.Graph - s.Kernels
	}
}
