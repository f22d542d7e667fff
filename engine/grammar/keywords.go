package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// What is done with a keyword.
const (
	refused    = iota
	annotation // says nothing about which values are valid
	applies    // gathered with other schemas of the same value, or defines them
	constrains // read into a spec
	dependent  // without meaning of its own
)

// keywords are all that are known. Others are refused, since a misspelt keyword that is ignored
// is a constraint that nobody enforces.
var keywords = map[string]int{
	"$schema": annotation, "$id": applies, "id": annotation, "$comment": annotation, "$anchor": applies, "$dynamicAnchor": applies,
	"$vocabulary": annotation, "$defs": applies, "definitions": applies,
	"title": annotation, "description": annotation, "default": annotation, "example": annotation, "examples": annotation,
	"deprecated": annotation, "readOnly": annotation, "writeOnly": annotation, "strict": annotation, "externalDocs": annotation,
	"xml": annotation, "contentEncoding": annotation, "contentMediaType": annotation, "contentSchema": annotation,

	"$ref": applies, "allOf": applies, "anyOf": applies, "oneOf": applies, "dependentRequired": applies, "dependentSchemas": applies,

	"type": constrains, "nullable": dependent, "enum": constrains, "const": constrains, "not": constrains, "format": constrains,
	"minimum": constrains, "maximum": constrains, "exclusiveMinimum": constrains, "exclusiveMaximum": constrains, "multipleOf": constrains,
	"minLength": constrains, "maxLength": constrains, "pattern": constrains,
	"items": constrains, "prefixItems": constrains, "additionalItems": constrains, "minItems": constrains, "maxItems": constrains,
	"uniqueItems": constrains, "contains": constrains, "minContains": dependent, "maxContains": dependent,
	"properties": constrains, "patternProperties": constrains, "additionalProperties": constrains, "required": constrains,
	"minProperties": constrains, "maxProperties": constrains, "propertyNames": constrains,

	"if": dependent, "then": dependent, "else": dependent,
}

// check refuses the keywords that are not known or not enforced.
func (c *schemas) check(l located, o *object) error {
	for _, k := range o.names {
		switch {
		case keywords[k] == refused && strings.HasPrefix(k, "x-"):
		case keywords[k] == refused:
			return l.fail(k, "it is not supported")
		case k == "$id" && l.at != "#" && !strings.HasPrefix(fmt.Sprint(o.values[k]), "#"):
			return l.fail(k, "a schema with an address of its own inside another is not supported")
		}
	}
	if _, ok := o.values["if"]; ok {
		_, then := o.values["then"]
		_, otherwise := o.values["else"]
		if then || otherwise {
			return l.fail("if", "conditions are not supported; write the cases as anyOf")
		}
	}
	return nil
}

// Types of values. A number is isInteger, and isFraction where it need not be whole.
const (
	isNull = 1 << iota
	isBoolean
	isInteger
	isFraction
	isString
	isArray
	isObject
	anyType = isNull | isBoolean | isInteger | isFraction | isString | isArray | isObject
)

var typeNames = map[string]int{
	"null": isNull, "boolean": isBoolean, "integer": isInteger, "number": isInteger | isFraction,
	"string": isString, "array": isArray, "object": isObject,
}

// sourced is a text of the schema and where it stands.
type sourced struct {
	text string
	from located
}

// spec is what several schemas that apply to one value say together.
type spec struct {
	types   int
	limited bool  // by enum or const
	allowed []any // the values that those leave
	at      located

	lower, upper *bound
	multiples    []*big.Rat
	multipleAt   located

	minLength, maxLength int // -1 without
	patterns, formats    []sourced

	minItems, maxItems int
	unique, contains   *located // where those were asked for

	minProperties, maxProperties int
	required                     []string

	atoms []located // for items and properties
}

