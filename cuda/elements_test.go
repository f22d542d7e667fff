//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// near holds values against float64, with an error relative to the largest.
func near(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	largest := 0.0
	for _, w := range want {
		largest = max(largest, math.Abs(w))
	}
	for i, w := range want {
		if !(math.Abs(float64(got[i])-w) <= tolerance*largest) {
			t.Fatalf("%s: value %d is %g, not %g (the largest is %g)", what, i, got[i], w, largest)
		}
	}
}

// rowsTest is a test with kernels, memory on the device and random numbers.
type rowsTest struct {
	*testing.T
	k *Kernels
	p *Pool
	r *rand.Rand
}

func newRowsTest(t *testing.T) *rowsTest {
	d := open(t, Options{Wait: true})
	seed := rand.Uint64()
	t.Log("seed", seed)
	return &rowsTest{t, loadKernels(t, d), pool(t, d, 512<<20), rand.New(rand.NewPCG(seed, 0))}
}

// values are n random numbers, here and on the device.
func (t *rowsTest) values(n int) ([]float32, Memory) {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(t.r.NormFloat64() * 2)
	}
	return v, upload(t, v)
}

func upload[T any](t *rowsTest, v []T) Memory {
	t.Helper()
	m := take(t, t.p, int64(len(v)*4))
	if err := Upload(m, v); err != nil {
		t.Fatal(err)
	}
	return m
}

// check ends the test on an error.
func (t *rowsTest) check(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNorm(t *testing.T) {
	rt := newRowsTest(t)
	for _, s := range []struct{ rows, heads, dim, gap int }{{1, 1, 5120, 0}, {5, 3, 128, 7}, {16, 2, 256, 0}, {3, 1, 33, 1}, {2, 1, 1, 0}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			stride := s.dim + s.gap
			pitch := s.heads*stride + 5
			x, xs := rt.values(s.rows * pitch)
			w, ws := rt.values(s.dim)
			out := newOutput(t, rt.p, s.rows*s.heads*s.dim)
			out.poison(t)
			from := View{xs, pitch, 2, s.heads, s.dim, stride}
			to := View{out.all, s.heads * s.dim, 0, s.heads, s.dim, s.dim}
			rt.check(rt.k.Norm(to, from, ws, 1e-6, s.rows))
			got := out.read(t, out.n)
			var want []float64
			for r := range s.rows {
				for h := range s.heads {
					v := x[r*pitch+2+h*stride:][:s.dim]
					sum := 0.0
					for _, a := range v {
						sum += float64(a) * float64(a)
					}
					for i, a := range v {
						want = append(want, float64(a)/math.Sqrt(sum/float64(s.dim)+1e-6)*float64(w[i]))
					}
				}
			}
			near(t, "norm", got, want, 1e-6)
			// The last row alone, onto itself: the same bits.
			last := View{xs, pitch, (s.rows-1)*pitch + 2, s.heads, s.dim, stride}
			rt.check(rt.k.Norm(last, last, ws, 1e-6, 1))
			alone := make([]float32, s.rows*pitch)
			rt.check(Download(xs, alone))
			for h := range s.heads {
				for i := range s.dim {
					if a, b := alone[last.Offset+h*stride+i], got[((s.rows-1)*s.heads+h)*s.dim+i]; a != b {
						t.Fatalf("value %d of head %d is %g alone and %g among %d rows", i, h, a, b, s.rows)
					}
				}
			}
		})
	}
}

func TestElements(t *testing.T) {
	rt := newRowsTest(t)
	const rows, heads, dim, pitch = 3, 2, 1500, 2*1600 + 9
	gate, gates := rt.values(rows * pitch)
	x, xs := rt.values(rows * pitch)
	view := func(m Memory) View { return View{m, pitch, 4, heads, dim, 1600} }
	sigmoid := func(v float32) float64 { return 1 / (1 + math.Exp(-float64(v))) }
	for _, c := range []struct {
		name string
		run  func(to View) error
		want func(a, b float32) float64
	}{
		{"silu", func(to View) error { return rt.k.SiLU(to, view(gates), view(xs), rows) },
			func(a, b float32) float64 { return float64(a) * sigmoid(a) * float64(b) }},
		{"sigmoid", func(to View) error {
			if err := rt.k.SiLU(to, view(gates), view(xs), rows); err != nil {
				return err
			}
			return rt.k.Sigmoid(to, view(gates), rows)
		}, func(a, b float32) float64 { return float64(a) * sigmoid(a) * float64(b) * sigmoid(a) }},
		{"add", func(to View) error {
			if err := rt.k.SiLU(to, view(gates), view(xs), rows); err != nil {
				return err
			}
			return rt.k.Add(to, view(xs), rows)
		}, func(a, b float32) float64 { return float64(a)*sigmoid(a)*float64(b) + float64(b) }},
		{"gather", func(to View) error { return rt.k.Gather(to, view(xs), upload(rt, []int32{0, 1, 2}), rows) },
			func(a, b float32) float64 { return float64(b) }},
	} {
		out := newOutput(t, rt.p, rows*heads*dim)
		out.poison(t)
		rt.check(c.run(View{out.all, heads * dim, 0, heads, dim, dim}))
		var want []float64
		for r := range rows {
			for h := range heads {
				for i := range dim {
					at := r*pitch + 4 + h*1600 + i
					want = append(want, c.want(gate[at], x[at]))
				}
			}
		}
		near(t, c.name, out.read(t, out.n), want, 1e-6)
	}
	// Rows in another order.
	out := newOutput(t, rt.p, 2*dim)
	out.poison(t)
	rt.check(rt.k.Gather(View{out.all, dim, 0, 1, dim, dim}, View{xs, pitch, 0, 1, dim, dim}, upload(rt, []int32{2, 0}), 2))
	for i, v := range out.read(t, out.n) {
		if want := x[(2-i/dim*2)*pitch+i%dim]; v != want {
			t.Fatalf("gathered value %d is %g, not %g", i, v, want)
		}
	}
}

