//go:build linux && cuda && cgo

package emulator

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"velo/cuda"
)

// operation is an instruction that each lane runs on its own values, and what it should give.
type operation struct {
	text string // d, a, b, c are its registers, %d, %a …
	d    string // types of the registers
	from []string
	want func(v []uint64) uint64
}

func bytesOf(kind string) int {
	n := 0
	fmt.Sscan(kind[1:], &n)
	return n / 8
}

// ptx is a kernel that runs the operation on v[0][i], v[1][i] … for thread i.
func (o *operation) ptx() string {
	var s strings.Builder
	s.WriteString(".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry one(.param .u64 to")
	for i := range o.from {
		fmt.Fprintf(&s, ", .param .u64 from%d", i)
	}
	fmt.Fprintf(&s, ")\n{\n.reg .u64 %%p, %%o;\n.reg .u32 %%t, %%block, %%n;\n.reg .%s %%d;\n", o.d)
	s.WriteString("mov.u32 %t, %tid.x;\nmov.u32 %block, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmad.lo.u32 %t, %block, %n, %t;\n")
	for i, kind := range o.from {
		r := "%" + string(rune('a'+i))
		if i == 3 {
			r = "%e"
		}
		fmt.Fprintf(&s, ".reg .%s %s;\nld.param.u64 %%p, [from%d];\nmul.wide.u32 %%o, %%t, %d;\nadd.s64 %%p, %%p, %%o;\nld.global.%s %s, [%%p];\n", kind, r, i, bytesOf(kind), kind, r)
	}
	fmt.Fprintf(&s, "%s;\nld.param.u64 %%p, [to];\nmul.wide.u32 %%o, %%t, %d;\nadd.s64 %%p, %%p, %%o;\nst.global.%s [%%p], %%d;\nret;\n}\n", o.text, bytesOf(o.d), o.d)
	return s.String()
}

// check runs the operation on lists of values, all of one length.
func (o *operation) check(t *testing.T, d *device, values [][]uint64) {
	t.Helper()
	n := len(values[0])
	k := d.kernel(o.ptx(), "one")
	pool, err := d.Pool(int64(8*(n+32)*(len(values)+1)) + 4096)
	d.must(err)
	defer func() { d.must(pool.Close()) }()
	take := func() cuda.Memory {
		m, err := pool.Take("values", int64(8*(n+32)))
		d.must(err)
		return m
	}
	to := take()
	args := new(cuda.Args).Pointer(to.Address())
	for i, list := range values {
		var data []byte
		for _, v := range list {
			data = binary.LittleEndian.AppendUint64(data, v)[:len(data)+bytesOf(o.from[i])]
		}
		m := take()
		d.must(m.Fill(0))
		d.must(cuda.Upload(m, data))
		args.Pointer(m.Address())
	}
	d.must(k.Launch(cuda.Grid{X: (n + 31) / 32, Block: 32}, args))
	w := bytesOf(o.d)
	got := make([]byte, w*n)
	d.must(cuda.Download(to, got))
	bad := 0
	for i := range n {
		v := make([]uint64, len(values))
		for j := range values {
			v[j] = values[j][i]
		}
		word := append(append([]byte(nil), got[w*i:w*(i+1)]...), make([]byte, 8-w)...)
		g, want := binary.LittleEndian.Uint64(word), o.want(v)
		if want &= ^uint64(0) >> (64 - 8*w); g != want {
			if bad++; bad < 4 {
				t.Errorf("%s of %#x is %#x, not %#x", o.text, v, g, want)
			}
		}
	}
}

