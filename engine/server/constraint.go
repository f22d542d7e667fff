package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"velo/engine/chat"
	"velo/engine/grammar"
)

// What the header x-json-schema-enforced says.
const (
	enforcedStrict = "strict" // the answer matches the schema
	enforcedJSON   = "json"   // the schema has what cannot be enforced: the answer is a JSON object
)

// readFormat reads what an answer must look like: response_format, or one of the members that vLLM
// and llama.cpp have for it. A nil grammar means anything.
func readFormat(o *object) (g *grammar.Grammar, enforced string, e *Error) {
	from := ""
	take := func(name string, made *grammar.Grammar, how string, failed *Error) {
		switch {
		case e != nil:
		case failed != nil:
			e = failed
		case made == nil:
		case from != "":
			e = fail(InvalidFormat, name, "cannot hold an answer to both %s and %s: send one of them", from, name)
		default:
			g, enforced, from = made, how, name
		}
	}
	made, how, failed := readResponseFormat(o)
	take("response_format", made, how, failed)
	for _, m := range []struct {
		name string
		read func(*object, string, json.RawMessage) (*grammar.Grammar, string, *Error)
	}{
		{"grammar", readEBNF}, {"guided_grammar", readEBNF}, {"guided_json", readSchema}, {"json_schema", readSchema},
		{"guided_regex", readRegex}, {"guided_choice", readAlternatives},
	} {
		if raw := o.raw(m.name); raw != nil && e == nil {
			made, how, failed := m.read(o, m.name, raw)
			take(m.name, made, how, failed)
		}
	}
	structured, failed := o.child("structured_outputs")
	take("structured_outputs", nil, "", failed)
	if structured == nil || e != nil {
		return g, enforced, e
	}
	for _, m := range []struct {
		name string
		read func(*object, string, json.RawMessage) (*grammar.Grammar, string, *Error)
	}{{"json", readSchema}, {"regex", readRegex}, {"choice", readAlternatives}, {"grammar", readEBNF}, {"json_object", readAnyObject}} {
		if raw := structured.raw(m.name); raw != nil && e == nil {
			made, how, failed := m.read(structured, m.name, raw)
			take("structured_outputs."+m.name, made, how, failed)
		}
	}
	for _, name := range structured.unused() {
		if kind(structured.values[name]) != "null" && e == nil {
			e = fail(UnsupportedParam, "structured_outputs."+name, "cannot hold an answer to structured_outputs.%.40s: there are json, regex, choice, grammar and json_object", name)
		}
	}
	return g, enforced, e
}

func readResponseFormat(o *object) (*grammar.Grammar, string, *Error) {
	raw := o.raw("response_format")
	if raw == nil {
		return nil, "", nil
	}
	f, e := newObject(raw, InvalidFormat, "response_format.", "response_format")
	if e != nil {
		return nil, "", e
	}
	kind, _, e := f.text("type")
	if e != nil {
		return nil, "", e
	}
	switch kind {
	case "text":
		return nil, "", nil
	case "json_object":
		if schema := f.raw("schema"); schema != nil { // llama.cpp's way
			return readSchema(f, "schema", schema)
		}
		return grammar.JSON(), "", nil
	case "json_schema":
		s, e := f.child("json_schema")
		if e != nil {
			return nil, "", e
		}
		if s == nil {
			s = f
		}
		strict, e := s.flag("strict", false)
		if e != nil {
			return nil, "", e
		}
		schema := s.raw("schema")
		if schema == nil {
			return nil, "", fail(InvalidFormat, "response_format.json_schema.schema", "cannot hold the answer to a schema: response_format.json_schema has none")
		}
		g, how, e := readSchema(s, "schema", schema)
		if e != nil && !strict {
			return grammar.JSON(), enforcedJSON, nil
		}
		return g, how, e
	}
	return nil, "", fail(InvalidFormat, "response_format.type", "cannot hold the answer to %.40q: response_format is text, json_object or json_schema", kind)
}

// readSchema reads a JSON schema, or a string that holds one.
func readSchema(o *object, name string, raw json.RawMessage) (*grammar.Grammar, string, *Error) {
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		if e := checkJSON([]byte(inner)); e != nil {
			return nil, "", fail(InvalidFormat, o.where+name, "cannot read %s%s: the string in it is no JSON", o.where, name)
		}
		raw = json.RawMessage(inner)
	}
	g, err := grammar.Schema(raw)
	if err != nil {
		return nil, "", fail(InvalidFormat, o.where+name, "cannot hold the answer to %s%s: %v", o.where, name, err)
	}
	return g, enforcedStrict, nil
}

