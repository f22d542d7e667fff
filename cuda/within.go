//go:build linux && cuda && cgo

package cuda

// A norm or a gate before linear layers happens within the split of their rows, if
// nothing else looks at its result. The bits are the same either way.

// source is the index of the norm or gate that call i, a linear layer, can have within
// its split: −1 if there is none.
func source(calls []call, i int) int {
	if calls[i].kind != linearCall {
		return -1
	}
	for j := i - 1; j >= 0; j-- {
		c := &calls[j]
		if c.kind == linearCall && sameRows(&c.x, &calls[i].x) {
			continue
		}
		if into(calls, j) && sameRows(&c.dst, &calls[i].x) {
			return j
		}
		break
	}
	return -1
}

// headNorm is the norm of heads right before call i, a gate of the same columns, that can
// happen with it: nil if there is none.
func headNorm(calls []call, i int) *call {
	if i == 0 || calls[i].kind != siluCall {
		return nil
	}
	n, c := &calls[i-1], &calls[i]
	if n.kind == normCall && n.dst.heads > 1 && n.rows == c.rows && sameRows(&n.dst, &n.x) && sameRows(&n.dst, &c.x) && sameRows(&c.dst, &c.x) &&
		n.dst.dim >= 8 && n.dst.dim <= 256 && n.dst.dim&(n.dst.dim-1) == 0 {
		return n
	}
	return nil
}

// into tells whether call i is a norm or gate that happens within the splits of the
// linear layers right behind it.
func into(calls []call, i int) bool {
	c := &calls[i]
	switch {
	case c.kind == normCall && c.dst.heads > 1:
		return i+1 < len(calls) && headNorm(calls, i+1) == c && into(calls, i+1)
	case c.kind == normCall && c.dst.heads == 1:
	case c.kind == siluCall && c.dst.solid() && c.x.solid() && c.k.solid():
	default:
		return false
	}
	j := i + 1
	for ; j < len(calls) && calls[j].kind == linearCall && sameRows(&calls[j].x, &c.dst); j++ {
		l := &calls[j]
		// What it is made of must last until the last of them.
		if b := l.dst.buffer; b == c.dst.buffer || (b == c.x.buffer || b == c.k.buffer) && j+1 < len(calls) &&
			calls[j+1].kind == linearCall && sameRows(&calls[j+1].x, &c.dst) {
			return false
		}
		if l.rows != c.rows {
			return false
		}
	}
	if j == i+1 {
		return false
	}
	for ; j < len(calls); j++ { // nobody reads it before it is written anew
		l := &calls[j]
		if l.reads(c.dst.buffer) {
			return false
		}
		if l.dst.buffer == c.dst.buffer {
			return sameRows(&l.dst, &c.dst)
		}
	}
	return false
}

// turnedCalls is how many calls turned finds.
const turnedCalls = 4

// turned tells whether calls begin with norms of the heads of q and of k and their
// rotations, which are one launch then.
func turned(calls []call) bool {
	if len(calls) < turnedCalls {
		return false
	}
	q, k := &calls[0], &calls[1]
	for i, c := range calls[:turnedCalls] {
		if c.dst != calls[i%2].dst || c.rows != q.rows || i < 2 && (c.kind != normCall || c.dst != c.x) || i >= 2 && (c.kind != ropeCall || c.rope != calls[2].rope) {
			return false
		}
	}
	return q.dst.dim == k.dst.dim && q.dst.dim <= 256 && q.number == k.number && 2*len(calls[2].rope.Inverse) <= int(q.dst.dim)
}

// sameRows tells whether two tensors are the same columns, in whatever heads.
func sameRows(a, b *tensor) bool {
	return a.buffer == b.buffer && a.offset == b.offset && a.heads*a.dim == b.heads*b.dim && a.solid() && b.solid()
}

// reads tells whether a call looks at what is in a buffer.
func (c *call) reads(b *buffer) bool {
	if c.x.buffer == b || c.k.buffer == b || c.v.buffer == b || c.a.buffer == b || c.b.buffer == b {
		return true
	}
	switch c.kind {
	case linearCall:
		return c.flags != 0 && c.dst.buffer == b
	case ropeCall, convolveCall:
		return c.dst.buffer == b
	}
	return false
}
