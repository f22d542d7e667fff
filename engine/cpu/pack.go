package cpu

import (
	"encoding/binary"
	"fmt"
	"math"

	"velo/engine/ops"
	"velo/engine/weights"
)

// part is consecutive rows of a matrix in one form.
type part struct {
	form   form
	weight *ops.Weight // raw
	first  int         // first row in the matrix
	rows   int
	tiles  int // ⌈rows / lanes⌉, of a raw part too
	start  int // tiles of the parts before
	lanes  int
	codes  []byte // tiles one after another; lanes without a row are zero
}

type matrix struct {
	out, in int
	parts   []part
	tiles   int
	integer bool // some part multiplies integers
}

func (m *matrix) Out() int { return m.out }
func (m *matrix) In() int  { return m.in }

// Matrix stacks parts.
func (b *Backend) Matrix(parts ...*ops.Weight) (ops.Matrix, error) {
	m := &matrix{}
	for i, t := range parts {
		if i > 0 && t.Cols() != m.in {
			return nil, fmt.Errorf("cannot stack %s on %s: they have %d and %d columns", t.Name, parts[0].Name, t.Cols(), m.in)
		}
		if t.Data == nil {
			return nil, fmt.Errorf("cannot take over %s: it has no data, and only a GPU makes weights up", t.Name)
		}
		m.in = t.Cols()
		p := part{form: raw, weight: t, first: m.out, rows: t.Rows(), start: m.tiles, lanes: b.k.lanes}
		p.tiles = (p.rows + p.lanes - 1) / p.lanes
		if !b.exact {
			b.pack(&p)
		}
		m.integer = m.integer || p.form != raw
		m.out += p.rows
		m.tiles += p.tiles
		m.parts = append(m.parts, p)
	}
	return m, nil
}

// pack brings a quantised part into its integer form, on all workers.
func (b *Backend) pack(p *part) {
	if p.form = formOf(p.weight); p.form == raw {
		return
	}
	p.codes = make([]byte, p.tiles*p.form.tileBytes(p.lanes, p.weight.Cols()))
	b.workers.run(packTiles{p}, p.tiles)
	p.weight = nil
}

// packTiles is the task of one tile.
type packTiles struct{ p *part }

func (t packTiles) do(tile, _ int) {
	p := t.p
	for i := tile * p.lanes; i < min(p.rows, (tile+1)*p.lanes); i++ {
		packRow(p, i)
	}
}

// block is the share of row i in block k of its tile.
func (p *part) block(i, k, cols int) block {
	tile := p.codes[i/p.lanes*p.form.tileBytes(p.lanes, cols):]
	to := block{form: p.form, lanes: p.lanes, lane: i % p.lanes, data: tile[p.form.offset(p.lanes, k):], outer: tile}
	if n := p.lanes * layouts[p.form].second; n > 0 {
		to.outer = tile[p.form.offset(p.lanes, k&^7)-n:]
	}
	return to
}

func packRow(p *part, i int) {
	w, src := p.weight, p.weight.RowData(i)
	cols := w.Cols()
	var codes [group]byte
	for k := range cols / group {
		to := p.block(i, k, cols)
		switch w.Type {
		case weights.Q4_0, weights.Q4_1:
			packQ4(to, src[k*(len(src)*group/cols):], w.Type, &codes)
		case weights.Q4_K:
			packQ4K(to, src, k, &codes)
		case weights.Q5_K:
			packQ5K(to, src, k, &codes)
		case weights.Q8_0:
			to.setHalf(0, binary.LittleEndian.Uint16(src[34*k:]))
			copy(codes[:], src[34*k+2:])
		case weights.Q6_K:
			packQ6K(to, src, k, &codes)
		case weights.NVFP4:
			packNVFP4(to, src[16*k:], w.Scale[i*(cols/16)+2*k:], w.Global, &codes)
		}
		to.set(&codes)
	}
}

func half(b []byte) float32 { return weights.Float16(binary.LittleEndian.Uint16(b)) }

// lowHalves is the lower four bits of each of eight bytes.
const lowHalves = 0x0f0f0f0f0f0f0f0f

// packQ4 takes a block of Q4_0 (zero at code 8) or Q4_1.
func packQ4(to block, src []byte, kind weights.Type, codes *[group]byte) {
	scale := binary.LittleEndian.Uint16(src)
	switch {
	case kind == weights.Q4_1:
		to.setHalf(0, scale)
		to.setHalf(1, binary.LittleEndian.Uint16(src[2:]))
		src = src[4:]
	case to.form == nibblesHalf:
		to.setHalf(0, scale)
		to.setHalf(1, minusEight(scale))
		src = src[2:]
	default:
		to.setSingle(0, half(src))
		to.setSingle(1, -8*half(src))
		src = src[2:]
	}
	for k := 0; k < 16; k += 8 {
		x := binary.LittleEndian.Uint64(src[k:])
		binary.LittleEndian.PutUint64(codes[k:], x&lowHalves)
		binary.LittleEndian.PutUint64(codes[k+16:], x>>4&lowHalves)
	}
}