// interesting are the bit patterns of numbers where something happens, and random ones.
func interesting(r *rand.Rand, kind string, n int) []uint64 {
	var list []uint64
	switch kind {
	case "f32":
		for _, v := range []float32{0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.999, 1e-40, -1e-44, 1e30, 3.4e38, 65504, 65520, 6e-8, 2147483648, -2147483904, 4294967296, 1e19} {
			list = append(list, uint64(math.Float32bits(v)))
		}
		list = append(list, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1)
	case "f64":
		for _, v := range []float64{0, 1, -1, 0.5, 1.5, 2.5, 1e300, 1e-310, 1e40, -3.7, 1e19, math.Inf(1), math.NaN()} {
			list = append(list, math.Float64bits(v))
		}
	default:
		for _, v := range []uint64{0, 1, 2, 31, 32, 33, 63, 64, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 63, 1<<63 - 1, ^uint64(0)} {
			list = append(list, v)
		}
	}
	for len(list) < n {
		v := r.Uint64()
		switch {
		case kind == "f32" && r.IntN(2) == 0:
			v = uint64(math.Float32bits(float32(r.NormFloat64() * math.Pow(10, float64(r.IntN(12)-4)))))
		case kind == "f64":
			v = math.Float64bits(r.NormFloat64() * math.Pow(10, float64(r.IntN(30)-10)))
		case r.IntN(3) == 0:
			v &= 0xff
		}
		list = append(list, v)
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	mask := ^uint64(0) >> (64 - 8*bytesOf(kind))
	for i := range list {
		list[i] &= mask
	}
	return list[:n]
}

const canonical = 0x7fffffff

func f32(v uint64) float32 { return math.Float32frombits(uint32(v)) }

func bits32(v float32) uint64 {
	if v != v {
		return canonical
	}
	return uint64(math.Float32bits(v))
}

func f64(v uint64) float64 { return math.Float64frombits(v) }

// directed rounds an exact value, which is finite, to float32 in a direction.
func directed(x *big.Float, mode big.RoundingMode) uint64 {
	v, _ := new(big.Float).SetMode(mode).SetPrec(24).Set(x).Float32()
	return bits32(v)
}

func saturated(v float64, low, high float64) float64 {
	if v != v {
		return 0
	}
	return min(max(v, low), high)
}

func TestOperations(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	d := open(t)
	type values = []uint64
	fused := func(a, b, c float32) float32 { return float32(new(fma32).of(a, b, c)) }
	for _, o := range []operation{
		{"add.u32 %d, %a, %b", "u32", []string{"u32", "u32"}, func(v values) uint64 { return v[0] + v[1] }},
		{"sub.s64 %d, %a, %b", "u64", []string{"u64", "u64"}, func(v values) uint64 { return v[0] - v[1] }},
		{"mul.lo.s32 %d, %a, %b", "u32", []string{"u32", "u32"}, func(v values) uint64 { return v[0] * v[1] }},
		{"mul.hi.u32 %d, %a, %b", "u32", []string{"u32", "u32"}, func(v values) uint64 { return v[0] * v[1] >> 32 }},
		{"mul.wide.s32 %d, %a, %b", "u64", []string{"u32", "u32"}, func(v values) uint64 { return uint64(int64(int32(v[0])) * int64(int32(v[1]))) }},
		{"mad.lo.u32 %d, %a, %b, %c", "u32", []string{"u32", "u32", "u32"}, func(v values) uint64 { return v[0]*v[1] + v[2] }},
		{"mul.hi.u64 %d, %a, %b", "u64", []string{"u64", "u64"}, func(v values) uint64 { h, _ := bits.Mul64(v[0], v[1]); return h }},
		{"div.s32 %d, %a, 7", "u32", []string{"u32"}, func(v values) uint64 { return uint64(int32(v[0]) / 7) }},
		{"rem.u32 %d, %a, 1000", "u32", []string{"u32"}, func(v values) uint64 { return v[0] % 1000 }},
		{"shl.b32 %d, %a, %b", "u32", []string{"u32", "u32"}, func(v values) uint64 { return uint64(uint32(v[0]) << v[1]) }},
		{"shr.u32 %d, %a, %b", "u32", []string{"u32", "u32"}, func(v values) uint64 { return uint64(uint32(v[0]) >> v[1]) }},
		{"shr.s32 %d, %a, %b", "u32", []string{"u32", "u32"}, func(v values) uint64 { return uint64(int32(v[0]) >> v[1]) }},
		{"shr.u64 %d, %a, %b", "u64", []string{"u64", "u32"}, func(v values) uint64 { return v[0] >> v[1] }},
		{"clz.b32 %d, %a", "u32", []string{"u32"}, func(v values) uint64 { return uint64(bits.LeadingZeros32(uint32(v[0]))) }},
		{"popc.b64 %d, %a", "u32", []string{"u64"}, func(v values) uint64 { return uint64(bits.OnesCount64(v[0])) }},
		{"brev.b32 %d, %a", "u32", []string{"u32"}, func(v values) uint64 { return uint64(bits.Reverse32(uint32(v[0]))) }},
		{"prmt.b32 %d, %a, %b, %c", "u32", []string{"u32", "u32", "u32"}, permuted},
		{"bfi.b32 %d, %a, %b, 5, 9", "u32", []string{"u32", "u32"}, func(v values) uint64 { return v[1]&^(511<<5) | v[0]&511<<5 }},
		{"bfe.u32 %d, %a, 3, 8", "u32", []string{"u32"}, func(v values) uint64 { return v[0] >> 3 & 255 }},
		{"bfe.s32 %d, %a, 3, 8", "u32", []string{"u32"}, func(v values) uint64 { return uint64(int8(v[0] >> 3)) }},
		{"{.reg .u32 %x, %y, %u, %v; .reg .u64 %q; mov.b64 {%x, %y}, %a; mov.b64 {%u, %v}, %b; add.cc.u32 %x, %x, %u; addc.u32 %y, %y, %v; mov.b64 %d, {%x, %y};}", "u64", []string{"u64", "u64"},
			func(v values) uint64 { return v[0] + v[1] }},
		{"{.reg .u32 %x, %y, %u, %v; mov.b64 {%x, %y}, %a; mov.b64 {%u, %v}, %b; sub.cc.u32 %x, %x, %u; subc.u32 %y, %y, %v; mov.b64 %d, {%x, %y};}", "u64", []string{"u64", "u64"},
			func(v values) uint64 { return v[0] - v[1] }},
		{"{.reg .pred %q, %r; setp.lt.s32 %q|%r, %a, %b; selp.u32 %d, 1, 2, %q; @%r add.u32 %d, %d, 4;}", "u32", []string{"u32", "u32"}, func(v values) uint64 {
			if int32(v[0]) < int32(v[1]) {
				return 1
			}
			return 6
		}},
		{"{.reg .pred %q; setp.leu.f32 %q, %a, %b; selp.u32 %d, 1, 0, %q;}", "u32", []string{"f32", "f32"}, func(v values) uint64 {
			if f32(v[0]) > f32(v[1]) {
				return 0
			}
			return 1
		}},
		{"add.f32 %d, %a, %b", "f32", []string{"f32", "f32"}, func(v values) uint64 { return bits32(f32(v[0]) + f32(v[1])) }},
		{"mul.rn.f32 %d, %a, %b", "f32", []string{"f32", "f32"}, func(v values) uint64 { return bits32(f32(v[0]) * f32(v[1])) }},
		{"div.rn.f32 %d, %a, %b", "f32", []string{"f32", "f32"}, func(v values) uint64 { return bits32(f32(v[0]) / f32(v[1])) }},
		{"fma.rn.f32 %d, %a, %b, %c", "f32", []string{"f32", "f32", "f32"}, func(v values) uint64 { return bits32(fused(f32(v[0]), f32(v[1]), f32(v[2]))) }},
		{"fma.rn.f64 %d, %a, %b, %c", "f64", []string{"f64", "f64", "f64"}, func(v values) uint64 {
			x := math.FMA(f64(v[0]), f64(v[1]), f64(v[2]))
			if x != x { // payloads are nobody's business
				return 0x7ff8000000000000
			}
			return math.Float64bits(x)
		}},
		{"sqrt.rn.f32 %d, %a", "f32", []string{"f32"}, func(v values) uint64 { return bits32(float32(math.Sqrt(float64(f32(v[0]))))) }},
		{"rsqrt.approx.f32 %d, %a", "f32", []string{"f32"}, func(v values) uint64 { return bits32(float32(1 / math.Sqrt(float64(f32(v[0]))))) }},
		{"ex2.approx.f32 %d, %a", "f32", []string{"f32"}, func(v values) uint64 { return bits32(float32(math.Exp2(float64(f32(v[0]))))) }},
		{"min.f32 %d, %a, %b", "f32", []string{"f32", "f32"}, func(v values) uint64 { return smaller(f32(v[0]), f32(v[1]), false) }},
		{"max.f32 %d, %a, %b", "f32", []string{"f32", "f32"}, func(v values) uint64 { return smaller(f32(v[0]), f32(v[1]), true) }},
		{"cvt.rzi.s32.f32 %d, %a", "u32", []string{"f32"}, func(v values) uint64 {
			return uint64(int32(saturated(math.Trunc(float64(f32(v[0]))), math.MinInt32, math.MaxInt32)))
		}},
		{"cvt.rzi.u64.f32 %d, %a", "u64", []string{"f32"}, func(v values) uint64 {
			switch x := float64(f32(v[0])); {
			case !(x > 0):
				return 0
			case x >= 1<<64:
				return math.MaxUint64
			default:
				return uint64(x)
			}
		}},
		{"cvt.rni.f32.f32 %d, %a", "f32", []string{"f32"}, func(v values) uint64 { return bits32(float32(math.RoundToEven(float64(f32(v[0]))))) }},
		{"cvt.rpi.f64.f64 %d, %a", "f64", []string{"f64"}, func(v values) uint64 { return math.Float64bits(math.Ceil(f64(v[0]))) }},
		{"cvt.sat.f32.f32 %d, %a", "f32", []string{"f32"}, func(v values) uint64 { return bits32(float32(saturated(float64(f32(v[0])), 0, 1)) + 0) }},
		{"cvt.rn.f32.s32 %d, %a", "f32", []string{"u32"}, func(v values) uint64 { return bits32(float32(int32(v[0]))) }},
		{"cvt.rn.f32.u64 %d, %a", "f32", []string{"u64"}, func(v values) uint64 { return bits32(float32(v[0])) }},
		{"cvt.rn.f32.f64 %d, %a", "f32", []string{"f64"}, func(v values) uint64 { return uint64(math.Float32bits(float32(f64(v[0])))) }},
		{"cvt.s64.s32 %d, %a", "u64", []string{"u32"}, func(v values) uint64 { return uint64(int64(int32(v[0]))) }},
		{"cvt.u16.u32 %d, %a", "u16", []string{"u32"}, func(v values) uint64 { return v[0] & 0xffff }},
		{"cvt.rn.f32.s16 %d, %a", "f32", []string{"u16"}, func(v values) uint64 { return bits32(float32(int16(v[0]))) }},
		{"cvt.rna.tf32.f32 %d, %a", "u32", []string{"f32"}, func(v values) uint64 {
			if x := f32(v[0]); x != x {
				return canonical
			} else if math.IsInf(float64(x), 0) {
				return v[0]
			}
			return (v[0] + 0x1000) &^ 0x1fff
		}},
	} {
		t.Run(strings.Fields(o.text)[0]+" "+o.d, func(t *testing.T) {
			d.T = t
			const n = 1000
			var lists [][]uint64
			for i := range o.from {
				list := interesting(r, o.from[i], n)
				if i > 0 && strings.HasPrefix(o.text, "sh") {
					for j := range list {
						list[j] &= 127
					}
				}
				if o.d == "f64" { // no NaN: their payloads are nobody's business
					for j, v := range list {
						if x := f64(v); x != x {
							list[j] = 0
						}
					}
				}
				lists = append(lists, list)
			}
			o.check(t, d, lists)
		})
	}
	d.T = t
}

func permuted(v []uint64) uint64 {
	all, r := v[1]<<32|v[0]&0xffffffff, uint64(0)
	for i := range 4 {
		digit := v[2] >> (4 * i) & 15
		b := all >> (8 * (digit & 7)) & 255
		if digit&8 != 0 {
			b = uint64(uint8(int8(b) >> 7))
		}
		r |= b << (8 * i)
	}
	return r
}

func smaller(a, b float32, larger bool) uint64 {
	switch {
	case a != a && b != b:
		return canonical
	case a != a:
		return bits32(b)
	case b != b:
		return bits32(a)
	case larger:
		return bits32(max(a, b))
	}
	return bits32(min(a, b))
}

// fma32 rounds a·b + c once, by way of big numbers where they are finite.
type fma32 struct{ x, y, z big.Float }

func (f *fma32) of(a, b, c float32) float32 {
	for _, v := range []float32{a, b, c} {
		if x := float64(v); x != x || math.IsInf(x, 0) {
			return float32(float64(a)*float64(b) + float64(c))
		}
	}
	f.x.SetPrec(600).SetFloat64(float64(a))
	f.y.SetPrec(600).SetFloat64(float64(b))
	f.z.SetPrec(600).SetFloat64(float64(c))
	f.x.Mul(&f.x, &f.y)
	f.x.Add(&f.x, &f.z)
	if f.x.Sign() == 0 {
		return float32(float64(a)*float64(b) + float64(c)) // the sign of a zero
	}
	v, _ := f.x.Float32()
	return v
}

// TestDirected holds operations that round down and towards zero against big numbers.
func TestDirected(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	d := open(t)
	big1 := func(v uint64) *big.Float { return new(big.Float).SetPrec(600).SetFloat64(float64(f32(v))) }
	normal := func() []uint64 {
		list := make([]uint64, 2000)
		for i := range list {
			list[i] = uint64(math.Float32bits(float32(r.NormFloat64() * math.Pow(2, float64(r.IntN(20)-10)))))
		}
		return list
	}
	sum := func(v []uint64) *big.Float {
		x := new(big.Float).SetPrec(600).Mul(big1(v[0]), big1(v[1]))
		return x.Add(x, big1(v[2]))
	}
	for _, o := range []operation{
		{"fma.rm.f32 %d, %a, %b, %c", "f32", []string{"f32", "f32", "f32"}, func(v []uint64) uint64 { return directed(sum(v), big.ToNegativeInf) }},
		{"fma.rp.f32 %d, %a, %b, %c", "f32", []string{"f32", "f32", "f32"}, func(v []uint64) uint64 { return directed(sum(v), big.ToPositiveInf) }},
		{"add.rz.f32 %d, %a, %b", "f32", []string{"f32", "f32"}, func(v []uint64) uint64 {
			return directed(new(big.Float).SetPrec(600).Add(big1(v[0]), big1(v[1])), big.ToZero)
		}},
	} {
		lists := [][]uint64{normal(), normal(), normal()}
		o.check(t, d, lists[:len(o.from)])
	}
}

// half is the value of a half by its definition.
func half(h uint64, exponent, mantissa int) float64 {
	e, m := int(h>>mantissa&(1<<exponent-1)), float64(h&(1<<mantissa-1))
	bias := 1<<(exponent-1) - 1
	if e == 0 {
		return math.Ldexp(m, 1-bias-mantissa)
	}
	return math.Ldexp(m+math.Ldexp(1, mantissa), e-bias-mantissa)
}

// TestHalves goes through all numbers of 16 bits and what lies around and between them.
func TestHalves(t *testing.T) {
	d := open(t)
	for _, f := range []struct {
		name               string
		exponent, mantissa int
	}{{"f16", 5, 10}, {"bf16", 8, 7}} {
		infinite := uint64(1<<f.exponent-1) << f.mantissa
		var halves, singles []uint64
		want := map[uint64]uint64{}
		for h := range infinite {
			halves = append(halves, h)
			v, next := half(h, f.exponent, f.mantissa), half(h+1, f.exponent, f.mantissa)
			middle := float32((v + next) / 2)
			if float64(middle) != (v+next)/2 {
				continue // below float32's last place
			}
			even := h + h&1
			for _, c := range []struct {
				x float32
				h uint64
			}{{float32(v), h}, {middle, even}, {math.Nextafter32(middle, 0), h}, {math.Nextafter32(middle, float32(math.Inf(1))), h + 1}} {
				if (f.name == "bf16" && h+1 == infinite) || math.IsInf(float64(c.x), 0) {
					continue
				}
				b := uint64(math.Float32bits(c.x))
				singles = append(singles, b, b|1<<31)
				want[b], want[b|1<<31] = c.h, c.h|1<<15
			}
		}
		back := operation{"cvt." + "f32." + f.name + " %d, %a", "f32", []string{"u16"}, func(v []uint64) uint64 { return bits32(float32(half(v[0], f.exponent, f.mantissa))) }}
		to := operation{"cvt.rn." + f.name + ".f32 %d, %a", "u16", []string{"f32"}, func(v []uint64) uint64 { return want[v[0]] }}
		back.check(t, d, [][]uint64{halves})
		to.check(t, d, [][]uint64{singles})
		two := operation{"cvt.rn." + f.name + "x2.f32 %d, %a, %b", "u32", []string{"f32", "f32"}, func(v []uint64) uint64 { return want[v[0]]<<16 | want[v[1]] }}
		two.check(t, d, [][]uint64{singles[:5000], singles[5000:10000]})
	}
	// Products and sums of pairs, which are right if rounded once from what is exact.
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	random := func() []uint64 {
		list := make([]uint64, 3000)
		for i := range list {
			for j := range 2 {
				list[i] |= uint64(math.Float32bits(float32(r.NormFloat64()))>>16) << (16 * j)
			}
		}
		return list
	}
	single := func(h uint64) float64 { return float64(math.Float32frombits(uint32(h&0xffff) << 16)) }
	nearest := func(x *big.Float) uint64 {
		v, _ := new(big.Float).SetPrec(8).Set(x).Float32()
		return uint64(math.Float32bits(v) >> 16)
	}
	fma := operation{"fma.rn.bf16x2 %d, %a, %b, %c", "u32", []string{"u32", "u32", "u32"}, func(v []uint64) uint64 {
		one := func(shift int) uint64 {
			x := new(big.Float).SetPrec(500).SetFloat64(single(v[0]>>shift) * single(v[1]>>shift))
			return nearest(x.Add(x, big.NewFloat(single(v[2]>>shift))))
		}
		return one(16)<<16 | one(0)
	}}
	fma.check(t, d, [][]uint64{random(), random(), random()})
}

// TestGarbage gives the driver PTX that is none: it says so, and lives.
func TestGarbage(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	d := open(t)
	texts := []string{file(t, "warp.ptx"), file(t, "faults.ptx")}
	words := []string{"{", "}", ";", "(", ")", "[", "]", ".reg", ".param", ".b32", "%r<99999999999>", "bra", "-", "0f", "0x", "\"", "@", ",", ".align 3", "[4294967296]", "call.uni", "ret", "\x00", "é"}
	wrong := 0
	for i := range 1500 {
		b := []byte(texts[i%2])
		for range 1 + r.IntN(4) {
			at := r.IntN(len(b))
			switch r.IntN(4) {
			case 0:
				b = append(b[:at:at], b[min(len(b), at+1+r.IntN(40)):]...)
			case 1:
				b[at] = byte(r.IntN(256))
			case 2:
				b = append(b[:at:at], append([]byte(" "+words[r.IntN(len(words))]+" "), b[at:]...)...)
			case 3:
				b = b[:at]
			}
			if len(b) == 0 {
				break
			}
		}
		if _, err := d.Load("garbage", b); err != nil {
			if c := code(err); c != "CUDA_ERROR_INVALID_PTX" && c != "CUDA_ERROR_NO_BINARY_FOR_GPU" {
				t.Fatalf("%v for\n%s", err, b)
			}
			wrong++
		}
	}
	if wrong < 500 {
		t.Errorf("only %d of 1500 broken texts were found to be so", wrong)
	}
	to := d.take(4)
	d.run(d.kernel(texts[1], "write_at"), 1, 1, to.Address())
}
