package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Schema compiles a JSON schema (draft 2020-12, and what earlier drafts write differently where it
// means the same). Objects have their properties in the order of the schema and others behind
// them. A keyword that cannot be enforced is an error that names it and where it stands; only
// annotations are ignored. docs/grammar.md lists what is enforced and what is refused.
func Schema(schema []byte) (*Grammar, error) {
	g, err := compileSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the schema: %w", err)
	}
	return g, nil
}

func compileSchema(data []byte) (*Grammar, error) {
	root, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	c := &schemas{root: root, rules: jsonRules(), ids: map[string]int32{}, anchors: map[string]located{}, budget: 200_000}
	if o, ok := root.(*object); ok {
		c.id, _ = o.values["$id"].(string)
		c.id, _, _ = strings.Cut(c.id, "#")
	}
	top := located{root, "#"}
	c.findAnchors(top)
	id, err := c.rule([]located{top})
	if err != nil {
		return nil, err
	}
	for len(c.todo) > 0 {
		next := c.todo[0]
		c.todo = c.todo[1:]
		if err := next(); err != nil {
			return nil, err
		}
	}
	return compile(c.rules, id)
}

// schemas compiles one document.
type schemas struct {
	root    any
	id      string // of the document, without fragment
	anchors map[string]located
	rules   []*rule
	ids     map[string]int32 // rules by what they stand for
	todo    []func() error   // bodies to be written
	budget  int              // schemas that may still be looked at
}

// spend bounds the work of a schema whose parts multiply.
func (c *schemas) spend() error {
	if c.budget--; c.budget < 0 {
		return errors.New("it is too large: its parts combine in too many ways")
	}
	return nil
}

// define returns the rule for a key, whose body is written later, so that it may refer to itself.
func (c *schemas) define(key, name string, body func() (expression, error)) (int32, error) {
	if id, ok := c.ids[key]; ok {
		return id, nil
	}
	if len(c.rules) >= maxRules {
		return 0, fmt.Errorf("it is too large: it needs more than %d rules", maxRules)
	}
	id := int32(len(c.rules))
	r := &rule{name: name}
	c.rules = append(c.rules, r)
	c.ids[key] = id
	c.todo = append(c.todo, func() (err error) {
		r.body, err = body()
		return err
	})
	return id, nil
}

// automaton returns the rule of an automaton over code points, written as a JSON string or as it is.
func (c *schemas) automaton(key string, as int, make func() (*dfa, error)) (int32, error) {
	if id, ok := c.ids[key]; ok {
		return id, nil
	}
	d, err := make()
	if err == nil {
		d, err = d.encode(as)
	}
	if err != nil {
		return 0, err
	}
	id := int32(len(c.rules))
	c.rules = append(c.rules, &rule{automaton: d})
	c.ids[key] = id
	return id, nil
}

// rule returns the rule of the values that satisfy all of these schemas.
func (c *schemas) rule(conj []located) (int32, error) {
	if err := c.spend(); err != nil {
		return 0, err
	}
	variants, err := c.variants(conj)
	if err != nil {
		return 0, err
	}
	if len(variants) == 1 {
		return c.variantRule(variants[0])
	}
	var keys []string
	var any choice
	for _, v := range variants {
		id, err := c.variantRule(v)
		if err != nil {
			return 0, err
		}
		if id == valueRule {
			return id, nil
		}
		keys = append(keys, fmt.Sprint(id))
		any = append(any, reference(id))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return c.define("any "+strings.Join(keys, " "), conj[0].at, func() (expression, error) { return any, nil })
}

// variantRule returns the rule of one variant. Schemas without constraints of their own do not
// count, so that a reference is the same rule however it is reached.
func (c *schemas) variantRule(v variant) (int32, error) {
	var atoms []located
	for _, a := range v.atoms {
		if slices.ContainsFunc(a.schema.(*object).names, func(k string) bool { return keywords[k] == constrains }) {
			atoms = append(atoms, a)
		}
	}
	if len(atoms) == 0 {
		return valueRule, nil
	}
	var keys []string
	for _, a := range atoms {
		keys = append(keys, a.at)
	}
	slices.Sort(keys)
	return c.define(strings.Join(keys, "\n"), atoms[0].at, func() (expression, error) {
		s, err := c.read(atoms)
		if err != nil {
			return nil, err
		}
		return c.expression(s)
	})
}

// expression is the text of one variant.
func (c *schemas) expression(s *spec) (expression, error) {
	if s.limited {
		return c.enumeration(s)
	}
	var out choice
	add := func(e expression, err error) error {
		out = append(out, e)
		return err
	}
	var errs []error
	if s.types&isObject != 0 {
		errs = append(errs, add(c.object(s)))
	}
	if s.types&isArray != 0 {
		errs = append(errs, add(c.array(s)))
	}
	if s.types&isString != 0 {
		id, err := c.string(s)
		errs = append(errs, add(call(id), err))
	}
	if s.types&(isInteger|isFraction) != 0 {
		errs = append(errs, add(c.number(s)))
	}
	if s.types&isBoolean != 0 {
		out = append(out, literal("true"), literal("false"))
	}
	if s.types&isNull != 0 {
		out = append(out, literal("null"))
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
