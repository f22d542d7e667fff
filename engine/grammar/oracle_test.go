package grammar

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// oracle compiles a schema with formats asserted, by an implementation that is not ours.
func oracle(schema []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("mem:///schema.json")
}

// walker writes texts at random: tokens that the mask allows, those that close something more often
// the longer the text is.
type walker struct {
	v      *Vocabulary
	random *rand.Rand
	likely []int32
	allow  []int32
}

func newWalker(seed uint64, texts ...string) *walker {
	w := &walker{v: pieces(seed, append(texts, `{"a":1,"b":[true,null],"c":"x\n\u00e9"}`, `"2024-02-29T10:00:00Z"`)...), random: rand.New(rand.NewPCG(seed, 7))}
	for id := range int32(w.v.size) {
		if b := w.v.bytes[id]; len(b) > 0 && len(b) <= 2 && strings.Trim(string(b), `"}],:0123456789`) == "" {
			w.likely = append(w.likely, id)
		}
	}
	return w
}

// walk returns a text and whether it came to its end.
func (w *walker) walk(t failer, g *Grammar) (string, bool) {
	m := g.NewMatcher(w.v)
	var text []byte
	for step := range 1500 {
		mask := m.Mask()
		if m.Complete() && (m.Done() || w.random.IntN(3) == 0 || step > 100) {
			return string(text), true
		}
		id := w.likely[w.random.IntN(len(w.likely))]
		for tries := 0; tries < 20 && !mask.Allows(id); tries++ {
			id = w.likely[w.random.IntN(len(w.likely))]
		}
		if step > 60 {
			for _, close := range []byte(`"}],`) {
				if mask.Allows(int32(close)) {
					id = int32(close)
					break
				}
			}
		}
		if !mask.Allows(id) || step < 60 && w.random.IntN(3) > 0 {
			w.allow = w.allow[:0]
			for k := range int32(w.v.size) {
				if mask.Allows(k) && w.v.bytes[k] != nil {
					w.allow = append(w.allow, k)
				}
			}
			if len(w.allow) == 0 {
				t.Fatalf("nothing may come after %q", text)
			}
			id = w.allow[w.random.IntN(len(w.allow))]
		}
		if err := m.Accept(id); err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		text = append(text, w.v.bytes[id]...)
	}
	return string(text), false
}

// everyday are schemas as applications send them.
var everyday = []string{
	`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":130},"email":{"type":"string","format":"email"}},"required":["name","age"],"additionalProperties":false}`,
	`{"$defs":{"Step":{"properties":{"explanation":{"title":"E","type":"string"},"output":{"type":"string"}},"required":["explanation","output"],"title":"Step","type":"object","additionalProperties":false}},"properties":{"steps":{"items":{"$ref":"#/$defs/Step"},"type":"array"},"final_answer":{"type":"string"}},"required":["steps","final_answer"],"title":"Reasoning","type":"object","additionalProperties":false}`,
	`{"type":"object","properties":{"kind":{"enum":["a","b",null,3]},"when":{"type":"string","format":"date-time"},"id":{"type":"string","format":"uuid"},"ip":{"anyOf":[{"type":"string","format":"ipv4"},{"type":"string","format":"ipv6"}]}},"required":["kind","when","id","ip"]}`,
	`{"oneOf":[{"type":"object","properties":{"t":{"const":"circle"},"r":{"type":"number","exclusiveMinimum":0}},"required":["t","r"],"additionalProperties":false},{"type":"object","properties":{"t":{"const":"box"},"w":{"type":"number","maximum":12.75},"h":{"type":"number","minimum":-0.125,"maximum":1e2}},"required":["t","w","h"],"additionalProperties":false}]}`,
	`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"value":{"type":["integer","string","null"],"minLength":1,"maxLength":5,"multipleOf":7},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["value","next"],"additionalProperties":false}}}`,
	`{"allOf":[{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-z]+$"},"b":{"minimum":3}}},{"properties":{"a":{"maxLength":4},"b":{"type":"integer","maximum":9}},"required":["a","b"]}]}`,
	`{"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}],"items":{"type":"number","multipleOf":0.25},"minItems":2,"maxItems":5}`,
	`{"type":"object","patternProperties":{"^n":{"type":"integer"},"s$":{"type":["string","integer"]}},"additionalProperties":{"type":"boolean"},"propertyNames":{"maxLength":4},"maxProperties":3}`,
	`{"type":"object","properties":{"card":{"type":"string"},"billing":{"type":"string"}},"dependentRequired":{"card":["billing"]},"additionalProperties":false,"minProperties":1}`,
	`{"type":"object","properties":{"url":{"type":"string","format":"uri"},"t":{"type":"string","format":"time"},"d":{"type":"string","format":"duration"},"h":{"type":"string","format":"hostname"}},"required":["url","t","d","h"],"additionalProperties":false}`,
	`{"type":"integer","minimum":-1234,"exclusiveMaximum":98765,"multipleOf":4}`,
	`{"type":"number","exclusiveMinimum":-0.5,"exclusiveMaximum":0.05}`,
	`{"type":"number","minimum":-10.25,"maximum":-10}`,
	`{"type":"string","minLength":2,"maxLength":3,"pattern":"[^a]$"}`,
	`{"enum":["a\"\\\u2028é",1.50,{"x":[1,{}]},[],false]}`,
	`{"type":"object","properties":{"a":{},"b":true,"c":{"not":{"type":["object","array"]}}},"required":["c","d"]}`,
}

