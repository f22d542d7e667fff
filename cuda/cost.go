package cuda

import "time"

// Ceilings is what a device can do at best: what everything else is measured against.
type Ceilings struct {
	Bytes int64   // of the memory that was gone through, many times the second cache
	Read  float64 // bytes a second that a kernel read
	Copy  float64 // bytes a second that a copy on the device moved, read and written ones together

	Launch      time.Duration // of the host's time for one launch, of many in a row
	Round       time.Duration // from a launch until the host knows that it is done
	GraphLaunch time.Duration // of the host's time to launch a graph
	GraphRound  time.Duration // from the launch of a graph of one kernel until the host knows that it is done
	Node        time.Duration // of the device's time for a kernel of a graph that does nothing
	Dependent   time.Duration // the same where a kernel may begin before the one ahead has ended; 0: not on this device
}

// Cost is what the launches of one kernel with operands of one shape take in a step.
type Cost struct {
	Kernel   string        // its name in its module; sample: all that choose a token
	Shape    string        // of what it works on
	Launches int           // in the step
	Bytes    int64         // that all of them must move at least, each value once; 0: not counted
	Time     time.Duration // of all of them, as a graph of their own; 0: there was no time left to measure it, or it is too short for that
}

// StepCost is what a step takes on the device.
type StepCost struct {
	Launches int
	Bytes    int64         // that the step must read: weights, keys and values, states
	Graph    time.Duration // of all launches as one graph
	Costs    []Cost        // the longest first
}
