package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"velo/assets"
	"velo/engine/enginetest/smollm2"
	"velo/engine/tokenizer"
	"velo/engine/weights"
)

// smolLM2 is the vocabulary of SmolLM2-135M-Instruct.
func smolLM2(t testing.TB) *Vocabulary {
	t.Helper()
	m, err := weights.Open(smollm2.Path(t))
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
		n, end, depth := int32(1), v.nodes[0].after, 1
		for n < end && depth <= len(text) {
			if v.nodes[n].label != text[depth-1] {
				n = v.nodes[n].after
				continue
			}
			if k := v.nodes[n].token; k >= 0 {
				best, length = k, depth
			} else if k < -1 {
				best, length = v.twins[-2-k][0], depth
			}
			end = v.nodes[n].after
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

// BenchmarkMask measures masks along an answer in three states: "first", a process that has served
// nothing; "new", one that has served other grammars of the kind, so that what is shared is there;
// "known", this very grammar again. It reports the mean over all masks, and the mean and the worst
// of the masks' own best times over the iterations, which other work on the machine cannot lengthen.
func BenchmarkMask(b *testing.B) {
	for _, vocabulary := range []struct {
		name string
		make func(testing.TB) *Vocabulary
	}{{"150k", func(testing.TB) *Vocabulary { return large() }}, {"SmolLM2", smolLM2}} {
		b.Run(vocabulary.name, func(b *testing.B) {
			v := vocabulary.make(b)
			for _, one := range benchmarks() {
				for _, state := range []string{"first", "new", "known"} {
					b.Run(one.name+"/"+state, func(b *testing.B) { benchmarkMask(b, v, one.answer, one.compile, state) })
				}
			}
		})
	}
}

func benchmarkMask(b *testing.B, v *Vocabulary, answer string, compile func() *Grammar, state string) {
	ids := v.encode(answer)
	g := compile()
	v = v.unused()
	follow(b, g, v, ids)
	least := slices.Repeat([]time.Duration{time.Hour}, len(ids))
	var masks, accepts time.Duration
	rounds := 0
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		if state == "first" {
			v = v.unused()
		}
		if state != "known" {
			g = compile()
			g.tables.of = nil // the grammar of any object is compiled once
		}
		b.StartTimer()
		m, a := follow(b, g, v, ids)
		for i := range m {
			masks += m[i]
			accepts += a[i]
			least[i] = min(least[i], m[i])
		}
		rounds++
	}
	micro := func(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) / 1000 }
	var sum time.Duration
	for _, d := range least {
		sum += d
	}
	b.ReportMetric(micro(masks, rounds*len(ids)), "µs/mask")
	b.ReportMetric(micro(sum, len(ids)), "µs/mask-best")
	b.ReportMetric(micro(slices.Max(least), 1), "µs/mask-worst")
	b.ReportMetric(micro(accepts, rounds*len(ids)), "µs/accept")
	b.ReportMetric(float64(len(ids)), "tokens")
	b.ReportMetric(0, "ns/op")
}

// unused is the vocabulary as it was when it was made.
func (v *Vocabulary) unused() *Vocabulary {
	u := &Vocabulary{size: v.size, words: v.words, bytes: v.bytes, end: v.end, nodes: v.nodes, twins: v.twins, deep: v.deep}
	u.warm()
	return u
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
