package console

import "velo/bench/measure"

// GPUFigures is what the GPU that the engine computes on tells of itself. Missing is what it does
// not tell.
type GPUFigures struct {
	Name                 string
	Busy, MemoryBusy     measure.Num // shares of the last moments, 0 to 1
	Power, PowerLimit    measure.Num // W
	SMClock, MemoryClock measure.Num // Hz
	Temperature          measure.Num // °C
	Used, Total          measure.Num // bytes of memory
	Unified              bool        // the memory is the machine's, which the GPU shares
	Throttled            []string    // what keeps its clocks down, in words; nil: it does not tell, empty: nothing does
}

// ProbeChoice is what can be probed.
type ProbeChoice struct {
	ID    string // "" is the device alone, "model" the engine's model, anything else a made-up model's name
	Title string
}

// ProbeReport is what a probe measured. Times are seconds.
type ProbeReport struct {
	Device   string // name, compute capability, SMs, clock
	Memory   string
	Driver   string
	State    string  // what it told right after the measurement; empty: nothing
	Kernels  string  // which set of kernels, and why
	Read     float64 // bytes a second that a kernel read
	Copy     float64 // bytes a second of a copy on the device, read and written together
	Launch   float64 // host's time for a launch
	Graph    float64 // host's time for the launch of a graph
	Node     float64 // device's time for a kernel of a graph that does nothing
	Model    string  // empty: the device alone
	Weights  int64   // bytes on the device
	Steps    []ProbeStep
	Duration float64
}

// ProbeStep is the budget of a decode step.
type ProbeStep struct {
	Rows, Context, Launches int
	Bytes                   int64   // that it must read
	Roofline                float64 // those at the measured bandwidth
	Graph                   float64 // what it takes on the device
	Gap                     float64 // Graph − Roofline
	Kernels, Between        float64 // all kernels, each kind by itself, and from one kind to the next
	Step                    float64 // what it takes the host
	Share                   float64 // Roofline/Graph
	Rate                    float64 // tokens a second
	Costs                   []ProbeCost
}

// ProbeCost is one kernel with operands of one shape; what is 0 was not measured or not counted.
type ProbeCost struct {
	Kernel, Shape string
	Launches      int
	Bytes         int64
	Each, Time    float64 // of one launch, of all
	Share         float64 // of the measured read bandwidth
	OfStep        float64
}

// ProbeError is why nothing was measured, and what to do about it.
type ProbeError struct{ Message, Advice string }

func (e *ProbeError) Error() string { return e.Message }
