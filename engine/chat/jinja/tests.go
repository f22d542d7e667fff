package jinja

import (
	"math/big"
	"strings"
	"unicode"
)

// tests by name, what stands after "is". The value is the first argument.
var tests map[string]func(*invocation) bool

func init() {
	kind := func(is func(v any) bool) func(*invocation) bool {
		return func(c *invocation) bool { return is(c.bind("the test", 1, "value")[0]) }
	}
	compare := func(op string) func(*invocation) bool {
		return func(c *invocation) bool {
			a := c.bind("the test", 2, "a", "b")
			return c.r.compare(op, a[0], a[1])
		}
	}
	sized := func(v any) bool {
		switch v.(type) {
		case string, *List, *Dict, *undefined:
			return true
		}
		return false
	}
	integer := func(v any) bool {
		switch v.(type) {
		case int64, *big.Int:
			return true
		}
		return false
	}
	tests = map[string]func(*invocation) bool{
		"defined":   kind(func(v any) bool { _, ok := v.(*undefined); return !ok }),
		"undefined": kind(func(v any) bool { _, ok := v.(*undefined); return ok }),
		"none":      kind(func(v any) bool { return v == nil }),
		"boolean":   kind(func(v any) bool { _, ok := v.(bool); return ok }),
		"true":      kind(func(v any) bool { return v == true }),
		"false":     kind(func(v any) bool { return v == false }),
		"integer":   kind(integer),
		"float":     kind(func(v any) bool { _, ok := v.(float64); return ok }),
		"number": kind(func(v any) bool {
			_, _, _, ok := number(v)
			return ok || integer(v)
		}),
		"string":   kind(func(v any) bool { _, ok := v.(string); return ok }),
		"mapping":  kind(func(v any) bool { _, ok := v.(*Dict); return ok }),
		"sequence": kind(sized),
		"iterable": kind(func(v any) bool { _, ok := v.(*loop); return ok || sized(v) }),
		"callable": kind(func(v any) bool {
			switch v.(type) {
			case *function, *loop:
				return true
			}
			return false
		}),
		"escaped": kind(func(any) bool { return false }),
		"lower":   func(c *invocation) bool { return cased(c.r.str(c.bind("lower", 1, "value")[0]), unicode.IsLower) },
		"upper":   func(c *invocation) bool { return cased(c.r.str(c.bind("upper", 1, "value")[0]), unicode.IsUpper) },
		"odd":     func(c *invocation) bool { return c.modulo(2) == 1 },
		"even":    func(c *invocation) bool { return c.modulo(2) == 0 },
		"divisibleby": func(c *invocation) bool {
			a := c.bind("divisibleby", 2, "value", "num")
			return c.r.equal(c.r.arithmetic("%", a[0], a[1]), int64(0), 0)
		},
		"in": compare("in"),
		"sameas": func(c *invocation) bool {
			a := c.bind("sameas", 2, "value", "other")
			return typeName(a[0]) == typeName(a[1]) && c.r.equal(a[0], a[1], 0)
		},
		"filter": kind(func(v any) bool { s, _ := v.(string); _, ok := filters[s]; return ok }),
		"test":   kind(func(v any) bool { s, _ := v.(string); _, ok := tests[s]; return ok }),
	}
	for op, ids := range map[string]string{"==": "== eq equalto", "!=": "!= ne", "<": "< lt lessthan", ">": "> gt greaterthan", "<=": "<= le", ">=": ">= ge"} {
		for _, id := range strings.Fields(ids) {
			tests[id] = compare(op)
		}
	}
}

func (c *invocation) modulo(n int64) int64 {
	v := c.bind("the test", 1, "value")[0]
	m, ok := c.r.arithmetic("%", v, n).(int64)
	if !ok {
		return -1
	}
	return m
}

// cased is Python's islower and isupper: at least one letter with case, and none of the other.
func cased(s string, want func(rune) bool) bool {
	some := false
	for _, c := range s {
		if want(c) {
			some = true
		} else if unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c) {
			return false
		}
	}
	return some
}
