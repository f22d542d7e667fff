package grammar

import "sync"

// maxIndent is the most blanks that may begin a line of JSON.
const maxIndent = 64

// Rules that every grammar of JSON begins with, by their number.
const (
	blankRule = iota
	valueRule
	objectRule
	arrayRule
	stringRule
	numberRule
	ownRules // the first number of others
)

// Blanks of JSON are bounded, so that no answer consists of them: nothing, one space, or a line
// break and an indentation behind { [ , and before } ], and nothing or a space behind a colon.
var (
	blank  = call(blankRule)
	indent = sequence{literal("\n"), choice{
		repeat{literal(" "), 0, maxIndent},
		repeat{literal("\t"), 1, maxIndent / 4},
	}}
	colon = sequence{literal(":"), choice{nil, literal(" ")}}
)

// anyString is every JSON string: quotes, characters raw or escaped, surrogates in pairs.
var anyString = sync.OnceValue(func() *dfa {
	d, err := anything().encode(asFree)
	if err != nil {
		panic("grammar: " + err.Error())
	}
	return d
})

// anything is every text, as code points.
func anything() *dfa { return &dfa{edges: [][]edge{{{0, lastChar, 0}}}, final: []bool{true}} }

// countedString is every JSON string of min to max characters; max below 0 is without end.
func countedString(min, max int) *rule {
	d := anyString()
	c := &counter{opening: 0, loop: d.next(0, '"'), min: int32(min), max: endless}
	c.final = d.next(c.loop, '"')
	if max >= 0 {
		c.max = int32(max)
	}
	return &rule{automaton: d, counted: c}
}

// Numbers of JSON.
var (
	digit  = chars{{'0', '9', 0}}
	digits = repeat{digit, 1, -1}
	whole  = choice{literal("0"), sequence{chars{{'1', '9', 0}}, repeat{digit, 0, -1}}}

	anyInteger = choice{literal("0"), sequence{choice{nil, literal("-")}, chars{{'1', '9', 0}}, repeat{digit, 0, -1}}}
	anyNumber  = sequence{
		choice{nil, literal("-")}, whole,
		choice{nil, sequence{literal("."), digits}},
		choice{nil, sequence{chars{{'E', 'E', 0}, {'e', 'e', 0}}, choice{nil, literal("+"), literal("-")}, digits}},
	}
)

// list is open, members with commas between them, close; empty as well.
func list(open, member, shut expression) expression {
	return sequence{open, choice{
		blank,
		sequence{blank, member, repeat{sequence{literal(","), blank, member}, 0, -1}, blank},
	}, shut}
}

// jsonRules returns the rules of every JSON value.
func jsonRules() []*rule {
	return []*rule{
		blankRule: {name: "blank", body: choice{nil, literal(" "), indent}},
		valueRule: {name: "value", body: choice{
			call(objectRule), call(arrayRule), call(stringRule), call(numberRule),
			literal("true"), literal("false"), literal("null"),
		}},
		objectRule: {name: "object", body: list(literal("{"), sequence{call(stringRule), colon, call(valueRule)}, literal("}"))},
		arrayRule:  {name: "array", body: list(literal("["), call(valueRule), literal("]"))},
		stringRule: countedString(0, -1),
		numberRule: {name: "number", body: anyNumber},
	}
}

// JSON allows any JSON object.
func JSON() *Grammar { return anyObject() }

var anyObject = sync.OnceValue(func() *Grammar {
	return must(compile(jsonRules(), objectRule))
})
