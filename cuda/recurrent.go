//go:build linux && cuda && cgo

package cuda

import "fmt"

// anyKey is the widest key of the delta rule.
const anyKey = 256

// maxTaps is the most taps of a causal convolution.
const maxTaps = 8

// recurrentKernels are the layers that keep a state of fixed size.
type recurrentKernels struct {
	convolve *Kernel
	delta    [3]*Kernel // keys of 64, of 128, of any width up to anyKey
	chunkKernels
}

func (r *recurrentKernels) find(find func(**Kernel, string)) {
	find(&r.convolve, "convolve")
	find(&r.delta[0], "delta_64")
	find(&r.delta[1], "delta_128")
	find(&r.delta[2], "delta_any")
}

// States is the recurrent states of sequences, one a slot: for each layer the
// last Taps−1 inputs of the convolution [Taps−1, Cols], then for each value head
// a matrix [KeyDim, ValueDim], all of float32.
type States struct {
	Layers               int
	Cols, Taps           int // of the convolution
	KeyHeads, ValueHeads int
	KeyDim, ValueDim     int
	Slots                Memory
}

func (s *States) convolution() int { return max(s.Taps-1, 0) * s.Cols }

func (s *States) layer() int { return s.convolution() + s.ValueHeads*s.KeyDim*s.ValueDim }

// SlotBytes is the size of the state of one sequence.
func (s *States) SlotBytes() int64 { return int64(s.Layers) * int64(s.layer()) * 4 }

// Segments tells which rows of a batch belong together: N times a first row, how
// many rows, and the slot of their sequence's state, each int32 on the device.
type Segments struct {
	N                 int
	First, Rows, Slot Memory
	Total             int // rows of all
	Shortest, Longest int // rows of one
}

// Convolve applies the causal depthwise convolution w, float32 [Cols, Taps],
// along the rows of each segment of x, which has one head of Cols values, then
// SiLU, and moves the state of layer on.
//
// A product with a matrix of few rows that reads and writes something else may happen
// beside it: few, nil if there is none.
func (k *Kernels) Convolve(x View, w Memory, s *States, g *Segments, layer int, few *fewProduct) error {
	if s.Taps < 1 || s.Taps > maxTaps || x.Dim != s.Cols {
		return fmt.Errorf("cannot convolve %d channels with %d taps: there are %d channels, and 1 to %d taps are possible", x.Dim, s.Taps, s.Cols, maxTaps)
	}
	if g.Longest > MaxRows && g.stretches()*s.edgeBytes() <= k.scratch.bytes {
		if few != nil {
			if err := k.Few(few); err != nil {
				return err
			}
		}
		return k.convolveStretches(x, w, s, g, layer)
	}
	a := few.append(k.device.args.Reset()).Pointer(x.first()).Int(x.Pitch).Pointer(w.at).Pointer(s.Slots.at).
		Pointer(uint64(s.SlotBytes() / 4)).Pointer(uint64(layer * s.layer())).
		Pointer(g.First.at).Pointer(g.Rows.at).Pointer(g.Slot.at).Int(s.Cols).Int(s.Taps).Int(g.N)
	grid := Grid{X: (s.Cols + 127) / 128, Y: g.N, Block: 128}
	if few != nil {
		grid.X, grid.Y = grid.X+few.m.out, max(g.N, few.n)
	}
	return k.convolve.Launch(grid, a)
}

// Delta is the input of the gated delta rule.
type Delta struct {
	Q, K       View   // [KeyHeads, KeyDim], before normalisation
	V          View   // [ValueHeads, ValueDim]
	A, B       View   // [ValueHeads] side by side: decay and write strength before their activations
	ALog, Bias Memory // float32 [ValueHeads]
	// Value head i reads key head i / (ValueHeads/KeyHeads), or i mod KeyHeads if
	// Tiled.
	Tiled bool
}

// DeltaRule moves the matrices S of layer on by each row in order and sets to
// [ValueHeads, ValueDim] to Sᵀq. Segments of up to MaxRows rows have the bits of one row
// at a time. Longer ones go in chunks where the shapes allow it, with keys, queries and
// what multiplies matrices rounded to 11 bits; the matrices themselves stay float32.
func (k *Kernels) DeltaRule(to View, in *Delta, s *States, g *Segments, layer int) error {
	kernel := k.delta[2]
	switch {
	case s.KeyDim == 64 && s.ValueDim%32 == 0:
		kernel = k.delta[0]
	case s.KeyDim == 128 && s.ValueDim%32 == 0:
		kernel = k.delta[1]
	case s.KeyDim > anyKey:
		return fmt.Errorf("cannot apply the delta rule to keys of %d values: up to %d are possible", s.KeyDim, anyKey)
	}
	if s.ValueHeads%s.KeyHeads != 0 {
		return fmt.Errorf("cannot apply the delta rule to %d values a head of %d heads for %d key heads", s.ValueDim, s.ValueHeads, s.KeyHeads)
	}
	// The kernel leaves longer segments alone. A graph serves all divisions of its rows, so where no
	// segment can be too long the limit is the same for each.
	most := max(g.Longest, MaxRows)
	if chunks := s.chunks(); chunks != nil && most > MaxRows {
		if err := k.deltaChunks(to, in, s, g, layer, chunks); err != nil || g.Shortest > MaxRows {
			return err
		}
		most = MaxRows
	}
	a := k.device.args.Reset().view(to).view(in.Q).view(in.K).view(in.V).
		Pointer(in.A.first()).Int(in.A.Pitch).Pointer(in.B.first()).Int(in.B.Pitch).
		Pointer(in.ALog.at).Pointer(in.Bias.at).Pointer(s.Slots.at).
		Pointer(uint64(s.SlotBytes() / 4)).Pointer(uint64(layer*s.layer() + s.convolution())).
		Pointer(g.First.at).Pointer(g.Rows.at).Pointer(g.Slot.at).
		Int(s.ValueHeads).Int(s.KeyHeads).Int(s.ValueDim).Bool(in.Tiled).Int(s.KeyDim).Int(most)
	return kernel.Launch(Grid{X: s.ValueHeads * ((s.ValueDim + 31) / 32), Y: g.N, Block: 128}, a)
}
