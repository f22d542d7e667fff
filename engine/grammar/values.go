package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// string returns the rule of the strings of a spec.
func (c *schemas) string(s *spec) (int32, error) {
	if s.maxLength >= 0 && s.maxLength < s.minLength {
		return c.automaton("no string", asString, func() (*dfa, error) { return &dfa{}, nil })
	}
	if len(s.patterns) == 0 && len(s.formats) == 1 && s.minLength == 0 && s.maxLength < 0 {
		return c.format(s.formats[0])
	}
	if len(s.patterns)+len(s.formats) > 0 {
		return c.automaton(s.textKey(), asString, func() (*dfa, error) { return c.text(s) })
	}
	if s.minLength == 0 && s.maxLength < 0 {
		return stringRule, nil
	}
	key := fmt.Sprintf("string %d %d", s.minLength, s.maxLength)
	id, ok := c.ids[key]
	if !ok {
		id = int32(len(c.rules))
		c.rules = append(c.rules, countedString(s.minLength, s.maxLength))
		c.ids[key] = id
	}
	return id, nil
}

// formatStrings keeps the JSON strings of formats: the larger ones take milliseconds.
var formatStrings sync.Map

func (c *schemas) format(f sourced) (int32, error) {
	key := "format " + f.text
	id, ok := c.ids[key]
	if ok {
		return id, nil
	}
	d, ok := formatStrings.Load(f.text)
	if !ok {
		text, err := formatAutomaton(f.text)
		if err == nil {
			text, err = text.encode(asString)
		}
		if err != nil {
			return 0, f.from.fail("format", "%v", err)
		}
		d, _ = formatStrings.LoadOrStore(f.text, text)
	}
	id = int32(len(c.rules))
	c.rules = append(c.rules, &rule{automaton: d.(*dfa)})
	c.ids[key] = id
	return id, nil
}

func (s *spec) textKey() string {
	var parts []string
	for _, p := range s.patterns {
		parts = append(parts, "pattern "+p.text)
	}
	for _, f := range s.formats {
		parts = append(parts, "format "+f.text)
	}
	slices.Sort(parts)
	return fmt.Sprintf("text %d %d %q", s.minLength, s.maxLength, parts)
}

// text is the automaton of the contents of the strings of a spec.
func (c *schemas) text(s *spec) (*dfa, error) {
	d := anything()
	and := func(keyword string, from located, e *dfa, err error) error {
		if err == nil {
			d, err = intersect(d, e)
		}
		if err != nil {
			return from.fail(keyword, "%v", err)
		}
		return nil
	}
	for _, f := range s.formats {
		e, err := formatAutomaton(f.text)
		if err := and("format", f.from, e, err); err != nil {
			return nil, err
		}
	}
	for _, p := range s.patterns {
		e, err := regex(p.text, true)
		if err := and("pattern", p.from, e, err); err != nil {
			return nil, err
		}
	}
	if s.minLength > 0 || s.maxLength >= 0 {
		e, err := lengths(s.minLength, s.maxLength)
		if err := and("maxLength", s.at, e, err); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// number is the text of the numbers of a spec.
func (c *schemas) number(s *spec) (expression, error) {
	fractions := s.types&isFraction != 0
	if s.lower == nil && s.upper == nil && len(s.multiples) == 0 {
		if fractions {
			return call(numberRule), nil
		}
		return anyInteger, nil
	}
	key := fmt.Sprintf("number %v %v %v %v", fractions, s.lower, s.upper, s.multiples)
	id, err := c.automaton(key, asUTF8, func() (*dfa, error) { return s.numbers(fractions) })
	return call(id), err
}

func (b *bound) String() string {
	if b == nil {
		return "none"
	}
	return fmt.Sprint(b.value, b.open)
}

func (s *spec) numbers(fractions bool) (*dfa, error) {
	d := anything()
	for _, m := range s.multiples {
		e, err := multiples(m, fractions)
		if err == nil {
			d, err = intersect(d, e)
		}
		if err != nil {
			return nil, s.multipleAt.fail("multipleOf", "%v", err)
		}
	}
	for i, b := range []*bound{s.lower, s.upper} {
		if b == nil {
			continue
		}
		e, err := b.automaton(i == 0, fractions)
		if err == nil {
			d, err = intersect(d, e)
		}
		if err != nil {
			return nil, s.at.fail([]string{"minimum", "maximum"}[i], "%v", err)
		}
	}
	return d, nil
}

// enumeration is the text of the values of enum and const that the rest of a spec allows.
func (c *schemas) enumeration(s *spec) (expression, error) {
	var out choice
	for _, v := range s.allowed {
		ok, err := c.holds(s, v)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, constant(v))
		}
	}
	return out, nil
}

