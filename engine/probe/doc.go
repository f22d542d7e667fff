// Package probe measures what a GPU can do and what a step of a model takes of that: bandwidth,
// the cost of a launch, and for each kernel of a step its bytes, its time and the share of the
// measured bandwidth. The budget of a step is the time that reading its weights, keys, values and
// states once takes at that bandwidth (the roofline); the gap is what the step takes besides.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package probe