func TestRope(t *testing.T) {
	rt := newRowsTest(t)
	const rows, heads, dim, pairs, scale = 4, 3, 256, 32, 1.25
	positions := []int32{0, 1, 4095, 250000}
	inverse := make([]float32, pairs)
	for i := range inverse {
		inverse[i] = float32(math.Pow(1e7, -float64(i)/pairs))
	}
	x, xs := rt.values(rows * heads * dim)
	turns := &Turns{take(t, rt.p, rows*pairs*4), take(t, rt.p, rows*pairs*4), pairs}
	rt.check(rt.k.Turn(turns, upload(rt, positions), upload(rt, inverse), scale, rows))
	rt.check(rt.k.Rope(View{xs, heads * dim, 0, heads, dim, dim}, turns, rows))
	got := make([]float32, len(x))
	rt.check(Download(xs, got))
	want := make([]float64, len(x))
	for i, v := range x {
		want[i] = float64(v)
	}
	for r := range rows {
		for h := range heads {
			for i := range pairs {
				sin, cos := math.Sincos(float64(float32(positions[r]) * inverse[i]))
				at := (r*heads+h)*dim + i
				a, b := float64(x[at]), float64(x[at+pairs])
				want[at], want[at+pairs] = scale*(a*cos-b*sin), scale*(b*cos+a*sin)
			}
		}
	}
	near(t, "rope", got, want, 3e-7)
}

// TestNormRope holds the norm and rotation of heads in one launch against two.
func TestNormRope(t *testing.T) {
	rt := newRowsTest(t)
	for _, dim := range []int{64, 96, 128, 256} {
		const rows, queries, keys, pairs = 3, 4, 2, 32
		inverse := make([]float32, pairs)
		for i := range inverse {
			inverse[i] = float32(math.Pow(1e7, -float64(i)/pairs))
		}
		pitch := (2*queries+keys)*dim + 4
		x, xs := rt.values(rows * pitch)
		_, qs := rt.values(dim)
		_, ks := rt.values(dim)
		turns := &Turns{take(t, rt.p, rows*pairs*4), take(t, rt.p, rows*pairs*4), pairs}
		rt.check(rt.k.Turn(turns, upload(rt, []int32{1, 70, 9000}), upload(rt, inverse), 1, rows))
		run := func(f func(q, k View)) []float32 {
			rt.check(Upload(xs, x))
			f(View{xs, pitch, 0, queries, dim, 2 * dim}, View{xs, pitch, 2 * queries * dim, keys, dim, dim})
			got := make([]float32, len(x))
			rt.check(Download(xs, got))
			return got
		}
		once := run(func(q, k View) { rt.check(rt.k.NormRope(q, k, qs, ks, 1e-6, turns, rows)) })
		var want []float64
		for _, v := range run(func(q, k View) {
			rt.check(rt.k.Norm(q, q, qs, 1e-6, rows))
			rt.check(rt.k.Norm(k, k, ks, 1e-6, rows))
			rt.check(rt.k.Rope(q, turns, rows))
			rt.check(rt.k.Rope(k, turns, rows))
		}) {
			want = append(want, float64(v))
		}
		near(t, fmt.Sprintf("heads of %d", dim), once, want, 2e-7)
		if once[queries*2*dim-1] != x[queries*2*dim-1] {
			t.Error("what lies between the heads was changed")
		}
	}
}

func TestEmbed(t *testing.T) {
	rt := newRowsTest(t)
	scratch := take(t, rt.p, 1<<20)
	for f := range formats {
		for _, cols := range []int{5120, 176} {
			const vocabulary = 333
			part, values := randomPart(rt.r, Format(f), vocabulary, cols)
			m, err := rt.k.Matrix(rt.p, scratch, Format(f), cols, part)
			rt.check(err)
			tokens := []int32{0, vocabulary - 1, 17, 17, 200, 15, 16}
			out := newOutput(t, rt.p, len(tokens)*cols)
			out.poison(t)
			rt.check(rt.k.Embed(View{out.all, cols, 0, 1, cols, cols}, m, upload(rt, tokens), len(tokens), false))
			var want []float64
			for _, token := range tokens {
				want = append(want, values[token]...)
			}
			near(t, fmt.Sprintf("embedding in %v", Format(f)), out.read(t, out.n), want, 1e-7)
		}
	}
}
