//go:build linux && cuda && cgo

package cuda

import "fmt"

// Of one row or two, launches between products may happen within them: SiLU and the split of its
// result, the convolution, and a product with a matrix of few rows. The bits are those of the
// launches by themselves.

// fusedSets are what there are such kernels for: a format of matrices and a number of rows.
var fusedSets = [...]struct {
	format Format
	rows   int
}{{F16, 1}, {NVFP4, 1}, {NVFP4, 2}}

// fusedRows is the most rows of such a product.
const fusedRows = 2

// The kinds of these products.
const (
	swigluProduct    = iota // gates and what they gate: the product is left in halves
	convolvedProduct        // its first values are inputs of a convolution
	broughtProduct          // of rows that swigluProduct left
)

var fusedNames = [...]string{swigluProduct: "_swiglu", convolvedProduct: "_convolved", broughtProduct: "_brought"}

// powerBytes is a power of two, a byte, for each 16 columns of the longest row.
const powerBytes = operandMost / 16

// broughtTimes is how many times eight values a thread has of a row that is brought to shared
// memory, by how many there are (kernels/activations.cuh).
var broughtTimes = [fusedRows + 1]int{1: 9, 2: 6}

// fusedTaps is the most taps of a convolution within a product (kernels/narrow.cuh).
const fusedTaps = 4

// fusedKernels are the products of few rows with what is before and behind them.
type fusedKernels [len(fusedSets)][len(shapes)][len(fusedNames)]*Kernel

func (f *fusedKernels) find(find func(to **Kernel, name string)) {
	for kind, name := range fusedNames {
		for i, set := range fusedSets {
			for j, s := range shapes {
				find(&f[i][j][kind], fmt.Sprintf("fused_%s_r%d_s%d_n%d%s", set.format, s.tiles, s.stages, set.rows, name))
			}
		}
	}
}

func (f *fusedKernels) all() []*Kernel {
	var all []*Kernel
	for i := range f {
		for j := range f[i] {
			all = append(all, f[i][j][:]...)
		}
	}
	return all
}

// fusedSet is which of fusedSets has products of n rows with m, −1 if none does.
func fusedSet(m *Matrix, n int) int {
	for i, set := range fusedSets {
		if set.format == m.format && set.rows == n {
			return i
		}
	}
	return -1
}

// fusable tells how a product of n rows with m is divided that is of such a kind, if it can be.
func (k *Kernels) fusable(m *Matrix, kind, n int) (c choice, ok bool) {
	if fusedSet(m, n) < 0 || m.out >= 1<<17 {
		return c, false
	}
	c = plan(m, n)
	return c, k.takes(m, kind, n, c)
}

// takes tells whether there is shared memory for such a product divided as c says, a thread of a
// team for each output of a turn, and registers for the rows, of which each has its part of a block.
func (k *Kernels) takes(m *Matrix, kind, n int, c choice) bool {
	if c.ownTeam(m, n)+ownBytes(m, n) > k.sharedMost() {
		return false
	}
	times, outputs, out := ownTimes, 0, m.out
	switch kind {
	case swigluProduct:
		outputs, out = 16*n, swigluOut(m, c)
	case convolvedProduct:
		outputs = 16 * shapes[c.shape].tiles * n
	case broughtProduct:
		times = broughtTimes[n]
	}
	warps := c.splits * k.teams(k.fusedKernel(kind, m, n, c), out, c, c.ownTeam(m, n), ownBytes(m, n))
	return outputs <= 32*c.splits && warps%n == 0 && warps/n*32*8*times >= operandWidth(m.in)
}

// swigluOut is the rows that a swigluProduct is divided by: a group is a tile of pairs.
func swigluOut(m *Matrix, c choice) int { return m.out / 2 * shapes[c.shape].tiles }

func (k *Kernels) fusedKernel(kind int, m *Matrix, n int, c choice) *Kernel {
	return k.fused[fusedSet(m, n)][c.shape][kind]
}

// launchFused launches such a product of n rows with out rows of W, pairs of them for swigluProduct.
func (k *Kernels) launchFused(kind int, m *Matrix, n int, c choice, out int, a *Args) error {
	return k.launchNarrow(k.fusedKernel(kind, m, n, c), out, c, c.ownTeam(m, n), ownBytes(m, n), a)
}

// swiGLU leaves silu(x·gateᵀ + …) ⊙ (x·upᵀ + …) in o and in k.powers, for n rows of a, which
// are normalised first, and m with the gates' rows first. [Kernels.brought] multiplies them on.
func (k *Kernels) swiGLU(o *Operand, a *activations, m *Matrix, bias Memory, n int, c choice) error {
	o.n = n
	args := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at)
	a.append(args, m.in).Pointer(bias.at).Int(m.out / 2).Int(m.units).Int(c.splits).
		Pointer(o.values.at).Pointer(k.powers.at).Int(o.width).Int(powerBytes)
	return k.launchFused(swigluProduct, m, n, c, swigluOut(m, c), args)
}

