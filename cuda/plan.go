//go:build linux && cuda && cgo

package cuda

// choice is how a product is divided. Splits are the parts that a row is summed
// in, so they follow from the matrix alone, on every device and for any number
// of rows; the rest has no influence on the result.
type choice struct {
	splits int // parts of the columns
	shape  int // of shapes, or wideShape
}

// plan chooses for a matrix and n rows, after what was measured (docs/gpu.md): as many warps
// as keep the memory busy, no more splits than that takes, and two row tiles a
// warp where there are rows enough, since they share what is read of x.
func plan(m *Matrix, n int) choice {
	c := choice{splits: 8, shape: 1}
	switch {
	case m.format == NVFP4 && m.out >= 1<<17:
		c = choice{splits: 2, shape: 2}
	case m.format == NVFP4 && m.out >= 12000:
		c = choice{splits: 8, shape: 2}
	case m.format == NVFP4 && m.out <= 4096:
		c = choice{splits: 8, shape: 0}
	case m.format == F16 && m.out <= 6144, m.format == FP8 && m.out <= 4096:
		c = choice{splits: 16, shape: 0}
	}
	for c.splits > 1 && c.splits*2 > m.units {
		c.splits /= 2
	}
	if n > 8 {
		switch {
		case !small(m, n):
			c.shape = wideShape
		case m.format == NVFP4 && m.out > 4096:
			c.shape = 2
		default:
			c.shape = 0
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

// narrowShared is the dynamic shared memory of a team of a product of up to 8·tiles(n) rows:
// units on their way, and sums, twice.
func (c choice) narrowShared(format Format, n int) int {
	s := shapes[c.shape]
	return c.splits * s.tiles * (s.stages*formats[format].bytes + 2*16*4*(8*tiles(n)+1))
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
	case c.shape == wideShape:
		return k.wideProduct(m, c.splits, a)
	}
	return k.launchNarrow(k.narrow[m.format][tiles(n)-1][c.shape], m.out, c, c.narrowShared(m.format, n), 0, a)
}

// launchNarrow launches a product with out rows of W whose warps share columns: teams that take
// team bytes of shared memory each, and own bytes that all of a block have in common.
func (k *Kernels) launchNarrow(kernel *Kernel, out int, c choice, team, own int, a *Args) error {
	teams := k.teams(kernel, out, c, team, own)
	// The block has its SM for itself, so that no SM has two. Blocks of the next launch may be there
	// besides, if they need little.
	shared := max(teams*team+own+lineBytes, k.device.facts.SharedSM/2-1024+128)
	return kernel.Launch(Grid{X: min(c.groups(out), k.device.facts.SMs), Block: 32 * c.splits * teams, Shared: min(shared, kernel.shared)}, a)
}

// lineBytes is what aligning shared memory to a line takes at most.
const lineBytes = 128

// teamsMost is the most teams of a block: each has a barrier of its own.
const teamsMost = 15

// groups is how many groups of rows there are of out rows.
func (c choice) groups(out int) int {
	rows := 16 * shapes[c.shape].tiles
	return (out + rows - 1) / rows
}

// teams is how many teams a block has, the only one of its SM, of a product with out rows of W: as
// many as there is room for, but no more than take as many turns.
func (k *Kernels) teams(kernel *Kernel, out int, c choice, team, own int) int {
	most := min(teamsMost, 32/c.splits, 65536/((max(kernel.registers, 1)+7)/8*8*32*c.splits), (kernel.shared-own-lineBytes)/team)
	if k.ways.teams > 0 {
		return max(1, min(most, k.ways.teams))
	}
	of := (c.groups(out) + k.device.facts.SMs - 1) / k.device.facts.SMs // an SM
	turns := (of + max(most, 1) - 1) / max(most, 1)
	return (of + turns - 1) / turns
}

// ownTimes is how many times eight values a thread has of a row that its block prepares
// (kernels/activations.cuh).
const ownTimes = 3

// sharedMost is the most shared memory of a block of one team.
func (k *Kernels) sharedMost() int { return k.device.facts.Shared - fixedShared - lineBytes }

// ownable tells how a product of n rows of a with m is divided whose blocks prepare the row
// themselves, while their first weights are on their way, instead of a launch ahead, if they can:
// it is a single one (more take longer than that launch), fits into shared memory beside the
// weights and into the registers of a team, and lies at a multiple of 16 bytes.
func (k *Kernels) ownable(m *Matrix, a *activations, n int) (c choice, ok bool) {
	if n > 1 || a.source == siluSource || !a.aligned(m.in) {
		return c, false
	}
	c = plan(m, n)
	return c, c.holds(m) && c.ownTeam(m, n)+ownBytes(m, n) <= k.sharedMost()
}

// aligned tells whether rows of cols values lie at multiples of 16 bytes.
func (a *activations) aligned(cols int) bool {
	return cols%8 == 0 && a.x.first()%16 == 0 && a.x.Pitch%4 == 0 && a.gate.first()%16 == 0 && a.gate.Pitch%4 == 0
}

// holds tells whether the registers of a team have room for a row.
func (c choice) holds(m *Matrix) bool { return 32*c.splits*8*ownTimes >= operandWidth(m.in) }

// ownBytes is the shared memory of n rows that a block prepares.
func ownBytes(m *Matrix, n int) int { return n*(2*operandWidth(m.in)+64) - 64 }

// ownTeam is the shared memory of a team of such a block, whose sums are of n rows.
func (c choice) ownTeam(m *Matrix, n int) int {
	s := shapes[c.shape]
	return c.splits * s.tiles * (s.stages*formats[m.format].bytes + 2*16*4*(n|1))
}

// ownProduct launches a product with the row of a instead of p.X, divided as ownable says.
func (k *Kernels) ownProduct(p *Product, a *activations, c choice) error {
	m := p.M
	args := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at)
	a.append(args, m.in).Pointer(p.Bias.at).Pointer(p.Y.at).Int(m.out).Int(m.units).Int(c.splits).Bool(p.Add)
	return k.launchNarrow(k.owned[m.format][c.shape][a.source], m.out, c, c.ownTeam(m, 1), ownBytes(m, 1), args)
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
