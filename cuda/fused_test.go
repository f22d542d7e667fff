//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/weights"
)

// ways calls f with each way to divide a product of n rows with m of such a kind.
func (t *rowsTest) ways(m *Matrix, kind, n int, f func(c choice)) {
	t.Helper()
	found := 0
	c := plan(m, n)
	for c.shape = range shapes {
		for t.k.ways.teams = range 4 {
			if t.k.takes(m, kind, n, c) {
				found++
				f(c)
			}
		}
	}
	t.k.ways.teams = 0
	if found == 0 {
		t.Errorf("no way to divide %d × %d in %v for %d rows", m.out, m.in, m.format, n)
	}
}

// spread gives groups of 16 rows of m factors that are up to so many powers of two apart.
func (t *rowsTest) spread(m *Matrix, powers int) {
	factors := make([]float32, m.out)
	for i := range factors {
		if i%16 == 0 {
			factors[i] = float32(math.Ldexp(1+t.r.Float64(), -t.r.IntN(powers+1)))
		} else {
			factors[i] = factors[i-1]
		}
	}
	t.check(Upload(m.factors, factors))
}

// TestFusedMLP holds SiLU within the product before it against a launch of its own.
func TestFusedMLP(t *testing.T) {
	rt := newRowsTest(t)
	scratch := take(t, rt.p, 4<<20)
	mark := rt.p.used
	for _, set := range fusedSets {
		format, n := set.format, set.rows
		for _, size := range []struct{ hidden, inner, out, powers int }{{128, 96, 48, 0}, {256, 2064, 33, 40}, {1040, 512, 128, 80}, {128, 17408, 64, 30}} {
			t.Run(fmt.Sprint(format, n, size), func(t *testing.T) {
				rt.T, rt.p.used = t, mark
				gate, _ := randomPart(rt.r, format, size.inner, size.hidden)
				up, _ := randomPart(rt.r, format, size.inner, size.hidden)
				m, err := rt.k.Matrix(rt.p, scratch, format, size.hidden, gate, up)
				rt.check(err)
				rt.spread(m, size.powers)
				part, _ := randomPart(rt.r, format, size.out, size.inner)
				down, err := rt.k.Matrix(rt.p, scratch, format, size.inner, part)
				rt.check(err)
				_, xs := rt.values(n * size.hidden)
				_, norm := rt.values(size.hidden)
				bias, biases := rt.values(2 * size.inner)
				_, downBias := rt.values(size.out)
				for i := range bias {
					bias[i] *= 1e-9
				}
				rt.check(Upload(biases, bias))
				_, start := rt.values(n * size.out)
				from := View{xs, size.hidden, 0, 1, size.hidden, size.hidden}
				both := View{take(t, rt.p, int64(8*n*size.inner)), 2 * size.inner, 0, 1, size.inner, size.inner}
				second := both
				second.Offset = size.inner
				first, err := rt.k.Operand(rt.p, size.hidden, n)
				rt.check(err)
				o, err := rt.k.Operand(rt.p, size.inner, n)
				rt.check(err)
				y := newOutput(t, rt.p, n*size.out)
				again := make([]float32, n*size.out)
				rt.check(Download(start, again))
				for _, b := range []Memory{{}, biases} {
					y.poison(t)
					rt.check(Upload(y.all, again))
					rt.check(rt.k.SplitNorm(first, from, norm, 1e-6, n))
					rt.check(rt.k.Linear(&Product{Y: both.Memory, Pitch: 2 * size.inner, X: first, M: m, Bias: b}))
					rt.check(rt.k.SplitSiLU(o, both, second, n))
					rt.check(rt.k.Linear(&Product{Y: y.all, Pitch: size.out, X: o, M: down, Bias: downBias, Add: true}))
					want := y.read(t, n*size.out)
					halves, power := make([]uint16, n*o.width), make([]float32, n)
					rt.check(Download(o.values, halves))
					rt.check(Download(o.scales, power))
					zeros := 0
					for _, h := range halves[:size.inner] {
						if h&0x7fff == 0 {
							zeros++
						}
					}
					t.Logf("%d of %d values of a row vanish at 2^%g", zeros, size.inner, math.Log2(float64(power[0])))
					a := activations{source: normSource, x: from, norm: norm, eps: 1e-6}
					check := func(what string, c choice, teams int) {
						rt.k.ways.teams = teams
						y.poison(t)
						rt.check(Upload(y.all, again))
						rt.check(rt.k.brought(&Product{Y: y.all, Pitch: size.out, X: o, M: down, Bias: downBias, Add: true}, c))
						if got := y.read(t, n*size.out); !slices.Equal(got, want) {
							t.Fatalf("%s: the product behind is not the same: %v instead of %v", what, got[:min(8, len(got))], want[:min(8, len(want))])
						}
					}
					one, ok := choice{}, false
					for ; !ok && rt.k.ways.teams < 4; rt.k.ways.teams++ { // two rows take half of a block each
						one, ok = rt.k.fusable(down, broughtProduct, n)
					}
					if !ok {
						t.Fatal("the product behind is not possible")
					}
					possible := rt.k.ways.teams - 1
					rt.ways(m, swigluProduct, n, func(c choice) {
						rt.check(o.values.Fill(0xff))
						rt.check(rt.k.powers.Fill(0xff))
						rt.check(rt.k.swiGLU(o, &a, m, b, n, c))
						check(fmt.Sprintf("gates in %+v", c), one, possible)
					})
					rt.ways(down, broughtProduct, n, func(c choice) { check(fmt.Sprintf("brought in %+v", c), c, rt.k.ways.teams) })
				}
			})
		}
	}
}