// read puts the constraints of schemas together.
func (c *schemas) read(atoms []located) (*spec, error) {
	s := &spec{types: anyType, maxLength: -1, maxItems: -1, maxProperties: -1, atoms: atoms, at: atoms[0]}
	for _, a := range atoms {
		o := a.schema.(*object)
		for _, k := range o.names {
			if keywords[k] != constrains {
				continue
			}
			if err := s.keyword(a, o, k, o.values[k]); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// keyword reads one keyword. Those with schemas in them are read where their type is compiled.
func (s *spec) keyword(a located, o *object, k string, v any) error {
	count := func() (int, error) {
		n, ok := v.(json.Number)
		if ok {
			if r, ok := rational(n); ok && r.IsInt() && r.Sign() >= 0 {
				if r.Num().IsInt64() && r.Num().Int64() < endless {
					return int(r.Num().Int64()), nil
				}
				return endless - 1, nil
			}
		}
		return 0, a.fail(k, "it must be a whole number from 0 on")
	}
	least := func(at *int) error {
		n, err := count()
		*at = max(*at, n)
		return err
	}
	most := func(at *int) error {
		n, err := count()
		if *at < 0 || n < *at {
			*at = n
		}
		return err
	}
	switch k {
	case "type":
		t, err := types(a, v)
		if err != nil {
			return err
		}
		if o.values["nullable"] == true {
			t |= isNull
		}
		s.types &= t
	case "enum", "const":
		values := []any{v}
		if k == "enum" {
			var ok bool
			if values, ok = v.([]any); !ok {
				return a.fail(k, "it must be an array")
			}
		}
		s.limit(values)
	case "not":
		return s.not(a, v)
	case "format":
		name, ok := v.(string)
		if !ok {
			return a.fail(k, "it must be a string")
		}
		switch _, known := formats[name]; {
		case known:
			s.formats = append(s.formats, sourced{name, a})
		case integerFormats[name] != [2]string{}:
			lower, _ := new(big.Rat).SetString(integerFormats[name][0])
			upper, _ := new(big.Rat).SetString(integerFormats[name][1])
			s.bounds(bound{value: lower}, bound{value: upper})
		case !freeFormats[name]:
			return a.fail(k, "the format %q is not known here", name)
		}
	case "pattern":
		p, ok := v.(string)
		if !ok {
			return a.fail(k, "it must be a string")
		}
		s.patterns = append(s.patterns, sourced{p, a})
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return s.number(a, o, k, v)
	case "minLength":
		return least(&s.minLength)
	case "maxLength":
		return most(&s.maxLength)
	case "minItems":
		return least(&s.minItems)
	case "maxItems":
		return most(&s.maxItems)
	case "minProperties":
		return least(&s.minProperties)
	case "maxProperties":
		return most(&s.maxProperties)
	case "uniqueItems":
		if v == true {
			s.unique = &a
		} else if v != false {
			return a.fail(k, "it must be true or false")
		}
	case "contains":
		if n, ok := o.values["minContains"].(json.Number); ok && o.values["maxContains"] == nil {
			if r, ok := rational(n); ok && r.Sign() == 0 {
				return nil
			}
		}
		s.contains = &a
	case "required":
		list, ok := v.([]any)
		if !ok {
			if _, ok := v.(bool); ok {
				return a.fail(k, "it must be an array of names, on the object and not on the property")
			}
			return a.fail(k, "it must be an array of names")
		}
		for _, n := range list {
			name, ok := n.(string)
			if !ok {
				return a.fail(k, "it must be an array of names")
			}
			s.required = append(s.required, name)
		}
	}
	return nil
}

func types(a located, v any) (int, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	all := 0
	for _, n := range list {
		name, _ := n.(string)
		t, ok := typeNames[name]
		if !ok {
			return 0, a.fail("type", "%v is no type", n)
		}
		all |= t
	}
	return all, nil
}

// limit leaves the values that are in the list as well.
func (s *spec) limit(values []any) {
	var left []any
	for _, v := range values {
		ok := !s.limited
		for _, w := range s.allowed {
			ok = ok || equal(v, w)
		}
		for _, w := range left {
			ok = ok && !equal(v, w)
		}
		if ok {
			left = append(left, v)
		}
	}
	s.limited, s.allowed = true, left
}

// not is enforced where it excludes everything, nothing, or types.
func (s *spec) not(a located, v any) error {
	if v == true {
		s.types = 0
		return nil
	}
	if v == false {
		return nil
	}
	o, ok := v.(*object)
	if !ok {
		return a.fail("not", "it must be a schema")
	}
	excluded := anyType
	for _, k := range o.names {
		switch {
		case k == "type":
			t, err := types(a.child(o, "not"), o.values[k])
			if err != nil {
				return err
			}
			if t&(isInteger|isFraction) == isInteger {
				return a.fail("not", "numbers that are not whole cannot be asked for")
			}
			excluded = t
		case keywords[k] == annotation:
		default:
			return a.fail("not", "only {} and {\"type\": …} are supported in it")
		}
	}
	s.types &^= excluded
	return nil
}

func (s *spec) number(a located, o *object, k string, v any) error {
	if open, ok := v.(bool); ok && strings.HasPrefix(k, "exclusive") { // draft 4
		other := map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}[k]
		n, ok := o.values[other].(json.Number)
		if !open || !ok {
			return nil
		}
		v = n
	}
	n, ok := v.(json.Number)
	if !ok {
		return a.fail(k, "it must be a number")
	}
	r, ok := rational(n)
	if !ok {
		return a.fail(k, "%s has an exponent beyond %d", n, maxExponent)
	}
	switch k {
	case "minimum":
		s.bounds(bound{value: r}, bound{})
	case "exclusiveMinimum":
		s.bounds(bound{r, true}, bound{})
	case "maximum":
		s.bounds(bound{}, bound{value: r})
	case "exclusiveMaximum":
		s.bounds(bound{}, bound{r, true})
	case "multipleOf":
		if r.Sign() <= 0 {
			return a.fail(k, "it must be above 0")
		}
		s.multiples = append(s.multiples, r)
		s.multipleAt = a
	}
	return nil
}

// bounds takes the narrower of two limits on each side.
func (s *spec) bounds(lower, upper bound) {
	if lower.value != nil {
		if s.lower == nil || lower.value.Cmp(s.lower.value) > 0 || lower.value.Cmp(s.lower.value) == 0 && lower.open {
			s.lower = &lower
		}
	}
	if upper.value != nil {
		if s.upper == nil || upper.value.Cmp(s.upper.value) < 0 || upper.value.Cmp(s.upper.value) == 0 && upper.open {
			s.upper = &upper
		}
	}
}
