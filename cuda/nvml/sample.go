// Package nvml reads what a GPU tells of itself while it works: utilisation, power, clocks,
// temperature, memory, and why its clocks are not at their best. It opens the management library
// that NVIDIA's driver brings (libnvidia-ml.so.1) and links nothing.
//
// The package is under the Apache License 2.0, see cuda/LICENSE.
package nvml

import "math"

// Library is the file name of the management library.
const Library = "libnvidia-ml.so.1"

// Sample is what a GPU told at one time. A number that it does not tell is NaN, bytes −1.
type Sample struct {
	Utilisation float64  // share of the last moments (up to a second) in which a kernel ran, 0 to 1
	MemoryBusy  float64  // share of them in which memory was read or written, 0 to 1
	Power       float64  // W
	PowerLimit  float64  // W, the one that is in force
	SMClock     float64  // Hz
	MemoryClock float64  // Hz
	Temperature float64  // °C
	Used, Total int64    // bytes of memory; −1 on devices that have none of their own
	Throttled   []string // what keeps its clocks down, in words; nil: not told, empty: nothing does
}

// nothing is a sample of a GPU that tells nothing.
func nothing() Sample {
	n := math.NaN()
	return Sample{n, n, n, n, n, n, n, -1, -1, nil}
}

// reasons are the bits of why clocks are not at their best, in words. That nothing is to be done
// (bit 0) is none.
var reasons = []struct {
	bit  uint64
	text string
}{
	{0x2, "clocks set by the user"},
	{0x4, "power cap"},
	{0x8, "hardware slowdown"},
	{0x10, "clocks tied to another GPU"},
	{0x20, "thermal slowdown"},
	{0x40, "thermal slowdown by hardware"},
	{0x80, "power brake"},
	{0x100, "clocks set for the display"},
}

// throttled says the bits in words; not nil where there are none.
func throttled(bits uint64) []string {
	words := []string{}
	known := uint64(1)
	for _, r := range reasons {
		known |= r.bit
		if bits&r.bit != 0 {
			words = append(words, r.text)
		}
	}
	if bits&^known != 0 {
		words = append(words, "an unknown reason")
	}
	return words
}
