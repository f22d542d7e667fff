package cuda

import "math"

// halfBits is the nearest half of x, ties to even, as bits.
func halfBits(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00
	case b >= 0x47800000: // 2¹⁶ and more
		return sign | 0x7c00
	case b < 0x38800000: // under 2⁻¹⁴: a multiple of 2⁻²⁴
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(b))*(1<<24)))
	}
	b += 0xfff + b>>13&1
	return sign | uint16((b-0x38000000)>>13)
}

// halfValue is the value of a half that is a number.
func halfValue(h uint16) float32 {
	exponent, mantissa := int(h>>10&31), float64(h&0x3ff)
	v := math.Ldexp(mantissa, -24)
	if exponent > 0 {
		v = math.Ldexp(1024+mantissa, exponent-25)
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return float32(v)
}
