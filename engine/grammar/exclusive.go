package grammar

import "slices"

// maxCompare bounds how deep values are compared to tell alternatives apart.
const maxCompare = 4

// exclusive refuses a oneOf unless no value can satisfy two of its alternatives. atoms are the
// schemas around it.
func (c *schemas) exclusive(b branch, atoms []located) error {
	key := "exclusive " + b.owner.at + "\n" + sortedKey(ats(atoms))
	if _, done := c.ids[key]; done {
		return nil
	}
	var of [][]*spec
	for _, l := range b.of {
		specs, err := c.alternatives([]located{l}, atoms)
		if err != nil {
			return err
		}
		of = append(of, specs)
	}
	for i := range of {
		for j := range i {
			if apart, err := c.apart(of[i], of[j], 0); err != nil {
				return err
			} else if !apart {
				return b.owner.fail("oneOf", "alternatives %d and %d may hold for the same value; make them differ in a constant property, or write anyOf", j, i)
			}
		}
	}
	c.ids[key] = -1
	return nil
}

// alternatives returns the specs of all ways to satisfy schemas, within others.
func (c *schemas) alternatives(conj, within []located) ([]*spec, error) {
	variants, err := c.variants(conj)
	if err != nil {
		return nil, err
	}
	var out []*spec
	for _, v := range variants {
		atoms := v.atoms
		for _, w := range within {
			if !slices.ContainsFunc(atoms, func(a located) bool { return a.at == w.at }) {
				atoms = append(atoms, w)
			}
		}
		if len(atoms) == 0 {
			atoms = []located{{newObject(), "#"}}
		}
		s, err := c.read(atoms)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// apart tells whether it is certain that no value satisfies one of each.
func (c *schemas) apart(a, b []*spec, depth int) (bool, error) {
	for _, x := range a {
		for _, y := range b {
			if ok, err := c.disjoint(x, y, depth); err != nil || !ok {
				return false, err
			}
		}
	}
	return true, nil
}

func (c *schemas) disjoint(a, b *spec, depth int) (bool, error) {
	if err := c.spend(); err != nil {
		return false, err
	}
	if a.limited || b.limited {
		if !a.limited {
			a, b = b, a
		}
		for _, v := range a.allowed {
			if b.limited && !slices.ContainsFunc(b.allowed, func(w any) bool { return equal(v, w) }) {
				continue
			}
			for _, s := range []*spec{a, b} {
				ok, err := c.holds(s, v)
				if err == nil && !ok {
					goto next
				}
			}
			return false, nil
		next:
		}
		return true, nil
	}
	common := a.types & b.types
	if common&(isNull|isBoolean) != 0 {
		return false, nil
	}
	if common&(isInteger|isFraction) != 0 && !above(a.lower, b.upper) && !above(b.lower, a.upper) {
		return false, nil
	}
	if common&isString != 0 {
		if ok, err := c.disjointTexts(a, b); err != nil || !ok {
			return false, err
		}
	}
	if common&isArray != 0 {
		if ok, err := c.disjointArrays(a, b, depth); err != nil || !ok {
			return false, err
		}
	}
	if common&isObject != 0 {
		if ok, err := c.disjointObjects(a, b, depth); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// above tells that a lower bound is above an upper one.
func above(lower, upper *bound) bool {
	if lower == nil || upper == nil {
		return false
	}
	d := lower.value.Cmp(upper.value)
	return d > 0 || d == 0 && (lower.open || upper.open)
}

func (c *schemas) disjointTexts(a, b *spec) (bool, error) {
	var both [2]*dfa
	for i, s := range []*spec{a, b} {
		var err error
		if both[i], err = c.text(s); err != nil {
			return false, err
		}
	}
	d, err := intersect(both[0], both[1])
	if err != nil {
		return false, nil
	}
	return len(d.edges) == 0, nil
}

func (c *schemas) disjointArrays(a, b *spec, depth int) (bool, error) {
	if a.maxItems >= 0 && a.maxItems < b.minItems || b.maxItems >= 0 && b.maxItems < a.minItems {
		return true, nil
	}
	if depth == maxCompare {
		return false, nil
	}
	for i := range min(max(a.minItems, b.minItems), 16) {
		var conj [2][]located
		for k, s := range []*spec{a, b} {
			for _, l := range s.atoms {
				prefix, rest, err := elements(l)
				if err != nil {
					return false, err
				}
				if i < len(prefix) {
					conj[k] = append(conj[k], prefix[i])
				} else if rest != nil {
					conj[k] = append(conj[k], *rest)
				}
			}
		}
		if ok, err := c.apartSchemas(conj, depth); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (c *schemas) disjointObjects(a, b *spec, depth int) (bool, error) {
	if a.maxProperties >= 0 && a.maxProperties < b.minProperties || b.maxProperties >= 0 && b.maxProperties < a.minProperties {
		return true, nil
	}
	if depth == maxCompare {
		return false, nil
	}
	var of [2]*members
	for k, s := range []*spec{a, b} {
		var err error
		if of[k], err = c.members(s); err != nil {
			return false, err
		}
	}
	for _, name := range slices.Concat(a.required, b.required) {
		var conj [2][]located
		for k, m := range of {
			declared := slices.Contains(m.names, name)
			conj[k] = m.value(name, declared, func(p int) bool { return m.automata[p].accepts(name) })
			if m.keys != nil && !m.keys.accepts(name) {
				return true, nil
			}
		}
		if ok, err := c.apartSchemas(conj, depth); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

func (c *schemas) apartSchemas(conj [2][]located, depth int) (bool, error) {
	var specs [2][]*spec
	for k := range conj {
		var err error
		if specs[k], err = c.alternatives(conj[k], nil); err != nil {
			return false, err
		}
	}
	return c.apart(specs[0], specs[1], depth+1)
}
