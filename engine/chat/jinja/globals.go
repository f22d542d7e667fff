package jinja

import (
	"fmt"
	"strings"
	"time"
)

// globals are the functions every template can call.
var globals map[string]*function

func init() {
	globals = map[string]*function{}
	for id, f := range map[string]func(*invocation) any{
		"range": rangeOf,
		"dict":  func(c *invocation) any { return dictOf(c) },
		"namespace": func(c *invocation) any {
			d := dictOf(c)
			for _, k := range d.keys {
				if s, ok := k.(string); ok && strings.HasPrefix(s, "_") {
					c.r.fail("the attribute %q of a namespace begins with an underscore; rename it", s)
				}
			}
			return &namespace{d}
		},
		"raise_exception": func(c *invocation) any {
			v := c.bind("raise_exception", 1, "message")[0]
			panic(&Error{Line: c.r.line, Reason: c.r.str(v), Raised: true})
		},
		"strftime_now": func(c *invocation) any {
			return c.r.strftime(c.text(c.bind("strftime_now", 1, "format")[0], ""))
		},
		"joiner": func(c *invocation) any {
			sep, used := c.text(c.bind("joiner", 0, "sep")[0], ", "), false
			return &function{"joiner", func(*invocation) any {
				if !used {
					used = true
					return ""
				}
				return sep
			}}
		},
		"cycler": func(c *invocation) any {
			if len(c.args) == 0 {
				c.r.fail("cycler needs a value")
			}
			items, at := c.args, 0
			d := NewDict()
			d.Set("next", &function{"next", func(*invocation) any { at++; return items[(at-1)%len(items)] }})
			d.Set("reset", &function{"reset", func(*invocation) any { at = 0; return nil }})
			return &namespace{d}
		},
	} {
		globals[id] = &function{id, f}
	}
}

func rangeOf(c *invocation) any {
	a := c.bind("range", 1, "start", "stop", "step")
	from, to, step := int64(0), c.integer(a[0], 0), c.integer(a[2], 1)
	if given(a[1]) {
		from, to = to, c.integer(a[1], 0)
	}
	if step == 0 {
		c.r.fail("the step of a range is 0")
	}
	n := int64(0)
	switch {
	case step > 0 && from < to:
		n = int64((uint64(to)-uint64(from)-1)/uint64(step)) + 1
	case step < 0 && from > to:
		n = int64((uint64(from)-uint64(to)-1)/(-uint64(step))) + 1
	}
	if n > maxRange || n < 0 {
		c.r.limit(fmt.Sprintf("a range has more than %d items", maxRange))
	}
	c.r.charge(16 * int(n))
	l := &List{Items: make([]any, n)}
	for i := range l.Items {
		l.Items[i] = from + int64(i)*step
	}
	return l
}

func dictOf(c *invocation) *Dict {
	d := NewDict()
	for _, a := range c.args {
		switch a := a.(type) {
		case *Dict:
			for i, k := range a.keys {
				d.Set(k, a.values[i])
			}
		default:
			for _, p := range c.r.iterate(a) {
				l, ok := p.(*List)
				if !ok || len(l.Items) != 2 {
					c.r.fail("dict needs pairs")
				}
				d.Set(c.r.key(l.Items[0]), l.Items[1])
			}
		}
	}
	for i, id := range c.names {
		d.Set(id, c.named[i])
	}
	c.r.charge(64 * d.Len())
	return d
}

// strftime formats the time of the rendering. The verbs are C's in the C locale.
func (r *renderer) strftime(f string) string {
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'I': "03", 'M': "04", 'S': "05",
		'y': "06", 'b': "Jan", 'h': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'p': "PM", 'j': "002",
		'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'R': "15:04", 'D': "01/02/06", 'c': time.ANSIC,
		'x': "01/02/06", 'X': "15:04:05", 'f': "000000"}
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 == len(f) {
			b.WriteByte(f[i])
			continue
		}
		i++
		pad := true
		if f[i] == '-' && i+1 < len(f) {
			pad = false
			i++
		}
		var s string
		switch c := f[i]; c {
		case '%':
			s = "%"
		case 'n':
			s = "\n"
		case 't':
			s = "\t"
		case 'f':
			s = fmt.Sprintf("%06d", r.now.Nanosecond()/1000)
		case 'w':
			s = fmt.Sprint(int(r.now.Weekday()))
		case 'u':
			s = fmt.Sprint((int(r.now.Weekday())+6)%7 + 1)
		case 's':
			s = fmt.Sprint(r.now.Unix())
		case 'z', 'Z': // Python's datetime.now() has no zone
		default:
			layout, ok := layouts[c]
			if !ok {
				r.fail("strftime_now does not know %%%c", c)
			}
			s = r.now.Format(layout)
		}
		if !pad {
			if t := strings.TrimLeft(s, "0 "); t != "" || s == "" {
				s = t
			} else {
				s = "0"
			}
		}
		r.charge(len(s))
		b.WriteString(s)
	}
	return b.String()
}
