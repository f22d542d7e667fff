package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a schema's text.
const (
	maxSchema   = 4 << 20 // bytes
	maxDepth    = 200     // values in values
	maxExponent = 400     // of a number
)

// object is a JSON object with its members in order. Of equal names the last counts.
type object struct {
	names  []string
	values map[string]any
}

func newObject(pairs ...any) *object {
	o := &object{values: map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) set(name string, v any) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = v
}

// parseDocument reads JSON as nil, bool, json.Number, string, []any and *object.
func parseDocument(data []byte) (any, error) {
	if len(data) > maxSchema {
		return nil, fmt.Errorf("it is longer than %d bytes", maxSchema)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the JSON ends too early")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind the JSON")
	}
	return v, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		o := newObject()
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(name.(string), v)
		}
		_, err = d.Token()
		return o, err
	}
	return t, nil
}

// quoted is a JSON string that escapes only what must be.
func quoted(s string) string {
	b := []byte{'"'}
	for _, c := range []byte(strings.ToValidUTF8(s, "\uFFFD")) {
		switch i := strings.IndexByte("\"\\\b\f\n\r\t", c); {
		case i >= 0:
			b = append(b, '\\', `"\bfnrt`[i])
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// rational reads a number exactly. ok is false where its exponent is out of bounds.
func rational(n json.Number) (r *big.Rat, ok bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
	if len(mantissa) > 2*maxExponent {
		return nil, false
	}
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > maxExponent || e < -maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(string(n))
}

// decimal writes a number that has a finite expansion: digits before and behind the point, without
// zeros at the far ends except for a lone 0 before the point.
func decimal(r *big.Rat) (whole, fraction string) {
	places := 0
	denominator := new(big.Int).Set(r.Denom())
	for _, p := range []int64{2, 5} {
		n := 0
		for {
			q, rest := new(big.Int).QuoRem(denominator, big.NewInt(p), new(big.Int))
			if rest.Sign() != 0 {
				break
			}
			denominator = q
			n++
		}
		places = max(places, n)
	}
	whole, fraction, _ = strings.Cut(new(big.Rat).Abs(r).FloatString(places), ".")
	return whole, strings.TrimRight(fraction, "0")
}

// numberText is the one way in which a number of an enumeration is written.
func numberText(n json.Number) string {
	r, ok := rational(n)
	if !ok {
		return string(n)
	}
	text, fraction := decimal(r)
	if fraction != "" {
		text += "." + fraction
	}
	if r.Sign() < 0 {
		text = "-" + text
	}
	return text
}

// equal compares two values as JSON schema does: numbers by value, objects without order.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, ok1 := rational(a)
		y, ok2 := rational(b)
		if !ok1 || !ok2 {
			return a == b
		}
		return x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case *object:
		b, ok := b.(*object)
		if !ok || len(a.names) != len(b.names) {
			return false
		}
		for _, n := range a.names {
			if v, ok := b.values[n]; !ok || !equal(a.values[n], v) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case json.Number, []any, *object:
		return false
	}
	return a == b
}

// constant allows one value, with the blanks that any JSON may have.
func constant(v any) expression {
	switch v := v.(type) {
	case nil:
		return literal("null")
	case bool:
		return literal(strconv.FormatBool(v))
	case json.Number:
		return literal(numberText(v))
	case string:
		return literal(quoted(v))
	case []any:
		s := sequence{literal("[")}
		for i, x := range v {
			if i > 0 {
				s = append(s, literal(","))
			}
			s = append(s, blank, constant(x))
		}
		return append(s, blank, literal("]"))
	case *object:
		s := sequence{literal("{")}
		for i, n := range v.names {
			if i > 0 {
				s = append(s, literal(","))
			}
			s = append(s, blank, literal(quoted(n)), colon, constant(v.values[n]))
		}
		return append(s, blank, literal("}"))
	}
	panic(fmt.Sprintf("grammar: %T is no JSON", v))
}
