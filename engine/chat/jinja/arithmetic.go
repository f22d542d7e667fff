package jinja

import (
	"math"
	"strings"
)

func (r *renderer) arithmetic(op string, a, b any) any {
	r.defined(a)
	r.defined(b)
	if op == "+" {
		if m, ok := r.joinMarkup(a, b); ok {
			return m
		}
	}
	a, b = plain(a), plain(b)
	ai, af, aInt, aNum := number(a)
	bi, bf, bInt, bNum := number(b)
	if aNum && bNum {
		if aInt && bInt {
			if v, ok := r.integers(op, ai, bi); ok {
				return v
			}
		}
		return r.floats(op, af, bf)
	}
	switch op {
	case "+":
		if a, ok := a.(string); ok {
			if b, ok := b.(string); ok {
				r.charge(len(a) + len(b))
				return a + b
			}
		}
		if x, ok := a.(*List); ok {
			if y, ok := b.(*List); ok && x.Tuple == y.Tuple {
				r.charge(16 * (len(x.Items) + len(y.Items)))
				return &List{Tuple: x.Tuple, Items: append(append([]any{}, x.Items...), y.Items...)}
			}
		}
	case "*":
		if aNum && aInt {
			a, bi, bInt = b, ai, true
		}
		if !bInt {
			break
		}
		n := max(bi, 0)
		many := func(size int) {
			if size > 0 && n > math.MaxInt32/int64(size) {
				r.limit("a value is repeated too often")
			}
			r.charge(size * int(n))
		}
		switch a := a.(type) {
		case string:
			if a == "" {
				return ""
			}
			many(len(a))
			return strings.Repeat(a, int(n))
		case *List:
			out := &List{Tuple: a.Tuple}
			if len(a.Items) == 0 {
				return out
			}
			many(16 * len(a.Items))
			for range n {
				out.Items = append(out.Items, a.Items...)
			}
			return out
		}
	case "%":
		if f, ok := a.(string); ok {
			args := []any{b}
			if l, ok := b.(*List); ok && l.Tuple {
				args = l.Items
			}
			return r.format(f, args)
		}
	}
	r.fail("%s does not work between %s and %s", op, typeName(a), typeName(b))
	return nil
}

// joinMarkup adds two strings of which one at least is markup; the other is escaped.
func (r *renderer) joinMarkup(a, b any) (*markup, bool) {
	_, am := a.(*markup)
	_, bm := b.(*markup)
	if !am && !bm {
		return nil, false
	}
	var parts [2]string
	for i, v := range []any{a, b} {
		switch v := v.(type) {
		case *markup:
			parts[i] = v.s
		case string:
			parts[i] = escapeHTML(v)
		default:
			return nil, false
		}
	}
	r.charge(len(parts[0]) + len(parts[1]))
	return &markup{parts[0] + parts[1]}, true
}

// integers computes with int64 and fails where Python would go on with larger integers.
func (r *renderer) integers(op string, a, b int64) (any, bool) {
	overflow := func() { r.fail("the result of %d %s %d does not fit an integer", a, op, b) }
	switch op {
	case "+":
		c := a + b
		if (c > a) != (b > 0) && b != 0 {
			overflow()
		}
		return c, true
	case "-":
		c := a - b
		if (c < a) != (b > 0) && b != 0 {
			overflow()
		}
		return c, true
	case "*":
		return r.multiply(a, b, overflow), true
	case "//", "%":
		if b == 0 {
			r.fail("division by zero")
		}
		q, m := int64(0), int64(0)
		if b == -1 {
			q = -a // also MinInt64 / -1, which must not trap
		} else {
			q, m = a/b, a%b
		}
		if m != 0 && (m < 0) != (b < 0) { // Python rounds down
			q, m = q-1, m+b
		}
		if op == "//" {
			return q, true
		}
		return m, true
	case "**":
		if b < 0 {
			return nil, false
		}
		c := int64(1)
		if a == 0 || a == 1 || a == -1 {
			if b%2 == 1 || (b > 0 && a != -1) {
				return a, true
			}
			return c, true
		}
		for range b {
			c = r.multiply(c, a, overflow)
		}
		return c, true
	}
	return nil, false
}

func (r *renderer) multiply(a, b int64, overflow func()) int64 {
	c := a * b
	if a != 0 && (c/a != b || (a == -1 && b == math.MinInt64)) {
		overflow()
	}
	return c
}

func (r *renderer) floats(op string, a, b float64) any {
	if b == 0 && (op == "/" || op == "//" || op == "%") {
		r.fail("division by zero")
	}
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	case "%":
		m := math.Mod(a, b)
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m
	}
	return math.Pow(a, b)
}
