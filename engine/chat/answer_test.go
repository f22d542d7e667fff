package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const weatherTools = `[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{
 "place":{"type":"string"},"days":{"type":"integer"},"exact":{"type":"boolean"},"near":{"type":"array"},"more":{"type":"object"},
 "t":{"type":"number"},"maybe":{"type":["string","null"]},"either":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}}}]`

func tools(t testing.TB) Tools {
	t.Helper()
	out, err := ParseTools([]byte(weatherTools))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// written shows pieces in one line: text as it is, reasoning in [], calls as name(arguments),
// unfinished calls in ?…?.
func written(pieces []Piece) string {
	var b strings.Builder
	last := Kind(255)
	for _, p := range pieces {
		switch p.Kind {
		case Text:
			b.WriteString(p.Text)
		case Reasoning:
			if last == Reasoning { // neighbours are one
				s := strings.TrimSuffix(b.String(), "]")
				b.Reset()
				b.WriteString(s + p.Text + "]")
				continue
			}
			b.WriteString("[" + p.Text + "]")
		case Call:
			b.WriteString("«" + p.Call.Name + p.Call.Arguments + "»")
		case Unfinished:
			b.WriteString("?" + p.Text + "?")
		}
		last = p.Kind
	}
	return b.String()
}

func parse(s Style, parts ...string) string {
	p := NewParser(s)
	var out []Piece
	for _, part := range parts {
		out = append(out, p.Push(part)...)
	}
	return written(append(out, p.Flush()...))
}

var answers = []struct {
	format        Format
	think, opened bool
	text, want    string
}{
	// Reasoning.
	{text: "plain", want: "plain"},
	{think: true, text: "<think>\nwhy\n</think>\n\nbecause", want: "[why]because"},
	{think: true, text: " \n<think>a\n\nb\n\n</think>c\n", want: "[a\n\nb]c\n"},
	{think: true, opened: true, text: "why\n</think>\n\nbecause", want: "[why]because"},
	{think: true, text: "<think>\n\n</think>\n\nanswer", want: "answer"},
	{think: true, text: "no tag <think>x</think>", want: "no tag <think>x</think>"},
	{think: true, text: "<thinker> is a word", want: "<thinker> is a word"},
	{think: true, text: " <thi", want: " <thi"},
	{think: true, opened: true, text: "a </thin b </think", want: "[a </thin b </think]"},
	{think: true, opened: true, text: "a <think> b</think>c</think>d", want: "[a <think> b]c</think>d"},
	{text: "<think>not asked for</think>", want: "<think>not asked for</think>"},
	{think: true, text: "  indented", want: "  indented"},
	// Hermes.
	{format: Tagged, text: "I look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"z\": 1, \"a\": [true]}}\n</tool_call>", want: "I look.\n«f{\"z\": 1, \"a\": [true]}»"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":{}}</tool_call>\n", want: "«f{}»«g{}»"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\",\"arguments\":{\"s\":\"a </tool_call> } b \\\" \"}}</tool_call> then", want: "«f{\"s\":\"a </tool_call> } b \\\" \"}»then"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":[1}</tool_call>x", want: "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":[1}</tool_call>x"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}\n</tool_call>x", want: "«f{\"a\":1}»x"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>", want: "«f{\"a\":1}»"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\"}</tool_call>", want: "«f{}»"},
	{format: Tagged, text: "<tool_call>{\"noname\":1}</tool_call>", want: "<tool_call>{\"noname\":1}</tool_call>"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\",\"arguments\":{", want: "?<tool_call>{\"name\":\"f\",\"arguments\":{?"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\",\"arguments\":{}}", want: "«f{}»"},
	{format: Tagged, text: "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_c", want: "«f{}»"},
	{format: Tagged, text: "write <tool_call> to call", want: "write <tool_call> to call"},
	{format: Tagged, text: "a <tool_call", want: "a <tool_call"},
	{format: Tagged, text: "a <tool_call>", want: "a <tool_call>"},
	{format: Tagged, text: "a < b <tool > c <tool_calls>", want: "a < b <tool > c <tool_calls>"},
	{format: Tagged, text: "<tool_call> like <tool_call>{\"name\":\"f\"}</tool_call>", want: "<tool_call> like «f{}»"},
	{format: NoTools, text: "<tool_call>{\"name\":\"f\"}</tool_call>", want: "<tool_call>{\"name\":\"f\"}</tool_call>"},
	// Function blocks.
	{format: Tagged, text: "<tool_call>\n<function=get_weather>\n<parameter=place>\nZürich\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>", want: "«get_weather{\"place\": \"Zürich\", \"days\": 2}»"},
	{format: Tagged, text: "<tool_call>\n<function=get_weather>\n<parameter=exact>\nTrue\n</parameter>\n<parameter=near>\n[1, \"b\"]\n</parameter>\n<parameter=more>\n{\"z\": 1, \"a\": 2}\n</parameter>\n<parameter=t>\n1.50\n</parameter>\n<parameter=maybe>\nnull\n</parameter>\n<parameter=either>\nnull\n</parameter>\n</function>\n</tool_call>", want: "«get_weather{\"exact\": true, \"near\": [1, \"b\"], \"more\": {\"z\": 1, \"a\": 2}, \"t\": 1.50, \"maybe\": null, \"either\": null}»"},
	{format: Tagged, text: "<tool_call><function=get_weather><parameter=days>soon</parameter><parameter=near>[1</parameter><parameter=place>7</parameter><parameter=other>7</parameter></function></tool_call>", want: "«get_weather{\"days\": \"soon\", \"near\": \"[1\", \"place\": \"7\", \"other\": \"7\"}»"},
	{format: Tagged, text: "<tool_call>\n<function=f>\n<parameter=code>\n\nif a < b:\n  print(\"<parameter=x>\\n</parameter>, </function> </tool_call>\")\n\n</parameter>\n</function>\n</tool_call>", want: "«f{\"code\": \"\\nif a < b:\\n  print(\\\"<parameter=x>\\\\n</parameter>, </function> </tool_call>\\\")\\n\"}»"},
	{format: Tagged, text: "<tool_call>\n<function=f>\n</function>\n</tool_call>", want: "«f{}»"},
	{format: Tagged, text: "<tool_call>\n<function=f>\n</function>\n<function=g>\n</function>\n</tool_call>", want: "«f{}»«g{}»"},
	{format: Tagged, text: "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</tool_call>rest", want: "«f{\"a\": \"1\"}»rest"},
	{format: Tagged, text: "<tool_call>\n<function=f\n<parameter=a\n1\n</parameter>\n</function>\n</tool_call>", want: "«f{\"a\": \"1\"}»"},
	{format: Tagged, text: "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>", want: "«f{\"a\": \"1\"}»"},
	{format: Tagged, text: "x <tool_call>\n<function=f>\n<parameter=a>\n1\n</para", want: "x ?<tool_call>\n<function=f>\n<parameter=a>\n1\n</para?"},
	{format: Tagged, text: "<tool_call>\n<function=f>\n</function>\n<function=g>\n<par", want: "«f{}»?\n<function=g>\n<par?"},
	{format: Tagged, text: "<tool_call>\n<function=f>\nwords\n</function>", want: "<tool_call>\n<function=f>\nwords\n</function>"},
	{format: Tagged, text: "<tool_call>\n<function=>", want: "<tool_call>\n<function=>"},
	{format: Tagged, text: "<tool_call>\n<func", want: "<tool_call>\n<func"},
	{format: Tagged, text: "<tool_call><function=f><parameter=a>1</parameter><parameter=a>2</parameter></function></tool_call>", want: "«f{\"a\": \"2\"}»"},
	{format: Tagged, think: true, text: "<think>use <tool_call>{\"name\":\"f\"}</tool_call></think>\n\n<tool_call>{\"name\":\"g\"}</tool_call>", want: "[use <tool_call>{\"name\":\"f\"}</tool_call>]«g{}»"},
	// Llama.
	{format: Llama, text: "{\"name\": \"get_weather\", \"parameters\": {\"place\": \"x\"}}", want: "«get_weather{\"place\": \"x\"}»"},
	{format: Llama, text: "<|python_tag|>{\"name\": \"get_weather\", \"arguments\": {}}", want: "«get_weather{}»"},
	{format: Llama, text: "{\"name\": \"get_weather\", \"parameters\": {}}; {\"name\": \"get_weather\", \"parameters\": {\"a\": 1}}", want: "«get_weather{}»«get_weather{\"a\": 1}»"},
	{format: Llama, text: "{\"name\": \"get_weather\", \"parameters\": {}} done", want: "«get_weather{}»done"},
	{format: Llama, text: "{\"name\": \"get_weather\", \"parameters\": {}}; done", want: "«get_weather{}»; done"},
	{format: Llama, text: "{\"name\": \"Anna\", \"parameters\": {}}", want: "{\"name\": \"Anna\", \"parameters\": {}}"},
	{format: Llama, text: " {\"x\": 1} is JSON", want: " {\"x\": 1} is JSON"},
	{format: Llama, text: "{\"name\": \"get_wea", want: "{\"name\": \"get_wea"},
	{format: Llama, text: "Say {\"name\": \"get_weather\", \"parameters\": {}}", want: "Say {\"name\": \"get_weather\", \"parameters\": {}}"},
	{format: Llama, text: "<|python_tag|>print(1)", want: "<|python_tag|>print(1)"},
	{format: Llama, text: " <|pyth", want: " <|pyth"},
	{format: Llama, text: "{\"name\": \"get_weather\", \"parameters\": [1}", want: "{\"name\": \"get_weather\", \"parameters\": [1}"},
}

func style(t testing.TB, i int) Style {
	a := answers[i]
	return Style{Format: a.format, Think: a.think, Opened: a.opened, Tools: tools(t)}
}

// Every answer, in one piece, byte by byte, and cut in two and in three at every place.
func TestAnswersHoweverTheyAreCut(t *testing.T) {
	for i, a := range answers {
		s := style(t, i)
		check := func(parts ...string) {
			t.Helper()
			if got := parse(s, parts...); got != a.want {
				t.Fatalf("%q:\n got %q\nwant %q", parts, got, a.want)
			}
		}
		check(a.text)
		check(strings.Split(a.text, "")...)
		var bytes []string
		for k := range len(a.text) {
			bytes = append(bytes, a.text[k:k+1])
		}
		check(bytes...)
		for k := range len(a.text) {
			check(a.text[:k], a.text[k:])
			for m := k; m < len(a.text); m += 1 + len(a.text)/40 {
				check(a.text[:k], a.text[k:m], a.text[m:])
			}
		}
	}
}

// Text made of pieces of tags, cut anywhere, comes out the same; without tools and thinking it
// comes out as it went in.
func TestPiecesOfTagsHoweverTheyAreCut(t *testing.T) {
	all := tools(t)
	words := []string{"<think>", "</think>", "<tool_call>", "</tool_call>", "<function=get_weather>", "</function>", "<parameter=days>", "</parameter>",
		"{", "}", "\"", "\\", ":", ",", "[", "]", ";", "<", ">", "\n", " ", "a", "1", "name", "{\"name\":\"get_weather\",\"parameters\":{}}", "<|python_tag|>", "é", "<tool", "</"}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(words), 0, 30).Draw(t, "words")
		text := strings.Join(parts, "")
		s := Style{Format: Format(rapid.IntRange(0, 2).Draw(t, "format")), Think: rapid.Bool().Draw(t, "think"), Tools: all}
		s.Opened = s.Think && rapid.Bool().Draw(t, "opened")
		whole := parse(s, text)
		if got := parse(s, parts...); got != whole {
			t.Fatalf("%q in pieces: %q, whole: %q", text, got, whole)
		}
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		if got := parse(s, text[:cut], text[cut:]); got != whole {
			t.Fatalf("%q cut at %d: %q, whole: %q", text, cut, got, whole)
		}
		if got := parse(Style{}, parts...); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	for i, a := range answers {
		f.Add(a.text, uint8(a.format), a.think, a.opened, uint8(i))
	}
	all := tools(f)
	f.Fuzz(func(t *testing.T, text string, format uint8, think, opened bool, width uint8) {
		s := Style{Format: Format(format % 3), Think: think, Opened: think && opened, Tools: all}
		p := NewParser(s)
		whole := append(p.Push(text), p.Flush()...)
		for _, piece := range whole {
			if piece.Kind == Call && !json.Valid([]byte(piece.Call.Arguments)) {
				t.Fatalf("arguments %q are no JSON", piece.Call.Arguments)
			}
		}
		var parts []string
		for rest := text; rest != ""; {
			n := min(int(width%7)+1, len(rest))
			parts = append(parts, rest[:n])
			rest = rest[n:]
		}
		if got := parse(s, parts...); got != written(whole) {
			t.Fatalf("%q in steps of %d: %q, whole: %q", text, width%7+1, got, written(whole))
		}
		if len(text) <= 64 {
			for k := range len(text) {
				if got := parse(s, text[:k], text[k:]); got != written(whole) {
					t.Fatalf("%q cut at %d: %q, whole: %q", text, k, got, written(whole))
				}
			}
		}
	})
}

func TestStyleOf(t *testing.T) {
	all := tools(t)
	for _, c := range []struct {
		template, prompt string
		tools            Tools
		want             string
	}{
		{"x <think> <tool_call>", "a<think>\n", all, "1 true true"},
		{"x <think> <tool_call>", "a<think>\n\n</think>\n\n", all, "1 true false"},
		{"x <think> <tool_call>", "a", nil, "0 true false"},
		{"ipython", "<think>", all, "2 false false"},
		{"plain", "a", all, "0 false false"},
	} {
		s := StyleOf(c.template, c.prompt, c.tools)
		if got := fmt.Sprint(s.Format, s.Think, s.Opened); got != c.want {
			t.Errorf("%q, %q: got %s, want %s", c.template, c.prompt, got, c.want)
		}
	}
}

func TestToolsThatCannotBeRead(t *testing.T) {
	for _, bad := range []string{`{`, `{}`, `[{}]`, `[{"function":{"name":""}}]`} {
		if _, err := ParseTools([]byte(bad)); err == nil || !strings.Contains(err.Error(), "cannot read tools") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

// A call of a megabyte, token by token, must take time in proportion to its length.
func BenchmarkLongCall(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				p := NewParser(Style{Format: Tagged})
				p.Push("<tool_call>\n<function=write>\n<parameter=text>\n")
				for range n {
					p.Push("line of code\n")
				}
				p.Push("</parameter>\n</function>\n</tool_call>")
				if got := p.Flush(); len(got) != 0 {
					b.Fatal(got)
				}
			}
		})
	}
}
