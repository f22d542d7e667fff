package grammar

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// located is a schema and where it stands, as a JSON pointer that begins with #.
type located struct {
	schema any // bool or *object
	at     string
}

// schemaError is a keyword that cannot be enforced.
type schemaError struct{ keyword, at, why string }

func (e *schemaError) Error() string {
	return fmt.Sprintf("cannot enforce %q at %s: %s", e.keyword, e.at, e.why)
}

func (l located) fail(keyword, format string, a ...any) error {
	return &schemaError{keyword, l.at, fmt.Sprintf(format, a...)}
}

var tokenEscape = strings.NewReplacer("~", "~0", "/", "~1")

func (l located) child(schema any, path ...any) located {
	at := l.at
	for _, p := range path {
		switch p := p.(type) {
		case string:
			at += "/" + tokenEscape.Replace(p)
		case int:
			at += "/" + strconv.Itoa(p)
		}
	}
	return located{schema, at}
}

// variant is one way to satisfy a schema: all of these objects at once, references, allOf and a
// choice from each anyOf resolved. never says that there is a false among them.
type variant struct {
	atoms []located
	never bool
}

// branch is a choice still to be made while variants are found.
type branch struct {
	of    []located
	path  []string // the schemas that it stands in, without JSON in between
	only  bool     // oneOf: the alternatives must exclude each other
	owner located
}

type expansion struct {
	variant
	branches []branch
}

// maxVariants bounds the combinations of alternatives.
const maxVariants = 1024

// variants resolves everything that applies to the same value.
func (c *schemas) variants(conj []located) ([]variant, error) {
	e := &expansion{}
	for _, l := range conj {
		if err := c.gather(e, l, nil); err != nil {
			return nil, err
		}
	}
	var out []variant
	todo := []*expansion{e}
	for len(todo) > 0 {
		e := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if e.never {
			continue
		}
		if len(e.branches) == 0 {
			out = append(out, e.variant)
			if len(out) > maxVariants {
				return nil, conj[0].fail("anyOf", "its alternatives combine in more than %d ways", maxVariants)
			}
			continue
		}
		b := e.branches[0]
		if b.only {
			if err := c.exclusive(b, e.atoms); err != nil {
				return nil, err
			}
		}
		for _, l := range slices.Backward(b.of) {
			next := &expansion{variant{slices.Clone(e.atoms), false}, slices.Clone(e.branches[1:])}
			if err := c.gather(next, l, b.path); err != nil {
				return nil, err
			}
			todo = append(todo, next)
		}
		if len(todo) > maxVariants {
			return nil, b.owner.fail("anyOf", "its alternatives combine in more than %d ways", maxVariants)
		}
	}
	return out, nil
}

// gather adds a schema and all that applies with it. path are the schemas it stands in.
func (c *schemas) gather(e *expansion, l located, path []string) error {
	if err := c.spend(); err != nil {
		return err
	}
	o, ok := l.schema.(*object)
	if !ok {
		if l.schema == true {
			return nil
		}
		if l.schema == false {
			e.never = true
			return nil
		}
		return fmt.Errorf("cannot read the schema at %s: it is neither an object nor true or false", l.at)
	}
	if slices.Contains(path, l.at) {
		return l.fail("$ref", "the schema refers to itself without any JSON in between")
	}
	if slices.ContainsFunc(e.atoms, func(a located) bool { return a.at == l.at }) {
		return nil
	}
	if err := c.check(l, o); err != nil {
		return err
	}
	e.atoms = append(e.atoms, l)
	path = append(slices.Clip(path), l.at)
	if ref, ok := o.values["$ref"]; ok {
		target, err := c.resolve(l, "$ref", ref)
		if err != nil {
			return err
		}
		if err := c.gather(e, target, path); err != nil {
			return err
		}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		v, ok := o.values[k]
		if !ok {
			continue
		}
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return l.fail(k, "it must be an array of at least one schema")
		}
		var of []located
		for i, s := range list {
			of = append(of, l.child(s, k, i))
		}
		if k != "allOf" {
			e.branches = append(e.branches, branch{of, path, k == "oneOf" && len(of) > 1, l})
			continue
		}
		for _, s := range of {
			if err := c.gather(e, s, path); err != nil {
				return err
			}
		}
	}
	return c.gatherDependencies(e, l, o, path)
}

// gatherDependencies turns "where a property is, more must hold" into two alternatives: the
// property is not there, or it is and more holds.
func (c *schemas) gatherDependencies(e *expansion, l located, o *object, path []string) error {
	for _, k := range []string{"dependentRequired", "dependentSchemas"} {
		v, ok := o.values[k]
		if !ok {
			continue
		}
		deps, ok := v.(*object)
		if !ok {
			return l.fail(k, "it must be an object")
		}
		for _, name := range deps.names {
			without := l.child(newObject("properties", newObject(name, false)), k, name, "absent")
			with := l.child(newObject("required", []any{name}), k, name, "present")
			if k == "dependentRequired" {
				names, ok := deps.values[name].([]any)
				if !ok {
					return l.fail(k, "%q must have an array of names", name)
				}
				with.schema.(*object).values["required"] = append([]any{name}, names...)
			} else {
				with.schema.(*object).set("allOf", []any{deps.values[name]})
			}
			e.branches = append(e.branches, branch{[]located{without, with}, path, false, l})
		}
	}
	return nil
}

// resolve finds what a reference names in this document.
func (c *schemas) resolve(l located, keyword string, ref any) (located, error) {
	text, ok := ref.(string)
	if !ok {
		return l, l.fail(keyword, "it must be a string")
	}
	base, fragment, _ := strings.Cut(text, "#")
	if base != "" && base != c.id {
		return l, l.fail(keyword, "%q is outside of this schema, and nothing is fetched", text)
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return l, l.fail(keyword, "%q is no reference: %v", text, err)
	}
	if fragment != "" && fragment[0] != '/' {
		if target, ok := c.anchors[fragment]; ok {
			return target, nil
		}
		return l, l.fail(keyword, "there is no $anchor %q", fragment)
	}
	to := located{c.root, "#"}
	if fragment == "" {
		return to, nil
	}
	for _, token := range strings.Split(fragment[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var next any
		found := false
		switch v := to.schema.(type) {
		case *object:
			next, found = v.values[token]
		case []any:
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) && strconv.Itoa(i) == token {
				next, found = v[i], true
			}
		}
		if !found {
			return l, l.fail(keyword, "%q names nothing in this schema", text)
		}
		to = to.child(next, token)
		if o, ok := next.(*object); ok {
			if id, ok := o.values["$id"].(string); ok && !strings.HasPrefix(id, "#") {
				return to, to.fail("$id", "a schema with an address of its own inside another is not supported")
			}
		}
	}
	return to, nil
}

// findAnchors collects the $anchor and $dynamicAnchor of the document.
func (c *schemas) findAnchors(l located) {
	switch v := l.schema.(type) {
	case *object:
		for _, k := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v.values[k].(string); ok {
				if _, twice := c.anchors[name]; !twice {
					c.anchors[name] = l
				}
			}
		}
		if id, ok := v.values["$id"].(string); ok && l.at != "#" && strings.HasPrefix(id, "#") {
			c.anchors[id[1:]] = l
		}
		for _, name := range v.names {
			if name != "enum" && name != "const" && name != "default" && name != "examples" {
				c.findAnchors(l.child(v.values[name], name))
			}
		}
	case []any:
		for i, s := range v {
			c.findAnchors(l.child(s, i))
		}
	}
}
