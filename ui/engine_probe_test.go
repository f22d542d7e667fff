package ui

import (
	"testing"

	"fyne.io/fyne/v2/widget"

	"velo/bench/measure"
	"velo/ui/console"
	"velo/ui/table"
)

// withGPU gives the engine a GPU that tells of itself, and a probe's result.
func (f *fake) withGPU() *fake {
	e := &f.engine
	e.status.Figures.GPU = &console.GPUFigures{Name: "NVIDIA H200", Busy: 0.87, MemoryBusy: 0.64, Power: 653.4, PowerLimit: 700, SMClock: 1755e6, MemoryClock: 3201e6,
		Temperature: 61, Used: 19754820096, Total: 150754820096, Throttled: []string{"power cap", "thermal slowdown"}}
	e.report = console.ProbeReport{Device: "NVIDIA H200, compute capability 9.0, 132 SMs at up to 1980 MHz, L2 60 MiB", Memory: "139.8 GiB, 139.3 free",
		Driver: "580.159.03, CUDA 13.0", State: "312 W, SMs at 1980 MHz, its clocks are kept down: power cap", Kernels: "portable, sm_90 (compute capability 9.0: a kernel may begin before the one ahead has ended)",
		Read: 4.309e12, Copy: 4.242e12, Launch: 3.94e-6, Graph: 2e-6, Node: 0.56e-6, Model: "qwen3.6-27b:nvfp4", Weights: 17_060_000_000, Duration: 0.9,
		Steps: []console.ProbeStep{{Rows: 1, Context: 128, Launches: 842, Bytes: 14_800_000_000, Roofline: 3437.2e-6, Graph: 6990.7e-6, Gap: 3553.5e-6, Kernels: 6392.7e-6,
			Between: 598e-6, Step: 7139.2e-6, Share: 0.4917, Rate: 140.07, Costs: []console.ProbeCost{
				{Kernel: "linear_nvfp4_r2_s3", Shape: "34816 × 5120", Launches: 64, Bytes: 6_436_400_000, Each: 28.02e-6, Time: 1793.2e-6, Share: 0.833, OfStep: 0.2565},
				{Kernel: "linear_nvfp4_r1_s4", Shape: "5120 × 17408", Launches: 64, Bytes: 3_215_700_000, Each: 16.86e-6, Time: 1079.3e-6, Share: 0.691, OfStep: 0.1544},
				{Kernel: "split_silu_nvfp4", Shape: "17408", Launches: 63, Bytes: 6_600_000, Each: 7.15e-6, Time: 450.1e-6, Share: 0.0034, OfStep: 0.0644},
				{Kernel: "delta_128", Shape: "48 heads of 128 × 128", Launches: 48, Bytes: 305_100_000, Each: 3.69e-6, Time: 177.2e-6, Share: 0.4, OfStep: 0.025},
				{Kernel: "attend_f32_256_g8", Shape: "129 positions", Launches: 16, Bytes: 17_700_000, Each: 9.08e-6, Time: 145.2e-6, Share: 0.028, OfStep: 0.021},
				{Kernel: "gather", Launches: 1, Each: 1.6e-6, Time: 1.6e-6, OfStep: 0.0002},
			}}}}
	return f
}

func TestEngineShowsItsGPU(t *testing.T) {
	f := newFake().serving(console.EngineReady)
	g := onEngine(t, f)
	if g.says("GPU busy") {
		t.Error("a GPU is shown of which nothing is known")
	}
	f.withGPU()
	f.engine.set(func(*console.EngineStatus) {})
	g.tick()
	g.mustSay("NVIDIA H200", "87 % ▪", "memory 64 %", "653 W ▪", "of 700 W", "1.76 GHz ▪", "memory 3.20 GHz", "61 °C ▪", "18.4 GiB ▪", "of 140 GiB", "kept down: power cap, thermal slowdown.")
	f.engine.set(func(s *console.EngineStatus) {
		gpu := *s.Figures.GPU
		gpu.Throttled, gpu.Unified, gpu.Power, gpu.PowerLimit = []string{}, true, measure.Missing, measure.Missing
		s.Figures.GPU = &gpu
	})
	g.tick()
	g.mustSay("Nothing keeps the GPU's clocks down.", "of the machine's 140 GiB")
	if g.says("653") || g.says("of 700 W") {
		t.Error("what is not told is shown")
	}
	f.engine.set(func(s *console.EngineStatus) {
		gpu := *s.Figures.GPU
		gpu.Throttled = nil
		s.Figures.GPU = &gpu
	})
	g.tick()
	g.mustSay("Whether something keeps the GPU's clocks down is not told.")
	if g.says("Nothing keeps") {
		t.Error("what is not told is said to be well")
	}
	const why = "cannot open the GPU's management library"
	f.engine.set(func(s *console.EngineStatus) { s.Figures.GPUUntold = why })
	g.tick()
	g.mustSay("Of the GPU's state only memory is known, which is the machine's: "+why+".", "of the machine's 140 GiB")
	f.engine.set(func(s *console.EngineStatus) { s.Figures.GPU = nil })
	g.tick()
	g.mustSay("Nothing is known of the GPU's state: " + why + ".")
	if g.says("GPU busy") || g.says("NVIDIA H200") {
		t.Error("the GPU is still shown")
	}
	f.engine.set(func(s *console.EngineStatus) { s.Figures.GPUUntold = "" })
	g.tick()
	if g.says("GPU's state") {
		t.Error("an engine on the processor is said to have a GPU")
	}
}

