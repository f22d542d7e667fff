package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"velo/engine/weights"
)

// tileFunc multiplies a tile of the matrix by rows of activations and sets
// out[row·stride + lane] to the sum over blocks, in order, of
//
//	(scale·as)·Σ code·a + minimum·sum          one scale a block
//	(scale₀·Σ₀ code·a + scale₁·Σ₁ code·a)·as   a scale for each half
//
// where a is the int16 activations of the block, as their scale and sum their
// sum times as. The sums of integers are exact and every other product and sum
// is rounded to single precision on its own, so that all kernels give the same
// bits. a, as and sums of a row follow those of the row before.
type tileFunc func(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int)

// tileKernel is the kernels of a form.
type tileKernel struct {
	one  tileFunc // one row of activations
	four tileFunc // four
}

const (
	portableLanes = 8
	maxLanes      = 16
)

var portableTiles = func() (t [forms]tileKernel) {
	for f := nibblesHalf; f < forms; f++ {
		one := func(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int) {
			portableTile(f, tile, a, as, sums, blocks, out)
		}
		t[f] = tileKernel{one, func(tile *byte, a *int16, as, sums *float32, blocks int, out *float32, stride int) {
			for r := range 4 {
				one(tile, at(a, r*blocks*group), at(as, r*blocks), at(sums, r*blocks), blocks, at(out, r*stride), stride)
			}
		}}
	}
	return t
}()

func portableTile(f form, tile *byte, a *int16, as, sums *float32, blocks int, out *float32) {
	const lanes = portableLanes
	size, header, before := f.blockBytes(lanes), lanes*layouts[f].header, lanes*layouts[f].second
	data, x := unsafe.Slice(tile, f.tileBytes(lanes, blocks*group)), unsafe.Slice(a, blocks*group)
	scales, totals := unsafe.Slice(as, blocks), unsafe.Slice(sums, blocks)
	acc := unsafe.Slice(out, lanes)
	clear(acc)
	for b := range blocks {
		at := f.offset(lanes, b)
		head, codes, x := data[at:at+header], data[at+header:at+size], x[b*group:(b+1)*group]
		second := data[f.offset(lanes, b&^7)-before:]
		var low, high [lanes]int32 // of each half
		switch {
		case f == fourTwo:
			portableNibbles(&low, codes[:8*lanes], x[:16], &fourTable)
			portableNibbles(&high, codes[8*lanes:], x[16:], &fourTable)
		case f.nibbles():
			portableNibbles(&low, codes[:8*lanes], x[:16], &plainTable)
			portableNibbles(&high, codes[8*lanes:], x[16:], &plainTable)
		default:
			portableBytes(&low, codes[:16*lanes], x[:16])
			portableBytes(&high, codes[16*lanes:], x[16:])
		}
		for l := range acc {
			switch f {
			case nibblesHalf:
				dot := float32(low[l] + high[l])
				acc[l] += float32(float32(half(head[2*l:])*scales[b])*dot) + float32(half(head[2*(lanes+l):])*totals[b])
			case nibblesByte, bytesByte:
				dot := float32(low[l] + high[l])
				scale, minimum := half(second[2*l:])*float32(head[l]), half(second[2*(lanes+l):])*float32(head[lanes+l])
				acc[l] += float32(float32(scale*scales[b])*dot) + float32(minimum*totals[b])
			case nibblesSingle:
				dot := float32(low[l] + high[l])
				acc[l] += float32(float32(single(head[4*l:])*scales[b])*dot) + float32(single(head[4*(lanes+l):])*totals[b])
			case bytesHalf:
				acc[l] += float32(float32(half(head[2*l:])*scales[b]) * float32(low[l]+high[l]))
			default:
				var first, other float32 // scales of each half
				if f == fourTwo {
					factor := single(data[4*l:])
					first, other = factor*half(head[2*l:]), factor*half(head[2*(lanes+l):])
				} else {
					factor := half(second[2*l:])
					first, other = factor*float32(int8(head[l])), factor*float32(int8(head[lanes+l]))
				}
				v := float32(first*float32(low[l])) + float32(other*float32(high[l]))
				acc[l] += float32(v * scales[b])
			}
		}
	}
}

func single(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

// plainTable and fourTable are what the codes of nibbles stand for.
var plainTable, fourTable = func() (plain, four [16]int32) {
	for c := range 16 {
		plain[c], four[c] = int32(c), int32(512*weights.E2M1(byte(c)))
	}
	return plain, four
}()

func portableNibbles(dots *[portableLanes]int32, codes []byte, x []int16, table *[16]int32) {
	for run := range 2 {
		x := x[8*run : 8*run+8]
		for l := range dots {
			c := codes[4*(run*portableLanes+l):][:4]
			dots[l] += table[c[0]&15]*int32(x[0]) + table[c[0]>>4]*int32(x[2]) +
				table[c[1]&15]*int32(x[4]) + table[c[1]>>4]*int32(x[6]) +
				table[c[2]&15]*int32(x[1]) + table[c[2]>>4]*int32(x[3]) +
				table[c[3]&15]*int32(x[5]) + table[c[3]>>4]*int32(x[7])
		}
	}
}

func portableBytes(dots *[portableLanes]int32, codes []byte, x []int16) {
	for k := 0; k < 16; k += 2 {
		a, b := int32(x[k]), int32(x[k+1])
		for l := range dots {
			at := k*portableLanes + 2*l
			dots[l] += int32(int8(codes[at]))*a + int32(int8(codes[at+1]))*b
		}
	}
}
