package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// filters by name. A filter gets its value as the first argument. Set in init, because some
// filters apply others by name.
var filters map[string]func(*invocation) any

func init() {
	filters = map[string]func(*invocation) any{
		"abs": func(c *invocation) any {
			v := c.bind("abs", 1, "x")[0]
			i, f, isInt, ok := number(v)
			if !ok {
				c.r.fail("abs needs a number, not a %s", typeName(v))
			}
			if isInt {
				return max(i, -i)
			}
			return math.Abs(f)
		},
		"attr": func(c *invocation) any {
			a := c.bind("attr", 2, "obj", "name")
			id := c.text(a[1], "")
			if d, ok := a[0].(*Dict); ok { // attributes only, never keys
				if m := method(d, id); m != nil {
					return m
				}
				return &undefined{"a dict has no attribute " + strconv.Quote(id)}
			}
			return c.r.attribute(a[0], id)
		},
		"batch": batch, "capitalize": textFilter(capitalize), "center": center, "count": length, "d": defaultTo,
		"default": defaultTo, "dictsort": dictsort, "e": escape, "escape": escape,
		"first": func(c *invocation) any {
			items := c.r.iterate(c.bind("first", 1, "seq")[0])
			if len(items) == 0 {
				return &undefined{"no first item, the sequence is empty"}
			}
			return items[0]
		},
		"float": toFloat, "forceescape": escape,
		"format": func(c *invocation) any {
			c.r.defined(c.args[0])
			return c.r.format(c.r.str(c.args[0]), c.args[1:])
		},
		"groupby": groupby, "indent": indent, "int": toInt,
		"items": func(c *invocation) any {
			v := c.bind("items", 1, "value")[0]
			switch v := v.(type) {
			case *undefined:
				return &List{}
			case *Dict:
				return c.r.items(v)
			}
			c.r.fail("items needs a mapping, not a %s", typeName(v))
			return nil
		},
		"join": join,
		"last": func(c *invocation) any {
			items := c.r.iterate(c.bind("last", 1, "seq")[0])
			if len(items) == 0 {
				return &undefined{"no last item, the sequence is empty"}
			}
			return items[len(items)-1]
		},
		"length": length,
		"list": func(c *invocation) any {
			items := c.r.iterate(c.bind("list", 1, "value")[0])
			c.r.charge(16 * len(items))
			return &List{Items: slices.Clone(items)}
		},
		"lower": textFilter(strings.ToLower), "map": mapFilter,
		"max":    func(c *invocation) any { return extreme(c, "max", 1) },
		"min":    func(c *invocation) any { return extreme(c, "min", -1) },
		"reject": func(c *invocation) any { return choose(c, false, false) },
		"rejectattr": func(c *invocation) any {
			return choose(c, true, false)
		},
		"replace": func(c *invocation) any {
			a := c.bind("replace", 3, "s", "old", "new", "count")
			n := int64(-1)
			if given(a[3]) && a[3] != nil {
				n = c.integer(a[3], -1)
			}
			return c.r.replace(c.r.str(a[0]), c.r.str(a[1]), c.r.str(a[2]), n)
		},
		"reverse": func(c *invocation) any {
			v := c.bind("reverse", 1, "value")[0]
			items := slices.Clone(c.r.iterate(v))
			slices.Reverse(items)
			c.r.charge(16 * len(items))
			if _, ok := v.(string); ok {
				var b strings.Builder
				for _, x := range items {
					b.WriteString(x.(string))
				}
				return b.String()
			}
			return &List{Items: items}
		},
		"round": round, "safe": safe,
		"select": func(c *invocation) any { return choose(c, false, true) },
		"selectattr": func(c *invocation) any {
			return choose(c, true, true)
		},
		"slice": sliceFilter,
		"sort": func(c *invocation) any {
			a := c.bind("sort", 1, "value", "reverse", "case_sensitive", "attribute")
			out := c.r.sorted(c.r.iterate(a[0]), flag(a[1], false), c.sortKey(a[3], flag(a[2], false)))
			return &List{Items: out}
		},
		"string": textFilter(func(s string) string { return s }),
		"sum": func(c *invocation) any {
			a := c.bind("sum", 1, "iterable", "attribute", "start")
			total := any(int64(0))
			if given(a[2]) {
				total = a[2]
			}
			for _, x := range c.r.iterate(a[0]) {
				if given(a[1]) && a[1] != nil {
					x = c.r.path(x, a[1], missing{})
				}
				total = c.r.arithmetic("+", total, x)
			}
			return total
		},
		"title": textFilter(title), "tojson": tojson,
		"trim": func(c *invocation) any {
			a := c.bind("trim", 1, "value", "chars")
			s := c.r.str(a[0])
			c.r.charge(len(s))
			if given(a[1]) && a[1] != nil {
				return strings.Trim(s, c.text(a[1], ""))
			}
			return strings.TrimFunc(s, isSpace)
		},
		"truncate": truncate, "unique": unique,
		"upper": textFilter(upper),
		"wordcount": func(c *invocation) any {
			return int64(len(strings.FieldsFunc(c.r.str(c.bind("wordcount", 1, "s")[0]), isSpace)))
		},
	}
}