// TestFusedConvolution holds a convolution within the product before it, and a product with a
// matrix of few rows beside it, against launches of their own.
func TestFusedConvolution(t *testing.T) {
	rt := newRowsTest(t)
	scratch := take(t, rt.p, 4<<20)
	mark := rt.p.used
	for _, set := range fusedSets {
		format, n := set.format, set.rows
		for i, size := range []struct{ hidden, cols, rest, few, taps int }{{1024, 1200, 80, 20, 4}, {1168, 304, 0, 3, 2}, {128, 96, 64, 0, 4}, {5120, 512, 128, 40, 1}} {
			t.Run(fmt.Sprint(format, n, size), func(t *testing.T) {
				rt.T, rt.p.used = t, mark
				out := size.cols + size.rest
				part, _ := randomPart(rt.r, format, out, size.hidden)
				m, err := rt.k.Matrix(rt.p, scratch, format, size.hidden, part)
				rt.check(err)
				s := &States{Layers: 2, Cols: size.cols, Taps: size.taps, KeyHeads: 1, ValueHeads: 1, KeyDim: 64, ValueDim: 32}
				start, states := rt.values((n + 2) * int(s.SlotBytes()/4))
				s.Slots = states
				_, w := rt.values(size.cols * size.taps)
				rows, slots := make([]int32, n), make([]int32, n)
				for i := range rows {
					rows[i], slots[i] = 1, int32(n+1-i)
				}
				g, _ := rt.segments(rows, slots)
				_, xs := rt.values(n * size.hidden)
				_, norm := rt.values(size.hidden)
				_, bias := rt.values(out)
				from := View{xs, size.hidden, 0, 1, size.hidden, size.hidden}
				o, err := rt.k.Operand(rt.p, size.hidden, n)
				rt.check(err)
				y, z := newOutput(t, rt.p, n*out), newOutput(t, rt.p, max(1, n*size.few))
				var few *fewProduct
				if size.few > 0 {
					part, _ := randomPart(rt.r, BF16, size.few, size.hidden)
					small, err := rt.k.Matrix(rt.p, scratch, BF16, size.hidden, part)
					rt.check(err)
					few = &fewProduct{y: View{z.all, size.few, 0, 1, size.few, size.few}, x: from, m: small, norm: norm, eps: 1e-6, n: n}
					if i == 0 {
						_, few.bias = rt.values(size.few)
					}
				}
				result := func(run func() error) (got []float32) {
					y.poison(t)
					z.poison(t)
					rt.check(Upload(states, start))
					rt.check(run())
					got = append(y.read(t, n*out), z.read(t, n*size.few)...)
					state := make([]float32, len(start))
					rt.check(Download(states, state))
					return append(got, state...)
				}
				p := Product{Y: y.all, Pitch: out, X: o, M: m, Bias: bias}
				want := result(func() error {
					if err := rt.k.SplitNorm(o, from, norm, 1e-6, n); err != nil {
						return err
					}
					if err := rt.k.Linear(&p); err != nil {
						return err
					}
					return rt.k.Convolve(View{y.all, out, 0, 1, size.cols, size.cols}, w, s, g, 1, few)
				})
				a := activations{source: normSource, x: from, norm: norm, eps: 1e-6}
				rt.ways(m, convolvedProduct, n, func(c choice) {
					if size.few > rt.k.blocksOf(m, c) {
						return
					}
					got := result(func() error { return rt.k.convolved(&p, &a, w, s, g, 1, few, n, c) })
					for i := range want {
						if got[i] != want[i] {
							t.Fatalf("%+v: value %d (%d outputs, %d of the small matrix, states) is %g instead of %g", c, i, n*out, n*size.few, got[i], want[i])
						}
					}
				})
			})
		}
	}
}

