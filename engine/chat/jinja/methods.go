package jinja

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// method returns a method of a value, or nil. Methods that change a value (append, update, pop)
// are not there: values of a chat template are immutable.
func method(of any, id string) any {
	switch of := of.(type) {
	case string:
		if f, ok := stringMethods[id]; ok {
			return &function{id, func(c *invocation) any {
				c.r.charge(len(of) / 16) // every method reads its string
				return f(c, of)
			}}
		}
	case *Dict:
		if f, ok := dictMethods[id]; ok {
			return &function{id, func(c *invocation) any { return f(c, of) }}
		}
	case *List:
		if f, ok := listMethods[id]; ok {
			return &function{id, func(c *invocation) any { return f(c, of) }}
		}
	}
	return nil
}

func (r *renderer) items(d *Dict) *List {
	r.charge(64 * d.Len())
	l := &List{}
	for i, k := range d.keys {
		l.Items = append(l.Items, &List{Items: []any{k, d.values[i]}, Tuple: true})
	}
	return l
}

var dictMethods = map[string]func(*invocation, *Dict) any{
	"items": func(c *invocation, d *Dict) any { c.bind("items", 0); return c.r.items(d) },
	"keys": func(c *invocation, d *Dict) any {
		c.bind("keys", 0)
		c.r.charge(16 * d.Len())
		return &List{Items: slices.Clone(d.keys)}
	},
	"values": func(c *invocation, d *Dict) any {
		c.bind("values", 0)
		c.r.charge(16 * d.Len())
		return &List{Items: slices.Clone(d.values)}
	},
	"get": func(c *invocation, d *Dict) any {
		a := c.bind("get", 1, "key", "default")
		if v, ok := d.Get(c.r.key(a[0])); ok {
			return v
		}
		if given(a[1]) {
			return a[1]
		}
		return nil
	},
	"copy": func(c *invocation, d *Dict) any { c.bind("copy", 0); return d }, // nothing can change it
}

var listMethods = map[string]func(*invocation, *List) any{
	"index": func(c *invocation, l *List) any {
		v := c.bind("index", 1, "value")[0]
		for i, x := range l.Items {
			if c.r.equal(x, v, 0) {
				return int64(i)
			}
		}
		c.r.fail("the value is not in the list")
		return nil
	},
	"count": func(c *invocation, l *List) any {
		v, n := c.bind("count", 1, "value")[0], int64(0)
		for _, x := range l.Items {
			if c.r.equal(x, v, 0) {
				n++
			}
		}
		return n
	},
	"copy": func(c *invocation, l *List) any { c.bind("copy", 0); return l },
}

var stringMethods map[string]func(*invocation, string) any

