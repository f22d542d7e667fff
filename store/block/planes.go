package block

import "math/bits"

// planes holds signed numbers of very different sizes: for each number its sign and how many bytes
// its magnitude has (0 to 8), and these bytes, the lowest ones together in the first plane, the next
// ones in the second, and so on. Gaps between tokens share their sign and upper bytes and differ in
// the lowest: apart from each other the planes compress to about the entropy of the numbers,
// together they hardly compress at all.
type planes struct {
	sizes column
	byte  [8]column
}

// negative marks a size whose number is below zero.
const negative = 0x10

func (p *planes) put(v int64) {
	u, sign := uint64(v), byte(0)
	if v < 0 {
		u, sign = -u, negative
	}
	n := (bits.Len64(u) + 7) / 8
	p.sizes.putByte(byte(n) | sign)
	for i := range n {
		p.byte[i].putByte(byte(u >> (8 * i)))
	}
}

func (p *planes) next() int64 {
	size := p.sizes.byte()
	n := int(size &^ negative)
	if n > 8 {
		p.sizes.fail("a number is too long")
		return 0
	}
	var u uint64
	for i := range n {
		u |= uint64(p.byte[i].byte()) << (8 * i)
	}
	if size&negative != 0 {
		u = -u
	}
	return int64(u)
}

// columns lists the parts in the order in which they are written.
func (p *planes) columns() []*column {
	all := []*column{&p.sizes}
	for i := range p.byte {
		all = append(all, &p.byte[i])
	}
	return all
}
