package regime

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"velo/bench"
)

// whole are the spans of a text that comes in one piece.
func whole(text string) []Span {
	var c Classifier
	c.Push(text, bench.Content)
	return c.Spans()
}

// check holds what is true of spans at any time.
func check(t interface {
	Fatalf(format string, args ...any)
}, c *Classifier, size int) []Span {
	spans := c.Spans()
	at := 0
	for i, s := range spans {
		if s.From != at || s.To <= s.From || s.Regime > Reasoning || i > 0 && spans[i-1].Regime == s.Regime {
			t.Fatalf("span %d of %v is wrong", i, spans)
		}
		at = s.To
	}
	if at != size || c.Size() != size {
		t.Fatalf("spans end at %d, size is %d: want %d", at, c.Size(), size)
	}
	return spans
}

// upTo cuts spans off at an offset.
func upTo(spans []Span, offset int) []Span {
	var cut []Span
	for _, s := range spans {
		if s.From >= offset {
			break
		}
		s.To = min(s.To, offset)
		cut = append(cut, s)
	}
	return cut
}

func TestRegimes(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"sentence", "The sea was calm that morning, and nobody spoke.", "prose"},
		{"fence", "Look:\n\n```go\nx := 1\n```\n\nThat is all.\n", "prose code prose"},
		{"fence of data", "```json\n{\"a\":", "structured"},
		{"longer fence", "````md\n```go\nx\n```\n````\nThe end of it.\n", "code prose"},
		{"fence never opened", "def f(x):\n    return x + 1\n\nprint(f(2))\n```\n\nThis function adds one to the number.\n", "code prose"},
		{"display", "We know that\n\\[ a^2 + b^2 = c^2 \\]\nholds for such triangles.", "prose mathematics prose"},
		{"environment with a blank line", "\\begin{align}\na &= b \\\\\n\nb &= c\n\\end{align}\n", "mathematics"},
		{"dollars left open", "$$\nx = 1\n\nAfter that there was nothing but words.\n", "mathematics prose"},
		{"list of two", "- The first of them was early.\n- The second of them came late.\n", "prose"},
		{"list of three", "- tea\n- milk\n- sugar\n", "structured"},
		{"object", "{\"a\": [1, 2,\n 3]}\n", "structured"},
		{"table", "| a | b |\n|---|---|\n| 1 | 2 |\n", "structured"},
		{"nothing but blanks", " \n\n\t\n", "prose"},
	} {
		var got []string
		for _, s := range whole(test.text) {
			got = append(got, s.Regime.String())
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", test.name, got, test.want)
		}
	}
}

func TestChannels(t *testing.T) {
	var c Classifier
	for _, push := range []struct {
		text    string
		channel bench.Channel
	}{
		{"def f(): return 1", bench.Reasoning}, {"", bench.Content}, {"\n{}", bench.Reasoning}, {"```python\nf(", bench.Content},
		{"hm", bench.Reasoning}, {")\n```\nNow we are done with it.", bench.Content}, {"I cannot.", bench.Refusal}, {`{"city":`, bench.Tool},
	} {
		c.Push(push.text, push.channel)
	}
	want := []Span{{0, 20, Reasoning}, {20, 32, Code}, {32, 34, Reasoning}, {34, 40, Code}, {40, 73, Prose}, {73, 81, Structured}}
	if got := check(t, &c, 81); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, s := range want {
		for i := s.From; i < s.To; i++ {
			if got := c.At(i); got != s.Regime {
				t.Errorf("at %d: %v, want %v", i, got, s.Regime)
			}
		}
	}
	if c.At(-1) != Reasoning || c.At(1000) != Structured || new(Classifier).At(0) != Prose {
		t.Error("what lies outside of the text is not what is nearest")
	}
}

// corpus are texts of every kind.
func corpus(t testing.TB) []string {
	var all []string
	for _, half := range []string{"tune", "held-out"} {
		for _, p := range readPassages(t, half) {
			all = append(all, p.text())
		}
	}
	return all
}

// shake makes a text out of pieces of texts.
func shake(t *rapid.T, texts []string) string {
	var b strings.Builder
	for range rapid.IntRange(1, 5).Draw(t, "texts") {
		s := rapid.SampledFrom(texts).Draw(t, "text")
		from := rapid.IntRange(0, len(s)).Draw(t, "from")
		to := rapid.IntRange(from, len(s)).Draw(t, "to")
		b.WriteString(s[from:to])
		b.WriteString(rapid.SampledFrom([]string{"", "\n", "\n\n", "\n```\n", "\n$$\n", "\n/*\n", "\n\"\"\"\n", "\r\n"}).Draw(t, "between"))
	}
	return b.String()
}