// textFilter is a filter from text to text without arguments.
func textFilter(f func(string) string) func(*invocation) any {
	return func(c *invocation) any {
		s := c.r.str(c.bind("the filter", 1, "s")[0])
		c.r.charge(len(s))
		return f(s)
	}
}

func length(c *invocation) any {
	switch v := c.bind("length", 1, "obj")[0].(type) {
	case string:
		return int64(utf8.RuneCountInString(v))
	case *List:
		return int64(len(v.Items))
	case *Dict:
		return int64(v.Len())
	case *undefined:
		return int64(0)
	case *loop:
		return int64(len(v.items))
	default:
		c.r.fail("a %s has no length", typeName(v))
	}
	return nil
}

func defaultTo(c *invocation) any {
	a := c.bind("default", 1, "value", "default_value", "boolean")
	_, missing := a[0].(*undefined)
	if missing || (flag(a[2], false) && !truth(a[0])) {
		if !given(a[1]) {
			return ""
		}
		return a[1]
	}
	return a[0]
}

func escape(c *invocation) any {
	v := c.bind("escape", 1, "s")[0]
	if m, ok := v.(*markup); ok {
		return m
	}
	s := escapeHTML(c.r.str(v))
	c.r.charge(len(s))
	return &markup{s}
}

func safe(c *invocation) any {
	s := c.r.str(c.bind("safe", 1, "value")[0])
	c.r.charge(len(s))
	return &markup{s}
}

var html = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func escapeHTML(s string) string { return html.Replace(s) }

func toInt(c *invocation) any {
	a := c.bind("int", 1, "value", "default", "base")
	def := any(int64(0))
	if given(a[1]) {
		def = a[1]
	}
	if s, ok := a[0].(string); ok {
		s = strings.ReplaceAll(strings.TrimFunc(s, isSpace), "_", "")
		if n, err := strconv.ParseInt(s, int(min(max(c.integer(a[2], 10), 2), 36)), 64); err == nil {
			return n
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.Abs(f) >= 1<<63 || f != f {
			return def
		}
		return int64(f)
	}
	i, f, isInt, ok := number(a[0])
	switch {
	case !ok, f != f, math.Abs(f) >= 1<<63 && !isInt:
		return def
	case isInt:
		return i
	}
	return int64(f)
}

func toFloat(c *invocation) any {
	a := c.bind("float", 1, "value", "default")
	def := any(0.0)
	if given(a[1]) {
		def = a[1]
	}
	if s, ok := a[0].(string); ok {
		f, err := strconv.ParseFloat(strings.TrimFunc(s, isSpace), 64)
		if err != nil {
			return def
		}
		return f
	}
	if _, f, _, ok := number(a[0]); ok {
		return f
	}
	return def
}

func round(c *invocation) any {
	a := c.bind("round", 1, "value", "precision", "method")
	_, f, isInt, ok := number(a[0])
	if !ok {
		c.r.defined(a[0])
		c.r.fail("round needs a number, not a %s", typeName(a[0]))
	}
	p := c.integer(a[1], 0)
	scale := math.Pow(10, float64(p))
	switch m := c.text(a[2], "common"); m {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	case "common":
	default:
		c.r.fail("round knows common, ceil and floor, not %q", m)
	}
	if isInt {
		if p >= 0 {
			return a[0]
		}
		return int64(math.RoundToEven(f*scale) / scale)
	}
	if p < 0 || p > 300 {
		return math.RoundToEven(f*scale) / scale
	}
	// Rounding the decimal form is exact; scaling in binary is not (2.675 is below its half).
	out, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(p), 64), 64)
	return out
}

