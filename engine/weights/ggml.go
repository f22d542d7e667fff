package weights

import "encoding/binary"

// The rows below follow ggml's block layouts (github.com/ggml-org/llama.cpp,
// ggml-common.h). The conversions to float32 keep a compiler from fusing a
// product and a sum, which would round once where ggml rounds twice.

// half is the IEEE half at the start of b.
func half(b []byte) float32 { return Float16(binary.LittleEndian.Uint16(b)) }

func rowQ8_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[34:] {
		d := half(src)
		for j, c := range src[2:34] {
			dst[j] = float32(int8(c)) * d
		}
	}
}

func rowQ4_0(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[18:] {
		d := half(src)
		for j, c := range src[2:18] {
			dst[j] = float32(int(c&15)-8) * d
			dst[j+16] = float32(int(c>>4)-8) * d
		}
	}
}

func rowQ4_1(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[32:], src[20:] {
		d, m := half(src), half(src[2:])
		for j, c := range src[4:20] {
			dst[j] = float32(float32(c&15)*d) + m
			dst[j+16] = float32(float32(c>>4)*d) + m
		}
	}
}

// scaleK unpacks the j-th 6-bit scale and minimum of a Q4_K or Q5_K block from
// its twelve bytes: the first four of each lie in the low six bits of bytes
// 0–7, the last four in the nibbles of bytes 8–11 and the high two bits of
// bytes 0–7.
func scaleK(packed []byte, j int) (scale, minimum float32) {
	if j < 4 {
		return float32(packed[j] & 63), float32(packed[j+4] & 63)
	}
	return float32(packed[j+4]&15 | packed[j-4]>>6<<4), float32(packed[j+4]>>4 | packed[j]>>6<<4)
}

func rowQ4_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[144:] {
		d, dmin := half(src), half(src[2:])
		scales, codes := src[4:16], src[16:144]
		for j := range 8 { // 32 values each; a pair shares 32 bytes
			s, m := scaleK(scales, j)
			s, m = s*d, m*dmin
			shift := j % 2 * 4
			for k, c := range codes[j/2*32 : j/2*32+32] {
				dst[32*j+k] = float32(s*float32(c>>shift&15)) - m
			}
		}
	}
}

func rowQ5_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[176:] {
		d, dmin := half(src), half(src[2:])
		scales, high, codes := src[4:16], src[16:48], src[48:176]
		for j := range 8 {
			s, m := scaleK(scales, j)
			s, m = s*d, m*dmin
			shift := j % 2 * 4
			for k, c := range codes[j/2*32 : j/2*32+32] {
				q := c>>shift&15 | high[k]>>j&1<<4
				dst[32*j+k] = float32(s*float32(q)) - m
			}
		}
	}
}

func rowQ6_K(dst []float32, src []byte) {
	for ; len(dst) > 0; dst, src = dst[256:], src[210:] {
		d := half(src[208:])
		for h := range 2 { // halves of 128 values
			low, high, scales := src[64*h:64*h+64], src[128+32*h:160+32*h], src[192+8*h:200+8*h]
			for j := range 4 { // quarters of 32
				shift := j / 2 * 4
				for k := range 32 {
					q := low[j%2*32+k]>>shift&15 | high[k]>>(2*j)&3<<4
					s := float32(int8(scales[2*j+k/16]))
					dst[128*h+32*j+k] = float32(d*s) * float32(int(q)-32)
				}
			}
		}
	}
}
