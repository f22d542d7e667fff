package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// List is a Python list, or a tuple.
type List struct {
	Items []any
	Tuple bool
}

// Dict is a mapping that keeps the order in which keys were added, as Python's does.
type Dict struct {
	keys   []any
	values []any
	index  map[any]int // by hashKey
}

// NewDict returns an empty mapping.
func NewDict() *Dict { return &Dict{index: map[any]int{}} }

// Len returns the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Get returns the value of a key.
func (d *Dict) Get(key any) (any, bool) {
	if i, ok := d.index[hashKey(key)]; ok {
		return d.values[i], true
	}
	return nil, false
}

// Set adds a key at the end, or replaces its value where it stands. Keys are strings, numbers,
// bool or nil.
func (d *Dict) Set(key, value any) {
	h := hashKey(key)
	if i, ok := d.index[h]; ok {
		d.values[i] = value
		return
	}
	d.index[h] = len(d.keys)
	d.keys = append(d.keys, key)
	d.values = append(d.values, value)
}

// Entries calls f for each key in order until f returns false.
func (d *Dict) Entries(f func(key, value any) bool) {
	for i, k := range d.keys {
		if !f(k, d.values[i]) {
			return
		}
	}
}

// With returns a copy with one key set; d stays as it is.
func (d *Dict) With(key, value any) *Dict {
	c := NewDict()
	for i, k := range d.keys {
		c.Set(k, d.values[i])
	}
	c.Set(key, value)
	return c
}

// none stands for nil in an index, whose keys must be comparable and tell nil from missing.
type none struct{}

// hashKey makes equal keys the same: True, 1 and 1.0 are one key.
func hashKey(v any) any {
	switch v := v.(type) {
	case nil:
		return none{}
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case float64:
		if i := int64(v); float64(i) == v {
			return i
		}
	case *big.Int:
		return "\x00int" + v.String()
	case *List, *Dict:
		return nil // hashable says no before this is asked
	}
	return v
}

func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int64, float64, string, *big.Int:
		return true
	}
	return false
}

// undefined is what a missing name, key or attribute evaluates to. It prints as nothing, is false
// and empty, and fails on every other use.
type undefined struct{ why string }

// namespace is the one thing a template may change.
type namespace struct{ vars *Dict }

// markup is text that the filters safe and escape made. It is a string in every way but one: text
// added to it with + is escaped, as markupsafe does even where automatic escaping is off.
type markup struct{ s string }

// plain returns the string of markup, and every other value as it is.
func plain(v any) any {
	if m, ok := v.(*markup); ok {
		return m.s
	}
	return v
}

// function is what a template can call.
type function struct {
	name string
	call func(*invocation) any
}

func typeName(v any) string {
	switch v := plain(v).(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *List:
		if v.Tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *loop:
		return "LoopContext"
	}
	return "function"
}

