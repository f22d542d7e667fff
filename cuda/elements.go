//go:build linux && cuda && cgo

package cuda

import "fmt"

// elementKernels are the operations on rows of activations.
type elementKernels struct {
	norm, turns, rope        *Kernel
	normRope                 *Kernel
	silu, sigmoid, add, pick *Kernel
	embed                    [len(formats)]*Kernel
}

func (e *elementKernels) find(find func(**Kernel, string)) {
	find(&e.norm, "rms_norm")
	find(&e.turns, "turns")
	find(&e.rope, "rope")
	find(&e.normRope, "norm_rope")
	find(&e.silu, "silu")
	find(&e.sigmoid, "sigmoid")
	find(&e.add, "add")
	find(&e.pick, "gather")
}

// View is float32 activations: for each row, Pitch values after the one before,
// Heads groups of Dim values, the first at Offset and each Stride values after
// the one before.
type View struct {
	Memory                            Memory
	Pitch, Offset, Heads, Dim, Stride int
}

// first is the address of the first value.
func (v View) first() uint64 { return v.Memory.at + uint64(4*v.Offset) }

func (a *Args) view(v View) *Args { return a.Pointer(v.first()).Int(v.Pitch).Int(v.Stride) }

// eights is the threads of a block that takes a row of n values, eight a thread.
func eights(n int) int { return min(1024, (n+255)/256*32) }

// Norm sets each head of to to x / √(mean(x²)+eps) ⊙ w, w float32 [Dim], for n
// rows. to may be x.
func (k *Kernels) Norm(to, x View, w Memory, eps float32, n int) error {
	if x.Dim > operandMost {
		return fmt.Errorf("cannot normalise rows of %d values: up to %d are possible", x.Dim, operandMost)
	}
	a := k.device.args.Reset().view(to).view(x).Pointer(w.at).Int(x.Dim).Float(eps)
	return k.norm.Launch(Grid{X: x.Heads, Y: n, Block: eights(x.Dim)}, a)
}

// Turns is cosine and sine of the angles of a batch, float32 [rows, Pairs].
type Turns struct {
	Cosine, Sine Memory
	Pairs        int
}

// Turn sets t to the angles position·inverse of n rows, times scale. positions
// is int32 [n], inverse float32 [Pairs].
func (k *Kernels) Turn(t *Turns, positions, inverse Memory, scale float32, n int) error {
	a := k.device.args.Reset().Pointer(t.Cosine.at).Pointer(t.Sine.at).Pointer(positions.at).Pointer(inverse.at).
		Int(t.Pairs).Float(scale)
	return k.turns.Launch(Grid{X: n, Block: min(256, (t.Pairs+31)/32*32)}, a)
}

// Rope turns value i of each head of x with value i + Pairs, for n rows.
func (k *Kernels) Rope(x View, t *Turns, n int) error {
	a := k.device.args.Reset().view(x).Pointer(t.Cosine.at).Pointer(t.Sine.at).Int(t.Pairs)
	return k.rope.Launch(Grid{X: x.Heads, Y: n, Block: min(256, (t.Pairs+31)/32*32)}, a)
}

// NormRope is Norm and then Rope on the heads of q and of k, for n rows, with qNorm and
// kNorm float32 [Dim], which is 256 at most.
func (k *Kernels) NormRope(q, key View, qNorm, kNorm Memory, eps float32, t *Turns, n int) error {
	a := k.device.args.Reset().view(q).view(key).Pointer(qNorm.at).Pointer(kNorm.at).Int(q.Heads).Int(q.Dim).Float(eps).
		Pointer(t.Cosine.at).Pointer(t.Sine.at).Int(t.Pairs)
	return k.normRope.Launch(Grid{X: q.Heads + key.Heads, Y: n, Block: 32}, a)
}

// each launches an operation on single values of n rows.
func (k *Kernels) each(kernel *Kernel, to, gate, x View, n int) error {
	parts := (x.Dim + 1023) / 1024
	a := k.device.args.Reset().view(to).view(gate).view(x).Int(x.Dim).Int(parts)
	return kernel.Launch(Grid{X: x.Heads * parts, Y: n, Block: 256}, a)
}

// SiLU sets to to silu(gate) ⊙ x for n rows.
func (k *Kernels) SiLU(to, gate, x View, n int) error { return k.each(k.silu, to, gate, x, n) }

// Sigmoid multiplies n rows of x by σ(gate).
func (k *Kernels) Sigmoid(x, gate View, n int) error { return k.each(k.sigmoid, x, gate, x, n) }

// Add adds n rows of y to x.
func (k *Kernels) Add(x, y View, n int) error { return k.each(k.add, x, x, y, n) }

// Gather sets row i of to to row rows[i] of x; rows is int32 [n].
func (k *Kernels) Gather(to, x View, rows Memory, n int) error {
	parts := (x.Dim + 1023) / 1024
	a := k.device.args.Reset().view(to).view(x).Pointer(rows.at).Int(x.Dim).Int(parts)
	return k.pick.Launch(Grid{X: x.Heads * parts, Y: n, Block: 256}, a)
}

// Embed sets row i of to, one head of the table's width, to the row of table
// that tokens[i] names, or adds it; tokens is int32 [n].
func (k *Kernels) Embed(to View, table *Matrix, tokens Memory, n int, add bool) error {
	if to.Dim != table.in {
		return fmt.Errorf("cannot embed rows of %d values in a view of %d", table.in, to.Dim)
	}
	a := k.device.args.Reset().Pointer(to.first()).Int(to.Pitch).Pointer(table.weights.at).Pointer(table.factors.at).
		Pointer(tokens.at).Int(table.in).Int(table.units).Bool(add)
	return k.embed[table.format].Launch(Grid{X: (table.in + 255) / 256, Y: n, Block: 256}, a)
}
