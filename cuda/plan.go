//go:build linux && cuda && cgo

package cuda

// choice is how a product is divided. Splits are the parts that a row is summed
// in, so they follow from the matrix alone, on every device and for any number
// of rows; the rest has no influence on the result.
type choice struct {
	splits  int // parts of the columns
	shape   int // of shapes, or wideShape
	abreast int // row groups that a block works on at once
	most    int // blocks of an SM; 0: as many as there is room for
	blocks  int // of an SM, half of which is left to the next launch; 0: it is not, else shape is of besideStages
}

// plan chooses for a matrix and n rows, after what was measured (docs/gpu.md): as many warps
// as keep the memory busy, no more splits than that takes, and two row tiles a
// warp where there are rows enough, since they share what is read of x.
func plan(m *Matrix, n int) choice {
	c := choice{splits: 8, shape: 1, abreast: 1}
	switch {
	case m.format == NVFP4 && m.out >= 1<<17:
		c = choice{splits: 2, shape: 2, abreast: 2}
	case m.format == NVFP4 && m.out >= 12000:
		c = choice{splits: 8, shape: 2, abreast: 1}
	case m.format == NVFP4 && m.out <= 4096:
		c = choice{splits: 8, shape: 0, abreast: 2}
	case m.format == F16 && m.out <= 6144, m.format == FP8 && m.out <= 4096:
		c = choice{splits: 16, shape: 0, abreast: 1}
	}
	for c.splits > 1 && c.splits*2 > m.units {
		c.splits /= 2
	}
	if n > 8 {
		switch {
		case !small(m, n):
			c.shape = wideShape
		case m.format == NVFP4 && m.out > 4096:
			c.shape, c.abreast = 2, 1
		default:
			c.shape, c.abreast = 0, 1
		}
	}
	return c
}

// wideShape is the shape of a product whose warps share what they read of x.
const wideShape = -1

// small says that a product of 9 to 16 rows is divided like one of up to 8: the
// matrix has too few rows for blocks that share what they read of x, or x is so
// little that the first cache holds it.
func small(m *Matrix, n int) bool {
	return m.format == NVFP4 && m.out < 1<<17 || m.out <= 6144 || n*m.in <= 64<<10
}

// narrowShared is the dynamic shared memory of a block whose warps share columns:
// units on their way, and sums, twice.
func (c choice) narrowShared(format Format, n int) int {
	s := shapes[c.shape]
	return c.splits * c.abreast * s.tiles * (s.stages*formats[format].bytes + 2*16*4*(8*tiles(n)+1))
}

// Blocks for 9 to 16 rows of a large matrix: 8 warps of 32 rows, three units on their way.
const (
	wideRows    = 256
	wideThreads = 256
	wideStages  = 3
)

// wideShared is the dynamic shared memory of such a block: weights, and a unit of
// activations in two bytes a value.
func wideShared(format Format) int {
	f := &formats[format]
	return wideStages * (wideRows/16*f.bytes + MaxRows*f.cols*2)
}

// product launches a product as c says.
func (k *Kernels) product(p *Product, c choice) error {
	m, n := p.M, p.X.n
	a := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at).Pointer(p.X.values.at).Pointer(p.X.scales.at).
		Pointer(p.Bias.at).Pointer(p.Y.at).Int(m.out).Int(m.units).Int(n).Int(p.Pitch).Int(c.splits).Bool(p.Add).Int(p.X.width)
	switch {
	case n > MaxRows:
		return k.promptProduct(p, productTile(m.out, n, k.device.facts.SMs))
	case c.blocks > 0:
		return k.launchBeside(k.beside.ready[c.shape], m.out, c, a)
	case c.shape == wideShape:
		return k.wideProduct(m, c.splits, a)
	}
	return k.launchNarrow(k.narrow[m.format][tiles(n)-1][c.shape], m.out, c, c.narrowShared(m.format, n), a)
}

