package weights

import "math"

// Float16 is the value of an IEEE half.
func Float16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, mantissa := uint32(h>>10)&31, uint32(h&0x3ff)
	switch exponent {
	case 0: // zero and subnormals: mantissa · 2⁻²⁴, exact in single precision
		v := float32(mantissa) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31: // infinities and not-a-numbers
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}

// BFloat16 is the value of a bfloat16.
func BFloat16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// E4M3 is the value of an FP8 code: 4 exponent bits with bias 7, 3 of
// mantissa, no infinities, largest 448, 0x7f and 0xff not a number.
func E4M3(c byte) float32 { return e4m3[c] }

// E2M1 is the value of an FP4 code, 0 … 15.
func E2M1(c byte) float32 { return e2m1[c&15] }

var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

var e4m3 = func() (table [256]float32) {
	for c := range table {
		exponent, mantissa := c>>3&15, float64(c&7)
		v := math.Ldexp(8+mantissa, exponent-10)
		switch {
		case exponent == 0:
			v = math.Ldexp(mantissa, -9)
		case c&0x7f == 0x7f:
			v = math.NaN()
		}
		if c&0x80 != 0 {
			v = math.Copysign(v, -1)
		}
		table[c] = float32(v)
	}
	return table
}()