func init() {
	plain := func(f func(string) string) func(*invocation, string) any {
		return func(c *invocation, s string) any {
			c.bind("the method", 0)
			c.r.charge(len(s))
			return f(s)
		}
	}
	all := func(is func(rune) bool) func(*invocation, string) any {
		return func(c *invocation, s string) any {
			c.bind("the method", 0)
			return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
		}
	}
	strip := func(left, right bool) func(*invocation, string) any {
		return func(c *invocation, s string) any {
			a := c.bind("strip", 0, "chars")
			in := isSpace
			if given(a[0]) && a[0] != nil {
				chars := c.text(a[0], "")
				in = func(r rune) bool { return strings.ContainsRune(chars, r) }
			}
			if left {
				s = strings.TrimLeftFunc(s, in)
			}
			if right {
				s = strings.TrimRightFunc(s, in)
			}
			return s
		}
	}
	affix := func(has func(s, affix string) bool) func(*invocation, string) any {
		return func(c *invocation, s string) any {
			a := c.bind("startswith", 1, "affix")
			if l, ok := a[0].(*List); ok && l.Tuple {
				return slices.ContainsFunc(l.Items, func(x any) bool { return has(s, c.text(x, "")) })
			}
			return has(s, c.text(a[0], ""))
		}
	}
	// find gives places in characters, as Python does.
	find := func(index func(s, sub string) int, must bool) func(*invocation, string) any {
		return func(c *invocation, s string) any {
			a := c.bind("find", 1, "sub", "start", "end")
			cut, skipped := s, int64(0)
			if given(a[1]) || given(a[2]) {
				runes := []rune(s)
				c.r.charge(4 * len(runes))
				n := int64(len(runes))
				clip := func(i int64) int64 {
					if i < 0 {
						i += n
					}
					return min(max(i, 0), n)
				}
				from, to := c.integer(a[1], 0), clip(c.integer(a[2], n))
				if from > n {
					return int64(-1)
				}
				from = clip(from)
				if from > to {
					return int64(-1)
				}
				cut, skipped = string(runes[from:to]), from
			}
			i := index(cut, c.text(a[0], ""))
			if i < 0 {
				if must {
					c.r.fail("the text is not in the string")
				}
				return int64(-1)
			}
			return skipped + int64(utf8.RuneCountInString(cut[:i]))
		}
	}
	pad := func(left bool) func(*invocation, string) any {
		return func(c *invocation, s string) any {
			a := c.bind("just", 1, "width", "fillchar")
			n := c.integer(a[0], 0) - int64(utf8.RuneCountInString(s))
			if n <= 0 {
				return s
			}
			c.r.charge(len(s) + int(min(n, 1<<40))*4)
			p := strings.Repeat(c.text(a[1], " "), int(n))
			if left {
				return p + s
			}
			return s + p
		}
	}
	partition := func(index func(s, sep string) int, last bool) func(*invocation, string) any {
		return func(c *invocation, s string) any {
			sep := c.text(c.bind("partition", 1, "sep")[0], "")
			if sep == "" {
				c.r.fail("a separator is empty")
			}
			i := index(s, sep)
			switch {
			case i >= 0:
				return &List{Items: []any{s[:i], sep, s[i+len(sep):]}, Tuple: true}
			case last:
				return &List{Items: []any{"", "", s}, Tuple: true}
			}
			return &List{Items: []any{s, "", ""}, Tuple: true}
		}
	}
	stringMethods = map[string]func(*invocation, string) any{
		"upper": plain(upper), "lower": plain(strings.ToLower), "title": plain(title),
		"capitalize": plain(capitalize), "casefold": plain(strings.ToLower),
		"strip": strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
		"find": find(strings.Index, false), "rfind": find(strings.LastIndex, false),
		"index": find(strings.Index, true), "rindex": find(strings.LastIndex, true),
		"isdigit": all(unicode.IsDigit), "isdecimal": all(unicode.IsDigit), "isnumeric": all(unicode.IsNumber),
		"isalpha": all(unicode.IsLetter), "isspace": all(isSpace),
		"isalnum":   all(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"islower":   func(c *invocation, s string) any { c.bind("islower", 0); return cased(s, unicode.IsLower) },
		"isupper":   func(c *invocation, s string) any { c.bind("isupper", 0); return cased(s, unicode.IsUpper) },
		"ljust":     pad(false),
		"rjust":     pad(true),
		"partition": partition(strings.Index, false), "rpartition": partition(strings.LastIndex, true),
		"zfill": func(c *invocation, s string) any {
			n := c.integer(c.bind("zfill", 1, "width")[0], 0) - int64(utf8.RuneCountInString(s))
			if n <= 0 {
				return s
			}
			c.r.charge(len(s) + int(min(n, 1<<40)))
			sign := ""
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign, s = s[:1], s[1:]
			}
			return sign + strings.Repeat("0", int(n)) + s
		},
		"removeprefix": func(c *invocation, s string) any {
			return strings.TrimPrefix(s, c.text(c.bind("removeprefix", 1, "prefix")[0], ""))
		},
		"removesuffix": func(c *invocation, s string) any {
			return strings.TrimSuffix(s, c.text(c.bind("removesuffix", 1, "suffix")[0], ""))
		},
		"count": func(c *invocation, s string) any {
			return int64(strings.Count(s, c.text(c.bind("count", 1, "sub")[0], "")))
		},
		"replace": func(c *invocation, s string) any {
			a := c.bind("replace", 2, "old", "new", "count")
			return c.r.replace(s, c.text(a[0], ""), c.text(a[1], ""), c.integer(a[2], -1))
		},
		"join": func(c *invocation, s string) any {
			var parts []string
			for _, x := range c.r.iterate(c.bind("join", 1, "iterable")[0]) {
				t := c.text(x, "")
				c.r.charge(len(t) + len(s) + 16)
				parts = append(parts, t)
			}
			return strings.Join(parts, s)
		},
		"split":  func(c *invocation, s string) any { return c.split(s, false) },
		"rsplit": func(c *invocation, s string) any { return c.split(s, true) },
		"splitlines": func(c *invocation, s string) any {
			lines := splitLines(s, flag(c.bind("splitlines", 0, "keepends")[0], false))
			c.r.charge(16*len(lines) + len(s))
			out := &List{}
			for _, l := range lines {
				out.Items = append(out.Items, l)
			}
			return out
		},
		"format": formatMethod,
	}
}

func (r *renderer) replace(s, old, to string, n int64) string {
	count := int64(strings.Count(s, old))
	if n >= 0 {
		count = min(count, n)
	}
	if more := int64(len(to) - len(old)); more > 0 && count > 0 && more > (1<<40)/count {
		r.limit("a replacement makes too much text")
	}
	r.charge(len(s) + int(count)*max(len(to)-len(old), 0))
	return strings.Replace(s, old, to, int(count))
}

func (c *invocation) split(s string, right bool) any {
	a := c.bind("split", 0, "sep", "maxsplit")
	n := c.integer(a[1], -1)
	var parts []string
	if given(a[0]) && a[0] != nil {
		sep := c.text(a[0], "")
		if sep == "" {
			c.r.fail("a separator is empty")
		}
		parts = splitBy(s, sep, n, right)
	} else {
		parts = fields(s, n, right)
	}
	c.r.charge(32*len(parts) + len(s))
	out := &List{}
	for _, p := range parts {
		out.Items = append(out.Items, p)
	}
	return out
}

