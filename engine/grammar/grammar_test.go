package grammar

import (
	"strings"
	"testing"
)

// letters is a vocabulary of the 256 bytes and some longer tokens; id 0 is the end.
func letters(more ...string) *Vocabulary {
	tokens := [][]byte{nil}
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	for _, m := range more {
		tokens = append(tokens, []byte(m))
	}
	return NewVocabulary(len(tokens), func(id int32) []byte { return tokens[id] }, []int32{0})
}

// failer is what a test and a check of a property have in common.
type failer interface {
	Helper()
	Fatalf(format string, a ...any)
}

// accepts tells whether a text is in the language, byte by byte, and fails where the mask and
// Accept are not of one mind.
func accepts(t failer, g *Grammar, v *Vocabulary, text string) bool {
	t.Helper()
	m := g.NewMatcher(v)
	for i := range len(text) {
		id := int32(text[i]) + 1
		allowed := m.Mask().Allows(id)
		err := m.Accept(id)
		if allowed != (err == nil) {
			t.Fatalf("%q: at byte %d the mask says %v and Accept says %v", text, i, allowed, err)
		}
		if err != nil {
			return false
		}
	}
	if m.Mask().Allows(0) != m.Complete() {
		t.Fatalf("%q: the mask says %v about the end, Complete says %v", text, m.Mask().Allows(0), m.Complete())
	}
	return m.Complete()
}

// check runs a table of texts: those that begin with + are in the language, those with - are not.
func check(t *testing.T, g *Grammar, texts ...string) {
	t.Helper()
	v := letters()
	for _, text := range texts {
		if got := accepts(t, g, v, text[1:]); got != (text[0] == '+') {
			t.Errorf("%q: accepted is %v", text[1:], got)
		}
	}
}

func TestCombinations(t *testing.T) {
	check(t, Literal("né\x00"), "+né\x00", "-n", "-né", "-")
	check(t, Literal(""), "+", "-a")
	c, err := Choice([]string{"red", "rose", "", "blue"})
	if err != nil {
		t.Fatal(err)
	}
	check(t, c, "+red", "+rose", "+", "+blue", "-r", "-redd", "-ros")
	check(t, Sequence(c, Literal("!"), c), "+red!", "+!blue", "+rose!red", "+!", "-red", "-red!!")
	check(t, Either(Literal("ab"), Literal("ac"), c), "+ab", "+ac", "+red", "+", "-a")
	check(t, Repeat(Literal("ab"), 1, 3), "+ab", "+abab", "+ababab", "-", "-abababab", "-aba")
	check(t, Repeat(c, 0, -1), "+", "+red", "+redredrose", "-re")
	check(t, Sequence(), "+", "-x")
	check(t, Either(), "+", "-x")
	check(t, Repeat(Literal("a"), 3, 2), "+aaa", "-aa", "-aaaa")
	check(t, Repeat(Literal("a"), -1, 1<<40), "+", "+aaaaaaa", "-b")
	check(t, Sequence(Repeat(c, 2, -1), Literal("!")), "+!", "+redred!", "-redred")
	check(t, Sequence(Until("</t>"), JSON()), `+a < b </t>{}`, `+</</t>{"a":1}`, `-</t>`, `-x{}`, "+é</t>{}", "-\xff</t>{}")
	check(t, Until("aab"), "+aab", "+aaaab", "+abaab", "-aabaab", "-aa")
	if _, err := Choice(nil); err == nil {
		t.Error("a choice of nothing compiles")
	}
}

func TestJSON(t *testing.T) {
	check(t, JSON(),
		`+{}`, `+{"a":1}`, `+{"a": [1, -2.5e+10, 0, true, null, {"b":"\u00e9\ud83d\ude00\n\/"}]}`, "+{\n  \"a\": 1\n}",
		`-[]`, `-{"a":01}`, `-{"a":1,}`, `-{"a"}`, `-{a:1}`, `-{"a":.5}`, `-{"a":1.}`, `-{"a":-}`, `-{"\ud83d":1}`, `-{"\ude00":1}`,
		`-{"\ud83dx":1}`, `-{"\x":1}`, "-{\"a\nb\":1}", `-{"a":  1}`, "-{\"\xed\xa0\x80\":1}", "-{\"\xc0\xaf\":1}", "+{\"\U0010ffff\":\"\x7f\"}",
		`-{"a":1}}`, `-{"a":+1}`, `-{"a":tru}`, `-{"a":NaN}`, `+{"a":{"a":{"a":[[[]]]}}}`, `-{"a" :1}`, `- {}`)
}

