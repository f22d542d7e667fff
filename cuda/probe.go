//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorgonia.org/cu"
)

// Facts is what the driver says of the device.
func (b *Backend) Facts() *Facts { return b.device.Facts() }

// probeBytes is how much memory is gone through to measure bandwidth, if there is as much.
const probeBytes = 4 << 30

// Ceilings measures what the device can do. It takes memory of its own, up to a quarter of what
// is free, and gives it back.
func (b *Backend) Ceilings() (c Ceilings, err error) {
	d := b.device
	free, _, err := d.MemoryInfo()
	if err != nil {
		return c, fmt.Errorf("cannot ask for the GPU's memory: %w", err)
	}
	bytes := min(probeBytes, free/4) &^ (1<<20 - 1)
	if bytes < 4*int64(d.facts.L2) {
		return c, fmt.Errorf("cannot measure the bandwidth of %s: %.2f GiB of memory are free, and four times the second cache of %.0f MiB are needed, four times over",
			d.facts.Name, float64(free)/(1<<30), float64(d.facts.L2)/(1<<20))
	}
	p, err := d.Pool(bytes)
	if err != nil {
		return c, err
	}
	defer func() { err = errorsOf(err, p.Close()) }()
	if err := b.k.fillRandom(p.whole, 1, 0xbfbfbfbf, 0); err != nil {
		return c, err
	}
	c.Bytes = bytes
	for _, blocks := range []int{2, 4, 8} {
		took, err := d.replay(2, func(int) error { return b.k.readAll(p.whole, b.scales, blocks) })
		if err != nil {
			return c, err
		}
		c.Read = max(c.Read, 2*float64(bytes)/took.Seconds())
	}
	half := bytes / 2
	to, from := p.whole.Part(0, half), p.whole.Part(half, half)
	took, err := d.middle(7, func() error {
		return d.on(func() error { return cu.MemcpyDtoDAsync(cu.DevicePtr(to.at), cu.DevicePtr(from.at), half, d.stream) })
	})
	if err != nil {
		return c, err
	}
	c.Copy = 2 * float64(half) / took.Seconds()
	return c, b.launches(&c)
}

// readAll launches a kernel that reads m, with so many blocks an SM. sink is where it would
// write to.
func (k *Kernels) readAll(m, sink Memory, blocks int) error {
	a := k.device.args.Reset().Pointer(m.at).Pointer(sink.at).Pointer(uint64(m.bytes / 16))
	return k.read.Launch(Grid{X: k.device.facts.SMs * blocks, Block: 512}, a)
}

// launches measures what a launch costs, with kernels that find nothing to do.
func (b *Backend) launches(c *Ceilings) error {
	d, k := b.device, b.k
	nothing := func(int) error {
		return k.fill.Launch(Grid{X: 1, Block: 32}, d.args.Reset().Pointer(0).Pointer(0).Int(0).Int(0).Int(0))
	}
	if err := errors.Join(nothing(0), d.Wait()); err != nil {
		return err
	}
	const many = 1000
	var one, row []time.Duration
	for range 7 {
		begin := time.Now()
		if err := errors.Join(nothing(0), d.Wait()); err != nil {
			return err
		}
		one = append(one, time.Since(begin))
		begin = time.Now()
		for i := range many / 4 { // fewer than the queue of launches takes
			if err := nothing(i); err != nil {
				return err
			}
		}
		row = append(row, time.Since(begin)/(many/4))
		if err := d.Wait(); err != nil {
			return err
		}
	}
	c.Round, c.Launch = middleOf(one), middleOf(row)
	one, row = nil, nil
	g, err := d.Capture(func() error { return nothing(0) })
	if err != nil {
		return err
	}
	for i := range 9 {
		begin := time.Now()
		err := g.Launch()
		launched := time.Since(begin)
		if err = errors.Join(err, d.Wait()); err != nil {
			return errorsOf(err, g.Close())
		}
		if i > 1 {
			row, one = append(row, launched), append(one, time.Since(begin))
		}
	}
	c.GraphLaunch, c.GraphRound = middleOf(row), middleOf(one)
	if err := g.Close(); err != nil {
		return err
	}
	took, err := d.replay(many, nothing)
	if err != nil {
		return err
	}
	c.Node = took / many
	if k.add.dependent {
		if took, err = d.replay(many, func(int) error {
			var v View
			return k.add.Launch(Grid{X: 1, Block: 32}, d.args.Reset().view(v).view(v).view(v).Int(0).Int(1))
		}); err != nil {
			return err
		}
		c.Dependent = took / many
	}
	return nil
}

