package block

import "math/bits"

// planes holds signed numbers of very different sizes: for each number how many bytes it has (0 to
// 8), and its bytes, the lowest ones together in low, the next ones in the plane above, and so on.
// Gaps between tokens share their upper bytes and differ in the lowest: apart from each other the
// planes compress to about the entropy of the numbers, together they do not compress at all.
type planes struct {
	sizes column
	byte  [8]column
}

func (p *planes) put(v int64) {
	u := zigzag(v)
	n := (bits.Len64(u) + 7) / 8
	p.sizes.putByte(byte(n))
	for i := range n {
		p.byte[i].putByte(byte(u >> (8 * i)))
	}
}

func (p *planes) next() int64 {
	n := int(p.sizes.byte())
	if n > 8 {
		p.sizes.fail("a number is too long")
		return 0
	}
	var u uint64
	for i := range n {
		u |= uint64(p.byte[i].byte()) << (8 * i)
	}
	return unzigzag(u)
}

// columns lists the parts in the order in which they are written.
func (p *planes) columns() []*column {
	all := []*column{&p.sizes}
	for i := range p.byte {
		all = append(all, &p.byte[i])
	}
	return all
}