func TestRegex(t *testing.T) {
	for pattern, texts := range map[string][]string{
		`[a-c]+\d{2,3}`:     {"+a12", "+abc123", "-a1", "-a1234", "-d12"},
		`^a|b$`:             {"+a", "+b", "-ab", "-"},
		`(?:ab|cd)*\s\S`:    {"+ \u00e9", "+abcd\u00a0x", "-abcd  "},
		`\u00e9[^\n]`:       {"+éx", "-é\n", "-e"},
		`.{2}`:              {"+é😀", "-a", "-a\n", "-a\u2028"},
		`\p{Lu}\w?`:         {"+É", "+Az", "-éz"},
		`a{0}`:              {"+", "-a"},
		`(a|ab)(c|bcd)(d*)`: {"+abcd", "+acd", "+abcddd", "-ab"},
		`[\d.-]+`:           {"+1.5-", "-a"},
		`[[:x]+`:            {"+[:x", "-a"},
		`\/\x41\cJ`:         {"+/A\n"},
		`a^b`:               {},
	} {
		g, err := Regex(pattern)
		if pattern == `a^b` {
			if err == nil || !strings.Contains(err.Error(), "no finite text") {
				t.Errorf("%s: %v", pattern, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		check(t, g, texts...)
	}
	for _, bad := range []string{`(`, `\bx`, `(?=a)b`, `\1`, `a{2,1}`, `[]`, `\u12`, `(((a{1,1000}){1,1000}){1,1000})`, `\Z`, `x{1,99999}`} {
		if _, err := Regex(bad); err == nil {
			t.Errorf("%s compiles", bad)
		}
	}
}

func TestEBNF(t *testing.T) {
	for text, texts := range map[string][]string{
		"root ::= \"a\" [b-d]{2} | x+\nx ::= \"y\" # comment\n":        {"+abc", "+y", "+yyy", "-ab", "-"},
		"root ::= e\ne ::= t (\"+\" t)*\nt ::= [0-9]+ | \"(\" e \")\"": {"+1+(2+3)", "+((1))", "-(1", "-1+"},
		"root ::= \"x\" root \"y\" | \"\"":                             {"+", "+xxyy", "-xxy"},
		"root ::= a\n  | b\na ::= [^a\\]\\x41]\nb ::= \"\\u00e9\" .":   {"+é", "+b", "-a", "-A", "-]", "+éx"},
		"root ::= (\n \"a\"\n | \"b\"\n){,2}":                          {"+", "+ab", "-aba"},
		"root ::= l*\nl ::= \"- \" c+ \"\\n\"\nc ::= [^\\n]":           {"+- é\n- x\n", "-- \n"},
		"root ::= a root | \"\"\na ::= [ab]":                           {"+", "+abba", "-c"},
	} {
		g, err := EBNF(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		check(t, g, texts...)
	}
	for text, want := range map[string]string{
		"":                            "no rule named root",
		"root ::= x":                  `line 1, column 10: rule "x" is not defined`,
		"root ::= root \"a\" | \"b\"": "left-recursive",
		"root ::= a\na ::= b? root \"x\" | \"x\"\nb ::= \"c\"": "left-recursive",
		"root ::= \"a":                         "not closed",
		"root ::= (\"a\"":                      "not closed",
		"root ::= [z-a]":                       "upside down",
		"root ::= \"a\"{3,2}":                  "empty",
		"root ::= \"a\"{99999}":                "may count up to",
		"root ::= \"a\" root":                  "no finite text",
		"root ::= ((\"x\"{9999}){9999}){9999}": "too large",
		"root ::= \"\\q\"":                     `escape \q`,
	} {
		if _, err := EBNF(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestSchema(t *testing.T) {
	for schema, texts := range map[string][]string{
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"additionalProperties":false}`: {
			`+{}`, `+{"a":1,"b":""}`, `+{"b":"x"}`, "+{ \"a\": 1, \"b\": \"x\" }", "+{\n  \"a\": 1,\n  \"b\": \"x\"\n}", "+{\n\t\"a\": 1}",
			`-{"b":"x","a":1}`, `-{"a":1,"a":2}`, `-{"a":1,}`, `-{,"a":1}`, `-{"c":1}`, `-{"a":1.0}`, `-{"a" :1}`, `-{"a":  1}`, "-{\n\n}", `-{"\u0061":1}`,
		},
		`{"type":"object","properties":{"a":{"type":"integer"}}}`: { // others come behind, and cannot be a declared one
			`+{"a":1,"b":[]}`, `+{"ab":1,"":2}`, `-{"b":1,"a":1}`, `-{"b":1,"a":"x"}`, `-{"b":1,"\u0061":"x"}`, `+{"b\n\u001f\"é":1}`,
		},
		`{"type":"string","minLength":2,"maxLength":3}`: {
			`+"ab"`, `+"é😀"`, `+"\ud83d\ude00\n\u00E9"`, `-"a"`, `-"abcd"`, `-"\ud83d\ude00"`, `+"\"\\\/"`, "-\"a\tb\"",
		},
		`{"type":"string","pattern":"^\\w+\\s\"$"}`:                                                             {`+"ab \""`, `-"ab\u0020\""`, `+"a\t\""`, `-"ab "`},
		`{"type":"string","nullable":true}`:                                                                     {`+null`, `+""`, `-1`},
		`{"minimum":5,"exclusiveMinimum":true,"type":"integer"}`:                                                {`+6`, `-5`, `+10`, `-05`},
		`{"type":"integer","minimum":-12,"maximum":105}`:                                                        {`+-12`, `--13`, `+0`, `--0`, `+105`, `-106`, `-00`, `+99`, `-1000`, `+-9`},
		`{"type":"integer","format":"int32"}`:                                                                   {`+2147483647`, `-2147483648`, `+-2147483648`, `--2147483649`},
		`{"type":"number","exclusiveMinimum":0,"maximum":1.25}`:                                                 {`+0.001`, `-0`, `-0.0`, `+1.25`, `+1.250`, `-1.2501`, `+1`, `--1`, `-1e-1`, `-.5`},
		`{"type":"number","minimum":0}`:                                                                         {`+-0`, `+-0.00`, `--0.01`, `+123456789012345678901234567890.5`},
		`{"type":"number","maximum":-0.5}`:                                                                      {`+-0.5`, `--0.49`, `+-7`, `-0`, `+-0.50`},
		`{"type":"number","multipleOf":0.05,"minimum":0.1}`:                                                     {`+0.1`, `+0.15`, `-0.12`, `-0.05`, `+3`},
		`{"items":[{"type":"null"}],"additionalItems":{"type":"boolean"},"type":"array"}`:                       {`+[]`, `+[null]`, `+[null,true, false]`, `-[true]`, `-[null,null]`},
		`{"type":"array","minItems":1,"maxItems":2}`:                                                            {`-[]`, `+[1]`, `+[ 1, {} ]`, `-[1,2,3]`, `-[1,]`},
		`{"not":{"type":["object","array","string"]}}`:                                                          {`+1`, `+null`, `-""`, `-{}`},
		`{"const":{"a":[1.0,"\u00e9\u2028"]}}`:                                                                  {"+{\"a\":[1,\"é\u2028\"]}", "+{\"a\": [ 1, \"é\u2028\" ]}", `-{"a":[1.0,"é"]}`},
		`{"$ref":"#/$defs/a%25b~1c","$defs":{"a%b/c":{"enum":["x"]}}}`:                                          {`+"x"`, `-"y"`},
		`{"$ref":"#here","$defs":{"x":{"$anchor":"here","type":"null"}}}`:                                       {`+null`, `-1`},
		`{"$id":"https://example.org/s","$ref":"https://example.org/s#/$defs/n","$defs":{"n":{"type":"null"}}}`: {`+null`, `-1`},
		`{"type":"integer","format":"uint8"}`:                                                                   {`+0`, `+255`, `-256`, `--1`},
		`true`:                                                                                                  {`+1`, `+{"a":[]}`, `-x`},
	} {
		g, err := Schema([]byte(schema))
		if err != nil {
			t.Errorf("%s: %v", schema, err)
			continue
		}
		t.Run(schema, func(t *testing.T) { check(t, g, texts...) })
	}
}
