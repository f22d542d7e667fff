package cpu

import (
	"encoding/binary"
	"fmt"

	"velo/engine/ops"
	"velo/engine/weights"
)

// form is how the weights of a part are kept.
type form uint8

const (
	// raw: as the loader gives them, dequantised row by row.
	raw form = iota
	// nibbles: blocks of 32 unsigned 4-bit codes in 16 bytes (byte j holds
	// value j in its low and value j+16 in its high half), a scale and a
	// minimum a block: value = scale·code + minimum.
	nibbles
	// bytes32: blocks of 32 int8 codes with a scale and, perhaps, a minimum.
	bytes32
	// bytes16: blocks of 32 int8 codes with a scale for each half.
	bytes16
)

// group is how many neighbouring activations share a scale.
const group = 32

// part is consecutive rows of a matrix in one form.
type part struct {
	form    form
	weight  *ops.Weight // raw
	first   int         // first row in the matrix
	rows    int
	codes   []byte    // [rows, cols/2 or cols]
	scales  []float32 // [rows, cols/32 or cols/16]
	minimum []float32 // [rows, cols/32], nil for none
}

type matrix struct {
	out, in int
	parts   []part
	integer bool // some part multiplies integers
}

func (m *matrix) Out() int { return m.out }
func (m *matrix) In() int  { return m.in }

// Matrix stacks parts.
func (b *Backend) Matrix(parts ...*ops.Weight) (ops.Matrix, error) {
	m := &matrix{}
	for i, t := range parts {
		if len(t.Shape) != 2 {
			return nil, fmt.Errorf("cannot multiply by %s: its shape is %v, not [out, in]", t.Name, t.Shape)
		}
		if i > 0 && t.Cols() != m.in {
			return nil, fmt.Errorf("cannot stack %s on %s: they have %d and %d columns", t.Name, parts[0].Name, t.Cols(), m.in)
		}
		m.in = t.Cols()
		p := part{form: raw, weight: t, first: m.out, rows: t.Rows()}
		if !b.exact && m.in%group == 0 {
			b.pack(&p)
		}
		m.integer = m.integer || p.form != raw
		m.out += p.rows
		m.parts = append(m.parts, p)
	}
	return m, nil
}

// pack brings a quantised part into its integer form, on all workers.
func (b *Backend) pack(p *part) {
	t := p.weight
	switch t.Type {
	case weights.Q4_0, weights.Q4_1, weights.Q4_K:
		p.form = nibbles
	case weights.Q8_0, weights.Q5_K:
		p.form = bytes32
	case weights.Q6_K, weights.NVFP4:
		p.form = bytes16
	default:
		return
	}
	cols := t.Cols()
	blocks := cols / group
	per := blocks
	switch p.form {
	case nibbles:
		p.codes = make([]byte, p.rows*cols/2)
	case bytes16:
		p.codes = make([]byte, p.rows*cols)
		per = 2 * blocks
	default:
		p.codes = make([]byte, p.rows*cols)
	}
	p.scales = make([]float32, p.rows*per)
	if t.Type != weights.Q8_0 && p.form != bytes16 {
		p.minimum = make([]float32, p.rows*blocks)
	}
	b.workers.run(packRows{p, cols}, p.rows)
	p.weight = nil
}

type packRows struct {
	p    *part
	cols int
}

func (t packRows) do(i, _ int) {
	p := t.p
	w, blocks := p.weight, t.cols/group
	src := w.RowData(i)
	var minimum []float32
	if p.minimum != nil {
		minimum = p.minimum[i*blocks : (i+1)*blocks]
	}
	switch w.Type {
	case weights.Q4_0:
		packQ4(p.codes[i*t.cols/2:], p.scales[i*blocks:(i+1)*blocks], minimum, src, 18)
	case weights.Q4_1:
		packQ4(p.codes[i*t.cols/2:], p.scales[i*blocks:(i+1)*blocks], minimum, src, 20)
	case weights.Q4_K:
		packQ4K(p.codes[i*t.cols/2:], p.scales[i*blocks:(i+1)*blocks], minimum, src)
	case weights.Q5_K:
		packQ5K(p.codes[i*t.cols:], p.scales[i*blocks:(i+1)*blocks], minimum, src)
	case weights.Q8_0:
		scales := p.scales[i*blocks : (i+1)*blocks]
		for b := range blocks {
			scales[b] = half(src[34*b:])
			copy(p.codes[i*t.cols+32*b:][:32], src[34*b+2:])
		}
	case weights.Q6_K:
		packQ6K(p.codes[i*t.cols:], p.scales[2*i*blocks:2*(i+1)*blocks], src)
	case weights.NVFP4:
		packNVFP4(p.codes[i*t.cols:], p.scales[2*i*blocks:2*(i+1)*blocks], src, w.Scale[2*i*blocks:], w.Global)
	}
}