// minusEight is −8 times a half below 2¹³.
func minusEight(h uint16) uint16 {
	sign, v := h&0x8000^0x8000, h&0x7fff
	if v >= 0x400 {
		return sign | v + 3<<10
	}
	return sign | halfBits(8*weights.Float16(v))
}

// halfBits is the half of v, which is one and ≥ 0.
func halfBits(v float32) uint16 {
	if v < 1.0/(1<<14) {
		return uint16(v * (1 << 24))
	}
	return uint16(math.Float32bits(v)>>13 - 112<<10)
}

// halfOf is the half of each e4m3 number.
var halfOf = func() (table [256]uint16) {
	for c := range table {
		table[c] = uint16(c) & 0x80 << 8
		if c&0x7f == 0x7f {
			table[c] |= 0x7e00 // not a number
		} else {
			table[c] |= halfBits(weights.E4M3(byte(c & 0x7f)))
		}
	}
	return table
}()

// scaleK unpacks the 6-bit scale and minimum of group j of a Q4_K or Q5_K block.
func scaleK(packed []byte, j int) (scale, minimum byte) {
	if j < 4 {
		return packed[j] & 63, packed[j+4] & 63
	}
	return packed[j+4]&15 | packed[j-4]>>6<<4, packed[j+4]>>4 | packed[j]>>6<<4
}

// packScaleK packs what Q4_K and Q5_K have before their codes: the factor and minimum of group k, and,
// with the first of a block's eight, those of the block. j is which of the eight it is.
func packScaleK(to block, src []byte, k int) (j int) {
	j = k % 8
	s, m := scaleK(src[4:16], j)
	to.setByte(0, s)
	to.setByte(1, m)
	if j == 0 {
		to.setOuter(0, binary.LittleEndian.Uint16(src))
		to.setOuter(1, binary.LittleEndian.Uint16(src[2:])^0x8000) // minima are subtracted
	}
	return j
}

func packQ4K(to block, src []byte, k int, codes *[group]byte) {
	src = src[k/8*144:]
	j := packScaleK(to, src, k)
	in, shift := src[16+j/2*32:], j%2*4
	for c := 0; c < group; c += 8 {
		x := binary.LittleEndian.Uint64(in[c:])
		binary.LittleEndian.PutUint64(codes[c:], x>>shift&lowHalves)
	}
}

func packQ5K(to block, src []byte, k int, codes *[group]byte) {
	src = src[k/8*176:]
	j := packScaleK(to, src, k)
	high, in, shift := src[16:48], src[48+j/2*32:], j%2*4
	for c := range codes {
		codes[c] = in[c]>>shift&15 | high[c]>>j&1<<4
	}
}

func packQ6K(to block, src []byte, k int, codes *[group]byte) {
	src = src[k/8*210:]
	h, j := k%8/4, k%4
	low, high, in := src[64*h+j%2*32:], src[128+32*h:], src[192+8*h+2*j:]
	to.setByte(0, in[0])
	to.setByte(1, in[1])
	if k%8 == 0 {
		to.setOuter(0, binary.LittleEndian.Uint16(src[208:]))
	}
	for c := range codes {
		q := low[c]>>(j/2*4)&15 | high[c]>>(2*j)&3<<4
		codes[c] = byte(int8(q) - 32)
	}
}

func packNVFP4(to block, src, scale []byte, global float32, codes *[group]byte) {
	to.setFirst(global / 512)
	for h := range 2 {
		to.setHalf(h, halfOf[scale[h]])
	}
	for j := range 16 {
		codes[2*j], codes[2*j+1] = src[j]&15, src[j]>>4
	}
}

// row dequantises row i of the matrix.
func (m *matrix) row(dst []float32, i int) {
	for k := range m.parts {
		if p := &m.parts[k]; i < p.first+p.rows {
			p.row(dst, i-p.first)
			return
		}
	}
}

func (p *part) row(dst []float32, i int) {
	if p.form == raw {
		p.weight.Row(dst, i)
		return
	}
	for k := range len(dst) / group {
		p.block(i, k, len(dst)).values(dst[k*group : (k+1)*group])
	}
}
