package grammar

import "unicode/utf8"

// span is a range of byte values.
type span struct{ lo, hi byte }

// path adds a chain from one node to another that reads one byte of each set after the other.
func (n *nfa) path(from, to int32, sets ...[]span) {
	for i, set := range sets {
		next := to
		if i+1 < len(sets) {
			next = n.node()
		}
		for _, s := range set {
			n.edge(from, int32(s.lo), int32(s.hi), next)
		}
		from = next
	}
}

// utf8 adds the UTF-8 encodings of the code points lo to hi, surrogates left out. The range is
// cut where the number of bytes changes and until every byte of it runs on its own.
func (n *nfa) utf8(from, to, lo, hi int32) {
	for _, limit := range []int32{0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF, lastChar} {
		if lo > hi {
			return
		}
		if lo <= limit {
			if limit != 0xDFFF {
				n.utf8Equal(from, to, lo, min(hi, limit))
			}
			lo = limit + 1
		}
	}
}

func (n *nfa) utf8Equal(from, to, lo, hi int32) {
	var a, b [4]byte
	size := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	for i := 1; i < size; i++ { // the last i bytes must cover all continuations, or the rest be equal
		low := int32(1)<<(6*i) - 1
		if lo&^low != hi&^low {
			if lo&low != 0 {
				n.utf8Equal(from, to, lo, lo|low)
				n.utf8Equal(from, to, (lo|low)+1, hi)
				return
			}
			if hi&low != low {
				n.utf8Equal(from, to, lo, hi&^low-1)
				n.utf8Equal(from, to, hi&^low, hi)
				return
			}
		}
	}
	sets := make([][]span, size)
	for i := range sets {
		sets[i] = []span{{a[i], b[i]}}
	}
	n.path(from, to, sets...)
}

// Ways to write a text as bytes.
const (
	asUTF8   = iota
	asString // a JSON string that escapes what must be
	asFree   // a JSON string that may escape anything
)

// escape adds the ways to write the code points lo to hi in a JSON string: as they are, by a short
// escape, and as \u with four digits, or two of them for a surrogate pair. Unless free, \u is left
// to what cannot be written as it is.
func (n *nfa) escape(from, to, lo, hi int32, free bool) {
	backslash := []span{{'\\', '\\'}}
	for _, r := range [][2]int32{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, lastChar}} {
		if a, b := max(lo, r[0]), min(hi, r[1]); a <= b {
			n.utf8(from, to, a, b)
		}
	}
	const short = "\"\"\\\\//b\bf\fn\nr\rt\t"
	for i := 0; i < len(short); i += 2 {
		if c := int32(short[i+1]); lo <= c && c <= hi {
			n.path(from, to, backslash, []span{{short[i], short[i]}})
		}
	}
	if !free {
		if lo < 0x20 {
			n.unit(from, to, lo, min(hi, 0x1F))
		}
		return
	}
	for _, r := range [][2]int32{{0, 0xD7FF}, {0xE000, 0xFFFF}} {
		if a, b := max(lo, r[0]), min(hi, r[1]); a <= b {
			n.unit(from, to, a, b)
		}
	}
	lo = max(lo, 0x10000)
	for lo <= hi { // whole rows of 1024 low surrogates, and a broken one at each end
		a, b := (lo-0x10000)>>10, (hi-0x10000)>>10
		first, last := int32(0xDC00)+lo&0x3FF, int32(0xDC00)+hi&0x3FF
		end := hi
		if a != b && lo&0x3FF != 0 {
			b, last, end = a, 0xDFFF, lo|0x3FF
		} else if a != b && hi&0x3FF != 0x3FF {
			b, last, end = b-1, 0xDFFF, hi&^0x3FF-1
		}
		middle := n.node()
		n.unit(from, middle, 0xD800+a, 0xD800+b)
		n.unit(middle, to, first, last)
		lo = end + 1
	}
}

// unit adds \uXXXX for the UTF-16 code units lo to hi.
func (n *nfa) unit(from, to, lo, hi int32) {
	a, b := n.node(), n.node()
	n.edge(from, '\\', '\\', a)
	n.edge(a, 'u', 'u', b)
	n.hex(b, to, lo, hi, 12)
}

// hex adds the digits of lo to hi from the one that is worth 1<<shift on.
func (n *nfa) hex(from, to, lo, hi, shift int32) {
	low := int32(1)<<shift - 1
	a, b := lo>>shift, hi>>shift
	if a != b && lo&low != 0 {
		n.hex(from, to, lo, lo|low, shift)
		n.hex(from, to, (lo|low)+1, hi, shift)
		return
	}
	if a != b && hi&low != low {
		n.hex(from, to, lo, hi&^low-1, shift)
		n.hex(from, to, hi&^low, hi, shift)
		return
	}
	next := to
	if shift > 0 {
		next = n.node()
	}
	a, b = a&15, b&15
	for _, r := range []struct{ lo, hi, char int32 }{{0, 9, '0'}, {10, 15, 'a'}, {10, 15, 'A'}} {
		if x, y := max(a, r.lo), min(b, r.hi); x <= y {
			n.edge(from, r.char+x-r.lo, r.char+y-r.lo, next)
		}
	}
	if shift > 0 {
		n.hex(next, to, lo&low, hi&low, shift-4)
	}
}

// encode turns an automaton over code points into one over bytes: UTF-8, or a whole JSON string with
// its quotes.
func (d *dfa) encode(as int) (*dfa, error) {
	quotes := as != asUTF8
	if len(d.edges) == 0 {
		return d, nil
	}
	n := &nfa{}
	for range d.edges {
		n.node()
	}
	start, end := int32(0), n.node()
	for s, es := range d.edges {
		for _, e := range es {
			if quotes {
				n.escape(int32(s), e.to, e.lo, e.hi, as == asFree)
			} else {
				n.utf8(int32(s), e.to, e.lo, e.hi)
			}
			if n.err != nil {
				return nil, n.err
			}
		}
		if d.final[s] && quotes {
			n.edge(int32(s), '"', '"', end)
		} else if d.final[s] {
			n.skip(int32(s), end)
		}
	}
	if quotes {
		start = n.node()
		n.edge(start, '"', '"', 0)
	}
	return n.determinise(start, end)
}