func readEBNF(o *object, name string, _ json.RawMessage) (*grammar.Grammar, string, *Error) {
	text, _, e := o.text(name)
	if e != nil {
		return nil, "", e
	}
	g, err := grammar.EBNF(text)
	if err != nil {
		return nil, "", fail(InvalidGrammar, o.where+name, "cannot hold the answer to %s%s: %v", o.where, name, err)
	}
	return g, "", nil
}

func readRegex(o *object, name string, _ json.RawMessage) (*grammar.Grammar, string, *Error) {
	text, _, e := o.text(name)
	if e != nil {
		return nil, "", e
	}
	g, err := grammar.Regex(text)
	if err != nil {
		return nil, "", fail(InvalidGrammar, o.where+name, "cannot hold the answer to %s%s: %v", o.where, name, err)
	}
	return g, "", nil
}

func readAlternatives(o *object, name string, _ json.RawMessage) (*grammar.Grammar, string, *Error) {
	items, e := o.list(name, maxMessages)
	if e != nil {
		return nil, "", e
	}
	var texts []string
	for i, item := range items {
		var t string
		if kind(item) != "a string" || json.Unmarshal(item, &t) != nil {
			return nil, "", fail(InvalidGrammar, o.where+name, "cannot read %s%s[%d]: it must be a string, not %s", o.where, name, i, kind(item))
		}
		texts = append(texts, t)
	}
	g, err := grammar.Choice(texts)
	if err != nil {
		return nil, "", fail(InvalidGrammar, o.where+name, "cannot hold the answer to %s%s: %v", o.where, name, err)
	}
	return g, "", nil
}

func readAnyObject(o *object, name string, _ json.RawMessage) (*grammar.Grammar, string, *Error) {
	if yes, e := o.flag(name, false); e != nil || !yes {
		return nil, "", e
	}
	return grammar.JSON(), "", nil
}

// constrain puts together what the whole answer must be: reasoning where the model reasons, then a
// call, or what the format asks for, or either. Nil means anything.
func constrain(content *grammar.Grammar, c choice, tools []tool, style chat.Style, functionTags bool, prompt string) (g *grammar.Grammar, e *Error) {
	// Grammars that are sound alone can be too large together, which shows when they are combined.
	defer func() {
		if p := recover(); p != nil {
			g, e = nil, fail(InvalidGrammar, "", "cannot hold the answer to what was asked for: %v; make the schema or grammar simpler", p)
		}
	}()
	var answer *grammar.Grammar
	offered := c.offered(tools)
	switch {
	case c.forced():
		calls, e := callGrammar(offered, style.Format, functionTags, c.parallel)
		if e != nil {
			return nil, e
		}
		answer = calls
	case content == nil:
		return nil, nil
	case len(offered) > 0 && style.Format != chat.NoTools:
		calls, e := callGrammar(offered, style.Format, functionTags, c.parallel)
		if e != nil {
			return nil, e
		}
		answer = grammar.Either(content, calls)
	default:
		answer = content
	}
	gap := grammar.Repeat(grammar.Literal("\n"), 0, 2)
	switch {
	case style.Opened:
		return grammar.Sequence(grammar.Until("</think>"), gap, answer), nil
	case style.Think && !strings.HasSuffix(strings.TrimRight(prompt, "\n"), "</think>"):
		return grammar.Either(answer, grammar.Sequence(grammar.Literal("<think>"), grammar.Until("</think>"), gap, answer)), nil
	}
	return answer, nil
}

// callGrammar is one call of one of the tools, or several, as the model writes them.
func callGrammar(tools []tool, format chat.Format, functionTags, parallel bool) (*grammar.Grammar, *Error) {
	var calls []*grammar.Grammar
	for _, t := range tools {
		var g *grammar.Grammar
		var e *Error
		switch {
		case format == chat.Llama:
			g, e = jsonCall(t, `{"name": `, `, "parameters": `, "}")
		case functionTags:
			g, e = taggedCall(t)
		default:
			g, e = jsonCall(t, "<tool_call>\n{\"name\": ", `, "arguments": `, "}\n</tool_call>")
		}
		if e != nil {
			return nil, e
		}
		calls = append(calls, g)
	}
	one := grammar.Either(calls...)
	if !parallel {
		return one, nil
	}
	between := "\n"
	if format == chat.Llama {
		between = "; "
	}
	return grammar.Sequence(one, grammar.Repeat(grammar.Sequence(grammar.Literal(between), one), 0, -1)), nil
}

func jsonCall(t tool, before, between, after string) (*grammar.Grammar, *Error) {
	arguments, e := argumentGrammar(t)
	if e != nil {
		return nil, e
	}
	return grammar.Sequence(grammar.Literal(before+string(quoted(t.name))+between), arguments, grammar.Literal(after)), nil
}