func half(b []byte) float32 { return weights.Float16(binary.LittleEndian.Uint16(b)) }

// packQ4 takes Q4_0 (18 bytes a block, zero at code 8) and Q4_1 (20 bytes).
func packQ4(codes []byte, scales, minimum []float32, src []byte, size int) {
	for b := range scales {
		block := src[b*size : (b+1)*size]
		scales[b] = half(block)
		if size == 18 {
			minimum[b] = -8 * scales[b]
		} else {
			minimum[b] = half(block[2:])
		}
		copy(codes[16*b:16*b+16], block[size-16:])
	}
}

// scaleK unpacks the 6-bit scale and minimum of group j of a Q4_K or Q5_K block.
func scaleK(packed []byte, j int) (scale, minimum float32) {
	if j < 4 {
		return float32(packed[j] & 63), float32(packed[j+4] & 63)
	}
	return float32(packed[j+4]&15 | packed[j-4]>>6<<4), float32(packed[j+4]>>4 | packed[j]>>6<<4)
}

func packQ4K(codes []byte, scales, minimum []float32, src []byte) {
	for b := range scales {
		block, j := src[b/8*144:], b%8
		s, m := scaleK(block[4:16], j)
		scales[b], minimum[b] = s*half(block), -m*half(block[2:])
		in, out, shift := block[16+j/2*32:], codes[16*b:16*b+16], j%2*4
		for k := range out {
			out[k] = in[k]>>shift&15 | in[k+16]>>shift&15<<4
		}
	}
}

func packQ5K(codes []byte, scales, minimum []float32, src []byte) {
	for b := range scales {
		block, j := src[b/8*176:], b%8
		s, m := scaleK(block[4:16], j)
		scales[b], minimum[b] = s*half(block), -m*half(block[2:])
		high, in, out, shift := block[16:48], block[48+j/2*32:], codes[32*b:32*b+32], j%2*4
		for k := range out {
			out[k] = in[k]>>shift&15 | high[k]>>j&1<<4
		}
	}
}

func packQ6K(codes []byte, scales []float32, src []byte) {
	for b := range len(scales) / 2 {
		block, h, j := src[b/8*210:], b%8/4, b%4
		d := half(block[208:])
		low, high, in := block[64*h+j%2*32:], block[128+32*h:], block[192+8*h+2*j:]
		scales[2*b], scales[2*b+1] = d*float32(int8(in[0])), d*float32(int8(in[1]))
		for k := range 32 {
			q := low[k]>>(j/2*4)&15 | high[k]>>(2*j)&3<<4
			codes[32*b+k] = byte(int8(q) - 32)
		}
	}
}

// packNVFP4 doubles the codes, which makes all of them integers.
func packNVFP4(codes []byte, scales []float32, src, scale []byte, global float32) {
	for g := range scales {
		scales[g] = weights.E4M3(scale[g]) * global / 2
		for j := range 8 {
			c := src[8*g+j]
			codes[16*g+2*j] = byte(int8(2 * weights.E2M1(c&15)))
			codes[16*g+2*j+1] = byte(int8(2 * weights.E2M1(c>>4)))
		}
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
	n := len(dst)
	for j := range dst {
		b := j / group
		var code, s float32
		switch p.form {
		case nibbles:
			code = float32(p.codes[i*n/2+16*b+j%16] >> (j % 32 / 16 * 4) & 15)
			s = p.scales[i*(n/32)+b]
		case bytes32:
			code, s = float32(int8(p.codes[i*n+j])), p.scales[i*(n/32)+b]
		case bytes16:
			code, s = float32(int8(p.codes[i*n+j])), p.scales[i*(n/16)+j/16]
		}
		dst[j] = float32(s * code)
		if p.minimum != nil {
			dst[j] += p.minimum[i*(n/32)+b]
		}
	}
}
