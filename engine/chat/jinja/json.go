package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// FromJSON reads one JSON value. Objects become *Dict in the order of the text, integers int64
// (or *big.Int beyond its range), other numbers float64.
func FromJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := fromDecoder(dec, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("cannot read JSON: something follows the value")
	}
	return v, nil
}

func fromDecoder(dec *json.Decoder, depth int) (any, error) {
	if depth > maxValueDepth {
		return nil, errors.New("values are nested too deep")
	}
	t, err := dec.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			l := &List{}
			for dec.More() {
				v, err := fromDecoder(dec, depth+1)
				if err != nil {
					return nil, err
				}
				l.Items = append(l.Items, v)
			}
			_, err := dec.Token()
			return l, err
		}
		d := NewDict()
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := fromDecoder(dec, depth+1)
			if err != nil {
				return nil, err
			}
			d.Set(k, v)
		}
		_, err := dec.Token()
		return d, err
	case json.Number:
		s := t.String()
		if !strings.ContainsAny(s, ".eE") {
			if n, err := strconv.ParseInt(s, 10, 64); err == nil {
				return n, nil
			}
			if n, ok := new(big.Int).SetString(s, 10); ok && len(s) < 1000 {
				return n, nil
			}
			return nil, fmt.Errorf("the number %.20s… is too long", s)
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && math.IsInf(f, 0) {
			err = nil // Python reads 1e999 as infinity
		}
		return f, err
	default:
		return t, nil // nil, bool, string
	}
}

// jsonStyle is what transformers' tojson can be asked for; the zero value but for the separators
// is its default.
type jsonStyle struct {
	ascii, sorted bool
	indent        string // per level; multi is set where lines are broken
	multi         bool
	item, key     string // separators
}

// ToJSON writes a value as Python's json.dumps with ensure_ascii off does: ", " and ": " between,
// keys in their order.
func ToJSON(v any) (s string, err error) {
	defer recovered(&err)
	r := newRenderer(Limits{}, 0)
	var b strings.Builder
	r.json(&b, v, jsonStyle{item: ", ", key: ": "}, 0)
	return b.String(), nil
}

func (r *renderer) json(b *strings.Builder, v any, s jsonStyle, depth int) {
	if depth > maxValueDepth {
		r.limit("values are nested too deep")
	}
	r.step(1)
	from := b.Len()
	line := func(d int) {
		if s.multi {
			b.WriteByte('\n')
			for range d {
				b.WriteString(s.indent)
			}
		}
	}
	switch v := plain(v).(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case *big.Int:
		b.WriteString(v.String())
	case float64:
		b.WriteString(jsonFloat(v))
	case string:
		jsonString(b, v, s.ascii)
	case *List:
		b.WriteByte('[')
		for i, x := range v.Items {
			if i > 0 {
				b.WriteString(s.item)
			}
			line(depth + 1)
			r.json(b, x, s, depth+1)
		}
		if len(v.Items) > 0 {
			line(depth)
		}
		b.WriteByte(']')
	case *Dict:
		b.WriteByte('{')
		keys := v.keys
		if s.sorted {
			keys = r.sorted(keys, false, func(x any) any { return x })
		}
		for i, k := range keys {
			if i > 0 {
				b.WriteString(s.item)
			}
			line(depth + 1)
			switch k := k.(type) {
			case string:
				jsonString(b, k, s.ascii)
			default:
				b.WriteByte('"')
				r.json(b, k, s, depth+1)
				b.WriteByte('"')
			}
			b.WriteString(s.key)
			x, _ := v.Get(k)
			r.json(b, x, s, depth+1)
		}
		if len(keys) > 0 {
			line(depth)
		}
		b.WriteByte('}')
	default:
		r.fail("a value of type %s cannot be written as JSON", typeName(v))
	}
	if depth == 0 || s.multi {
		r.charge(b.Len() - from)
	}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return formatFloat(f)
}

func jsonString(b *strings.Builder, s string, ascii bool) {
	b.WriteByte('"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\b':
			b.WriteString(`\b`)
		case c == '\f':
			b.WriteString(`\f`)
		case c < 0x20 || (ascii && c > 0x7e && c < 0x10000):
			fmt.Fprintf(b, `\u%04x`, c)
		case ascii && c >= 0x10000:
			c -= 0x10000
			fmt.Fprintf(b, `\u%04x\u%04x`, 0xd800+(c>>10), 0xdc00+(c&0x3ff))
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}