// replay captures n launches as a graph and gives the middle of the times that it takes.
func (d *Device) replay(n int, f func(i int) error) (took time.Duration, err error) {
	g, err := d.Capture(func() error {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errorsOf(err, g.Close()) }()
	return d.middle(9, g.Launch)
}

// middle runs f some times and gives the middle of the times that its launches took on the
// device, but for the first two.
func (d *Device) middle(times int, f func() error) (time.Duration, error) {
	var all []time.Duration
	for i := range times {
		took, err := d.Time(f)
		if err != nil {
			return 0, err
		}
		if i > 1 {
			all = append(all, took)
		}
	}
	return middleOf(all), nil
}

func middleOf(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// StepCost runs a step and measures what its launches take, kind by kind: each kind is a graph of
// its own that reads the operands which the step has, after the second cache was filled with
// something else where these would fit into it. What is not measured at the end of the time has a
// Time of 0. run runs the step, always the same.
func (b *Backend) StepCost(run func() error, end time.Time) (s StepCost, err error) {
	d := b.device
	eager := b.options.Eager
	b.options.Eager, d.tape = true, &tape{}
	err = run()
	t := d.tape
	b.options.Eager, d.tape = eager, nil
	if err != nil {
		return s, err
	}
	s.Launches = len(t.launches)
	again := func(l *taped) error {
		d.args = l.args
		return l.kernel.Launch(l.grid, &d.args)
	}
	if s.Graph, err = d.replay(len(t.launches), func(i int) error { return again(&t.launches[i]) }); err != nil {
		return s, err
	}
	// Something to fill the second cache with.
	var other Memory
	emptied := time.Duration(0)
	if p, err := d.Pool(2*int64(d.facts.L2) + 1<<20); err == nil {
		defer func() { _ = p.Close() }()
		other = p.whole
		if err := b.k.fillRandom(other, 1, 0xbfbfbfbf, 0); err != nil {
			return s, err
		}
	}
	empty := func() error { return b.k.readAll(other, b.scales, 4) }
	kinds, bytes := b.kinds(t)
	s.Bytes = bytes
	for _, k := range kinds {
		c := k.Cost
		switch small := k.weight < 2*int64(d.facts.L2); {
		case time.Now().After(end):
		case k.weight > 0 && small && other.bytes > 0:
			if emptied == 0 {
				if emptied, err = d.replay(1, func(int) error { return empty() }); err != nil {
					return s, err
				}
			}
			took, err := d.replay(c.Launches+1, func(i int) error {
				if i == 0 {
					return empty()
				}
				return again(k.launches[i-1])
			})
			if err != nil {
				return s, err
			}
			c.Time = max(0, took-emptied)
		default:
			times := max(1, min(16, 64/c.Launches)) // a short graph is mostly its own start
			took, err := d.replay(times*c.Launches, func(i int) error { return again(k.launches[i%c.Launches]) })
			if err != nil {
				return s, err
			}
			c.Time = took / time.Duration(times)
		}
		s.Costs = append(s.Costs, c)
	}
	slices.SortStableFunc(s.Costs, func(a, b Cost) int { return int(b.Time - a.Time) })
	return s, nil
}

// launchKind is the launches of one kernel with operands of one shape.
type launchKind struct {
	Cost
	weight   int64 // bytes that are not in the second cache when a step comes to them
	launches []*taped
}

// kinds sorts the launches of a tape, in the order in which each kind came first. bytes is what
// all of them must read of weights, keys, values and states.
func (b *Backend) kinds(t *tape) (list []*launchKind, bytes int64) {
	found := map[[2]string]*launchKind{}
	beside := t.beside()
	for i := range t.launches {
		l := &t.launches[i]
		shape, moved, weight := "", int64(0), int64(0)
		if l.call >= 0 {
			shape, moved, weight = b.moves(t, l)
			moved, weight = moved+beside[l.call], weight+beside[l.call]
			delete(beside, l.call)
		}
		name := l.kernel.name
		if l.call >= 0 && t.calls[l.call].kind == sampleCall {
			name = "sample" // one after the other alone: each goes on with what those before it left
		}
		key := [2]string{name, shape}
		k := found[key]
		if k == nil {
			k = &launchKind{Cost: Cost{Kernel: name, Shape: shape}}
			found[key] = k
			list = append(list, k)
		}
		k.Launches++
		k.Bytes += moved
		k.weight += weight
		k.launches = append(k.launches, l)
		bytes += weight
	}
	return list, bytes
}

// beside is, for the operations in whose launch another's small product happens, the bytes that
// this reads.
func (t *tape) beside() map[int]int64 {
	launched := make([]bool, len(t.calls))
	for i := range t.launches {
		if c := t.launches[i].call; c >= 0 {
			launched[c] = true
		}
	}
	bytes, waiting := map[int]int64{}, int64(0)
	for i := range t.calls {
		if launched[i] {
			if waiting > 0 {
				bytes[i], waiting = waiting, 0
			}
			continue
		}
		if c := &t.calls[i]; c.kind == linearCall {
			for _, p := range c.m.pieces {
				waiting += p.m.Bytes()
			}
		}
	}
	return bytes
}

// moves tells of a launch the shape of what it works on, the bytes that it must move, and those
// of them that lie in the device's memory and nowhere nearer.
func (b *Backend) moves(t *tape, l *taped) (shape string, bytes, weight int64) {
	c := &t.calls[l.call]
	rows := int64(c.rows)
	size := func(v *tensor) int64 { return 4 * rows * int64(v.heads) * int64(v.dim) }
	name := l.kernel.name
	switch c.kind {
	case linearCall:
		in, out := int64(c.m.in), int64(c.m.out)
		if strings.HasPrefix(name, "split") {
			return fmt.Sprint(in), rows * in * 6, 0 // float32 in, 16 bits out
		}
		// Which of the call's products it is.
		at, products := 0, 0
		for i := range t.launches {
			if o := &t.launches[i]; o.call == l.call && !strings.HasPrefix(o.kernel.name, "split") {
				if o == l {
					at = products
				}
				products++
			}
		}
		for i, p := range c.m.pieces {
			if products != len(c.m.pieces) || i == at {
				weight += p.m.Bytes()
			}
		}
		if products != len(c.m.pieces) {
			weight /= int64(products)
		} else {
			out = int64(c.m.pieces[at].m.out)
		}
		return fmt.Sprintf("%d × %d", out, in), weight + 4*rows*(in+out), weight
	case attendCall:
		token := c.cache.pair.PageBytes() / int64(c.cache.pair.Layers*PageTokens)
		switch {
		case strings.HasPrefix(name, "store"):
			return "", size(&c.k) + size(&c.v) + rows*token, 0
		case strings.HasPrefix(name, "combine"):
			return "", 2 * size(&c.dst), 0
		}
		longest := 0
		for _, s := range b.batch.Segments {
			n := s.Past + s.Rows
			longest = max(longest, n)
			if c.window > 0 {
				n = min(n, int(c.window)+s.Rows-1)
			}
			weight += int64(n) * token
		}
		return fmt.Sprintf("%d positions", longest), weight + size(&c.x) + size(&c.dst), weight
	case convolveCall:
		s := &c.cache.states
		weight = 2*4*int64(s.convolution())*int64(len(b.batch.Segments)) + 4*int64(s.Cols*s.Taps)
		return fmt.Sprint(s.Cols), weight + 2*size(&c.dst), weight
	case deltaCall:
		s := &c.cache.states
		weight = 2 * 4 * int64(s.ValueHeads*s.KeyDim*s.ValueDim) * int64(len(b.batch.Segments))
		return fmt.Sprintf("%d heads of %d × %d", s.ValueHeads, s.KeyDim, s.ValueDim), weight + size(&c.x) + size(&c.k) + size(&c.v) + size(&c.dst), weight
	case embedCall:
		return "", size(&c.dst), 0
	case normCall:
		return fmt.Sprintf("%d × %d", c.x.heads, c.x.dim), size(&c.x) + size(&c.dst), 0
	case ropeCall:
		return fmt.Sprintf("%d × %d", c.dst.heads, c.dst.dim), 2 * size(&c.dst), 0
	case gatherCall:
		return "", 2 * size(&c.dst), 0
	case sampleCall:
		if strings.HasSuffix(name, "choose") { // of what the others found
			return fmt.Sprintf("%d logits", c.dst.dim), 0, 0
		}
		return fmt.Sprintf("%d logits", c.dst.dim), size(&c.dst), 0
	case siluCall, sigmoidCall:
		return fmt.Sprintf("%d × %d", c.dst.heads, c.dst.dim), 2*size(&c.dst) + size(&c.k), 0
	}
	return "", 0, 0
}
