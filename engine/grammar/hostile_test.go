package grammar

import (
	"fmt"
	"strings"
	"testing"
)

// hostile are schemas that would take much time or memory, and what the error says; "" compiles.
func hostile() map[string]string {
	deep := strings.Repeat(`{"items":`, 150) + `{}` + strings.Repeat(`}`, 150)
	var members, required, alternatives, long []string
	for i := range 1000 {
		members = append(members, fmt.Sprintf(`"property_number_%d":{"type":"string"}`, i))
		required = append(required, fmt.Sprintf(`"property_number_%d"`, i))
		alternatives = append(alternatives, fmt.Sprintf(`{"properties":{"a%d":{"type":"null"}},"required":["a%d"]}`, i, i))
		long = append(long, fmt.Sprintf(`"%s%d"`, strings.Repeat("value ", 40), i))
	}
	groups := strings.Repeat(`{"anyOf":[{"minLength":1},{"maxLength":5},{"pattern":"a"}]},`, 12)
	return map[string]string{
		deep:                               "",
		strings.Repeat(`[`, 100_000):       "nested deeper",
		strings.Repeat(`{"not":`, 100_000): "nested deeper",
		`{"type":"object","properties":{` + strings.Join(members, ",") + `}}`:                                                  "256",
		`{"type":"object","properties":{` + strings.Join(members[:256], ",") + `}}`:                                            "",
		`{"type":"object","properties":{` + strings.Join(members, ",") + `},"required":[` + strings.Join(required, ",") + `]}`: "",
		`{"anyOf":[` + strings.Join(alternatives[:300], ",") + `]}`:                                                            "",
		`{"oneOf":[` + strings.Join(alternatives, ",") + `]}`:                                                                  `"oneOf"`,
		`{"enum":[` + strings.Join(long, ",") + `]}`:                                                                           "",
		`{"allOf":[` + strings.TrimSuffix(groups, ",") + `]}`:                                                                  "combine in",
		`{"type":"string","maxLength":2000000000}`:                                                                             "",
		`{"type":"string","minLength":1e400}`:                                                                                  "",
		`{"type":"string","minLength":1e401}`:                                                                                  "whole number",
		`{"type":"string","pattern":"a","maxLength":2000000000}`:                                                               `"maxLength"`,
		`{"type":"array","maxItems":2000000000}`:                                                                               `"maxItems"`,
		`{"type":"array","minItems":2000000000}`:                                                                               `"maxItems"`,
		`{"type":"object","maxProperties":2000000000}`:                                                                         `"maxProperties"`,
		`{"type":"number","maximum":1e999999999}`:                                                                              `"maximum"`,
		`{"type":"number","maximum":1e400,"minimum":-1e-400}`:                                                                  "",
		`{"type":"integer","multipleOf":1e300}`:                                                                                `"multipleOf"`,
		`{"const":1e999999999}`:                                                                                                `"enum"`,
		`{"type":"string","pattern":"(a|b)*a(a|b){30}"}`:                                                                       `"pattern"`,
		`{"type":"string","pattern":"((a{1,100}){1,100}){1,100}"}`:                                                             `"pattern"`,
		`{"type":"string","pattern":"` + strings.Repeat("(", 2000) + `"}`:                                                      `"pattern"`,
		`{"type":"string","pattern":"\\p{Lu}{1,1000}"}`:                                                                        "too large",
		`{"$ref":"#"}`: `"$ref"`,
		`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`:                            `"$ref"`,
		`{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}`:                `"a"`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}}`: `"$ref"`,
		`{"$ref":"#/$defs/x/y"}`:                                              "names nothing",
		`{"$ref":"http://localhost/schema.json"}`:                             "nothing is fetched",
		`{"properties":{"a":{"$ref":"#"}},"required":["a"],"type":"object"}`:  "no finite text",
		`{"properties":{"a/b":{"items":[{"uniqueItems":true}]}}}`:             `cannot enforce "uniqueItems" at #/properties/a~1b/items/0`,
		`{"properties":{"a":{"minlength":3}}}`:                                `cannot enforce "minlength" at #/properties/a`,
		`{"properties":{"a":{"type":"string","format":"postcode"}}}`:          `cannot enforce "format" at #/properties/a`,
		`{"type":"integer","format":"decimal"}`:                               `cannot enforce "format" at #`,
		`{"if":{"type":"string"},"then":{"minLength":1}}`:                     `cannot enforce "if" at #`,
		`{"properties":{"a":{"required":true}}}`:                              `cannot enforce "required" at #/properties/a`,
		`{"type":"text"}`:                                                     `"type"`,
		`{} {}`:                                                               "behind the JSON",
		`{`:                                                                   "cannot compile the schema",
		``:                                                                    "ends too early",
		`3`:                                                                   "neither an object",
		`false`:                                                               "no finite text",
	}
}

