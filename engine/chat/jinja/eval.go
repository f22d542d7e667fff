package jinja

import (
	"fmt"
	"strings"
)

func (r *renderer) eval(x expr, s *scope) any {
	r.step(1)
	r.line = x.at()
	switch x := x.(type) {
	case *literal:
		return x.value
	case *name:
		if v, ok := s.lookup(x.id); ok {
			return v
		}
		if f, ok := globals[x.id]; ok {
			return f
		}
		return &undefined{fmt.Sprintf("%q is undefined", x.id)}
	case *sequence:
		l := &List{Tuple: x.tuple, Items: make([]any, len(x.items))}
		for i, e := range x.items {
			l.Items[i] = r.eval(e, s)
		}
		r.charge(16 * len(x.items))
		return l
	case *mapping:
		d := NewDict()
		for i, k := range x.keys {
			d.Set(r.key(r.eval(k, s)), r.eval(x.values[i], s))
		}
		r.charge(64 * len(x.keys))
		return d
	case *attribute:
		return r.attribute(r.eval(x.of, s), x.name)
	case *subscript:
		of := r.eval(x.of, s)
		key := r.eval(x.key, s)
		r.line = x.at()
		return r.subscript(of, key)
	case *slice:
		var parts [3]any
		of := r.eval(x.of, s)
		for i, e := range []expr{x.from, x.to, x.step} {
			if e != nil {
				parts[i] = r.eval(e, s)
			}
		}
		return r.slice(of, parts)
	case *call:
		f := r.eval(x.callee, s)
		inv := r.invocation(&x.arguments, s)
		r.line = x.at()
		return r.invoke(f, inv)
	case *filter:
		return r.applyFilter(x, r.eval(x.of, s), s)
	case *test:
		v := plain(r.eval(x.of, s))
		inv := r.invocation(&x.arguments, s)
		inv.args = append([]any{v}, inv.args...)
		r.line = x.at()
		return tests[x.name](inv) != x.negated
	case *unary:
		return r.unary(x.op, r.eval(x.x, s))
	case *binary:
		a := r.eval(x.a, s)
		switch x.op { // the value, not its truth, as in Python
		case "and":
			if !truth(a) {
				return a
			}
			return r.eval(x.b, s)
		case "or":
			if truth(a) {
				return a
			}
			return r.eval(x.b, s)
		}
		b := r.eval(x.b, s)
		r.line = x.at()
		return r.arithmetic(x.op, a, b)
	case *comparison:
		a := r.eval(x.first, s)
		for i, op := range x.ops {
			b := r.eval(x.rest[i], s)
			r.line = x.at()
			if !r.compare(op, a, b) {
				return false
			}
			a = b
		}
		return true
	case *concat:
		var b strings.Builder
		for _, e := range x.parts {
			part := r.str(r.eval(e, s))
			r.charge(len(part))
			b.WriteString(part)
		}
		return b.String()
	case *conditional:
		if truth(r.eval(x.cond, s)) {
			return r.eval(x.then, s)
		}
		if x.other == nil {
			return &undefined{"the condition is false and there is no else"}
		}
		return r.eval(x.other, s)
	}
	r.fail("unknown expression")
	return nil
}

// defined fails where v is undefined.
func (r *renderer) defined(v any) {
	if u, ok := v.(*undefined); ok {
		r.fail("%s", u.why)
	}
}

func (r *renderer) key(v any) any {
	v = plain(v)
	if !hashable(v) {
		r.defined(v)
		r.fail("a %s cannot be a key", typeName(v))
	}
	return v
}

// attribute is a.b: a method first, then a key.
func (r *renderer) attribute(of any, id string) any {
	of = plain(of)
	r.defined(of)
	switch of := of.(type) {
	case *loop:
		return of.attribute(id)
	case *namespace:
		if v, ok := of.vars.Get(id); ok {
			return v
		}
	case *Dict:
		if m := method(of, id); m != nil {
			return m
		}
		if v, ok := of.Get(id); ok {
			return v
		}
	default:
		if m := method(of, id); m != nil {
			return m
		}
	}
	return &undefined{fmt.Sprintf("a %s has no attribute %q", typeName(of), id)}
}

