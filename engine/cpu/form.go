package cpu

import (
	"encoding/binary"
	"math"

	"velo/engine/ops"
	"velo/engine/weights"
)

// form is how the weights of a part are kept. All but raw are tiles: the
// codes of as many matrix rows as an integer vector has lanes lie side by
// side, so that one activation, broadcast, is multiplied by all of them and
// every lane ends as the result of its own row.
//
// A tile is its blocks one after another. A block is 32 columns: a header of
// scales, then the codes. The codes of two neighbouring columns are neighbours
// too, because vector instructions multiply 16-bit values and add pairs.
//
//	nibbles  four runs of 8 columns; a run is for each lane two 16-bit words;
//	         word p holds the 4-bit codes of columns p, p+2, p+4, p+6 of the run,
//	         the first in its lowest bits
//	bytes    sixteen runs of 2 columns; a run is for each lane two int8 codes
type form uint8

const (
	// raw: as the loader gives them, dequantised row by row.
	raw form = iota
	// nibblesHalf: value = scale·code + minimum; a half of each a lane, first
	// all scales, then all minima.
	nibblesHalf
	// nibblesSingle is nibblesHalf with both in single precision.
	nibblesSingle
	// nibblesByte is nibblesHalf with a byte of each; eight blocks have a second
	// header before the first of them, the halves that the bytes are multiplied by.
	nibblesByte
	// bytesHalf: value = scale·code; a half a lane.
	bytesHalf
	// bytesByte is bytesHalf with a minimum too, both kept as in nibblesByte.
	bytesByte
	// bytesTwo: value = scale·code with a scale for each half of the block, a
	// signed byte a lane, first those of the first half; the second header is a
	// half that they are multiplied by.
	bytesTwo
	// fourTwo is bytesTwo with nibbles that are FP4 codes (e2m1). Their values
	// are taken times 512, integers that fill a 16-bit word; the scales are
	// halves, and a tile begins with a single for each lane that they are
	// multiplied by.
	fourTwo
	forms
)

// group is how many neighbouring activations share a scale.
const group = 32

// layouts are the size of each form's header and codes in bytes a lane and
// block, of the second header in bytes a lane and eight blocks, and of the
// first in bytes a lane.
var layouts = [forms]struct{ header, codes, second, first int }{
	nibblesHalf: {4, 16, 0, 0}, nibblesSingle: {8, 16, 0, 0}, nibblesByte: {2, 16, 4, 0},
	bytesHalf: {2, 32, 0, 0}, bytesByte: {2, 32, 4, 0}, bytesTwo: {2, 32, 2, 0}, fourTwo: {4, 16, 0, 4},
}

func (f form) nibbles() bool { return layouts[f].codes == 16 }

// formOf is the form that a weight is brought into.
func formOf(w *ops.Weight) form {
	if w.Type == weights.Q4_0 && w.Cols()%group == 0 && !eightTimesHalf(w.Data) {
		return nibblesSingle
	}
	return formFor(w.Type, w.Cols())
}

// formFor is the form of almost all weights of a type; Q4_0 can need another.
func formFor(t weights.Type, cols int) form {
	if cols%group != 0 {
		return raw
	}
	switch t {
	case weights.Q4_0, weights.Q4_1:
		return nibblesHalf
	case weights.Q4_K:
		return nibblesByte
	case weights.Q8_0:
		return bytesHalf
	case weights.Q5_K:
		return bytesByte
	case weights.Q6_K:
		return bytesTwo
	case weights.NVFP4:
		return fourTwo
	}
	return raw
}

// eightTimesHalf tells whether −8 times each scale of Q4_0 data, the minimum
// of its block, is a half.
func eightTimesHalf(data []byte) bool {
	for at := 0; at < len(data); at += 18 {
		if binary.LittleEndian.Uint16(data[at:])>>10&31 >= 28 {
			return false
		}
	}
	return true
}

// Bytes is the memory that a matrix made of w takes besides w.Data and
// w.Scale, which are not read any more once it is packed: with c = ⌈rows/lanes⌉
// · lanes · cols values, lanes 8 (16 with AVX-512), c·5/8 for Q4_0 and Q4_1,
// c·37/64 for Q4_K, c·5/8 and 4 bytes a row for NVFP4, c·17/16 for Q8_0,
// c·69/64 for Q5_K and c·137/128 for Q6_K. It is 0 for all other types and with
// Options.Exact: those weights are used where they lie.
func (b *Backend) Bytes(w *ops.Weight) int64 {
	if b.exact {
		return 0
	}
	f := formOf(w)
	if f == raw {
		return 0
	}
	lanes := b.k.lanes
	return int64((w.Rows()+lanes-1)/lanes) * int64(f.tileBytes(lanes, w.Cols()))
}

