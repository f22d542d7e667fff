package jinja

import (
	"slices"
	"strings"
)

// path reads an attribute by a dotted path, as map(attribute="a.b") does; a number is an index. Where a
// part is undefined, def takes its place unless it is missing.
func (r *renderer) path(v, attribute, def any) any {
	get := func(v, key any) any {
		v = r.subscript(v, key)
		if _, gone := v.(*undefined); gone && given(def) && def != nil {
			return def
		}
		return v
	}
	if i, ok := attribute.(int64); ok {
		return get(v, i)
	}
	p, ok := attribute.(string)
	if !ok {
		r.fail("an attribute is named by a string, not a %s", typeName(attribute))
	}
	for part := range strings.SplitSeq(p, ".") {
		r.step(1)
		if n, ok := parseIndex(part); ok {
			v = get(v, n)
			continue
		}
		v = get(v, part)
	}
	return v
}

func parseIndex(s string) (int64, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := int64(0)
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// sortKey returns what values are sorted by: themselves or an attribute, strings in lower case
// unless the case matters.
func (c *invocation) sortKey(attribute any, caseSensitive bool) func(any) any {
	return func(v any) any {
		if given(attribute) && attribute != nil {
			if p, ok := attribute.(string); ok && strings.Contains(p, ",") {
				l := &List{}
				for one := range strings.SplitSeq(p, ",") {
					l.Items = append(l.Items, fold(c.r.path(v, one, missing{}), caseSensitive))
				}
				return l
			}
			v = c.r.path(v, attribute, missing{})
		}
		return fold(v, caseSensitive)
	}
}

func fold(v any, caseSensitive bool) any {
	if s, ok := v.(string); ok && !caseSensitive {
		return strings.ToLower(s)
	}
	return v
}

func (r *renderer) sorted(items []any, reverse bool, key func(any) any) []any {
	type pair struct{ key, value any }
	pairs := make([]pair, len(items))
	r.charge(48 * len(items))
	for i, v := range items {
		pairs[i] = pair{key(v), v}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		r.step(1)
		x, y := a.key, b.key
		if reverse {
			x, y = y, x
		}
		switch {
		case r.less(x, y, "<"):
			return -1
		case r.less(y, x, "<"):
			return 1
		}
		return 0
	})
	out := make([]any, len(items))
	for i, p := range pairs {
		out[i] = p.value
	}
	return out
}

func extreme(c *invocation, what string, sign int) any {
	a := c.bind(what, 1, "value", "case_sensitive", "attribute")
	items := c.r.iterate(a[0])
	if len(items) == 0 {
		return &undefined{"no aggregated item, the sequence is empty"}
	}
	key := c.sortKey(a[2], flag(a[1], false))
	best := items[0]
	for _, x := range items[1:] {
		if (sign > 0 && c.r.less(key(best), key(x), ">")) || (sign < 0 && c.r.less(key(x), key(best), "<")) {
			best = x
		}
	}
	return best
}

// choose is select, reject, selectattr and rejectattr.
func choose(c *invocation, byAttribute, keep bool) any {
	args := c.args[1:]
	get := func(v any) any { return v }
	if byAttribute {
		if len(args) == 0 {
			c.r.fail("selectattr and rejectattr need the name of an attribute")
		}
		attribute := args[0]
		get = func(v any) any { return c.r.path(v, attribute, missing{}) }
		args = args[1:]
	}
	test := func(v any) bool { return truth(v) }
	if len(args) > 0 {
		id := c.text(args[0], "")
		f, ok := tests[id]
		if !ok {
			c.r.fail("unknown test %q", id)
		}
		test = func(v any) bool {
			return f(&invocation{r: c.r, args: append([]any{v}, args[1:]...), names: c.names, named: c.named})
		}
	}
	out := &List{}
	for _, v := range c.r.iterate(c.args[0]) {
		c.r.step(1)
		if test(get(v)) == keep {
			c.r.charge(16)
			out.Items = append(out.Items, v)
		}
	}
	return out
}

