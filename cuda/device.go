//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"gorgonia.org/cu"
)

// Device is an open GPU: a context of its own and one stream on it, in which
// everything happens in order.
type Device struct {
	facts   Facts
	options Options
	context cu.CUContext
	stream  cu.Stream
	modules []*Module
	args    Args  // of the launch being made
	tape    *tape // what is launched is noted there; nil: nowhere
	closed  bool

	// What was launched last, kernels and graphs by name, may be asked for while a launch is made or
	// waited for.
	recent    [8]atomic.Pointer[string]
	next      atomic.Uint32 // counts launches
	capturing *Graph        // takes the launches instead, nil: none does
}

// Open opens GPU number ordinal. It is the first thing that touches the driver.
func Open(ordinal int, o Options) (*Device, error) {
	if err := load(); err != nil {
		return nil, err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, fmt.Errorf("cannot count the GPUs: %w", err)
	}
	if ordinal < 0 || ordinal >= n {
		return nil, fmt.Errorf("cannot open GPU %d: the driver knows %d, counted from 0", ordinal, n)
	}
	d := &Device{options: o}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	id, err := cu.GetDevice(ordinal)
	if err != nil {
		return nil, fmt.Errorf("cannot open GPU %d: %w", ordinal, err)
	}
	if err := d.facts.read(id); err != nil {
		return nil, fmt.Errorf("cannot ask GPU %d what it is: %w", ordinal, err)
	}
	if d.facts.Major < 8 {
		return nil, fmt.Errorf("cannot use GPU %d (%s): its compute capability is %d.%d and the kernels need 8.0",
			ordinal, d.facts.Name, d.facts.Major, d.facts.Minor)
	}
	if d.context, err = id.MakeContext(cu.SchedAuto); err != nil {
		return nil, fmt.Errorf("cannot make a context on GPU %d (%s): %w", ordinal, d.facts.Name, err)
	}
	d.facts.Free, _, err = cu.MemInfo()
	if err == nil {
		d.stream, err = cu.MakeStream(cu.NonBlocking)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a stream on GPU %d (%s): %w", ordinal, d.facts.Name, errorsOf(err, d.context.Destroy()))
	}
	return d, nil
}

// errorsOf is the first error, with a second one beside it if there is one.
func errorsOf(first, second error) error {
	if first == nil || second == nil {
		if first == nil {
			return second
		}
		return first
	}
	return fmt.Errorf("%w (and then: %w)", first, second)
}

// Attributes that cu has no name for.
const (
	attributeSharedOptIn = cu.DeviceAttribute(97) // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
	attributePCIDomain   = cu.DeviceAttribute(50) // PCI_DOMAIN_ID
)

func (f *Facts) read(id cu.Device) (err error) {
	if f.Name, err = id.Name(); err != nil {
		return err
	}
	if f.Memory, err = id.TotalMem(); err != nil {
		return err
	}
	f.Driver = cu.Version()
	var integrated, domain, bus, slot int
	for _, a := range []struct {
		to   *int
		what cu.DeviceAttribute
	}{
		{&f.Major, cu.ComputeCapabilityMajor}, {&f.Minor, cu.ComputeCapabilityMinor},
		{&f.SMs, cu.MultiprocessorCount}, {&f.Threads, cu.MaxThreadsPerMultiprocessor},
		{&f.L2, cu.L2CacheSize}, {&f.Shared, attributeSharedOptIn}, {&f.SharedSM, cu.MaxSharedMemoryPerMultiprocessor},
		{&f.Clock, cu.ClockRate}, {&f.MemoryClock, cu.MemoryClockRate}, {&f.BusWidth, cu.GlobalMemoryBusWidth},
		{&integrated, cu.Integrated}, {&domain, attributePCIDomain}, {&bus, cu.PciBusID}, {&slot, cu.PciDeviceID},
	} {
		if *a.to, err = id.Attribute(a.what); err != nil {
			return err
		}
	}
	f.Integrated = integrated != 0
	f.Bus = fmt.Sprintf("%04x:%02x:%02x.0", domain, bus, slot)
	return nil
}

// Facts is what the driver says of the device.
func (d *Device) Facts() *Facts { return &d.facts }

// on runs f with the device's context current on its thread.
func (d *Device) on(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cu.SetCurrentContext(d.context); err != nil {
		return err
	}
	return f()
}

// Wait waits until all that was launched is done. An error of a kernel comes
// out here; the message names the kernels launched last.
func (d *Device) Wait() error {
	if err := d.synchronize(); err != nil {
		return fmt.Errorf("cannot finish on %s, the last launched were %s: %w", d.facts.Name, d.launched(), err)
	}
	return nil
}

// remember notes what was launched.
func (d *Device) remember(name *string) {
	d.recent[(d.next.Add(1)-1)%uint32(len(d.recent))].Store(name)
}

// launched names what was launched last, the newest first, each once. It may be called from any goroutine.
func (d *Device) launched() string {
	var names []string
	next := d.next.Load()
	for i := range uint32(len(d.recent)) {
		if name := d.recent[(next-1-i)%uint32(len(d.recent))].Load(); name != nil && !slices.Contains(names, *name) {
			names = append(names, *name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Close gives all back: modules, memory, stream, context. A second call does nothing. Where something
// cannot be given back, as after a kernel that failed, the context goes all the same, and all of it with
// the context: the device can be opened anew.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	defer trim()
	err := d.on(func() error {
		err := d.stream.Destroy()
		for _, m := range d.modules {
			err = errorsOf(err, m.unload())
		}
		d.modules = nil
		return err
	})
	return errorsOf(err, d.context.Destroy())
}
