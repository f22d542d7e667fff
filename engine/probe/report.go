package probe

// Report is the result of a probe. Times are microseconds, rates bytes a second.
type Report struct {
	Device   Device   `json:"device"`
	Ceilings Ceilings `json:"ceilings"`
	State    *State   `json:"state,omitempty"` // right after the measurement; nil: it is not told
	Model    *Model   `json:"model,omitempty"`
	Seconds  float64  `json:"seconds"`            // that it took
	Estimate string   `json:"estimate,omitempty"` // the device that the estimates are for
}

// Device is what the driver says of the GPU.
type Device struct {
	Name         string `json:"name"`
	Capability   string `json:"compute_capability"`
	SMs          int    `json:"sms"`
	Memory       int64  `json:"memory_bytes"`
	Free         int64  `json:"memory_free_bytes"`
	L2           int    `json:"l2_bytes"`
	Shared       int    `json:"shared_bytes_per_block"`
	Clock        int    `json:"sm_clock_mhz"`     // at most
	MemoryClock  int    `json:"memory_clock_mhz"` // at most; 0: not told
	Integrated   bool   `json:"integrated"`       // its memory is the machine's
	CUDA         string `json:"cuda"`             // the newest version that the driver knows
	Driver       string `json:"driver,omitempty"` // the driver's own version, where it is told
	KernelSet    string `json:"kernel_set"`
	KernelReason string `json:"kernel_set_because"`
}

// State is what the GPU told of itself right after the measurement; what it does not tell is 0.
type State struct {
	Power       float64  `json:"power_w,omitempty"`
	SMClock     float64  `json:"sm_clock_mhz,omitempty"`
	MemoryClock float64  `json:"memory_clock_mhz,omitempty"`
	Temperature float64  `json:"temperature_c,omitempty"`
	Throttled   []string `json:"throttled,omitzero"` // what kept its clocks down, in words; empty: nothing did
}

// Ceilings is what the device can do at best.
type Ceilings struct {
	Bytes       int64   `json:"bytes"` // of the memory that was gone through
	Read        float64 `json:"read_bytes_per_s"`
	Copy        float64 `json:"copy_bytes_per_s"` // read and written ones together
	Launch      float64 `json:"launch_us"`        // of the host's time
	Round       float64 `json:"launch_and_wait_us"`
	GraphLaunch float64 `json:"graph_launch_us"` // of the host's time
	GraphRound  float64 `json:"graph_launch_and_wait_us"`
	Node        float64 `json:"graph_node_us"`                     // of the device's time
	Dependent   float64 `json:"graph_node_dependent_us,omitempty"` // the same where a kernel may begin before the one ahead has ended
}

// Model is what was measured of a model.
type Model struct {
	Name    string  `json:"name"`
	Weights int64   `json:"weights_bytes"` // as the device holds them
	Load    float64 `json:"load_s"`
	Steps   []Step  `json:"steps"`
	Left    []int   `json:"rows_not_measured,omitempty"` // of steps that there was no time for
}

// Step is the budget of a decode step.
type Step struct {
	Rows     int     `json:"rows"`    // sequences, one row each
	Context  int     `json:"context"` // positions behind each
	Launches int     `json:"launches"`
	Bytes    int64   `json:"bytes"`                 // that it must read: weights, keys and values, states
	Roofline float64 `json:"roofline_us"`           // those over the measured bandwidth
	Graph    float64 `json:"graph_us"`              // what it takes on the device
	Step     float64 `json:"step_us"`               // what it takes the host, results in its memory
	Kernels  float64 `json:"kernels_us"`            // all kernels, each kind by itself
	Between  float64 `json:"between_us"`            // graph − kernels: from one kind to the next
	Share    float64 `json:"share"`                 // roofline/graph, 0 to 1
	Gap      float64 `json:"gap_us"`                // graph − roofline
	Rate     float64 `json:"rows_per_s"`            // rows/step
	Estimate float64 `json:"estimate_us,omitempty"` // on the device of the estimates

	Costs []Cost `json:"kernel_costs"`
}

// Cost is one kernel with operands of one shape.
type Cost struct {
	Kernel   string  `json:"kernel"`
	Shape    string  `json:"shape,omitempty"`
	Launches int     `json:"launches"`
	Bytes    int64   `json:"bytes,omitempty"`       // of all launches; 0: not counted
	Time     float64 `json:"us,omitempty"`          // of all launches; 0: not measured in time
	Share    float64 `json:"share,omitempty"`       // of the measured read bandwidth, 0 to 1
	Estimate float64 `json:"estimate_us,omitempty"` // of all launches
}

// Targets are the devices that estimates can be made for, with the bytes a second that are read
// there (measured by others, see docs/probe.md).
var Targets = map[string]float64{"gb10": 232e9}
