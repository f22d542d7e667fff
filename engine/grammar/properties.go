package grammar

import (
	"fmt"
	"slices"
)

// members is what the schemas of an object say about its properties, schema by schema.
type members struct {
	at         []located
	properties []*object
	patterns   [][]pattern
	rest       []*located // additionalProperties, nil without
	names      []string   // all that are declared or required, in order
	all        []string   // the patterns
	automata   []*dfa     // of all, over the whole name
	keys       *dfa       // what propertyNames allows, nil without
}

type pattern struct {
	index  int // of all
	schema located
}

// maxPatterns bounds the combinations of patterns that a name may match.
const maxPatterns = 4

func (c *schemas) members(s *spec) (*members, error) {
	m := &members{at: s.atoms}
	for _, a := range s.atoms {
		o := a.schema.(*object)
		properties := newObject()
		if v, ok := o.values["properties"]; ok {
			if properties, ok = v.(*object); !ok {
				return nil, a.fail("properties", "it must be an object")
			}
		}
		m.properties = append(m.properties, properties)
		for _, n := range properties.names {
			if !slices.Contains(m.names, n) {
				m.names = append(m.names, n)
			}
		}
		var own []pattern
		if v, ok := o.values["patternProperties"]; ok {
			list, ok := v.(*object)
			if !ok {
				return nil, a.fail("patternProperties", "it must be an object")
			}
			for _, p := range list.names {
				i := slices.Index(m.all, p)
				if i < 0 {
					d, err := regex(p, true)
					if err != nil {
						return nil, a.fail("patternProperties", "%v", err)
					}
					i = len(m.all)
					m.all = append(m.all, p)
					m.automata = append(m.automata, d)
				}
				own = append(own, pattern{i, a.child(list.values[p], "patternProperties", p)})
			}
		}
		if len(m.all) > maxPatterns {
			return nil, a.fail("patternProperties", "there are more than %d patterns", maxPatterns)
		}
		m.patterns = append(m.patterns, own)
		var rest *located
		if v, ok := o.values["additionalProperties"]; ok {
			l := a.child(v, "additionalProperties")
			rest = &l
		}
		m.rest = append(m.rest, rest)
		if v, ok := o.values["propertyNames"]; ok {
			if err := c.nameSchema(m, a.child(v, "propertyNames")); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range s.required {
		if !slices.Contains(m.names, n) {
			m.names = append(m.names, n)
		}
	}
	return m, nil
}

// nameSchema narrows the names to those that a schema allows.
func (c *schemas) nameSchema(m *members, l located) error {
	variants, err := c.variants([]located{l})
	if err != nil {
		return err
	}
	union := &nfa{}
	start, end := union.node(), union.node()
	for _, v := range variants {
		d := anything()
		if len(v.atoms) > 0 {
			s, err := c.read(v.atoms)
			if err != nil {
				return err
			}
			switch {
			case s.types&isString == 0:
				continue
			case s.limited:
				var names []string
				for _, v := range s.allowed {
					if name, ok := v.(string); ok {
						ok, err := c.holds(s, v)
						if err != nil {
							return err
						}
						if ok {
							names = append(names, name)
						}
					}
				}
				d, err = texts(names)
			default:
				d, err = c.text(s)
			}
			if err != nil {
				return err
			}
		}
		base := int32(len(union.edges))
		for range d.edges {
			union.node()
		}
		if union.err != nil {
			return l.fail("propertyNames", "%v", union.err)
		}
		for i, es := range d.edges {
			for _, e := range es {
				union.edge(base+int32(i), e.lo, e.hi, base+e.to)
			}
			if d.final[i] {
				union.skip(base+int32(i), end)
			}
		}
		if len(d.edges) > 0 {
			union.skip(start, base)
		}
	}
	d, err := union.determinise(start, end)
	if err == nil && m.keys != nil {
		d, err = intersect(d, m.keys)
	}
	if err != nil {
		return l.fail("propertyNames", "%v", err)
	}
	m.keys = d
	return nil
}

// texts is the automaton of a list of texts, over code points.
func texts(list []string) (*dfa, error) {
	n := &nfa{}
	start, end := n.node(), n.node()
	for _, text := range list {
		at := start
		for _, r := range text {
			next := n.node()
			n.edge(at, r, r, next)
			at = next
		}
		n.skip(at, end)
	}
	return n.determinise(start, end)
}

// value returns what applies to the value of a property: name is declared, or any other one that
// matches exactly the patterns of the set.
func (m *members) value(name string, declared bool, matched func(pattern int) bool) []located {
	var conj []located
	for i, a := range m.at {
		found := false
		if declared {
			if v, ok := m.properties[i].values[name]; ok {
				conj = append(conj, a.child(v, "properties", name))
				found = true
			}
		}
		for _, p := range m.patterns[i] {
			if matched(p.index) {
				conj = append(conj, p.schema)
				found = true
			}
		}
		if !found && m.rest[i] != nil {
			conj = append(conj, *m.rest[i])
		}
	}
	return conj
}

func isNever(conj []located) bool {
	return slices.ContainsFunc(conj, func(l located) bool { return l.schema == false })
}

// others returns the members that are not declared: one for each set of patterns that a name can
// match.
func (c *schemas) others(m *members) ([]expression, error) {
	if len(m.at) == 0 {
		return nil, nil
	}
	named, err := texts(m.names)
	if err != nil {
		return nil, err
	}
	var out []expression
	for set := range 1 << len(m.all) {
		conj := m.value("", false, func(p int) bool { return set>>p&1 != 0 })
		if isNever(conj) {
			continue
		}
		key := int32(stringRule)
		if len(m.names) > 0 || len(m.all) > 0 || m.keys != nil {
			d := named.complement()
			if m.keys != nil {
				d, err = intersect(d, m.keys)
			}
			for p, a := range m.automata {
				if set>>p&1 == 0 {
					a = a.complement()
				}
				if err == nil {
					d, err = intersect(d, a)
				}
			}
			if err != nil {
				return nil, m.at[0].fail("patternProperties", "%v", err)
			}
			if len(d.edges) == 0 {
				continue
			}
			id := fmt.Sprintf("key %x", d.print(nil))
			if key, err = c.automaton(id, asString, func() (*dfa, error) { return d, nil }); err != nil {
				return nil, m.at[0].fail("additionalProperties", "%v", err)
			}
		}
		value, err := c.rule(conj)
		if err != nil {
			return nil, err
		}
		out = append(out, sequence{call(key), colon, reference(value)})
	}
	return out, nil
}

// object is the text of the objects of a spec: declared properties in their order, then others.
func (c *schemas) object(s *spec) (expression, error) {
	m, err := c.members(s)
	if err != nil {
		return nil, err
	}
	others, err := c.others(m)
	if err != nil {
		return nil, err
	}
	type member struct {
		text     expression // nil where it is forbidden
		required bool
	}
	var list []member
	least := 0
	for _, name := range m.names {
		conj := m.value(name, true, func(p int) bool { return m.automata[p].accepts(name) })
		one := member{required: slices.Contains(s.required, name)}
		if one.required {
			least++
		}
		if !isNever(conj) && (m.keys == nil || m.keys.accepts(name)) {
			value, err := c.rule(conj)
			if err != nil {
				return nil, err
			}
			one.text = sequence{literal(quoted(name)), colon, reference(value)}
		}
		list = append(list, one)
	}
	const most = 256
	if len(list)-least > most {
		return nil, s.at.fail("properties", "there are %d optional ones, and the choice among more than %d takes too long", len(list)-least, most)
	}
	if len(list) > 32 { // as rules of their own, or the states of each suffix of the list multiply
		for i, one := range list {
			if one.text != nil {
				id, err := c.define(fmt.Sprintf("member %d of %s", i, sortedKey(ats(s.atoms))), "", func() (expression, error) { return one.text, nil })
				if err != nil {
					return nil, err
				}
				list[i].text = call(id)
			}
		}
	}
	floor, ceiling := s.minProperties, s.maxProperties
	if floor <= least {
		floor = 0
	}
	if floor > 1 && len(others) > 0 {
		return nil, s.at.fail("minProperties", "properties that are not declared could repeat a name, so they cannot be counted")
	}
	const limit = 200_000
	counts := max(1, floor, ceiling) // the highest count that is told apart
	if (len(list)+1)*(counts+1) > limit {
		return nil, s.at.fail("maxProperties", "properties are counted up to %d", limit/(len(list)+1))
	}
	node := func(i, count int) int { return i*(counts+1) + count }
	end := node(len(list)+1, 0)
	g := graph{nodes: end + 1}
	add := func(from, to, count int, text expression) {
		next := min(count+1, counts)
		if ceiling >= 0 && count >= ceiling {
			return
		}
		separator := sequence{literal(","), blank}
		if count == 0 {
			separator = sequence{blank}
		}
		g.arcs = append(g.arcs, arc{node(from, count), node(to, next), append(separator, text)})
	}
	for count := range counts + 1 {
		for i, one := range list {
			if one.text != nil {
				add(i, i+1, count, one.text)
			}
			if !one.required {
				g.arcs = append(g.arcs, arc{node(i, count), node(i+1, count), nil})
			}
		}
		for _, text := range others {
			add(len(list), len(list), count, text)
		}
		if count >= floor {
			g.arcs = append(g.arcs, arc{node(len(list), count), end, sequence{blank, literal("}")}})
		}
	}
	return sequence{literal("{"), g}, nil
}

func ats(l []located) []string {
	var out []string
	for _, x := range l {
		out = append(out, x.at)
	}
	return out
}
