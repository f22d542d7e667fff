package jinja

import (
	"fmt"
	"slices"
)

// invocation is a call on its way: to a function, a macro, a filter or a test. For the last two
// the value comes first in args.
type invocation struct {
	r     *renderer
	args  []any
	names []string
	named []any
}

func (r *renderer) invocation(a *arguments, s *scope) *invocation {
	inv := &invocation{r: r}
	for _, e := range a.positional {
		inv.args = append(inv.args, plain(r.eval(e, s)))
	}
	if a.star != nil {
		inv.args = append(inv.args, r.iterate(r.eval(a.star, s))...)
	}
	for i, e := range a.named {
		inv.names = append(inv.names, a.names[i])
		inv.named = append(inv.named, plain(r.eval(e, s)))
	}
	if a.dict != nil {
		d, ok := r.eval(a.dict, s).(*Dict)
		if !ok {
			r.fail("** needs a mapping")
		}
		for i, k := range d.keys {
			id, ok := k.(string)
			if !ok {
				r.fail("** needs strings as keys")
			}
			inv.names = append(inv.names, id)
			inv.named = append(inv.named, d.values[i])
		}
	}
	r.charge(16 * (len(inv.args) + len(inv.named)))
	return inv
}

// missing is the value of a parameter that was not passed.
type missing struct{}

// bind assigns what was passed to parameters. The first required ones must be there; the others
// come back as missing.
func (c *invocation) bind(what string, required int, params ...string) []any {
	if len(c.args) > len(params) {
		c.r.fail("%s takes at most %d arguments, got %d", what, len(params), len(c.args))
	}
	out := make([]any, len(params))
	for i := range out {
		out[i] = missing{}
	}
	copy(out, c.args)
	for i, id := range c.names {
		k := slices.Index(params, id)
		if k < 0 {
			c.r.fail("%s has no argument %q", what, id)
		}
		if _, free := out[k].(missing); !free {
			c.r.fail("%s got the argument %q twice", what, id)
		}
		out[k] = c.named[i]
	}
	for i := range required {
		if _, ok := out[i].(missing); ok {
			c.r.fail("%s needs the argument %q", what, params[i])
		}
	}
	return out
}

// The four below read a bound parameter as one type.

func (c *invocation) text(v any, def string) string {
	switch v := v.(type) {
	case missing:
		return def
	case string:
		return v
	}
	c.r.defined(v)
	c.r.fail("expected a string, got a %s", typeName(v))
	return ""
}

func (c *invocation) integer(v any, def int64) int64 {
	if _, ok := v.(missing); ok {
		return def
	}
	i, _, isInt, ok := number(v)
	if !ok || !isInt {
		c.r.defined(v)
		c.r.fail("expected an integer, got a %s", typeName(v))
	}
	return i
}

func flag(v any, def bool) bool {
	if _, ok := v.(missing); ok {
		return def
	}
	return truth(v)
}

func given(v any) bool { _, ok := v.(missing); return !ok }

func (r *renderer) invoke(f any, inv *invocation) (out any) {
	r.step(1)
	switch f := f.(type) {
	case *function:
		r.nested(func() { out = f.call(inv) })
		return out
	case *loop:
		if f.again == nil {
			r.fail("loop can be called only in a loop marked recursive")
		}
		return f.again(inv.bind("loop", 1, "iterable")[0])
	}
	r.defined(f)
	r.fail("a %s cannot be called", typeName(f))
	return nil
}

// macro makes a macro callable. Its body sees the names of the place where it stands, with the
// values they have when it is called.
func (r *renderer) macro(m *macroDef, home *scope) *function {
	return &function{m.name, func(c *invocation) any {
		s := home.child()
		n := min(len(c.args), len(m.params))
		for i := range n {
			s.vars[m.params[i]] = c.args[i]
		}
		rest := c.args[n:]
		if len(rest) > 0 && !m.varargs {
			r.fail("macro %q takes at most %d arguments, got %d", m.name, len(m.params), len(c.args))
		}
		s.vars["varargs"] = &List{Items: rest, Tuple: true}
		extra := NewDict()
		for i, id := range c.names {
			switch {
			case slices.Contains(m.params, id):
				if _, twice := s.vars[id]; twice {
					r.fail("macro %q got the argument %q twice", m.name, id)
				}
				s.vars[id] = c.named[i]
			case id == "caller" && m.caller:
				s.vars[id] = c.named[i]
			case m.kwargs:
				extra.Set(id, c.named[i])
			default:
				r.fail("macro %q has no argument %q", m.name, id)
			}
		}
		s.vars["kwargs"] = extra
		if _, ok := s.vars["caller"]; !ok && m.caller {
			s.vars["caller"] = &undefined{fmt.Sprintf("macro %q was not called by a call block", m.name)}
		}
		for i, id := range m.params {
			if _, ok := s.vars[id]; ok {
				continue
			}
			if d := i - (len(m.params) - len(m.defaults)); d >= 0 {
				s.vars[id] = r.eval(m.defaults[d], s)
			} else {
				s.vars[id] = &undefined{fmt.Sprintf("parameter %q was not provided", id)}
			}
		}
		return r.capture(func() { r.block(m.body, s) })
	}}
}

func (r *renderer) applyFilter(f *filter, v any, s *scope) any {
	inv := r.invocation(&f.arguments, s)
	if f.name != "escape" && f.name != "e" {
		v = plain(v)
	}
	inv.args = append([]any{v}, inv.args...)
	r.line = f.at()
	return filters[f.name](inv)
}

func (r *renderer) applyFilters(fs []*filter, v any, s *scope) any {
	for _, f := range fs {
		v = r.applyFilter(f, v, s)
	}
	return v
}
