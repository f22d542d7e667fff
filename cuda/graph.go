//go:build linux && cuda && cgo

package cuda

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Graph is a list of launches that the device runs at one word.
type Graph struct {
	device     *Device
	executable unsafe.Pointer
	name       string // in words: how many kernels, and the last of them
	kernels    int
	last       [4]*Kernel // the oldest first, from kernels%4 on
}

// note takes a launch that is captured.
func (g *Graph) note(k *Kernel) {
	g.last[g.kernels%len(g.last)] = k
	g.kernels++
}

// end names the last kernels, the last one first.
func (g *Graph) end() string {
	var names []string
	for i := range min(g.kernels, len(g.last)) {
		names = append(names, g.last[(g.kernels-1-i)%len(g.last)].name)
	}
	return strings.Join(names, ", ")
}

// Capture records the launches that f makes, instead of running them. f must
// not allocate, copy or wait.
func (d *Device) Capture(f func() error) (_ *Graph, err error) {
	wait := d.options.Wait
	d.options.Wait = false // a stream that captures cannot be waited for
	defer func() { d.options.Wait = wait }()
	if err := result(C.velo_capture_begin(rawContext(d.context), rawStream(d.stream))); err != nil {
		return nil, fmt.Errorf("cannot begin a graph: %w", err)
	}
	g := &Graph{device: d}
	ended := false
	d.capturing = g
	defer func() {
		d.capturing = nil
		if !ended { // f panics: a stream that goes on recording would be of no use
			if C.velo_capture_end(rawContext(d.context), rawStream(d.stream), &g.executable) == 0 {
				_ = g.Close()
			}
		}
	}()
	failed := f()
	ended = true
	g.name = fmt.Sprintf("a graph of %d kernels (at its end %s)", g.kernels, g.end())
	err = result(C.velo_capture_end(rawContext(d.context), rawStream(d.stream), &g.executable))
	if failed != nil {
		if err == nil {
			err = g.Close()
		}
		return nil, failed
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a graph of the launches, the last of which are %s: %w", g.end(), err)
	}
	return g, nil
}

// Launch puts the graph into the device's stream. It allocates nothing unless
// it fails.
func (g *Graph) Launch() error {
	g.device.remember(&g.name) // before it is: a device that hangs may not take it
	if code := C.velo_graph_launch(rawContext(g.device.context), g.executable, rawStream(g.device.stream)); code != 0 {
		return fmt.Errorf("cannot run %s: %w", g.name, result(code))
	}
	return nil
}

// Close forgets the graph.
func (g *Graph) Close() error {
	return result(C.velo_graph_destroy(rawContext(g.device.context), g.executable))
}
