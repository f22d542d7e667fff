package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"velo/engine/enginetest/smollm2"
	"velo/engine/weights"
)

// smolLM2 opens the real vocabulary of SmolLM2-135M-Instruct.
func smolLM2(t testing.TB) *Tokenizer {
	t.Helper()
	m, err := weights.Open(smollm2.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tok, err := FromGGUF(m.TokenizerFiles().Meta)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestSmolLM2Exact(t *testing.T) {
	tok := smolLM2(t)
	testExact(t, tok, "testdata/smollm2-real.expected.json")
	if tok.Vocab() != 49152 || tok.BOS() != 1 || !slices.Equal(tok.EOS(), []int32{2}) || tok.AddBOS() {
		t.Errorf("vocabulary %d, BOS %d, EOS %v, adds BOS %v", tok.Vocab(), tok.BOS(), tok.EOS(), tok.AddBOS())
	}
	if got := tok.Encode("<|im_start|>user", true); len(got) != 2 || got[0] != 1 || !tok.Special(1) {
		t.Errorf("a chat's start is %v", got)
	}
	if got := tok.Encode("<|im_start|>user", false); slices.Contains(got, 1) {
		t.Errorf("text from outside became the control token: %v", got)
	}
}

// anyText is text of any characters, with pieces that matter to tokenizers among them.
func anyText(t *rapid.T, rule *nastyRule) string {
	return strings.Join(rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom(rule.Fragments), rapid.SampledFrom(rule.Blanks), rapid.String()), 0, 6).Draw(t, "text"), "")
}

// A byte-level tokenizer loses nothing: what it decodes is what its normaliser left of the text.
func TestRoundTripBytes(t *testing.T) {
	rule := nasty(t)
	for _, family := range []string{"gpt2", "smollm", "llama3", "qwen2", "qwen35", "gpt4o", "tekken", "deepseek"} {
		tok := load(t, "testdata/"+family+".json")
		t.Run(family, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := anyText(t, rule)
				want := text
				if strings.HasPrefix(family, "qwen") {
					// Each text between special tokens is normalised alone; the alphabet here has none.
					want = norm.NFC.String(text)
				}
				if got := tok.Decode(tok.Encode(text, false)); got != want {
					t.Fatalf("%q became %q", text, got)
				}
			})
		})
	}
}

// Sentencepiece with byte fallback loses nothing either, except that its space marker and a space
// are one, and that the text of a byte token is read as one.
func TestRoundTripFallback(t *testing.T) {
	rule := nasty(t)
	for _, family := range []string{"llama2", "gemma"} {
		tok := load(t, "testdata/"+family+".json")
		t.Run(family, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := strings.NewReplacer("<0x", "", "▁", "", "<s>", "", "</s>", "", "<unk>", "").Replace(anyText(t, rule))
				if strings.Contains(text, "<s>") || strings.Contains(text, "</s>") || strings.Contains(text, "<unk>") || strings.Contains(text, "<0x") {
					t.Skip("taking tokens out made another")
				}
				if got := tok.Decode(tok.Encode(text, false)); got != text {
					t.Fatalf("%q became %q", text, got)
				}
			})
		})
	}
}