func splitBy(s, sep string, n int64, right bool) []string {
	if n < 0 || n > int64(len(s)) {
		return strings.Split(s, sep)
	}
	if !right {
		return strings.SplitN(s, sep, int(n)+1)
	}
	var parts []string
	for range n {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts = append(parts, s[i+len(sep):])
		s = s[:i]
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return parts
}

// fields splits at white space; with a limit the rest keeps its inner blanks.
func fields(s string, n int64, right bool) []string {
	if n < 0 || n > int64(len(s)) {
		return strings.FieldsFunc(s, isSpace)
	}
	var parts []string
	if right {
		s = strings.TrimRightFunc(s, isSpace)
		for ; n > 0 && s != ""; n-- {
			i := strings.LastIndexFunc(s, isSpace)
			if i < 0 {
				break
			}
			_, w := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+w:])
			s = strings.TrimRightFunc(s[:i], isSpace)
		}
		if s != "" {
			parts = append(parts, s)
		}
		slices.Reverse(parts)
		return parts
	}
	s = strings.TrimLeftFunc(s, isSpace)
	for ; n > 0 && s != ""; n-- {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 {
			break
		}
		parts = append(parts, s[:i])
		s = strings.TrimLeftFunc(s[i:], isSpace)
	}
	if s != "" {
		parts = append(parts, s)
	}
	return parts
}

// splitLines is Python's str.splitlines, with all of its line boundaries.
func splitLines(s string, keep bool) []string {
	var out []string
	for s != "" {
		i := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		if i < 0 {
			return append(out, s)
		}
		_, w := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			w = 2
		}
		if keep {
			out = append(out, s[:i+w])
		} else {
			out = append(out, s[:i])
		}
		s = s[i+w:]
	}
	return out
}

// upper maps ß to SS and the like, which strings.ToUpper does not.
func upper(s string) string { return cases.Upper(language.Und).String(s) }

func capitalize(s string) string {
	_, w := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:w]) + strings.ToLower(s[w:])
}

// title puts the first letter of every run of letters in upper case.
func title(s string) string {
	var b strings.Builder
	in := false
	for _, c := range s {
		if in {
			b.WriteRune(unicode.ToLower(c))
		} else {
			b.WriteRune(unicode.ToTitle(c))
		}
		in = unicode.IsLetter(c)
	}
	return b.String()
}

// formatMethod is str.format with {}, {0}, {name}; format specifications are refused.
func formatMethod(c *invocation, s string) any {
	var b strings.Builder
	auto := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "{{"), strings.HasPrefix(s[i:], "}}"):
			b.WriteByte(s[i])
			i++
		case s[i] == '{':
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				c.r.fail("a { in a format has no }")
			}
			id := s[i+1 : i+end]
			i += end
			n, isIndex := parseIndex(id)
			if id == "" {
				n, isIndex = int64(auto), true
				auto++
			}
			k := slices.Index(c.names, id)
			switch {
			case isIndex && n < int64(len(c.args)):
				b.WriteString(c.r.str(c.args[n]))
			case !isIndex && k >= 0:
				b.WriteString(c.r.str(c.named[k]))
			default:
				c.r.fail("the format asks for {%s}, which was not passed or is not supported", id)
			}
		case s[i] == '}':
			c.r.fail("a } in a format has no {")
		default:
			b.WriteByte(s[i])
		}
		c.r.charge(1)
	}
	c.r.charge(b.Len())
	return b.String()
}

// format is Python's "…" % values for the verbs s, r, d, i, f, x and %%.
func (r *renderer) format(f string, args []any) string {
	var b strings.Builder
	next := 0
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		j := i + 1
		for j < len(f) && strings.IndexByte("-+ 0123456789.", f[j]) >= 0 {
			j++
		}
		if j >= len(f) || j-i > 8 {
			r.fail("a format ends within %%, or its width is too large")
		}
		flags, verb := f[i:j], f[j]
		i = j
		if verb == '%' {
			b.WriteByte('%')
			continue
		}
		if next >= len(args) {
			r.fail("a format has more verbs than values")
		}
		v := args[next]
		next++
		n, x, isInt, isNum := number(v)
		from := b.Len()
		switch {
		case verb == 's':
			fmt.Fprintf(&b, flags+"s", r.str(v))
		case verb == 'r':
			var q strings.Builder
			r.repr(&q, v, 0)
			fmt.Fprintf(&b, flags+"s", q.String())
		case (verb == 'd' || verb == 'i') && isNum:
			if !isInt {
				n = int64(x)
			}
			fmt.Fprintf(&b, flags+"d", n)
		case verb == 'x' && isInt:
			fmt.Fprintf(&b, flags+"x", n)
		case verb == 'f' && isNum:
			fmt.Fprintf(&b, flags+"f", x)
		default:
			r.fail("%%%c does not work with a %s", verb, typeName(v))
		}
		r.charge(b.Len() - from)
	}
	if next < len(args) {
		r.fail("a format has fewer verbs than values")
	}
	return b.String()
}