// TestFusedAttention holds norms, rotations and the store in one launch, and the gate within the
// sum over partitions, against launches of their own.
func TestFusedAttention(t *testing.T) {
	rt := newRowsTest(t)
	mark := rt.p.used
	for kv := ops.KVF32; kv <= ops.KVQ8; kv++ {
		for _, s := range []struct{ heads, group, dim, pairs, window int }{{2, 3, 256, 32, 0}, {1, 2, 64, 32, 20}, {2, 1, 96, 8, 0}, {1, 9, 128, 64, 0}} {
			t.Run(fmt.Sprint(kv, s), func(t *testing.T) {
				rt.T, rt.p.used = t, mark
				const layers, layer, longest, rows, past = 2, 1, 128, 5, 65
				c := &Cache{Layers: layers, Heads: s.heads, Dim: s.dim, Type: kv}
				pages := longest / PageTokens
				c.Pages = take(t, rt.p, int64(2*pages)*c.PageBytes())
				var table []int32
				for _, page := range rt.r.Perm(2 * pages) {
					table = append(table, int32(page))
				}
				// Two sequences with so many positions behind them, of 3 and of 2 rows.
				r := &Rows{N: rows, Positions: upload(rt, []int32{past, past + 1, past + 2, past, past + 1}), Segments: upload(rt, []int32{0, 0, 0, 1, 1}),
					Table: upload(rt, table), TablePitch: pages, Longest: longest - 1}
				queries := s.heads * s.group
				width := (2*queries + 2*s.heads) * s.dim // of q, gates, k, v
				part := func(m Memory, at, heads, stride int) View {
					return View{m, width, at * s.dim, heads, s.dim, stride * s.dim}
				}
				old, olds := rt.values(2 * past * width)
				_ = old
				positions, segments := make([]int32, 2*past), make([]int32, 2*past)
				for i := range positions {
					positions[i], segments[i] = int32(i%past), int32(i/past)
				}
				before := &Rows{N: 2 * past, Positions: upload(rt, positions), Segments: upload(rt, segments), Table: r.Table, TablePitch: pages, Longest: longest - 1}
				scratch := take(t, rt.p, AttendScratch(before, queries, s.dim))
				x, xs := rt.values(rows * width)
				_, qNorm := rt.values(s.dim)
				_, kNorm := rt.values(s.dim)
				inverse := make([]float32, s.pairs)
				for i := range inverse {
					inverse[i] = float32(math.Pow(1e6, -float64(i)/float64(s.pairs)))
				}
				turns := &Turns{take(t, rt.p, int64(rows*s.pairs*4)), take(t, rt.p, int64(rows*s.pairs*4)), s.pairs}
				rt.check(rt.k.Turn(turns, r.Positions, upload(rt, inverse), 1, rows))
				out := newOutput(t, rt.p, rows*queries*s.dim)
				to := View{out.all, queries * s.dim, 0, queries, s.dim, s.dim}
				parts := func(m Memory) (q, gate, k, v View) {
					return part(m, 0, queries, 2), part(m, 1, queries, 2), part(m, 2*queries, s.heads, 1), part(m, 2*queries+s.heads, s.heads, 1)
				}
				run := func(attend func(q, gate, k, v View) error) (values []float32, held []byte) {
					rt.check(c.Pages.Fill(0))
					q, _, k, v := parts(olds)
					rt.check(rt.k.Attend(View{take(t, rt.p, int64(2*past*queries*s.dim*4)), queries * s.dim, 0, queries, s.dim, s.dim}, q, k, v, c, before, layer, 0, 1, scratch))
					rt.check(Upload(xs, x))
					out.poison(t)
					q, gate, k, v := parts(xs)
					rt.check(attend(q, gate, k, v))
					held = make([]byte, c.Pages.Bytes())
					rt.check(Download(c.Pages, held))
					return out.read(t, out.n), held
				}
				scale := 1 / float32(math.Sqrt(float64(s.dim)))
				want, stored := run(func(q, gate, k, v View) error {
					if err := rt.k.NormRope(q, k, qNorm, kNorm, 1e-6, turns, rows); err != nil {
						return err
					}
					if err := rt.k.Attend(to, q, k, v, c, r, layer, s.window, scale, scratch); err != nil {
						return err
					}
					return rt.k.Sigmoid(to, gate, rows)
				})
				got, held := run(func(q, gate, k, v View) error {
					return rt.k.attend(to, q, k, v, c, r, layer, s.window, scale, scratch,
						attendWithin{turn: &headTurn{qNorm, kNorm, 1e-6, turns}, gate: gate})
				})
				if !slices.Equal(held, stored) {
					t.Error("keys and values are stored in other bits")
				}
				for i := range want {
					if got[i] != want[i] || math.IsNaN(float64(want[i])) {
						t.Fatalf("value %d is %g instead of %g", i, got[i], want[i])
					}
				}
			})
		}
	}
}

