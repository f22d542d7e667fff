//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
)

// tile is how a product of more than MaxRows rows is divided: rows of W and of x that a
// block takes, how many of them an SM holds, and the rate of a full device over that of
// the first (docs/gpu.md). It has no influence on the result.
type tile struct {
	name                 string
	down, across, blocks int
	rate                 float64
}

// productThreads are those of a block.
const productThreads = 128

var productTiles = [...]tile{{"128", 128, 128, 2, 1}, {"64", 128, 64, 3, 0.91}}

// productGroup is what the rows of an operand of more than MaxRows are filled up to a
// multiple of.
const productGroup = 128

// productSteps are what a product goes along the columns in: bytes of 16 rows of W and of
// 8 rows of x in a step, and how many steps are in shared memory.
var productSteps = [...]struct{ weights, x, stages int }{
	F16: {1024, 512, 4}, FP8: {1024, 1024, 3}, NVFP4: {640, 1024, 3},
}

// productKernels are products of more than MaxRows rows, see kernels/product.cu.
type productKernels [len(formats)][len(productTiles)]*Kernel

func (p *productKernels) find(find func(**Kernel, string)) {
	for f := range formats {
		for i, t := range productTiles {
			find(&p[f][i], fmt.Sprintf("product_%s_%s", Format(f), t.name))
		}
	}
}

// allow lets the kernels have the shared memory that they ask for.
func (p *productKernels) allow() error {
	for f := range p {
		for i, kernel := range p[f] {
			if err := kernel.Allow(productTiles[i].shared(Format(f))); err != nil {
				return err
			}
		}
	}
	return nil
}

// shared is the dynamic shared memory of a block.
func (t *tile) shared(format Format) int {
	s := productSteps[format]
	return s.stages * (t.down/16*s.weights + t.across/8*s.x)
}

// productTile chooses by how long it takes: rounds of blocks, one that is not full like a
// full one.
func productTile(out, n, sms int) int {
	best, least := 0, math.Inf(1)
	for i, t := range productTiles {
		rounds := (t.grid(out, n).X*t.grid(out, n).Y + sms*t.blocks - 1) / (sms * t.blocks)
		if cost := float64(rounds*t.blocks*t.down*t.across) / t.rate; cost < least {
			best, least = i, cost
		}
	}
	return best
}

// grid is the blocks that a product with a matrix of out rows takes.
func (t *tile) grid(out, n int) Grid {
	return Grid{X: (n + t.across - 1) / t.across, Y: (out + t.down - 1) / t.down, Block: productThreads}
}

// promptProduct launches a product of more than MaxRows rows with blocks of a tile.
func (k *Kernels) promptProduct(p *Product, tile int) error {
	m, n, t := p.M, p.X.n, &productTiles[tile]
	a := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at).Pointer(p.X.values.at).Pointer(p.X.scales.at).
		Pointer(p.Bias.at).Pointer(p.Y.at).Int(m.out).Int(m.units).Int(n).Int(p.Pitch).Bool(p.Add).Int(p.X.width)
	g := t.grid(m.out, n)
	g.Shared = t.shared(m.format)
	return k.products[m.format][tile].Launch(g, a)
}