// subscript is a[b]: a key or an index first, then a method.
func (r *renderer) subscript(of, key any) any {
	of, key = plain(of), plain(key)
	r.defined(of)
	missing := func() any {
		return &undefined{fmt.Sprintf("a %s has no element %s", typeName(of), r.brief(key))}
	}
	switch c := of.(type) {
	case *Dict:
		if hashable(key) {
			if v, ok := c.Get(key); ok {
				return v
			}
		}
	case *List:
		if i, ok := index(key, len(c.Items)); ok {
			return c.Items[i]
		}
	case string:
		if n, ok := key.(int64); ok {
			runes := []rune(c)
			r.charge(4 * len(runes))
			if i, ok := index(n, len(runes)); ok {
				return string(runes[i])
			}
		}
	}
	if id, ok := key.(string); ok {
		if _, isDict := of.(*Dict); !isDict {
			return r.attribute(of, id)
		}
		if m := method(of, id); m != nil {
			return m
		}
	}
	return missing()
}

// brief describes a key in an error.
func (r *renderer) brief(v any) string {
	switch v := v.(type) {
	case string:
		if len(v) > 40 {
			v = v[:40] + "…"
		}
		return fmt.Sprintf("%q", v)
	case int64, float64, bool:
		return fmt.Sprint(v)
	}
	return "of that kind"
}

func index(key any, n int) (int, bool) {
	i, _, isInt, ok := number(key)
	if !ok || !isInt {
		return 0, false
	}
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

func (r *renderer) slice(of any, parts [3]any) any {
	of = plain(of)
	r.defined(of)
	var runes []rune
	var n int
	l, isList := of.(*List)
	if isList {
		n = len(l.Items)
	} else if s, ok := of.(string); ok {
		runes = []rune(s)
		n = len(runes)
	} else {
		r.fail("a %s cannot be sliced", typeName(of))
	}
	at := func(v any, def int64) int64 {
		if v == nil {
			return def
		}
		i, _, isInt, ok := number(v)
		if !ok || !isInt {
			r.defined(v)
			r.fail("the bounds of a slice are integers, not %s", typeName(v))
		}
		return i
	}
	step := at(parts[2], 1)
	if step == 0 {
		r.fail("the step of a slice is 0")
	}
	lo, hi := int64(0), int64(n)
	if step < 0 {
		lo, hi = -1, int64(n)-1
	}
	clip := func(v any, def int64) int64 {
		if v == nil {
			return def
		}
		i := at(v, 0)
		if i < 0 {
			i += int64(n)
		}
		return min(max(i, lo), hi)
	}
	from, to := clip(parts[0], lo), clip(parts[1], hi)
	if step < 0 {
		from, to = clip(parts[0], hi), clip(parts[1], lo)
	}
	var picked []int
	if step > 0 {
		for i := from; i < to; i += min(step, int64(n)+1) {
			picked = append(picked, int(i))
		}
	} else {
		for i := from; i > to; i += max(step, -int64(n)-1) {
			picked = append(picked, int(i))
		}
	}
	r.charge(16*len(picked) + 4*len(runes))
	if isList {
		out := &List{Tuple: l.Tuple, Items: make([]any, len(picked))}
		for k, i := range picked {
			out.Items[k] = l.Items[i]
		}
		return out
	}
	out := make([]rune, len(picked))
	for k, i := range picked {
		out[k] = runes[i]
	}
	return string(out)
}

func (r *renderer) unary(op string, v any) any {
	if op == "not" {
		return !truth(v)
	}
	r.defined(v)
	i, f, isInt, ok := number(v)
	switch {
	case !ok:
		r.fail("%s needs a number, not a %s", op, typeName(v))
	case op == "-" && isInt:
		return -i
	case op == "-":
		return -f
	case isInt:
		return i
	}
	return f
}

func (r *renderer) compare(op string, a, b any) bool {
	switch op {
	case "==":
		return r.equal(a, b, 0)
	case "!=":
		return !r.equal(a, b, 0)
	case "<":
		return r.less(a, b, op)
	case ">":
		return r.less(b, a, op)
	case "<=":
		return r.less(a, b, op) || r.equal(a, b, 0)
	case ">=":
		return r.less(b, a, op) || r.equal(a, b, 0)
	case "in":
		return r.contains(b, a)
	}
	return !r.contains(b, a)
}

func (r *renderer) contains(in, v any) bool {
	in, v = plain(in), plain(v)
	switch in := in.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			r.defined(v)
			r.fail("\"in\" a string needs a string, not a %s", typeName(v))
		}
		r.step(len(in) / 64)
		return strings.Contains(in, s)
	case *Dict:
		if !hashable(v) {
			if _, ok := v.(*undefined); ok {
				return false
			}
			r.key(v)
		}
		_, ok := in.Get(v)
		return ok
	case *List:
		for _, x := range in.Items {
			if r.equal(x, v, 0) {
				return true
			}
		}
		return false
	case *undefined:
		return false
	}
	r.fail("\"in\" needs a string, a list or a mapping, not a %s", typeName(in))
	return false
}