// holds tells whether a value satisfies a spec, enum and const aside.
func (c *schemas) holds(s *spec, v any) (bool, error) {
	switch v := v.(type) {
	case nil:
		return s.types&isNull != 0, nil
	case bool:
		return s.types&isBoolean != 0, nil
	case string:
		if s.types&isString == 0 {
			return false, nil
		}
		if n := utf8.RuneCountInString(v); n < s.minLength || s.maxLength >= 0 && n > s.maxLength {
			return false, nil
		}
		if len(s.patterns)+len(s.formats) == 0 {
			return true, nil
		}
		d, err := c.text(s)
		return err == nil && d.accepts(v), err
	case json.Number:
		r, ok := rational(v)
		if !ok {
			return false, s.at.fail("enum", "%s has an exponent beyond %d", v, maxExponent)
		}
		if s.types&isFraction == 0 && (s.types&isInteger == 0 || !r.IsInt()) {
			return false, nil
		}
		if s.lower != nil && (r.Cmp(s.lower.value) < 0 || s.lower.open && r.Cmp(s.lower.value) == 0) ||
			s.upper != nil && (r.Cmp(s.upper.value) > 0 || s.upper.open && r.Cmp(s.upper.value) == 0) {
			return false, nil
		}
		return !slices.ContainsFunc(s.multiples, func(m *big.Rat) bool { return !new(big.Rat).Quo(r, m).IsInt() }), nil
	case []any:
		if s.types&isArray == 0 {
			return false, nil
		}
		return true, s.alone("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
	case *object:
		if s.types&isObject == 0 {
			return false, nil
		}
		return true, s.alone("properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties",
			"propertyNames")
	}
	panic(fmt.Sprintf("grammar: %T is no JSON", v))
}

// alone refuses an array or an object in an enumeration beside keywords that restrict it further.
func (s *spec) alone(names ...string) error {
	for _, a := range s.atoms {
		for _, k := range names {
			if _, ok := a.schema.(*object).values[k]; ok {
				return a.fail(k, "it cannot be checked against an array or object that enum or const lists")
			}
		}
	}
	return nil
}

// array is the text of the arrays of a spec.
func (c *schemas) array(s *spec) (expression, error) {
	if s.unique != nil && (s.maxItems < 0 || s.maxItems > 1) {
		return nil, s.unique.fail("uniqueItems", "what was written before is not compared; with maxItems 1 it is allowed")
	}
	if s.contains != nil {
		return nil, s.contains.fail("contains", "it is not supported")
	}
	const limit = 10_000
	fixed := 0
	for _, a := range s.atoms {
		prefix, _, err := elements(a)
		if err != nil {
			return nil, err
		}
		fixed = max(fixed, len(prefix))
	}
	length := max(fixed, s.minItems)
	if s.maxItems >= 0 {
		length = s.maxItems
	}
	if length > limit {
		return nil, s.at.fail("maxItems", "arrays are counted up to %d", limit)
	}
	item := func(i int) (expression, error) {
		var conj []located
		for _, a := range s.atoms {
			prefix, rest, _ := elements(a)
			if i < len(prefix) {
				conj = append(conj, prefix[i])
			} else if rest != nil {
				conj = append(conj, *rest)
			}
		}
		id, err := c.rule(conj)
		return reference(id), err
	}
	rest, err := item(limit) // behind every prefix
	if err != nil {
		return nil, err
	}
	g := graph{nodes: length + 2}
	for i := range length + 1 {
		if i >= s.minItems {
			g.arcs = append(g.arcs, arc{i, length + 1, sequence{blank, literal("]")}})
		}
		comma := sequence{blank}
		if i > 0 {
			comma = sequence{literal(","), blank}
		}
		one := rest
		if i < fixed {
			if one, err = item(i); err != nil {
				return nil, err
			}
		}
		if i < length {
			g.arcs = append(g.arcs, arc{i, i + 1, append(comma, one)})
		}
	}
	if s.maxItems < 0 {
		loop := expression(repeat{sequence{literal(","), blank, rest}, 0, -1})
		if length == 0 { // the first has no comma before it
			return sequence{literal("["), choice{blank, sequence{blank, rest, loop, blank}}, literal("]")}, nil
		}
		g.arcs = append(g.arcs, arc{length, length, sequence{literal(","), blank, rest}})
	}
	return sequence{literal("["), g}, nil
}

// elements returns the schemas of the first elements of an array and that of the others, if any.
func elements(a located) (prefix []located, rest *located, err error) {
	o := a.schema.(*object)
	others := "items"
	list, ok := o.values["prefixItems"]
	key := "prefixItems"
	if old, is := o.values["items"].([]any); is && !ok { // drafts before 2020-12
		list, ok, key, others = old, true, "items", "additionalItems"
	}
	if ok {
		schemas, ok := list.([]any)
		if !ok {
			return nil, nil, a.fail(key, "it must be an array of schemas")
		}
		for i, s := range schemas {
			prefix = append(prefix, a.child(s, key, i))
		}
	}
	if s, ok := o.values[others]; ok {
		l := a.child(s, others)
		rest = &l
	}
	return prefix, rest, nil
}

// sortedKey is a key of several texts in any order.
func sortedKey(texts []string) string {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}