// Packed is what Bytes will be for a weight of that type and shape, on this
// machine, before there is a backend.
func Packed(t weights.Type, rows, cols int) int64 {
	f := formFor(t, cols)
	if f == raw {
		return 0
	}
	lanes := available()[0].lanes
	return int64((rows+lanes-1)/lanes) * int64(f.tileBytes(lanes, cols))
}

func (f form) blockBytes(lanes int) int { return lanes * (layouts[f].header + layouts[f].codes) }

// offset is where block k of a tile starts.
func (f form) offset(lanes, k int) int {
	return lanes*layouts[f].first + k*f.blockBytes(lanes) + (k/8+1)*lanes*layouts[f].second
}

// tileBytes is the size of a tile; with a second header there are whole eights
// of blocks.
func (f form) tileBytes(lanes, cols int) int {
	return lanes*layouts[f].first + cols/group*f.blockBytes(lanes) + cols/(8*group)*lanes*layouts[f].second
}

// block is a lane's share of a block of a tile.
type block struct {
	form        form
	lanes, lane int
	data        []byte
	outer       []byte // the second header, or the tile's first
}

// entry is entry i of a header with entries of size bytes.
func (b block) entry(header []byte, i, size int) []byte { return header[size*(i*b.lanes+b.lane):] }

func (b block) setHalf(i int, v uint16) { binary.LittleEndian.PutUint16(b.entry(b.data, i, 2), v) }
func (b block) setSingle(i int, v float32) {
	binary.LittleEndian.PutUint32(b.entry(b.data, i, 4), math.Float32bits(v))
}
func (b block) setByte(i int, v byte)    { b.entry(b.data, i, 1)[0] = v }
func (b block) setOuter(i int, v uint16) { binary.LittleEndian.PutUint16(b.entry(b.outer, i, 2), v) }
func (b block) setFirst(v float32) {
	binary.LittleEndian.PutUint32(b.entry(b.outer, 0, 4), math.Float32bits(v))
}

// scale is entry i of the header, multiplied by that of the outer one.
func (b block) scale(i int) float32 {
	switch b.form {
	case nibblesHalf, bytesHalf:
		return half(b.entry(b.data, i, 2))
	case nibblesByte, bytesByte:
		return half(b.entry(b.outer, i, 2)) * float32(b.entry(b.data, i, 1)[0])
	case bytesTwo:
		return half(b.entry(b.outer, 0, 2)) * float32(int8(b.entry(b.data, i, 1)[0]))
	case fourTwo:
		return single(b.entry(b.outer, 0, 4)) * half(b.entry(b.data, i, 2))
	}
	return single(b.entry(b.data, i, 4))
}

func (b block) codes() []byte { return b.data[b.lanes*layouts[b.form].header:] }

// set stores 32 codes.
func (b block) set(codes *[group]byte) {
	out := b.codes()
	if !b.form.nibbles() {
		for k := 0; k < group; k += 2 {
			at := k*b.lanes + 2*b.lane
			out[at], out[at+1] = codes[k], codes[k+1]
		}
		return
	}
	for run := range 4 {
		// Each byte c(i) gets c(i+2) as its upper half; bytes 0, 4, 1, 5 are kept.
		x := binary.LittleEndian.Uint64(codes[8*run:])
		x |= x >> 12
		binary.LittleEndian.PutUint32(out[4*(run*b.lanes+b.lane):],
			uint32(x&0xff|x>>24&0xff00|x<<8&0xff0000|x>>16&0xff000000))
	}
}

// code is the code of column k of the block, as the integer it stands for.
func (b block) code(k int) int32 {
	if !b.form.nibbles() {
		return int32(int8(b.codes()[k&^1*b.lanes+2*b.lane+k&1]))
	}
	c := b.codes()[4*(k/8*b.lanes+b.lane)+2*(k&1)+k/4&1] >> (k / 2 & 1 * 4) & 15
	if b.form == fourTwo {
		return int32(512 * weights.E2M1(c))
	}
	return int32(c)
}

// values writes the values of the lane's share.
func (b block) values(dst []float32) {
	for k := range dst {
		code := float32(b.code(k))
		switch b.form {
		case nibblesHalf, nibblesSingle, nibblesByte, bytesByte:
			dst[k] = float32(b.scale(0)*code) + b.scale(1)
		case bytesHalf:
			dst[k] = b.scale(0) * code
		case bytesTwo, fourTwo:
			dst[k] = b.scale(k/16) * code
		}
	}
}
