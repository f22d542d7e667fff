package chat

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Tools are the parameters of each function that a request offers: name, parameter, JSON types.
type Tools map[string]map[string][]string

// ParseTools reads the tools of a chat request: an array of {"type":"function","function":{…}}.
func ParseTools(data []byte) (Tools, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var defs []struct {
		Function struct {
			Name       string
			Parameters struct {
				Properties map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(data, &defs); err != nil {
		return nil, fmt.Errorf("cannot read tools: %w", err)
	}
	t := Tools{}
	for i, d := range defs {
		if d.Function.Name == "" {
			return nil, fmt.Errorf("cannot read tools: number %d has no function with a name", i+1)
		}
		params := map[string][]string{}
		for id, schema := range d.Function.Parameters.Properties {
			params[id] = typesOf(schema, 0)
		}
		t[d.Function.Name] = params
	}
	return t, nil
}

// typesOf returns the JSON types that a schema allows, as far as it says.
func typesOf(schema json.RawMessage, depth int) []string {
	var s struct {
		Type         json.RawMessage
		AnyOf, OneOf []json.RawMessage
		Enum         []any
	}
	if json.Unmarshal(schema, &s) != nil || depth > 8 {
		return nil
	}
	var one string
	var out []string
	if json.Unmarshal(s.Type, &one) == nil {
		out = []string{one}
	} else if json.Unmarshal(s.Type, &out) != nil {
		out = nil
		for _, alt := range append(s.AnyOf, s.OneOf...) {
			out = append(out, typesOf(alt, depth+1)...)
		}
	}
	return out
}

// value turns the text of a parameter into JSON of the type its schema asks for: text of another
// form, and what no schema describes, is a string.
func (t Tools) value(function, parameter, text string) string {
	types := t[function][parameter]
	trimmed := strings.TrimSpace(text)
	for _, want := range types {
		switch want {
		case "integer":
			if n, ok := new(big.Int).SetString(trimmed, 10); ok && len(trimmed) < 100 {
				return n.String()
			}
		case "number":
			var n json.Number
			if json.Unmarshal([]byte(trimmed), &n) == nil && !strings.HasPrefix(trimmed, `"`) && trimmed != "null" {
				return n.String()
			}
		case "boolean":
			switch strings.ToLower(trimmed) {
			case "true", "false": // Python's True as well
				return strings.ToLower(trimmed)
			}
		case "null":
			switch strings.ToLower(trimmed) {
			case "null", "none":
				return "null"
			}
		case "object", "array":
			open := map[string]string{"object": "{", "array": "["}[want]
			if strings.HasPrefix(trimmed, open) && json.Valid([]byte(trimmed)) {
				return trimmed
			}
		}
	}
	return quote(text)
}

// quote writes text as a JSON string, without HTML escapes.
func quote(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// arguments collects parameters in their order; the last of a repeated one counts.
type arguments struct{ keys, values []string }

func (a *arguments) add(key, value string) {
	for i, k := range a.keys {
		if k == key {
			a.values[i] = value
			return
		}
	}
	a.keys = append(a.keys, key)
	a.values = append(a.values, value)
}

func (a *arguments) json() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range a.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(k) + ": " + a.values[i])
	}
	b.WriteByte('}')
	return b.String()
}