// Text that is not UTF-8 is read as if its broken parts were U+FFFD.
func TestEncodeInvalid(t *testing.T) {
	tok := load(t, "testdata/qwen2.json")
	for text, want := range map[string]string{
		"a\xffb":               "a\uFFFDb",
		"\xe4\xb8":             "\uFFFD",
		"\xe4\xb8x":            "\uFFFDx",
		"\xf0\x9f\x91\x8d\x80": "👍\uFFFD",
		"\xed\xa0\x80":         "\uFFFD\uFFFD\uFFFD",
	} {
		if got := tok.Decode(tok.Encode(text, false)); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// The two ways to merge give the same tokens.
func TestMergeShortAndLong(t *testing.T) {
	for _, family := range []string{"qwen2", "llama2"} {
		tok := load(t, "testdata/"+family+".json")
		rapid.Check(t, func(t *rapid.T) {
			word := rapid.StringOfN(rapid.RuneFrom([]rune("aeinorst thë中▁_\n")), 1, 60, -1).Draw(t, "word")
			w := &worker{model: &tok.model}
			symbols := tok.model.symbols(nil, word)
			if len(symbols) == 0 {
				return
			}
			w.ids = slices.Clone(symbols)
			w.mergeShort()
			short := slices.Clone(w.ids)
			w.ids = slices.Clone(symbols)
			w.mergeLong()
			if !slices.Equal(short, w.ids) {
				t.Fatalf("%q: %v and %v", word, short, w.ids)
			}
			if i := rapid.IntRange(0, len(symbols)-1).Draw(t, "from"); i > 0 {
				// A shorter word after a longer one finds no remains of it.
				w.ids = slices.Clone(symbols[i:])
				w.mergeLong()
				long := slices.Clone(w.ids)
				w.ids = slices.Clone(symbols[i:])
				w.mergeShort()
				if !slices.Equal(long, w.ids) {
					t.Fatalf("%q from %d: %v and %v", word, i, long, w.ids)
				}
			}
		})
	}
}

// A megabyte of one letter is one word; with work that grew with its square the test would not end.
func TestOneLetter(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	for _, family := range []string{"qwen2", "llama2", "unusual"} {
		tok := load(t, "testdata/"+family+".json")
		ids := tok.Encode(text, false)
		total := 0
		for _, id := range ids {
			total += strings.Count(string(tok.Token(id)), "a")
		}
		if family != "unusual" && total != len(text) {
			t.Errorf("%s: the tokens hold %d letters", family, total)
		}
	}
}

// Cutting a text before its space markers changes nothing.
func TestMarkerCuts(t *testing.T) {
	rule := nasty(t)
	for _, family := range []string{"llama2", "llama2-metaspace", "gemma", "llama2-added"} {
		cutting, whole := load(t, "testdata/"+family+".json"), load(t, "testdata/"+family+".json")
		if cutting.model.marker == "" {
			t.Errorf("%s: no place to cut was found", family)
		}
		whole.model.marker = ""
		rapid.Check(t, func(t *rapid.T) {
			text := anyText(t, rule)
			if a, b := cutting.Encode(text, true), whole.Encode(text, true); !slices.Equal(a, b) {
				t.Fatalf("%s: %q is %v cut and %v whole", family, text, a, b)
			}
		})
	}
}

// A merge across the marker stops the cut there.
func TestMarkerGlue(t *testing.T) {
	file := `{"added_tokens":[],"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},"model":{"type":"BPE",
		"vocab":{"a":0,"▁":1,"b":2,"a▁":3,"▁b":4},"merges":["a ▁","▁ b"]}}`
	tok, err := FromJSON([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode("a b b", false); !slices.Equal(got, []int32{3, 2, 4}) {
		t.Errorf("ids %v", got)
	}
}

func TestPrefixes(t *testing.T) {
	rule := nasty(t)
	for _, family := range families {
		tok := load(t, "testdata/"+family+".json")
		t.Run(family, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(rule.Fragments), rapid.SampledFrom(rule.Blanks),
					rapid.SampledFrom([]string{" the", " of", ", ", "。", "，", "<l>", "ab", " word", "\xe4", "\xb8\xad"}), rapid.StringN(0, 4, 8)),
					0, 100).Draw(t, "parts")
				got := tok.Prefixes(parts)
				if len(got) != len(parts) {
					t.Fatalf("%d counts for %d parts", len(got), len(parts))
				}
				for i := range parts {
					if i%23 != 0 && i != len(parts)-1 {
						continue
					}
					if want := tok.Count(strings.Join(parts[:i+1], "")); got[i] != want {
						t.Fatalf("part %d: %d tokens, want %d; %q", i, got[i], want, parts[:i+1])
					}
				}
			})
		})
	}
}

// Prefixes of a long text do not encode it again for each part.
func TestPrefixesSettles(t *testing.T) {
	for _, family := range families {
		tok := load(t, "testdata/"+family+".json")
		if tok.resumable != (family != "unusual") {
			t.Errorf("%s: places to cut are known: %v", family, tok.resumable)
		}
		if family == "unusual" {
			continue
		}
		text := strings.Repeat("The tokens of a long answer are counted as it comes. ", 20)
		if cut := tok.lastCut(text); cut < len(text)-128 {
			t.Errorf("%s: of %d bytes only %d are settled", family, len(text), cut)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	tok := load(t, "testdata/qwen2.json")
	rule := nasty(t)
	want := make([][]int32, 50)
	r := splitmix(7)
	texts := make([]string, len(want))
	for i := range texts {
		texts[i] = rule.string(&r, nil)
		want[i] = tok.Encode(texts[i], true)
	}
	done := make(chan bool)
	for range 4 {
		go func() {
			for i := range texts {
				if !slices.Equal(tok.Encode(texts[i], true), want[i]) {
					t.Errorf("%q is encoded differently", texts[i])
				}
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
}

// The matchers do what their regular expressions say.
func TestMatchersAgainstEngine(t *testing.T) {
	rule := nasty(t)
	for expr, m := range matchers {
		delete(matchers, expr)
		engine, err := compile(expr)
		matchers[expr] = m
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(t *rapid.T) {
			text := anyText(t, rule)
			got, want := m.cut(nil, text), engine.cut(nil, text)
			// The engine folds letters one to one, so ſ after an apostrophe is not an s to it.
			if utf8.ValidString(text) && !strings.Contains(text, "'ſ") && !slices.Equal(got, want) {
				t.Fatalf("%s cuts %q\ninto %v\nwant %v", expr, text, parts(text, got), parts(text, want))
			}
		})
	}
}

func parts(s string, spans []span) []string {
	var list []string
	for _, x := range spans {
		list = append(list, s[x.start:x.end])
	}
	return list
}
