//go:build linux && cuda && cgo

package cuda

import (
	"fmt"

	"gorgonia.org/cu"
	"velo/engine/ops"
)

// cache is an [ops.Cache]: keys and values in pages, recurrent states in slots.
type cache struct {
	b      *Backend
	shape  ops.CacheShape
	pages  int
	pair   Cache
	states States
}

// mostPositions is what a grid has partitions for, of which there is a power of two.
const mostPositions = (mostRows + 1) / 2 * partition

// Cache makes a cache of so many pages and recurrent states.
func (b *Backend) Cache(shape ops.CacheShape, pages, states int) (ops.Cache, error) {
	if pages < 0 || states < 0 {
		return nil, fmt.Errorf("cannot make a cache of %d pages and %d states", pages, states)
	}
	b.enter()
	defer b.leave()
	if b.failed != nil {
		return nil, b.failed
	}
	if err := b.load.end(); err != nil {
		return nil, err
	}
	switch {
	case shape.Attention > 0 && shape.Longest > mostPositions:
		return nil, fmt.Errorf("cannot attend to %d positions on the GPU: up to %d are possible", shape.Longest, mostPositions)
	case shape.HeadDim > 256:
		return nil, fmt.Errorf("cannot attend with heads of %d values on the GPU: up to 256 are possible", shape.HeadDim)
	case shape.KeyDim > anyKey:
		return nil, fmt.Errorf("cannot apply the delta rule to keys of %d values on the GPU: up to %d are possible", shape.KeyDim, anyKey)
	case shape.ConvKernel > maxTaps:
		return nil, fmt.Errorf("cannot convolve with %d taps on the GPU: up to %d are possible", shape.ConvKernel, maxTaps)
	}
	shape.KV = b.options.KV
	c := &cache{b: b, shape: shape, pages: pages}
	c.pair = Cache{Layers: shape.Attention, Heads: shape.KVHeads, Dim: shape.HeadDim, Type: shape.KV}
	c.states = States{Layers: shape.Recurrent, Cols: shape.ConvCols, Taps: shape.ConvKernel, KeyHeads: shape.KeyHeads,
		ValueHeads: shape.ValueHeads, KeyDim: shape.KeyDim, ValueDim: shape.ValueDim}
	var err error
	if c.pair.Pages, err = b.memory.Take(fmt.Sprintf("keys and values of %d tokens", pages*PageTokens), int64(pages)*c.pair.PageBytes()); err != nil {
		return nil, err
	}
	if c.states.Slots, err = b.memory.Take(fmt.Sprintf("%d recurrent states", states), int64(states)*c.states.SlotBytes()); err != nil {
		return nil, err
	}
	if err := b.provide(&shape, pages, states); err != nil {
		return nil, err
	}
	if err := c.pair.Pages.Fill(0); err != nil {
		return nil, err
	}
	return c, c.states.Slots.Fill(0)
}

// Shape is what the cache was made for.
func (c *cache) Shape() ops.CacheShape { return c.shape }

// CopyPage copies keys and values of all layers.
func (c *cache) CopyPage(dst, src int32) { c.copy(c.pair.Pages, c.pair.PageBytes(), dst, src) }

// CopyState copies the recurrent state of all layers.
func (c *cache) CopyState(dst, src int32) { c.copy(c.states.Slots, c.states.SlotBytes(), dst, src) }

// ClearState sets a recurrent state to that of an empty sequence.
func (c *cache) ClearState(slot int32) {
	n := c.states.SlotBytes()
	if n == 0 {
		return
	}
	c.b.enter()
	defer c.b.leave()
	c.b.flush()
	c.b.must(c.states.Slots.Part(int64(slot)*n, n).Fill(0))
	c.b.waiting = true
}

func (c *cache) copy(in Memory, n int64, dst, src int32) {
	if n == 0 || dst == src {
		return
	}
	c.b.enter()
	defer c.b.leave()
	c.b.flush()
	to, from := in.Part(int64(dst)*n, n), in.Part(int64(src)*n, n)
	d := c.b.device
	c.b.must(d.on(func() error {
		return cu.MemcpyDtoDAsync(cu.DevicePtr(to.at), cu.DevicePtr(from.at), n, d.stream)
	}))
	c.b.waiting = true
}