// TestWalksAreValid: whatever the masks let a model write, an implementation of JSON schema that is
// not ours finds valid.
func TestWalksAreValid(t *testing.T) {
	schemas := slices.Clone(everyday)
	suite(t, func(_ string, g suiteGroup) {
		if strings.Contains(string(g.Schema), `\\s"`) || strings.Contains(string(g.Schema), `\\s$`) {
			return // Go's \s, which the oracle takes, has fewer blanks than ECMAScript's
		}
		if _, err := Schema(g.Schema); err == nil {
			schemas = append(schemas, string(g.Schema))
		}
	})
	w := newWalker(5)
	texts, ended := 0, 0
	for i, text := range schemas {
		g, err := Schema([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		o, err := oracle([]byte(text))
		if err != nil {
			if i < len(everyday) {
				t.Errorf("%s: the oracle says %v", text, err)
			}
			continue
		}
		walks := 8
		if i < len(everyday) {
			walks = 60
		}
		for range walks {
			texts++
			out, done := w.walk(t, g)
			if !done {
				continue
			}
			ended++
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
			if err == nil {
				err = o.Validate(v)
			}
			if err != nil {
				t.Errorf("%s\nallows %q:\n%v", text, out, err)
				break
			}
		}
	}
	t.Logf("%d walks over %d schemas, %d ended", texts, len(schemas), ended)
	if ended < texts*9/10 {
		t.Errorf("only %d of %d walks ended", ended, texts)
	}
}

// TestRandomSchemas puts schemas together at random: what compiles must let nothing invalid pass
// and must accept the values that the oracle accepts.
func TestRandomSchemas(t *testing.T) {
	w := newWalker(6)
	letters := letters()
	compiled, accepted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		schema := randomSchema(3).Draw(t, "schema")
		o, err := oracle([]byte(schema))
		if err != nil {
			t.Fatalf("the oracle cannot read %s: %v", schema, err)
		}
		g, err := Schema([]byte(schema))
		if err != nil {
			if !strings.Contains(err.Error(), "no finite text") && !strings.Contains(err.Error(), "cannot enforce") {
				t.Fatalf("%s: %v", schema, err)
			}
			if strings.Contains(err.Error(), "cannot enforce") {
				return
			}
		}
		compiled++
		for range 3 {
			if g == nil {
				break
			}
			out, done := w.walk(t, g)
			if !done {
				continue
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
			if err == nil {
				err = o.Validate(v)
			}
			if err != nil {
				t.Fatalf("%s\nallows %q:\n%v", schema, out, err)
			}
		}
		for range 4 {
			text := randomValue(2).Draw(t, "value")
			v, err := parseDocument([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			instance, _ := jsonschema.UnmarshalJSON(strings.NewReader(text))
			valid := o.Validate(instance) == nil
			got := g != nil && slices.ContainsFunc(writings(v), func(s string) bool { return accepts(t, g, letters, s) })
			if got != valid {
				t.Fatalf("%s\n%s: accepted is %v, the oracle says %v", schema, text, got, valid)
			}
			if valid {
				accepted++
			}
		}
	})
	t.Logf("%d schemas compiled, %d valid values accepted", compiled, accepted)
}

func randomSchema(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var parts []string
		pick := func(n int) bool { return rapid.IntRange(0, n).Draw(t, "pick") == 0 }
		sub := func() string {
			if depth == 0 {
				return rapid.SampledFrom([]string{"true", "false", `{}`, `{"type":"integer"}`, `{"type":"string"}`}).Draw(t, "leaf")
			}
			return randomSchema(depth-1).Draw(t, "sub")
		}
		from := func(list ...string) string { return rapid.SampledFrom(list).Draw(t, "of") }
		add := func(n int, name string, value func() string) {
			if pick(n) {
				parts = append(parts, quoted(name)+":"+value())
			}
		}
		small := func() string { return from("0", "1", "2", "3") }
		add(1, "type", func() string {
			return from(`"integer"`, `"number"`, `"string"`, `"object"`, `"array"`, `["null","boolean"]`, `["string","object"]`, `["integer","array"]`)
		})
		add(8, "enum", func() string { return from(`[1,"a",null]`, `["a","b","ab"]`, `[true,2.5,0]`) })
		add(8, "const", func() string { return from(`1`, `"a"`, `null`, `true`) })
		add(3, "minimum", func() string { return from("0", "-1.5", "2", "10") })
		add(3, "exclusiveMaximum", func() string { return from("3", "2.5", "-1", "101") })
		add(5, "multipleOf", func() string { return from("2", "0.5", "3") })
		add(4, "minLength", small)
		add(4, "maxLength", small)
		add(5, "pattern", func() string { return from(`"^a"`, `"b$"`, `"a.?b"`, `"^[^b]*$"`) })
		add(4, "minItems", small)
		add(4, "maxItems", small)
		if pick(3) {
			parts = append(parts, `"items":`+sub())
		}
		if pick(5) {
			parts = append(parts, `"prefixItems":[`+sub()+`,`+sub()+`]`)
		}
		if pick(2) {
			parts = append(parts, `"properties":{"a":`+sub()+`,"b":`+sub()+`}`)
		}
		add(3, "required", func() string { return from(`["a"]`, `["a","b"]`, `["c"]`) })
		add(6, "maxProperties", small)
		if pick(4) {
			parts = append(parts, `"additionalProperties":`+sub())
		}
		if pick(6) {
			parts = append(parts, `"patternProperties":{"^[ac]":`+sub()+`}`)
		}
		add(9, "propertyNames", func() string { return from(`{"maxLength":1}`, `{"enum":["a","c"]}`, `{"pattern":"b"}`) })
		add(9, "dependentRequired", func() string { return from(`{"a":["b"]}`, `{"c":["a"]}`) })
		for _, k := range []string{"allOf", "anyOf", "oneOf"} {
			if depth > 0 && pick(6) {
				parts = append(parts, quoted(k)+`:[`+sub()+`,`+sub()+`]`)
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
}

func randomValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		if depth == 0 || kind < 2 {
			return rapid.SampledFrom([]string{"0", "1", "2", "-1", "2.5", "3", "100", "101", "0.25", "null", "true", `""`, `"a"`, `"b"`, `"ab"`, `"acb"`, `"bbb"`, `"é"`}).Draw(t, "scalar")
		}
		n := rapid.IntRange(0, 3).Draw(t, "n")
		var parts []string
		if kind == 2 {
			for range n {
				parts = append(parts, randomValue(depth-1).Draw(t, "item"))
			}
			return "[" + strings.Join(parts, ",") + "]"
		}
		for _, name := range []string{"a", "b", "c", "ab"} {
			if rapid.Bool().Draw(t, name) {
				parts = append(parts, quoted(name)+":"+randomValue(depth-1).Draw(t, "value"))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
}
