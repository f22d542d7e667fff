//go:build linux && cuda && cgo

package cuda

import "velo/engine/ops"

// Rows of a segment that the convolution and the delta rule take at once, see
// kernels/chunks.cu.
const (
	stretchRows  = 32
	chunkRows    = 64
	chunkColumns = 32 // of a matrix a block
)

// chunkKernels are the layers that keep a state of fixed size, for more than MaxRows rows
// of a sequence.
type chunkKernels struct {
	edges, stretches *Kernel
	prepare, advance [2]*Kernel // keys of 64, of 128
}

func (c *chunkKernels) find(find func(**Kernel, string)) {
	find(&c.edges, "convolve_edges")
	find(&c.stretches, "convolve_stretches")
	for i, width := range []string{"_64", "_128"} {
		find(&c.prepare[i], "delta_prepare"+width)
		find(&c.advance[i], "delta_advance"+width)
	}
}

func (c *chunkKernels) allow() error {
	for i, kernel := range c.advance {
		if err := kernel.Allow(chunkShapes[i].shared); err != nil {
			return err
		}
	}
	return nil
}

// measure sets what the host knows of the segments of a batch.
func (g *Segments) measure(of []ops.Segment) {
	g.Total, g.Shortest, g.Longest = 0, 0, 0
	for i, s := range of {
		if i == 0 {
			g.Shortest = s.Rows
		}
		g.Total, g.Shortest, g.Longest = g.Total+s.Rows, min(g.Shortest, s.Rows), max(g.Longest, s.Rows)
	}
}

// stretches is a bound on the numbers that stretches have.
func (g *Segments) stretches() int64 { return int64(g.Total/stretchRows + g.N) }

// edgeBytes is the inputs that are kept of a stretch.
func (s *States) edgeBytes() int64 { return int64(4 * max(s.Taps-1, 0) * s.Cols) }

// convolveStretches is Convolve with stretches of rows side by side: the same bits.
func (k *Kernels) convolveStretches(x View, w Memory, s *States, g *Segments, layer int) error {
	grid := Grid{X: (s.Cols + 127) / 128, Y: int(g.stretches()), Block: 128}
	at := func(a *Args) *Args {
		return a.Pointer(s.Slots.at).Pointer(uint64(s.SlotBytes() / 4)).Pointer(uint64(layer * s.layer())).
			Pointer(g.First.at).Pointer(g.Rows.at).Pointer(g.Slot.at).Int(g.N).Int(s.Cols).Int(s.Taps).Pointer(k.scratch.at)
	}
	if err := k.edges.Launch(grid, at(k.device.args.Reset().Pointer(x.first()).Int(x.Pitch))); err != nil {
		return err
	}
	return k.chunkKernels.stretches.Launch(grid, at(k.device.args.Reset().Pointer(x.first()).Int(x.Pitch).Pointer(w.at)))
}

// chunks says how the delta rule goes in chunks, nil if it does not.
func (s *States) chunks() *chunkShape {
	c := &chunkShapes[0]
	if s.KeyDim == 128 {
		c = &chunkShapes[1]
	} else if s.KeyDim != 64 {
		return nil
	}
	if s.ValueDim%chunkColumns != 0 || s.preparedBytes() > scratchBytes {
		return nil
	}
	return c
}

// chunkShape is a width of keys for which there are kernels.
type chunkShape struct{ kernel, shared int }

var chunkShapes = [...]chunkShape{{0, advanceShared(64)}, {1, advanceShared(128)}}

// advanceShared is the dynamic shared memory of a block: keys, queries, the inverse and
// scores in halves, S, what is divided by the inverse, D and D decayed in four bytes.
func advanceShared(keyDim int) int {
	return 2*(2*chunkRows*(keyDim+8)+2*chunkRows*(chunkRows+8)) + 4*(keyDim+3*chunkRows)*(chunkColumns+4)
}

// preparedBytes is what is found of a chunk before its turn comes: keys and queries of a
// key head in halves, of a value head the inverse and scores in halves and three numbers
// a row.
func (s *States) preparedBytes() int64 {
	return int64(s.KeyHeads*2*chunkRows*s.KeyDim*2 + s.ValueHeads*(2*chunkRows*chunkRows*2+3*chunkRows*4))
}

// deltaChunks is DeltaRule for the segments of more than MaxRows rows, as many chunks at a
// time as scratch memory holds.
func (k *Kernels) deltaChunks(to View, in *Delta, s *States, g *Segments, layer int, c *chunkShape) error {
	numbers, window := g.Total/chunkRows+g.N, int(k.scratch.bytes/s.preparedBytes())
	for from := 0; from < numbers; from += window {
		n := min(window, numbers-from)
		a := k.device.args.Reset().view(in.Q).view(in.K).
			Pointer(in.A.first()).Int(in.A.Pitch).Pointer(in.B.first()).Int(in.B.Pitch).Pointer(in.ALog.at).Pointer(in.Bias.at).
			Pointer(g.First.at).Pointer(g.Rows.at).Int(g.N).Int(MaxRows).Int(from).
			Int(s.ValueHeads).Int(s.KeyHeads).Bool(in.Tiled).Pointer(k.scratch.at)
		if err := k.prepare[c.kernel].Launch(Grid{X: n, Y: s.ValueHeads, Block: 256}, a); err != nil {
			return err
		}
		a = k.device.args.Reset().view(to).view(in.V).Pointer(s.Slots.at).
			Pointer(uint64(s.SlotBytes() / 4)).Pointer(uint64(layer*s.layer() + s.convolution())).
			Pointer(g.First.at).Pointer(g.Rows.at).Pointer(g.Slot.at).Int(MaxRows).Int(from).Int(n).
			Int(s.ValueHeads).Int(s.KeyHeads).Int(s.ValueDim).Bool(in.Tiled).Pointer(k.scratch.at)
		if err := k.advance[c.kernel].Launch(Grid{X: s.ValueHeads * s.ValueDim / chunkColumns, Y: g.N, Block: 2 * s.KeyDim, Shared: c.shared}, a); err != nil {
			return err
		}
	}
	return nil
}