// mapFilter is map("filter", …) and map(attribute=…, default=…).
func mapFilter(c *invocation) any {
	out := &List{}
	items := c.r.iterate(c.args[0])
	if len(c.args) > 1 {
		id := c.text(c.args[1], "")
		f, ok := filters[id]
		if !ok {
			c.r.fail("unknown filter %q", id)
		}
		for _, v := range items {
			c.r.step(1)
			c.r.charge(16)
			out.Items = append(out.Items, f(&invocation{c.r, append([]any{v}, c.args[2:]...), c.names, c.named}))
		}
		return out
	}
	a := (&invocation{r: c.r, names: c.names, named: c.named}).bind("map", 1, "attribute", "default")
	for _, v := range items {
		c.r.charge(16)
		out.Items = append(out.Items, c.r.path(v, a[0], a[1]))
	}
	return out
}

func unique(c *invocation) any {
	a := c.bind("unique", 1, "value", "case_sensitive", "attribute")
	key := c.sortKey(a[2], flag(a[1], false))
	seen, out := NewDict(), &List{}
	for _, v := range c.r.iterate(a[0]) {
		k := c.r.key(key(v))
		if _, ok := seen.Get(k); !ok {
			c.r.charge(64)
			seen.Set(k, nil)
			out.Items = append(out.Items, v)
		}
	}
	return out
}

func dictsort(c *invocation) any {
	a := c.bind("dictsort", 1, "value", "case_sensitive", "by", "reverse")
	d, ok := a[0].(*Dict)
	if !ok {
		c.r.defined(a[0])
		c.r.fail("dictsort needs a mapping, not a %s", typeName(a[0]))
	}
	at := 0
	switch by := c.text(a[2], "key"); by {
	case "key":
	case "value":
		at = 1
	default:
		c.r.fail("dictsort sorts by key or value, not by %q", by)
	}
	sensitive := flag(a[1], false)
	key := func(v any) any { return fold(v.(*List).Items[at], sensitive) }
	return &List{Items: c.r.sorted(c.r.items(d).Items, flag(a[3], false), key)}
}

func groupby(c *invocation) any {
	a := c.bind("groupby", 2, "value", "attribute", "default", "case_sensitive")
	sensitive := flag(a[3], false)
	get := func(v any) any { return c.r.path(v, a[1], a[2]) }
	out := &List{}
	var last any
	for i, v := range c.r.sorted(c.r.iterate(a[0]), false, func(v any) any { return fold(get(v), sensitive) }) {
		k := fold(get(v), sensitive)
		if i == 0 || !c.r.equal(k, last, 0) {
			out.Items = append(out.Items, &List{Items: []any{get(v), &List{}}, Tuple: true})
			last = k
		}
		g := out.Items[len(out.Items)-1].(*List).Items[1].(*List)
		c.r.charge(64)
		g.Items = append(g.Items, v)
	}
	return out
}

func batch(c *invocation) any {
	a := c.bind("batch", 2, "value", "linecount", "fill_with")
	n := int(min(c.integer(a[1], 0), maxRange))
	if n < 1 {
		c.r.fail("batch needs a size of at least 1")
	}
	out := &List{}
	items := c.r.iterate(a[0])
	c.r.charge(16 * len(items))
	for part := range slices.Chunk(items, n) {
		l := &List{Items: slices.Clone(part)}
		if given(a[2]) && a[2] != nil {
			c.r.charge(16 * n)
			for len(l.Items) < n {
				l.Items = append(l.Items, a[2])
			}
		}
		out.Items = append(out.Items, l)
	}
	return out
}

// sliceFilter cuts into n columns, the first ones longer by one.
func sliceFilter(c *invocation) any {
	a := c.bind("slice", 2, "value", "slices", "fill_with")
	n := int(min(c.integer(a[1], 0), maxRange))
	if n < 1 {
		c.r.fail("slice needs at least 1 column")
	}
	items := c.r.iterate(a[0])
	c.r.charge(16 * (len(items) + 4*n))
	each, more := len(items)/n, len(items)%n
	out, at := &List{}, 0
	for i := range n {
		size := each
		if i < more {
			size++
		}
		l := &List{Items: slices.Clone(items[at : at+size])}
		at += size
		if given(a[2]) && a[2] != nil && i >= more {
			l.Items = append(l.Items, a[2])
		}
		out.Items = append(out.Items, l)
	}
	return out
}
