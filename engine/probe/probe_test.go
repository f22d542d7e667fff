package probe

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/engine/backend"
	"velo/engine/enginetest"
	"velo/engine/weights"
)

// fake is a processor that says what a GPU would.
type fake struct {
	backend.Backend
	steps  int
	failed error
	own    int64 // bytes that are free of memory of its own; 0: it shares the machine's
}

func (f *fake) Facts() *backend.Facts {
	if f.own > 0 {
		return &backend.Facts{Name: "test", Memory: 1 << 40, Free: f.own}
	}
	return &backend.Facts{Name: "test", Major: 12, Minor: 1, SMs: 48, Clock: 2418000, MemoryClock: 4266000, Memory: 119 << 30, Free: 100 << 30, L2: 24 << 20, Integrated: true, Driver: 13000}
}

func (f *fake) Ceilings() (backend.Ceilings, error) {
	return backend.Ceilings{Bytes: 4 << 30, Read: 200e9, Copy: 190e9, Launch: 2500, Round: 9 * time.Microsecond, GraphLaunch: 3 * time.Microsecond,
		GraphRound: 8 * time.Microsecond, Node: 700, Dependent: 500}, f.failed
}

func (f *fake) StepCost(run func() error, _ time.Time) (backend.StepCost, error) {
	f.steps++
	return backend.StepCost{Launches: 5, Bytes: 200e6, Graph: 1600 * time.Microsecond, Costs: []backend.Cost{
		{Kernel: "linear", Shape: "64 × 64", Launches: 3, Bytes: 150e6, Time: 1000 * time.Microsecond}, {Kernel: "gather", Launches: 2, Time: 400 * time.Microsecond}}}, run()
}

func prober(t *testing.T) *fake {
	t.Helper()
	b, err := backend.New(backend.Options{Name: backend.CPU, Rows: 16, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return &fake{Backend: b}
}

func TestRun(t *testing.T) {
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		folder := enginetest.Folder(t, family)
		f := prober(t)
		var said []string
		last, total := int64(-1), int64(0)
		r, err := Run(context.Background(), f, Options{Open: func() (*weights.Model, error) { return weights.Open(folder) }, Rows: []int{1, 3}, Context: 20, Estimate: "gb10",
			Say: func(s string) { said = append(said, s) }, Progress: func(done, all int64) { last, total = done, all }})
		if err != nil {
			t.Fatal(err)
		}
		d := r.Device
		if d.Name != "test" || d.Capability != "12.1" || d.Clock != 2418 || d.CUDA != "13.0" || !d.Integrated || d.KernelSet == "" || d.KernelReason == "" {
			t.Errorf("the device is %+v", d)
		}
		if c := r.Ceilings; c.Read != 200e9 || c.Copy != 190e9 || c.Launch != 2.5 || c.Round != 9 || c.GraphLaunch != 3 || c.GraphRound != 8 || c.Node != 0.7 || c.Dependent != 0.5 {
			t.Errorf("ceilings %+v", c)
		}
		if r.Model == nil || len(r.Model.Steps) != 2 || f.steps != 2 || r.Model.Weights <= 0 || strings.Contains(r.Model.Name, "/") {
			t.Fatalf("%+v after %d steps", r.Model, f.steps)
		}
		if total == 0 || last < 0 || len(said) != 4 {
			t.Errorf("progress %d of %d, said %q", last, total, said)
		}
		s := r.Model.Steps[1]
		// 200 MB at 200 GB/s are 1 ms; the graph takes 1.6.
		want := Step{Rows: 3, Context: 20, Launches: 5, Bytes: 200e6, Roofline: 1000, Graph: 1600, Kernels: 1400, Between: 200, Share: 0.625, Gap: 600, Estimate: 200e6 / 232e9 * 1e6}
		for i, v := range [][2]float64{{s.Roofline, want.Roofline}, {s.Graph, want.Graph}, {s.Kernels, want.Kernels}, {s.Between, want.Between}, {s.Share, want.Share}, {s.Gap, want.Gap},
			{s.Estimate, want.Estimate}, {s.Rate, 3 / s.Step * 1e6}, {s.Costs[0].Share, 0.75}, {s.Costs[0].Estimate, 150e6 / 232e9 * 1e6}, {s.Costs[1].Share, 0}} {
			if math.Abs(v[0]-v[1]) > 1e-9*math.Abs(v[1]) {
				t.Errorf("number %d is %v, not %v", i, v[0], v[1])
			}
		}
		if s.Rows != 3 || s.Context != 20 || s.Launches != 5 || !(s.Step > 0) {
			t.Errorf("%+v", s)
		}
		// What is written can be read again.
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var again Report
		if err := json.Unmarshal(text, &again); err != nil || again.Model.Steps[1].Gap != s.Gap || again.Ceilings != r.Ceilings {
			t.Errorf("%v: %s", err, text)
		}
	}
}

func TestRunEndsInTime(t *testing.T) {
	folder, f := enginetest.Folder(t, enginetest.Plain), prober(t)
	open := func() (*weights.Model, error) { return weights.Open(folder) }
	r, err := Run(context.Background(), f, Options{Open: open, Rows: []int{1, 2, 3}, Time: time.Nanosecond})
	if err != nil || len(r.Model.Steps) != 0 || !slices.Equal(r.Model.Left, []int{1, 2, 3}) || r.Ceilings.Read == 0 {
		t.Errorf("no time at all: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err = Run(ctx, f, Options{Open: open}); err != nil || r.Model != nil {
		t.Errorf("ended before: %+v, %v", r, err)
	}
	if r, err = Run(context.Background(), f, Options{}); err != nil || r.Model != nil || r.Device.Name == "" {
		t.Errorf("the device alone: %+v, %v", r, err)
	}
}

func TestRunRefuses(t *testing.T) {
	f := prober(t)
	open := func() (*weights.Model, error) { return weights.Open(enginetest.Folder(t, enginetest.Plain)) }
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Rows: []int{0}}, "0 rows"}, {Options{Rows: []int{65}}, "65 rows"}, {Options{Estimate: "h100"}, "h100"}, {Options{Context: -1}, "-1 positions"},
		{Options{Open: open, Rows: []int{17}}, "made for 16"}, {Options{Open: open, Context: 1 << 19}, "the model was made for"},
		{Options{Open: func() (*weights.Model, error) { return nil, errors.New("cannot open model x") }}, "cannot open model x"},
	} {
		if _, err := Run(context.Background(), f, c.o); err == nil || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	f.failed = errors.New("cannot measure")
	if _, err := Run(context.Background(), f, Options{}); err == nil {
		t.Error("a device that fails is measured")
	}
}

// TestRunRefusesWithoutRoom: a model that the GPU has no room for is refused by the plan, before
// anything of it is taken.
func TestRunRefusesWithoutRoom(t *testing.T) {
	f := prober(t)
	open := func() (*weights.Model, error) { return weights.Open(enginetest.Folder(t, enginetest.Plain)) }
	f.own = 512<<20 + 1000
	_, err := Run(context.Background(), f, Options{Open: open, Progress: func(int64, int64) { t.Error("it is loaded") }})
	if err == nil || !strings.HasPrefix(err.Error(), "cannot probe tiny-qwen3: cannot fit the model: ") || !strings.Contains(err.Error(), "1.0 KiB are available") {
		t.Errorf("1,000 bytes: %v", err)
	}
	f.own = 1 << 30
	if r, err := Run(context.Background(), f, Options{Open: open}); err != nil || len(r.Model.Steps) != 1 {
		t.Errorf("half a gigabyte: %+v, %v", r, err)
	}
}