func TestHostileSchemas(t *testing.T) {
	v := letters()
	for schema, want := range hostile() {
		g, err := Schema([]byte(schema))
		switch {
		case want == "" && err != nil:
			t.Errorf("%.120s: %v", schema, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.120s: %v, want %s", schema, err, want)
		case err == nil:
			g.NewMatcher(v).Mask()
		}
	}
}

// tryMatcher takes a few steps in whatever compiled: nothing may panic, and what the mask allows
// must be accepted, unless a text can be read in too many ways.
func tryMatcher(t *testing.T, g *Grammar) {
	v := letters(`",`, `":`, "ab", "}}")
	m := g.NewMatcher(v)
	for step := range 12 {
		mask := m.Mask()
		allowed := int32(-1)
		for k := range int32(v.size) {
			id := (k + int32(step)*37) % int32(v.size)
			if id != 0 && mask.Allows(id) {
				allowed = id
				break
			}
		}
		if allowed < 0 {
			if !m.Complete() {
				t.Fatal("nothing may come, and the text is not complete")
			}
			return
		}
		if err := m.Accept(allowed); err != nil {
			if strings.Contains(err.Error(), "ways") {
				return
			}
			t.Fatal(err)
		}
	}
}

func FuzzSchema(f *testing.F) {
	for s := range hostile() {
		if len(s) < 2000 {
			f.Add([]byte(s))
		}
	}
	for _, s := range everyday {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Schema(data)
		if err == nil {
			tryMatcher(t, g)
		} else if g != nil || !strings.HasPrefix(err.Error(), "cannot compile the schema: ") {
			t.Fatal(err)
		}
	})
}

func FuzzEBNF(f *testing.F) {
	f.Add("root ::= \"a\" [b-d]{2} | x+\nx ::= \"y\" # comment\n")
	f.Add("root ::= e\ne ::= t (\"+\" t)*\nt ::= [0-9]+ | \"(\" e \")\"")
	f.Add("root ::= ((\"x\"{9999}){9999}){9999}")
	f.Add("root ::= a\n  | b\na ::= [^a\\]\\x41]\nb ::= \"\\u00e9\" .")
	f.Add("root ::= root | (\"\" root)* [a-\\U0010FFFF]{0,3}?+*")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := EBNF(text)
		if err == nil {
			tryMatcher(t, g)
		} else if g != nil || !strings.HasPrefix(err.Error(), "cannot compile the grammar: ") {
			t.Fatal(err)
		}
	})
}

func FuzzRegex(f *testing.F) {
	for _, p := range []string{`[a-c]+\d{2,3}`, `^a|b$`, `(a|b)*a(a|b){12}`, `\u00e9[^\n]\s\S`, `(?i:straße)`, `\p{Lu}{1,1000}`, `[\x{10000}-\x{10ffff}]`, `^^$$|^`} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		g, err := Regex(pattern)
		if err == nil {
			tryMatcher(t, g)
		} else if g != nil || !strings.HasPrefix(err.Error(), "cannot compile the regular expression: ") {
			t.Fatal(err)
		}
	})
}