// brought is a product with the rows that swiGLU left in p.X.
func (k *Kernels) brought(p *Product, c choice) error {
	m, n := p.M, p.X.n
	rows := activations{x: View{Memory: p.X.values, Pitch: p.X.width}, gate: View{Memory: k.powers, Pitch: powerBytes}}
	args := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at)
	rows.append(args, m.in).Pointer(p.Bias.at).Pointer(p.Y.at).Int(m.out).Int(m.units).Int(p.Pitch).Int(c.splits).Bool(p.Add)
	return k.launchFused(broughtProduct, m, n, c, m.out, args)
}

// convolved is a product of n rows of a, which are normalised first, whose first values go
// through the causal convolution w of the segments of g, of which each has one row, then SiLU. A
// product with a matrix of few rows that reads the same rows may happen beside it: few, nil if there
// is none.
func (k *Kernels) convolved(p *Product, a *activations, w Memory, s *States, g *Segments, layer int, few *fewProduct, n int, c choice) error {
	m := p.M
	if few == nil {
		few = &noFew
	}
	args := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at)
	a.append(args, m.in).Pointer(p.Bias.at).Pointer(p.Y.at).Int(m.out).Int(m.units).Int(p.Pitch).Int(c.splits).
		Pointer(w.at).Pointer(s.Slots.at).Pointer(uint64(s.SlotBytes() / 4)).Pointer(uint64(layer * s.layer())).Pointer(g.Slot.at).Int(s.Cols).Int(s.Taps).
		Pointer(few.m.weights.at).Pointer(few.m.factors.at).Pointer(few.bias.at).Pointer(few.y.first()).Int(few.m.out).Int(few.m.units).Int(few.y.Pitch).Int(0)
	return k.launchFused(convolvedProduct, m, n, c, m.out, args)
}

// blocksOf is how many blocks convolved launches.
func (k *Kernels) blocksOf(m *Matrix, c choice) int {
	rows := 16 * shapes[c.shape].tiles
	return min((m.out+rows-1)/rows, k.device.facts.SMs)
}

// fused launches the calls from number i on that happen within each other, and tells how many
// these are: 0 if there are none.
func (b *Backend) fused(calls []call, i int) (n int, err error) {
	if b.k.ways.apart || calls[i].kind != linearCall || calls[i].rows > fusedRows || len(calls[i].m.pieces) != 1 || calls[i].flags != 0 {
		return 0, nil
	}
	w := b.state.within
	if w == nil || w.kind != normCall {
		return 0, nil
	}
	a := b.activations(&calls[i])
	if !a.aligned(calls[i].m.in) {
		return 0, nil
	}
	if n, err = b.fusedMLP(calls, i, &a); n == 0 && err == nil {
		n, err = b.fusedConvolution(calls, i, &a)
	}
	return n, err
}

// biasOf is the bias of a linear layer, empty if it has none.
func biasOf(c *call) Memory {
	if c.bias == nil {
		return Memory{}
	}
	return c.bias.values
}

// fusedMLP launches gates and what they gate, SiLU and the linear layer behind it, if calls from i
// on are these.
func (b *Backend) fusedMLP(calls []call, i int, a *activations) (int, error) {
	if len(calls) < i+3 {
		return 0, nil
	}
	first, silu, last := &calls[i], &calls[i+1], &calls[i+2]
	half := int32(first.m.out / 2)
	lower, upper := first.dst, first.dst
	lower.heads, lower.dim, lower.stride = 1, half, half
	upper = lower
	upper.offset += half
	if silu.kind != siluCall || silu.rows != first.rows || !into(calls, i+1) || first.m.out%32 != 0 || !sameRows(&silu.k, &lower) || !sameRows(&silu.x, &upper) ||
		last.kind != linearCall || last.rows != first.rows || len(last.m.pieces) != 1 || last.dst.buffer == first.dst.buffer || source(calls, i+2) != i+1 ||
		len(calls) > i+3 && source(calls, i+3) == i+1 || !unread(calls[i+3:], first.dst.buffer) {
		return 0, nil
	}
	up, down := first.m.pieces[0], last.m.pieces[0]
	n := int(first.rows)
	c, ok := b.k.fusable(up.m, swigluProduct, n)
	d, possible := b.k.fusable(down.m, broughtProduct, n)
	if !ok || !possible || up.adds || down.adds {
		return 0, nil
	}
	o := b.operands[down.m.in]
	o.values, o.scales = b.values.Memory, b.scales
	b.state.operand = nil
	for _, c := range calls[i : i+3] {
		c.dst.buffer.writes++
	}
	if err := b.k.swiGLU(o, a, up.m, biasOf(first), n, c); err != nil {
		return 0, err
	}
	b.device.tape.enter(last)
	y := last.dst.view()
	return 3, b.k.brought(&Product{Y: Memory{b.device, y.first(), y.Memory.bytes}, Pitch: y.Pitch, X: o, M: down.m, Bias: biasOf(last),
		Add: last.flags != 0}, d)
}