// TestFusedLaunches: a step of one row of a hybrid model has five launches a recurrent layer and seven
// one with attention, but for the last layer, whose SiLU nothing is known to follow.
func TestFusedLaunches(t *testing.T) {
	b := newBackend(t, BackendOptions{KV: ops.KVBF16, Eager: true})
	c := &weights.Config{Architecture: weights.Qwen35, Layers: 3, Hidden: 1024, Heads: 4, KVHeads: 2, HeadDim: 64, Intermediate: 96, Vocab: 300,
		MaxPosition: 4096, RopeTheta: 1e6, PartialRotary: 1, RMSEps: 1e-6, QKNorm: true, NormOnePlus: true, AttentionGate: true, LinearKeyHeads: 2,
		LinearValueHeads: 16, LinearKeyDim: 64, LinearValueDim: 64, ConvKernel: 4,
		LayerTypes: []string{weights.LinearAttention, weights.FullAttention, weights.LinearAttention}}
	m, err := model.New(c, made{c}, b, model.Options{Tokens: 900, Sequences: 8, Outputs: 128})
	if err != nil {
		t.Fatal(err)
	}
	var logits [][]float32
	for _, words := range []string{"apart", ""} {
		launchAs(t, b.k, words)
		s := sequence(t, m)
		feed(t, m, s, []int32{1, 2, 3, 4, 5})
		b.device.tape = &tape{}
		got := feed(t, m, s, []int32{7})
		var names []string
		for _, l := range b.device.tape.launches {
			names = append(names, l.kernel.name)
		}
		b.device.tape = nil
		s.Free()
		if words == "apart" {
			logits = got
			continue
		}
		sameBits(t, "fused", got, logits)
		list := strings.Join(names, " ")
		delta := `\S+_convolved`
		mlp := ` \S+_swiglu \S+_brought`
		want := `^embed_\S+ (` + delta + `) delta_64 \S+_own_gated` + mlp + ` \S+_own_norm turns turn_and_store_bf16 attend_bf16_64 combine \S+_own` + mlp + ` (` + delta + `) delta_64 `
		if !regexp.MustCompile(want).MatchString(list) {
			t.Errorf("the launches are %s", list)
		}
	}
}