// TestCuts: the result does not depend on where the text is cut, nor on being asked in between, and what is settled
// stays.
func TestCuts(t *testing.T) {
	texts := corpus(t)
	rapid.Check(t, func(t *rapid.T) {
		text := shake(t, texts)
		want := whole(text)
		var c Classifier
		ask := rapid.IntRange(0, 3).Draw(t, "ask")
		for at := 0; at < len(text); {
			n := min(rapid.IntRange(1, 40).Draw(t, "piece"), len(text)-at)
			c.Push(text[at:at+n], bench.Content)
			at += n
			if ask == 0 {
				spans, settled := check(t, &c, at), c.Settled()
				if !slices.Equal(upTo(spans, settled), upTo(want, settled)) {
					t.Fatalf("settled up to %d as %v, became %v", settled, spans, want)
				}
				if !slices.Equal(spans, whole(text[:at])) {
					t.Fatalf("after %d bytes in pieces %v, in one %v", at, spans, whole(text[:at]))
				}
			}
		}
		if got := check(t, &c, len(text)); !slices.Equal(got, want) {
			t.Fatalf("in pieces %v, in one %v", got, want)
		}
	})
}

// TestOpen: what is not settled is never more than the open block: lines, or one long line.
func TestOpen(t *testing.T) {
	var c Classifier
	for range 20000 {
		c.Push("and the ship sailed on\n", bench.Content)
		if open := c.Size() - c.Settled(); open > maxLines*23 {
			t.Fatalf("%d bytes are open", open)
		}
	}
	c = Classifier{}
	c.Push("One paragraph is settled by the next.\n\n", bench.Content)
	c.Push("T", bench.Content)
	if c.Settled() != 0 {
		t.Error("a paragraph is settled before the line after it is known")
	}
	c.Push("his one.\n", bench.Content)
	if c.Settled() != 39 {
		t.Errorf("settled up to %d, want 39", c.Settled())
	}
}

func TestClassify(t *testing.T) {
	chunks := bench.Chunks{
		{Channel: bench.Reasoning, Text: "Let me think. "}, {Text: ""}, {Text: "Here it is:\n\n``"}, {Text: "`go\nx :="}, {Text: " 1\n```\n\nDone, and"}, {Text: " it works well."},
	}
	want := []Regime{Reasoning, Reasoning, Prose, Code, Prose, Prose}
	if got := Classify(chunks); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Classify(nil); len(got) != 0 {
		t.Errorf("no chunks have regimes %v", got)
	}
	euro := "€€€" // a character that is split over chunks belongs to both
	if got := Classify(bench.Chunks{{Text: euro[:4]}, {Text: euro[4:]}}); len(got) != 2 {
		t.Errorf("%v", got)
	}
}

func TestNames(t *testing.T) {
	for _, r := range append(All(), Creative) {
		got, err := Parse(r.String())
		if err != nil || got != r {
			t.Errorf("%v becomes %v, %v", r, got, err)
		}
		b, err := r.MarshalText()
		var back Regime
		if err != nil || back.UnmarshalText(b) != nil || back != r {
			t.Errorf("%v is written as %q, %v", r, b, err)
		}
	}
	if _, err := Parse("poetry"); err == nil {
		t.Error("poetry is a regime")
	}
	if _, err := Regime(99).MarshalText(); err == nil {
		t.Error("a regime without a name is written")
	}
}

func FuzzPush(f *testing.F) {
	for _, s := range []string{"a\n\n```go\nx\n```\n", "$$\nx\n$$", "1. a\n\n2. b\n\n3. c\n", "{\"a\":1}", "/*\n*/\n\"\"\"\n", "|a|\n|-|\n", "> \n>  ", "`", "$", "\\", "\\begin{", "//", "/", "x //", "- - - ", "\xff\xfe", "#", "<", "[", "=", "a:"} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		want := whole(string(text))
		random := rand.New(rand.NewPCG(seed, 1))
		var c Classifier
		for at := 0; at < len(text); {
			n := min(1+random.IntN(9), len(text)-at)
			c.Push(string(text[at:at+n]), bench.Content)
			at += n
			if random.IntN(4) == 0 {
				check(t, &c, at)
			}
		}
		if got := check(t, &c, len(text)); !slices.Equal(got, want) {
			t.Fatalf("in pieces %v, in one %v", got, want)
		}
	})
}

// BenchmarkPush classifies in chunks of a few bytes, as they stream.
func BenchmarkPush(b *testing.B) {
	text := strings.Join(corpus(b), "\n\n")
	var chunks []string
	for rest := text; rest != ""; {
		n := min(5, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		chunks, rest = append(chunks, rest[:n]), rest[n:]
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var c Classifier
		for _, s := range chunks {
			c.Push(s, bench.Content)
		}
		c.Spans()
	}
}

// BenchmarkLongLine is one paragraph without a line break, as bad as text gets.
func BenchmarkLongLine(b *testing.B) {
	text := string(bytes.Repeat([]byte("and then the ship sailed on over the sea "), 5000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var c Classifier
		for i := 0; i+5 <= len(text); i += 5 {
			c.Push(text[i:i+5], bench.Content)
		}
		c.Spans()
	}
}

// BenchmarkSpans asks after a text of 200,000 bytes, as a window does with each redraw.
func BenchmarkSpans(b *testing.B) {
	var c Classifier
	for text := strings.Join(corpus(b), "\n\n"); c.Size() < 200000; {
		c.Push(text[:min(len(text), 200000-c.Size())], bench.Content)
	}
	for b.Loop() {
		c.Spans()
	}
}