// unread tells whether what is in a buffer is written anew before calls read it.
func unread(calls []call, of *buffer) bool {
	for i := range calls {
		if calls[i].reads(of) {
			return false
		}
		if calls[i].dst.buffer == of {
			return true
		}
	}
	return false
}

// fusedConvolution launches a linear layer and the convolution of its first values, between
// which there may be another linear layer with the same rows, if calls from i on are these.
func (b *Backend) fusedConvolution(calls []call, i int, a *activations) (int, error) {
	first, n, rows := &calls[i], 2, int(calls[i].rows)
	if len(calls) > i+1 && calls[i+1].kind == linearCall {
		n = 3
	}
	if len(calls) < i+n || b.state.segments.N != rows {
		return 0, nil
	}
	between, convolve := &calls[i+1], &calls[i+n-1]
	m := first.m.pieces[0]
	if convolve.kind != convolveCall || convolve.rows != first.rows || convolve.dst.buffer != first.dst.buffer || convolve.dst.offset != first.dst.offset || !convolve.dst.solid() ||
		int(convolve.dst.heads*convolve.dst.dim) > m.m.out || convolve.cache.states.Taps > fusedTaps || m.adds {
		return 0, nil
	}
	c, ok := b.k.fusable(m.m, convolvedProduct, rows)
	if !ok {
		return 0, nil
	}
	var beside *fewProduct
	if n == 3 {
		if between.rows != first.rows || between.dst.buffer == first.dst.buffer || between.x.buffer == first.dst.buffer || source(calls, i+1) != source(calls, i) {
			return 0, nil
		}
		if p := between.m.pieces[0]; len(between.m.pieces) == 1 && few(p.m) && !p.adds && between.flags == 0 && p.m.in == m.m.in &&
			p.m.out <= b.k.blocksOf(m.m, c) {
			b.state.few = fewProduct{y: between.dst.view(), m: p.m, bias: biasOf(between)}
			beside = &b.state.few
		}
	}
	first.dst.buffer.writes += 2
	y := first.dst.view()
	p := Product{Y: Memory{b.device, y.first(), y.Memory.bytes}, Pitch: y.Pitch, M: m.m, Bias: biasOf(first)}
	if err := b.k.convolved(&p, a, convolve.w.values, &convolve.cache.states, &b.state.segments, int(convolve.layer), beside, rows, c); err != nil {
		return 0, err
	}
	if n == 2 {
		return n, nil
	}
	if beside != nil {
		between.dst.buffer.writes++
		return n, nil
	}
	b.device.tape.enter(between)
	b.state.next = nil
	return n, b.dispatch(between)
}

// fusedAttention launches norms and rotations of the heads of q and k, of which calls are the
// first, with the attention behind them and its gate, as far as these are: how many calls.
func (b *Backend) fusedAttention(calls []call) (n int, err error) {
	if b.k.ways.apart {
		return 0, nil
	}
	var within attendWithin
	if turned(calls) && len(calls) > turnedCalls {
		c := &calls[turnedCalls]
		if c.kind == attendCall && c.x == calls[0].dst && c.k == calls[1].dst && c.rows == calls[0].rows {
			if err := b.turn(&calls[2]); err != nil {
				return 0, err
			}
			n = turnedCalls
			within.turn = &headTurn{calls[0].w.values, calls[1].w.values, calls[0].float(), &b.turns}
		}
	}
	c := &calls[n]
	if c.kind != attendCall {
		return 0, nil
	}
	r := b.state.rows
	r.N, r.Sequences = int(c.rows), b.batch.Segments
	n++
	if len(calls) > n && r.gates() {
		if g := &calls[n]; g.kind == sigmoidCall && g.x == c.dst && g.rows == c.rows && g.k.buffer != c.dst.buffer && sameHeads(&g.k, &c.dst) {
			within.gate = g.k.view()
			n++
		}
	}
	if n == 1 {
		return 0, nil
	}
	for i := range calls[:n] {
		calls[i].dst.buffer.writes++
	}
	b.device.tape.enter(c)
	return n, b.k.attend(c.dst.view(), c.x.view(), c.k.view(), c.v.view(), &c.cache.pair, &r, int(c.layer), int(c.window), c.float(), b.scratch.Memory, within)
}

func sameHeads(a, b *tensor) bool { return a.heads == b.heads && a.dim == b.dim }