func join(c *invocation) any {
	a := c.bind("join", 1, "value", "d", "attribute")
	sep := ""
	if given(a[1]) {
		sep = c.r.str(a[1])
	}
	var parts []string
	for _, x := range c.r.iterate(a[0]) {
		c.r.step(1)
		if given(a[2]) && a[2] != nil {
			x = c.r.path(x, a[2], missing{})
		}
		s := c.r.str(x)
		c.r.charge(len(s) + len(sep))
		parts = append(parts, s)
	}
	return strings.Join(parts, sep)
}

// indent is jinja2's: the first line and blank lines stay as they are unless asked for.
func indent(c *invocation) any {
	a := c.bind("indent", 1, "s", "width", "first", "blank")
	s := c.r.str(a[0])
	pad, isText := a[1].(string)
	if !isText {
		n := c.integer(a[1], 4)
		if n > 1000 {
			c.r.limit("an indentation is too wide")
		}
		pad = strings.Repeat(" ", int(max(n, 0)))
	}
	first, blank := flag(a[2], false), flag(a[3], false)
	s += "\n" // jinja2 adds it so that a last newline is not lost
	var lines []string
	if blank {
		lines = strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	} else {
		lines = splitLines(s, false)
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if (i > 0 && (blank || line != "")) || (i == 0 && first) {
			b.WriteString(pad)
		}
		b.WriteString(line)
	}
	c.r.charge(b.Len())
	return b.String()
}

func tojson(c *invocation) any {
	a := c.bind("tojson", 1, "x", "ensure_ascii", "indent", "separators", "sort_keys")
	s := jsonStyle{item: ", ", key: ": ", ascii: flag(a[1], false), sorted: flag(a[4], false)}
	if given(a[2]) && a[2] != nil {
		s.multi = true
		s.item = ","
		if pad, ok := a[2].(string); ok {
			s.indent = pad
		} else {
			n := c.integer(a[2], 0)
			if n > 1000 {
				c.r.limit("an indentation is too wide")
			}
			s.indent = strings.Repeat(" ", int(max(n, 0)))
		}
	}
	if given(a[3]) && a[3] != nil {
		l, ok := a[3].(*List)
		if !ok || len(l.Items) != 2 {
			c.r.fail("separators of tojson are two strings")
		}
		s.item, s.key = c.text(l.Items[0], ""), c.text(l.Items[1], "")
	}
	var b strings.Builder
	c.r.json(&b, a[0], s, 0)
	return b.String()
}

func truncate(c *invocation) any {
	a := c.bind("truncate", 1, "s", "length", "killwords", "end", "leeway")
	s, n, end := []rune(c.r.str(a[0])), c.integer(a[1], 255), []rune(c.text(a[3], "..."))
	c.r.charge(4 * len(s))
	if n < int64(len(end)) {
		c.r.fail("truncate needs a length of at least that of its end, %d", len(end))
	}
	if int64(len(s)) <= n+c.integer(a[4], 5) {
		return string(s)
	}
	cut := string(s[:n-int64(len(end))])
	if !flag(a[2], false) {
		if i := strings.LastIndexByte(cut, ' '); i >= 0 {
			cut = cut[:i]
		}
	}
	return cut + string(end)
}

func center(c *invocation) any {
	a := c.bind("center", 1, "value", "width")
	s, w := c.r.str(a[0]), c.integer(a[1], 80)
	pad := int(min(w, 1<<20)) - utf8.RuneCountInString(s)
	if pad <= 0 {
		return s
	}
	left := pad / 2
	if pad%2 == 1 && w%2 == 1 { // Python puts the odd blank by the parity of the width
		left++
	}
	c.r.charge(len(s) + pad)
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", pad-left)
}
