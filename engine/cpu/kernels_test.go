package cpu

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"velo/engine/ops"
	"velo/engine/weights"
)

// sets are the kernels that this machine runs.
func sets() map[string]*kernels {
	m := map[string]*kernels{}
	for _, k := range available() {
		m[k.name] = k
	}
	return m
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// near fails if got is further from want than eps times the size of the terms.
func near(t *testing.T, what string, got float32, want, size, eps float64) {
	t.Helper()
	if d := math.Abs(float64(got) - want); !(d <= eps*size) {
		t.Errorf("%s: got %v, want %v: off by %g of %g", what, got, want, d, size)
	}
}

func TestDot(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, k := range sets() {
		for _, n := range []int{1, 7, 8, 9, 15, 16, 17, 24, 31, 32, 63, 64, 65, 100, 577} {
			x, y := random(r, n), random(r, 4*n)
			var out [4]float32
			k.dot4(&x[0], &y[0], n, n, &out)
			for j := range out {
				want, size := 0.0, 0.0
				for i := range n {
					p := float64(x[i]) * float64(y[j*n+i])
					want, size = want+p, size+math.Abs(p)
				}
				near(t, name, out[j], want, size, 1e-6)
				if one := k.dot(&x[0], &y[j*n], n); one != out[j] {
					t.Errorf("%s: %d values alone give %v and among four %v", name, n, one, out[j])
				}
				var swapped [4]float32
				k.dot4(&y[j*n], &x[0], 0, n, &swapped)
				if swapped[3] != out[j] {
					t.Errorf("%s: exchanging the factors of %d values gives %v instead of %v", name, n, swapped[3], out[j])
				}
			}
		}
	}
}

func TestQuantise(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for name, k := range sets() {
		x := random(r, 96)
		clear(x[32:64]) // a group of zeros
		x[70] = -1000   // an outlier
		codes, scales, sums := make([]int16, 96), make([]float32, 3), make([]float32, 3)
		k.quantise(&x[0], &codes[0], &scales[0], &sums[0], 3)
		for b := range 3 {
			top, sum := 0.0, 0.0
			for i := 32 * b; i < 32*b+32; i++ {
				top = max(top, math.Abs(float64(x[i])))
			}
			for i := 32 * b; i < 32*b+32; i++ {
				sum += float64(codes[i]) * float64(scales[b])
				near(t, name, float32(codes[i])*scales[b], float64(x[i]), top/32767, 0.51)
			}
			near(t, name+" sum", sums[b], sum, 32*top, 1e-6)
		}
	}
}

// quantisedWeight makes a weight of random blocks with sensible scales.
func quantisedWeight(r *rand.Rand, kind weights.Type, rows, cols int) *ops.Weight {
	w := &ops.Weight{Name: kind.String(), Type: kind, Shape: []int{rows, cols}}
	values, octets := kind.Block()
	w.Data = make([]byte, rows*cols/values*octets)
	for i := range w.Data {
		w.Data[i] = byte(r.Uint32())
	}
	half := func(at int) { // a half between 2⁻⁷ and 2⁻⁵
		binary.LittleEndian.PutUint16(w.Data[at:], uint16(8<<10+r.IntN(2<<10)))
	}
	for at := 0; at < len(w.Data); at += octets {
		switch kind {
		case weights.Q8_0, weights.Q4_0:
			half(at)
		case weights.Q4_1, weights.Q4_K, weights.Q5_K:
			half(at)
			half(at + 2)
		case weights.Q6_K:
			half(at + 208)
		case weights.F16:
			half(at)
		case weights.BF16, weights.F32:
			v := math.Float32bits(float32(r.NormFloat64()))
			if kind == weights.BF16 {
				binary.LittleEndian.PutUint16(w.Data[at:], uint16(v>>16))
			} else {
				binary.LittleEndian.PutUint32(w.Data[at:], v)
			}
		case weights.FP8Row, weights.FP8Block:
			if w.Data[at]&0x7f == 0x7f { // not a number
				w.Data[at] = 0
			}
		}
	}
	scales := 0
	switch kind {
	case weights.FP8Row:
		scales = rows
	case weights.FP8Block:
		scales = (rows + 127) / 128 * ((cols + 127) / 128)
	case weights.NVFP4:
		w.Global = 0.01
		for range rows * cols / 16 {
			w.Scale = append(w.Scale, byte(r.IntN(0x60)))
		}
	}
	for range scales {
		w.Scale = binary.LittleEndian.AppendUint32(w.Scale, math.Float32bits(r.Float32()+0.1))
	}
	return w
}

var allTypes = []weights.Type{weights.F32, weights.F16, weights.BF16, weights.Q8_0, weights.Q4_0, weights.Q4_1,
	weights.Q4_K, weights.Q5_K, weights.Q6_K, weights.FP8Row, weights.FP8Block, weights.NVFP4}

// TestLinear compares every type, exact and integer, portable and vector,
// with Row in float64, and a batch with its rows alone, bit by bit.
func TestLinear(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const in, rows = 512, 18
	for _, kind := range allTypes {
		w, other := quantisedWeight(r, kind, 37, in), quantisedWeight(r, weights.Q8_0, 3, in)
		bias := random(r, 40)
		for _, o := range []Options{{Exact: true}, {}, {Generic: true}, {Exact: true, Generic: true}} {
			o.Workers = 2
			b := New(o)
			m, err := b.Matrix(w, other)
			if err != nil {
				t.Fatal(err)
			}
			x, y := b.Buffer(rows, in).(*buffer), b.Buffer(rows, 40).(*buffer)
			copy(x.data, random(rand.New(rand.NewPCG(7, 8)), rows*in))
			b.Begin(&ops.Batch{Tokens: make([]int32, rows)})
			b.Linear(ops.All(y), ops.All(x), m, vector(bias))
			row := make([]float32, in)
			for out := range 40 {
				if out < 37 {
					w.Row(row, out)
				} else {
					other.Row(row, out-37)
				}
				for i := range rows {
					want, size := float64(bias[out]), 0.0
					for j, v := range row {
						p := float64(v) * float64(x.data[i*in+j])
						want, size = want+p, size+math.Abs(p)
					}
					eps := 1e-6
					if !o.Exact {
						eps = 4e-5
					}
					near(t, kind.String()+" on "+b.Name(), y.data[i*40+out], want, size, eps)
				}
			}
			alone := b.Buffer(1, 40).(*buffer)
			for i := range rows {
				one := &buffer{data: x.data[i*in : (i+1)*in], cols: in}
				b.LinearRows(ops.All(alone), ops.All(one), m, 1)
				for out, v := range alone.data {
					if v += bias[out]; v != y.data[i*40+out] {
						t.Fatalf("%s on %s: row %d alone gives %v and in a batch %v", kind, b.Name(), i, v, y.data[i*40+out])
					}
				}
			}
			b.Close()
		}
	}
}

func TestPackedRows(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	b := New(Options{Workers: 1})
	for _, kind := range allTypes {
		w := quantisedWeight(r, kind, 5, 512)
		m, err := b.Matrix(w)
		if err != nil {
			t.Fatal(err)
		}
		got, want := make([]float32, 512), make([]float32, 512)
		for i := range 5 {
			m.(*matrix).row(got, i)
			w.Row(want, i)
			for j := range want {
				near(t, kind.String(), got[j], float64(want[j]), 1, 1e-6*(1+math.Abs(float64(want[j]))))
			}
		}
	}
}

func TestSoftmaxAndSiLU(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for name, k := range sets() {
		x := random(r, 48)
		top := float32(math.Inf(-1))
		for i := range x {
			x[i] *= 20
			if i >= 40 {
				x[i] = float32(math.Inf(-1))
			}
			top = max(top, x[i])
		}
		if got := k.top(&x[0], 48); got != top {
			t.Errorf("%s: the largest value is %v, not %v", name, got, top)
		}
		want, sum := make([]float64, 48), 0.0
		for i, v := range x {
			want[i] = math.Exp(float64(v) - float64(top))
			sum += want[i]
		}
		near(t, name+" sum", k.softmax(&x[0], 48, top), sum, sum, 1e-6)
		for i, v := range x {
			near(t, name+" exp", v, want[i], 1, 2e-7)
		}
		if x[47] != 0 {
			t.Errorf("%s: a masked position has weight %v", name, x[47])
		}
		g, y, dst := random(r, 21), random(r, 21), make([]float32, 21)
		g[0], g[1] = 100, -100
		k.silu(&dst[0], &g[0], &y[0], 21)
		for i := range dst {
			want := float64(g[i]) / (1 + math.Exp(-float64(g[i]))) * float64(y[i])
			near(t, name+" silu", dst[i], want, 1+math.Abs(want), 3e-7)
		}
	}
}

func TestPages(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for name, k := range sets() {
		for _, dim := range []int{2, 16, 48, 64, 128} {
			q, page, out := random(r, dim), random(r, 16*dim), make([]float32, 16)
			k.scores(&q[0], &page[0], dim, 0.5, &out[0])
			for p := range 16 {
				want := 0.0
				for d := range dim {
					want += 0.5 * float64(q[d]) * float64(page[d*16+p])
				}
				near(t, name+" scores", out[p], want, float64(dim), 1e-6)
			}
			acc := random(r, dim)
			before := append([]float32(nil), acc...)
			k.values(&out[0], &page[0], dim, 5, &acc[0])
			for d := range dim {
				want := float64(before[d])
				for p := range 5 {
					want += float64(out[p]) * float64(page[p*dim+d])
				}
				near(t, name+" values", acc[d], want, float64(dim), 1e-6)
			}
		}
	}
}

func TestDeltaKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for name, k := range sets() {
		const rows, cols = 6, 24
		s, key, q, d := random(r, rows*cols), random(r, rows), random(r, rows), random(r, cols)
		before := append([]float32(nil), s...)
		acc, out := make([]float32, cols), make([]float32, cols)
		k.decay(&s[0], &key[0], 0.75, rows, cols, &acc[0])
		k.learn(&s[0], &key[0], &d[0], &q[0], rows, cols, &out[0])
		for c := range cols {
			read, after := 0.0, 0.0
			for i := range rows {
				v := 0.75 * float64(before[i*cols+c])
				read += float64(key[i]) * v
				v += float64(key[i]) * float64(d[c])
				near(t, name+" state", s[i*cols+c], v, 10, 1e-6)
				after += float64(q[i]) * v
			}
			near(t, name+" read", acc[c], read, 10, 1e-6)
			near(t, name+" out", out[c], after, 10, 1e-6)
		}
	}
}