func truth(v any) bool {
	switch v := plain(v).(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// number returns v as an integer or a float; bool counts as a number, as in Python.
func number(v any) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return
}

const maxValueDepth = 100

// equal is Python's ==.
func (r *renderer) equal(a, b any, depth int) bool {
	if depth > maxValueDepth {
		r.limit("values are nested too deep")
	}
	r.step(1)
	a, b = plain(a), plain(b)
	if ai, af, aInt, ok := number(a); ok {
		bi, bf, bInt, ok := number(b)
		if !ok {
			return false
		}
		if aInt && bInt {
			return ai == bi
		}
		return af == bf
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case string:
		s, ok := b.(string)
		return ok && a == s
	case *big.Int:
		n, ok := b.(*big.Int)
		return ok && a.Cmp(n) == 0
	case *List:
		l, ok := b.(*List)
		if !ok || a.Tuple != l.Tuple || len(a.Items) != len(l.Items) {
			return false
		}
		for i := range a.Items {
			if !r.equal(a.Items[i], l.Items[i], depth+1) {
				return false
			}
		}
		return true
	case *Dict:
		d, ok := b.(*Dict)
		if !ok || a.Len() != d.Len() {
			return false
		}
		for i, k := range a.keys {
			v, ok := d.Get(k)
			if !ok || !r.equal(a.values[i], v, depth+1) {
				return false
			}
		}
		return true
	}
	return a == b
}

// less is Python's <; it fails for types that have no order.
func (r *renderer) less(a, b any, op string) bool {
	a, b = plain(a), plain(b)
	_, af, _, aok := number(a)
	_, bf, _, bok := number(b)
	if aok && bok {
		ai, _, aInt, _ := number(a)
		bi, _, bInt, _ := number(b)
		if aInt && bInt {
			return ai < bi
		}
		return af < bf
	}
	if a, ok := a.(string); ok {
		if b, ok := b.(string); ok {
			return a < b
		}
	}
	if x, ok := a.(*List); ok {
		if y, ok := b.(*List); ok && x.Tuple == y.Tuple {
			for i := range min(len(x.Items), len(y.Items)) {
				if !r.equal(x.Items[i], y.Items[i], 0) {
					return r.less(x.Items[i], y.Items[i], op)
				}
			}
			return len(x.Items) < len(y.Items)
		}
	}
	r.defined(a)
	r.defined(b)
	r.fail("%q not supported between %s and %s", op, typeName(a), typeName(b))
	return false
}

// str is Python's str().
func (r *renderer) str(v any) string {
	switch v := plain(v).(type) {
	case string:
		return v
	case *undefined:
		return ""
	case int64:
		return strconv.FormatInt(v, 10)
	case nil, bool, float64:
		return scalar(v)
	}
	var b strings.Builder
	r.repr(&b, v, 0)
	return b.String()
}

func scalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case float64:
		return formatFloat(v)
	}
	return ""
}

// formatFloat is Python's repr of a float: the shortest digits that give it back, an exponent
// below 1e-4 and from 1e16.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func (r *renderer) repr(b *strings.Builder, v any, depth int) {
	if depth > maxValueDepth {
		r.limit("values are nested too deep")
	}
	from := b.Len()
	switch v := v.(type) {
	case *markup:
		b.WriteString("Markup(")
		reprString(b, v.s)
		b.WriteString(")")
	case string:
		reprString(b, v)
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case *big.Int:
		b.WriteString(v.String())
	case *undefined:
		b.WriteString("Undefined")
	case *List:
		open, end := "[", "]"
		if v.Tuple {
			open, end = "(", ")"
			if len(v.Items) == 1 {
				end = ",)"
			}
		}
		b.WriteString(open)
		for i, x := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			r.repr(b, x, depth+1)
		}
		b.WriteString(end)
	case *Dict:
		b.WriteString("{")
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			r.repr(b, k, depth+1)
			b.WriteString(": ")
			r.repr(b, v.values[i], depth+1)
		}
		b.WriteString("}")
	case *namespace:
		b.WriteString("<Namespace ")
		r.repr(b, v.vars, depth+1)
		b.WriteString(">")
	case nil, bool, float64:
		b.WriteString(scalar(v))
	default:
		r.fail("a %s cannot be printed", typeName(v))
	}
	r.charge(b.Len() - from)
}

// reprString is Python's repr of a string: single quotes unless it has only those inside.
func reprString(b *strings.Builder, s string) {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteRune(quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == ' ' || unicode.IsPrint(c):
			b.WriteRune(c)
		default:
			h := strconv.FormatInt(int64(c), 16)
			switch {
			case c < 0x100:
				b.WriteString(`\x` + "00"[len(h):] + h)
			case c < 0x10000:
				b.WriteString(`\u` + "0000"[len(h):] + h)
			default:
				b.WriteString(`\U` + "00000000"[len(h):] + h)
			}
		}
	}
	b.WriteRune(quote)
}

// iterate returns what a for loop goes over: the items of a list, the keys of a mapping, the
// characters of a string.
func (r *renderer) iterate(v any) []any {
	switch v := plain(v).(type) {
	case *List:
		return v.Items
	case *Dict:
		return v.keys
	case *undefined:
		return nil
	case string:
		r.charge(16 * len(v))
		out := make([]any, 0, len(v))
		for _, c := range v {
			out = append(out, string(c))
		}
		return out
	}
	r.fail("a %s cannot be iterated over", typeName(v))
	return nil
}