// TestEngineMemoryOfAGPU: of a GPU nothing is an estimate, and what its backend takes stands for itself; a model
// in use says where.
func TestEngineMemoryOfAGPU(t *testing.T) {
	f := newFake().withModel()
	g := onEngine(t, f)
	g.mustSay("scratch 668 MiB (estimate) = 48.5 GiB.")
	e := &f.engine
	e.mu.Lock()
	e.facts.Device, e.facts.Estimate, e.facts.Choice, e.facts.Own, e.facts.Need = "cuda (NVIDIA H200)", false, 64<<20, 1<<30, 48<<30
	e.mu.Unlock()
	g.shell.engine.Choose("/data/models/other")
	g.pump()
	g.mustSay("+ scratch 668 MiB + choice of tokens 64.0 MiB + the GPU's own 1.00 GiB = 48.0 GiB.", "It is computed on cuda (NVIDIA H200).")
	f.engine.set(func(s *console.EngineStatus) {
		s.State, s.Config = console.EngineReady, f.engine.config
		s.Figures.Device = "cuda (NVIDIA H200)"
	})
	g.tick()
	g.mustSay("It is in use now on cuda (NVIDIA H200), and takes 48.0 GiB of memory.")
}

func (g *stage) probeTable() *table.Table {
	g.t.Helper()
	all := find(g, func(b *table.Table) bool { return b.Columns()[0].Title == "Kernel" })
	if len(all) != 1 {
		g.t.Fatalf("there are %d tables of kernels", len(all))
	}
	return all[0]
}

func TestProbe(t *testing.T) {
	f := newFake().withModel().withGPU()
	f.engine.status.Figures.GPU = nil
	f.engine.probing = make(chan struct{})
	g := onEngine(t, f)
	g.mustSay("Probe of the GPU", "is measured in a process of its own")
	choice := find(g, func(s *widget.Select) bool { return len(s.Options) == 3 })[0]
	if choice.Selected != "Qwen3-32B-FP8" {
		t.Errorf("%q is chosen", choice.Selected)
	}
	choice.SetSelected("qwen3.6-27b in nvfp4, made up")
	b := g.button("Probe")
	b.OnTapped()
	if !g.says("Probing: qwen3.6-27b in nvfp4, made up.") || !g.has("Stop probe") || g.has("Probe") {
		t.Error("that it probes cannot be seen")
	}
	if g.says("from before") {
		t.Error("the first probe is said to stand above one from before")
	}
	close(f.engine.probing)
	g.pump()
	g.mustSay("Measured at", "in 0.9 s", "NVIDIA H200, compute capability 9.0", "580.159.03", "Afterwards: 312 W, SMs at 1980 MHz", "4.31 TB/s", "4.24 TB/s", "3.94 µs", "2.00 µs", "0.56 µs",
		"a decode step of 1 row with 128 positions behind: 6990.7 µs on the GPU, 7139.2 µs for the host, 140.1 tok/s.",
		"14.80 GB read once take 3437.2 µs, so the step runs at 49 % of it. Gap: 3553.5 µs (all kernels by themselves 6392.7 µs, from one to the next 598.0 µs).")
	if got := f.engine.probed; len(got) != 1 || got[0] != "qwen3.6-27b:nvfp4" {
		t.Errorf("%q was probed", got)
	}
	kernels := g.probeTable()
	if kernels.Rows() != 6 || kernels.At(0, 0).Text != "linear_nvfp4_r2_s3" || kernels.At(0, 5).Text != "1793.2" || kernels.At(0, 6).Text != "83" || kernels.At(5, 3).Text != "—" {
		t.Errorf("the table is\n%s", kernels.TSV())
	}

	// One that fails says why and what to do; a result from before does not stay beside it.
	f.engine.failing = &console.ProbeError{Message: "there is no NVIDIA driver on this machine: libcuda.so.1 is missing", Advice: "Install NVIDIA's driver."}
	g.press("Probe")
	g.mustSay("There is no NVIDIA driver on this machine: libcuda.so.1 is missing.", "Install NVIDIA's driver.")
	if g.says("580.159.03") {
		t.Error("the result from before is shown beside the failure")
	}
	// One can be stopped.
	f.engine.failing, f.engine.probing = nil, make(chan struct{})
	g.button("Probe").OnTapped()
	if g.says("Install NVIDIA's driver.") {
		t.Error("the advice stays while another probe runs")
	}
	g.button("Stop probe").OnTapped()
	g.pump()
	g.mustSay("The probe was stopped.")
	if !g.has("Probe") {
		t.Error("it cannot be probed again")
	}
	// What there was no time for is told, and not reckoned with.
	f.engine.probing = nil
	late := &f.engine.report.Steps[0]
	late.Costs[5].Time, late.Costs[5].Each, late.Between = 0, 0, 0
	g.press("Probe")
	g.mustSay("(kernels by themselves 6392.7 µs, but for 1 of 6 kinds, too short to be measured or after the time was over).")
	f.engine.report.Steps = nil
	g.press("Probe")
	g.mustSay("No step of qwen3.6-27b:nvfp4 was measured: the time was over before.", "4.31 TB/s")
	// The device alone has no step.
	f.engine.report.Model = ""
	choice.SetSelected("The device alone")
	g.press("Probe")
	if g.says("decode step of") || g.says("No step of") || !g.says("4.31 TB/s") {
		t.Error("the device alone has a step, or no bandwidth")
	}
}

func TestProbeBesideARunningEngine(t *testing.T) {
	f := newFake().serving(console.EngineReady).withGPU()
	g := onEngine(t, f)
	g.press("Probe")
	g.mustSay("stop it first for undisturbed figures")
}