// argumentGrammar holds the arguments to their schema. Where it has what cannot be enforced they
// are any object, unless the tool asks to be strict.
func argumentGrammar(t tool) (*grammar.Grammar, *Error) {
	if t.parameters == nil {
		return grammar.JSON(), nil
	}
	schema := t.parameters
	var o map[string]json.RawMessage
	if json.Unmarshal(schema, &o) == nil && o["type"] == nil {
		// Arguments are an object whatever the schema leaves open.
		o["type"] = json.RawMessage(`"object"`)
		schema = withMember(schema, "type", `"object"`)
	}
	g, err := grammar.Schema(schema)
	if err == nil {
		return g, nil
	}
	if t.strict {
		return nil, fail(InvalidTools, "tools", "cannot hold the arguments of %s to their schema: %v", t.name, err)
	}
	return grammar.JSON(), nil
}

// withMember puts a member before all others of a JSON object.
func withMember(o json.RawMessage, key, value string) json.RawMessage {
	rest := bytes.TrimSpace(bytes.TrimSpace(o)[1:])
	comma := ","
	if bytes.HasPrefix(rest, []byte("}")) {
		comma = ""
	}
	return json.RawMessage("{" + string(quoted(key)) + ":" + value + comma + string(rest))
}

// taggedCall is a call in tags, <function=NAME> with a <parameter=KEY> for each argument. Strings
// stand there as they are, everything else as JSON.
func taggedCall(t tool) (*grammar.Grammar, *Error) {
	parts := []*grammar.Grammar{grammar.Literal("<tool_call>\n<function=" + t.name + ">\n")}
	var schema struct {
		Properties json.RawMessage            `json:"properties"`
		Required   []string                   `json:"required"`
		Defs       json.RawMessage            `json:"$defs"`
		Old        json.RawMessage            `json:"definitions"`
		Rest       map[string]json.RawMessage `json:"-"`
	}
	if t.parameters != nil && json.Unmarshal(t.parameters, &schema) != nil {
		return nil, fail(InvalidTools, "tools", "cannot read the parameters of %s: properties must be an object and required an array of names", t.name)
	}
	if schema.Properties != nil && kind(schema.Properties) == "an object" {
		properties, e := newObject(schema.Properties, InvalidTools, "properties.", "the properties of "+t.name)
		if e != nil {
			return nil, e
		}
		required := map[string]bool{}
		for _, name := range schema.Required {
			required[name] = true
		}
		for _, name := range properties.keys {
			if strings.ContainsAny(name, "<>\n") {
				return nil, fail(InvalidTools, "tools", "cannot force a call of %s: its parameter %.40q has a < or > in its name", t.name, name)
			}
			value, err := parameterGrammar(properties.values[name], schema.Defs, schema.Old)
			if err != nil {
				if t.strict {
					return nil, fail(InvalidTools, "tools", "cannot hold %s of %s to its schema: %v", name, t.name, err)
				}
				value = grammar.Until(endParameter)
			}
			part := grammar.Sequence(grammar.Literal("<parameter="+name+">\n"), value)
			if !required[name] {
				part = grammar.Repeat(part, 0, 1)
			}
			parts = append(parts, part)
		}
	}
	parts = append(parts, grammar.Literal("</function>\n</tool_call>"))
	return grammar.Sequence(parts...), nil
}

const endParameter = "\n</parameter>\n"

// parameterGrammar is a value and the tag that ends it.
func parameterGrammar(schema, defs, old json.RawMessage) (*grammar.Grammar, error) {
	var s struct {
		Type json.RawMessage
		Enum []json.RawMessage
		Ref  string `json:"$ref"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return grammar.Until(endParameter), nil
	}
	var texts []string
	for _, v := range s.Enum {
		var text string
		if kind(v) == "a string" && json.Unmarshal(v, &text) == nil {
			texts = append(texts, text)
		}
	}
	if len(texts) > 0 && len(texts) == len(s.Enum) {
		g, err := grammar.Choice(texts)
		if err != nil {
			return nil, err
		}
		return grammar.Sequence(g, grammar.Literal(endParameter)), nil
	}
	// What may be a string, and what says nothing of its type, is read as the text it is.
	if s.Ref == "" && (s.Type == nil || bytes.Contains(s.Type, []byte(`"string"`))) {
		return grammar.Until(endParameter), nil
	}
	for key, v := range map[string]json.RawMessage{"$defs": defs, "definitions": old} {
		if v != nil && kind(schema) == "an object" {
			schema = withMember(schema, key, string(v))
		}
	}
	g, err := grammar.Schema(schema)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return grammar.Sequence(g, grammar.Literal(endParameter)), nil
}
