//go:build linux && cuda && cgo

package emulator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"velo/cuda"
)

// product is a warp that multiplies: its lanes load what they hold of a, b and c as words, and store d.
const product = `.version 7.8
.target sm_80
.address_size 64
.visible .entry one(.param .u64 from, .param .u64 to)
{
	.reg .u32 %%t, %%a<4>, %%b<2>;
	.reg .f32 %%c<4>;
	.reg .u64 %%f, %%d, %%o;
	mov.u32 %%t, %%tid.x;
	ld.param.u64 %%f, [from];
	ld.param.u64 %%d, [to];
	mul.wide.u32 %%o, %%t, 48;
	add.s64 %%f, %%f, %%o;
	ld.global.v4.u32 {%%a0, %%a1, %%a2, %%a3}, [%%f];
	ld.global.v4.f32 {%%c0, %%c1, %%c2, %%c3}, [%%f+16];
	ld.global.v2.u32 {%%b0, %%b1}, [%%f+32];
	%s {%%c0, %%c1, %%c2, %%c3}, {%%a0, %%a1, %%a2, %%a3}, {%%b0, %%b1}, {%%c0, %%c1, %%c2, %%c3};
	mul.wide.u32 %%o, %%t, 16;
	add.s64 %%d, %%d, %%o;
	st.global.v4.f32 [%%d], {%%c0, %%c1, %%c2, %%c3};
	ret;
}
`

// TestMatrices holds products by a warp against float64, element by element, by where the instruction
// set's document says that a lane's elements are.
func TestMatrices(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, f := range []struct {
		name, opcode string
		depth        int
		bits         func(x float32) (uint32, float64) // of an operand, and its value
	}{
		{"bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 16, func(x float32) (uint32, float64) {
			b := math.Float32bits(x) >> 16
			return b, float64(math.Float32frombits(b << 16))
		}},
		{"f16", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16, func(x float32) (uint32, float64) {
			v := math.Round(float64(x)*64) / 64 // of 2⁻⁶, below 16
			e := math.Floor(math.Log2(math.Abs(v)))
			if v == 0 {
				return 0, 0
			}
			h := uint32(e+15)<<10 | uint32((math.Abs(v)/math.Exp2(e)-1)*1024)
			if v < 0 {
				h |= 1 << 15
			}
			return h, v
		}},
		{"tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 8, func(x float32) (uint32, float64) {
			b := math.Float32bits(x)
			return b, float64(math.Float32frombits(b &^ 0x1fff)) // what is behind does not count
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			d := open(t)
			var a [16][16]float64
			var b [16][8]float64
			var c [16][8]float64
			words := make([][12]uint32, 32)
			random := func(v *float64) uint32 {
				bits, value := f.bits(float32(r.NormFloat64()))
				*v = value
				return bits
			}
			for lane := range 32 {
				g, k := lane/4, lane%4
				w := &words[lane]
				for i := range 4 {
					row := g + 8*(i%2)
					if f.depth == 16 {
						col := 2*k + 8*(i/2)
						w[i] = random(&a[row][col])
						w[i] |= random(&a[row][col+1]) << 16
					} else {
						w[i] = random(&a[row][k+4*(i/2)])
					}
				}
				for i := range 2 {
					if f.depth == 16 {
						row := 2*k + 8*i
						w[8+i] = random(&b[row][g])
						w[8+i] |= random(&b[row+1][g]) << 16
					} else {
						w[8+i] = random(&b[k+4*i][g])
					}
				}
				for i := range 4 {
					x := float32(r.NormFloat64())
					c[g+8*(i/2)][2*k+i%2] = float64(x)
					w[4+i] = math.Float32bits(x)
				}
			}
			from, to := d.take(48*32), d.take(16*32)
			d.must(cuda.Upload(from, words))
			d.run(d.kernel(fmt.Sprintf(product, f.opcode), "one"), 1, 32, from.Address(), to.Address())
			for lane, got := range read[[4]float32](d, to, 32) {
				for i, v := range got {
					row, col := lane/4+8*(i/2), 2*(lane%4)+i%2
					want, terms := c[row][col], math.Abs(c[row][col])
					for k := range f.depth {
						want += a[row][k] * b[k][col]
						terms += math.Abs(a[row][k] * b[k][col])
					}
					if e := math.Abs(float64(v) - want); e > terms*float64(f.depth)/(1<<24) {
						t.Errorf("row %d, column %d is %g, not %g", row, col, v, want)
					}
				}
			}
		})
	}
}

// TestLoadMatrix reads four matrices of 8 × 8 halves, as they are and turned.
func TestLoadMatrix(t *testing.T) {
	for _, trans := range []string{"", ".trans"} {
		d := open(t)
		text := `.version 7.8
.target sm_80
.address_size 64
.visible .entry one(.param .u64 to)
{
	.shared .align 16 .b8 s[512];
	.reg .u32 %t, %a, %b, %v, %r<4>;
	.reg .u64 %d, %o;
	mov.u32 %t, %tid.x;
	mov.u32 %a, s;
	mad.lo.u32 %a, %t, 16, %a;
	mul.lo.u32 %v, %t, 0x00080008;
	add.u32 %v, %v, 0x00010000; // halves 8·row, 8·row + 1, …
	st.shared.u32 [%a], %v;
	add.u32 %v, %v, 0x00020002;
	st.shared.u32 [%a+4], %v;
	add.u32 %v, %v, 0x00020002;
	st.shared.u32 [%a+8], %v;
	add.u32 %v, %v, 0x00020002;
	st.shared.u32 [%a+12], %v;
	bar.sync 0;
	ldmatrix.sync.aligned.m8n8.x4` + trans + `.shared.b16 {%r0, %r1, %r2, %r3}, [%a];
	ld.param.u64 %d, [to];
	mul.wide.u32 %o, %t, 16;
	add.s64 %d, %d, %o;
	st.global.v4.u32 [%d], {%r0, %r1, %r2, %r3};
	ret;
}
`
		to := d.take(512)
		d.run(d.kernel(text, "one"), 1, 32, to.Address())
		for lane, got := range read[[4][2]uint16](d, to, 32) {
			for m, pair := range got {
				for i, v := range pair {
					row, col := lane/4, lane%4*2+i
					if trans != "" {
						row, col = col, row
					}
					if want := uint16(8*(8*m+row) + col); v != want {
						t.Errorf("%s matrix %d, lane %d: %d, not %d", trans, m, lane, v, want)
					}
				}
			}
		}
	}
}
