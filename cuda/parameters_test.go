//go:build linux && cuda && cgo

package cuda

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"velo/engine/ops"
)

// TestHalves: float32 rows of any size come back from two halves with 22 bits, from one
// with 11, relative to the row's largest number.
func TestHalves(t *testing.T) {
	const rows, cols = 40, 64
	for _, as := range []stored{{F16, 1}, {F16, 2}} {
		parts := make([]Part, as.matrices)
		for i := range parts {
			parts[i] = Part{Rows: rows, Data: make([]byte, 2*rows*cols), Row: make([]float32, rows)}
		}
		for r := range rows {
			row := make([]float32, cols)
			size := math.Ldexp(1, 4*r-80)
			largest := 0.0
			for i := range row {
				row[i] = float32(rand.NormFloat64() * size)
				if r == 3 {
					row[i] = 0
				}
				largest = max(largest, math.Abs(float64(row[i])))
			}
			halves(row, parts, r)
			for i, v := range row {
				got := 0.0
				for _, p := range parts {
					got += float64(halfValue(binary.LittleEndian.Uint16(p.Data[2*(r*cols+i):]))) * float64(p.Row[r])
				}
				if d := math.Abs(got - float64(v)); d > largest*math.Ldexp(1, -11*as.matrices) {
					t.Fatalf("%g of a row up to %g becomes %g with %d halves", v, largest, got, as.matrices)
				}
			}
		}
	}
}

// TestWeightBytes: what a type takes.
func TestWeightBytes(t *testing.T) {
	for kind, want := range map[ops.WeightType]int64{
		ops.BF16: 64*256*2 + 64*4, ops.F16: 64*256*2 + 64*4, ops.F32: 2 * (64*256*2 + 64*4), ops.Q4_K: 64*256*2 + 64*4,
		ops.FP8Row: 64*256 + 64*4, ops.NVFP4: 64*256*9/16 + 64*4,
	} {
		if got := WeightBytes(&ops.Weight{Type: kind, Shape: []int{64, 256}}); got != want {
			t.Errorf("64 × 256 weights of %v take %d bytes, not %d", kind, got, want)
		}
	}
	if got := WeightBytes(&ops.Weight{Type: ops.BF16, Shape: []int{100}}); got != 512 {
		t.Errorf("a vector of 100 takes %d bytes", got)
	}
	if got := WeightBytes(&ops.Weight{Type: ops.BF16, Shape: []int{256, 1, 4}}); got != 4096 {
		t.Errorf("256 times 4 taps take %d bytes", got)
	}
}

// TestTurned: norms and rotations of q and k are one launch if nothing is between them.
func TestTurned(t *testing.T) {
	b, rope := &buffer{cols: 384}, &ops.Rope{Inverse: make([]float32, 16)}
	q, k := tensor{b, 0, 2, 64, 128}, tensor{b, 256, 1, 64, 64}
	norm := func(x tensor) call { return call{kind: normCall, dst: x, x: x, rows: 2} }
	turn := func(x tensor) call { return call{kind: ropeCall, dst: x, rope: rope, rows: 2} }
	other := turn(k)
	other.rope = &ops.Rope{Inverse: rope.Inverse}
	for name, c := range map[string]struct {
		calls []call
		want  bool
	}{
		"heads":          {[]call{norm(q), norm(k), turn(q), turn(k)}, true},
		"without norms":  {[]call{turn(q), turn(k), turn(q), turn(k)}, false},
		"in disorder":    {[]call{norm(q), turn(q), norm(k), turn(k)}, false},
		"of one":         {[]call{norm(q), norm(k), turn(q), turn(q)}, false},
		"of two angles":  {[]call{norm(q), norm(k), turn(q), other}, false},
		"without an end": {[]call{norm(q), norm(k), turn(q)}, false},
	} {
		if got := turned(c.calls); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestWithin: a norm or gate goes within the linear layers behind it exactly if nothing
// else looks at its result.
func TestWithin(t *testing.T) {
	hidden, normed, out, other := &buffer{cols: 64}, &buffer{cols: 64}, &buffer{cols: 64}, &buffer{cols: 64}
	all := func(b *buffer) tensor { return tensor{b, 0, 1, 64, 64} }
	norm := call{kind: normCall, dst: all(normed), x: all(hidden), rows: 2}
	linear := func(to, from *buffer, add int32) call {
		return call{kind: linearCall, flags: add, dst: all(to), x: all(from), rows: 2}
	}
	gather := call{kind: gatherCall, dst: all(other), x: all(normed), rows: 1}
	heads := tensor{out, 0, 4, 16, 16}
	headed := call{kind: normCall, dst: heads, x: heads, rows: 2}
	gate := call{kind: siluCall, dst: heads, x: heads, k: tensor{other, 0, 4, 16, 16}, rows: 2}
	delta := call{kind: deltaCall, dst: heads, x: all(other), rows: 2}
	for name, c := range map[string]struct {
		calls []call
		want  []bool
	}{
		"a layer":            {[]call{norm, linear(out, normed, 0), linear(other, normed, 0), norm, linear(out, normed, 0)}, []bool{true, false, false, false, false}},
		"last of all":        {[]call{norm, linear(out, normed, 0)}, []bool{false, false}},
		"read later":         {[]call{norm, linear(out, normed, 0), gather, norm}, []bool{false, false, false, false}},
		"source changes":     {[]call{norm, linear(hidden, normed, 1), linear(out, normed, 0), norm}, []bool{false, false, false, false}},
		"changes at the end": {[]call{norm, linear(out, normed, 0), linear(hidden, normed, 1), norm}, []bool{true, false, false, false}},
		"gated heads":        {[]call{headed, gate, linear(hidden, out, 1), delta}, []bool{true, true, false, false}},
		"heads alone":        {[]call{headed, linear(hidden, out, 1), delta}, []bool{false, false, false}},
	} {
		for i, want := range c.want {
			if got := into(c.calls, i); got != want {
				t.Errorf("%s: call %d goes within: %v", name, i, got)
			}
		}
		for i := range c.calls {
			j := source(c.calls, i)
			if j >= 0 && (!c.want[j] || c.calls[i].kind != linearCall) {
				t.Errorf("%s: call %d has call %d within", name, i, j)
			}
		}
	}
}
