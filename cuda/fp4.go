//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"math"

	"velo/cuda/kernels"
)

// fp4Kernels are products of more than MaxRows rows with matrices in NVFP4 whose rows of x are
// quantised to NVFP4 too, see kernels/fp4.cu. They are there on request, on one architecture.
type fp4Kernels struct {
	products [len(fp4Tiles)]*Kernel
	rows     *Kernel
}

// fp4Tiles are how such a product is divided: as many threads a block, and units of 128 columns
// in shared memory. The rate of the second is a guess.
var fp4Tiles = [...]struct {
	tile
	threads, stages int
}{{tile{"128", 128, 128, 1, 1}, 256, 4}, {tile{"64", 128, 64, 2, 0.9}, 128, 3}}

// fp4Bytes is what so many rows of cols values take, quantised, with what blocks read behind them.
func fp4Bytes(cols, rows int) int64 {
	rows = (rows + productGroup - 1) / productGroup * productGroup
	return int64(rows/16) * int64(operandWidth(cols)/formats[NVFP4].cols) * int64(formats[NVFP4].bytes)
}

// checkFP4 says why a device cannot compute products of NVFP4 with NVFP4, if it cannot.
func checkFP4(f *Facts) error {
	if f.Capability() == kernels.FP4Capability {
		return nil
	}
	return fmt.Errorf("cannot compute prompts in FP4 on %s: its compute capability is %d.%d, and only %d.%d multiplies FP4 with scales that way; leave --prefill-fp4 out",
		f.Name, f.Major, f.Minor, kernels.FP4Capability/10, kernels.FP4Capability%10)
}

// loadFP4 loads the kernels from PTX. dependent tells whether they wait for the launch ahead
// themselves.
func (k *Kernels) loadFP4(ptx []byte, dependent bool) error {
	m, err := k.device.Load("fp4", ptx)
	if err != nil {
		return err
	}
	f := &fp4Kernels{}
	if f.rows, err = m.Kernel("fp4_rows"); err != nil {
		return err
	}
	f.rows.dependent = dependent
	for i := range fp4Tiles {
		if f.products[i], err = m.Kernel("fp4_product_" + fp4Tiles[i].name); err != nil {
			return err
		}
		f.products[i].dependent = dependent
		if err = f.products[i].Allow(fp4Shared(i)); err != nil {
			return err
		}
	}
	k.fp4 = f
	return nil
}

// fp4Shared is the dynamic shared memory of a block.
func fp4Shared(i int) int {
	t := &fp4Tiles[i]
	return t.stages * (t.down + t.across) / 16 * formats[NVFP4].bytes
}

// fp4Tile chooses by what the SM with the most blocks has to do.
func fp4Tile(out, n, sms int) int {
	best, least := 0, math.Inf(1)
	for i := range fp4Tiles {
		t := &fp4Tiles[i]
		g := t.grid(out, n)
		if cost := float64((g.X*g.Y+sms-1)/sms*t.down*t.across) / t.rate; cost < least {
			best, least = i, cost
		}
	}
	return best
}

// quantise puts the rows of an operand into to, which has [fp4Bytes].
func (k *Kernels) quantise(to Memory, o *Operand) error {
	if need := fp4Bytes(o.cols, o.n); to.bytes < need {
		return fmt.Errorf("cannot quantise %d rows of %d values into %d bytes: they take %d", o.n, o.cols, to.bytes, need)
	}
	a := k.device.args.Reset().Pointer(o.values.at).Pointer(to.at).Int(o.width)
	return k.fp4.rows.Launch(Grid{X: (o.width/16 + 255) / 256, Y: o.n, Block: 256}, a)
}

// fp4Product launches a product with the rows of p.X as quantise put them into x.
func (k *Kernels) fp4Product(p *Product, x Memory, tile int) error {
	m, n, t := p.M, p.X.n, &fp4Tiles[tile]
	if m.format != NVFP4 {
		return errors.New("cannot multiply in FP4: the matrix is in " + m.format.String())
	}
	a := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at).Pointer(x.at).Pointer(p.X.scales.at).
		Pointer(p.Bias.at).Pointer(p.Y.at).Int(m.out).Int(m.units).Int(n).Int(p.Pitch).Bool(p.Add)
	g := t.grid(m.out, n)
	g.Block, g.Shared = t.threads, fp4Shared(tile)
	return k.fp4.products[tile].Launch(g, a)
}