// launchNarrow launches a product with out rows of W whose warps share columns, with so much
// shared memory.
func (k *Kernels) launchNarrow(kernel *Kernel, out int, c choice, shared int, a *Args) error {
	threads := 32 * c.splits * c.abreast
	rows := 16 * shapes[c.shape].tiles * c.abreast
	blocks, sms := (out+rows-1)/rows, k.device.facts.SMs
	fit := kernel.resident(threads, shared)
	if c.most > 0 {
		fit = min(fit, c.most)
	}
	if blocks > sms*fit {
		blocks = sms * fit
	} else if even := (blocks + sms - 1) / sms; even < fit {
		// All blocks are there at once, and those of the next launch besides. They are
		// to come to the SMs that have fewer of this one's: ask for so much shared
		// memory that no SM holds more than its share.
		shared = min(portableShared, max(shared, k.device.facts.SharedSM/(even+1)-1024+128))
	}
	return kernel.Launch(Grid{X: blocks, Block: threads, Shared: shared}, a)
}

// ownRows is the most rows that each block of a product prepares for itself, while its
// first weights are on their way, instead of a launch ahead: more take longer than that.
// ownTimes is how many times eight values a thread has then (kernels/linear.cu).
const ownRows, ownTimes = 1, 3

// ownable tells how a product of n rows of a with m is divided whose blocks prepare the rows
// themselves, if they can: the rows fit into shared memory beside the weights, into the
// registers of the block, and lie at multiples of 16 bytes.
func (k *Kernels) ownable(m *Matrix, a *activations, n int) (c choice, ok bool) {
	if n > ownRows || a.source == siluSource || !a.aligned(m.in) {
		return c, false
	}
	c = plan(m, n)
	if b, ok := besideOf(c, m, n, ownBytes(m, n), &k.device.facts, k.spacing.blocks); ok && b.holds(m) {
		return b, true
	}
	return c, c.holds(m) && c.ownShared(m, n) <= portableShared
}

// aligned tells whether rows of cols values lie at multiples of 16 bytes.
func (a *activations) aligned(cols int) bool {
	return cols%8 == 0 && a.x.first()%16 == 0 && a.x.Pitch%4 == 0 && a.gate.first()%16 == 0 && a.gate.Pitch%4 == 0
}

// holds tells whether the registers of a block have room for a row.
func (c choice) holds(m *Matrix) bool { return 32*c.splits*c.abreast*8*ownTimes >= operandWidth(m.in) }

// ownBytes is the shared memory of n rows that a block prepares.
func ownBytes(m *Matrix, n int) int { return n * (2*operandWidth(m.in) + 64) }

// ownShared is the shared memory of such a block.
func (c choice) ownShared(m *Matrix, n int) int {
	return c.narrowShared(m.format, n) + ownBytes(m, n)
}

// ownProduct launches a product with n rows of a instead of p.X, divided as ownable says.
func (k *Kernels) ownProduct(p *Product, a *activations, n int, c choice) error {
	m := p.M
	args := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at)
	a.append(args, m.in).Pointer(p.Bias.at).Pointer(p.Y.at).Int(m.out).Int(m.units).Int(n).Int(p.Pitch).Int(c.splits).Bool(p.Add)
	if c.blocks > 0 {
		return k.launchBeside(k.beside.owned[c.shape][a.source], m.out, c, args)
	}
	return k.launchNarrow(k.owned[m.format][c.shape][a.source], m.out, c, c.ownShared(m, n), args)
}

// wideProduct launches a product of 9 to 16 rows. Where rows alone do not fill the
// device, the splits become blocks of their own, as far as scratch holds their
// sums; the result is the same.
func (k *Kernels) wideProduct(m *Matrix, splits int, a *Args) error {
	a.Pointer(k.scratch.at).Pointer(k.counters.at)
	g := Grid{X: (m.out + wideRows - 1) / wideRows, Y: 1, Block: wideThreads, Shared: wideShared(m.format)}
	if sums := MaxRows * wideRows * 4; g.X < 4*k.device.facts.SMs && int64(g.X)*int64(splits)*int64(sums) <= k.scratch.bytes &&
		int64(g.X)*4 <= k.counters.bytes {
		g.Y = splits
	}
	return k.wide[m.format].Launch(g, a)
}
