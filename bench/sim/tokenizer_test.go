package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // pieces joined by |
	}{
		{"", ""},
		{"one two", "one| two"},
		{"understanding", "under|stand|ing"},
		{" understanding", " under|stand|ing"},
		{"Größe", "Grö|ße"}, // ö and ß are two bytes each
		{"海は静か", "海|は|静|か"},
		{"12345 67", "123|45| 67"},
		{"a:b", "a|:|b"},
		{`{"a": [1, 2]}`, `{"|a|":| [|1|,| 2|]}`},
		{"x ==== y", "x| ===|=| y"},
		{"a\n\n\nb", "a|\n\n|\n|b"},
		{"a\r\nb", "a|\r\n|b"},
		{"a  b", "a| | b"},
		{"a          b", "a|      |   | b"},
		{"a   \nb", "a|   |\n|b"},
		{"a  ", "a|  "},
		{"\t\tx", "\t\t|x"},
		{"🚢🌉", "🚢|🌉"},
		{" 🚢", " 🚢"},
		{"a\u2028b\u0085c", "a|\u2028|b|\u0085|c"},
		{"a\xffb", "a|\xff|b"},
		{"\x00", "\x00"},
	} {
		pieces := Tokens(c.text)
		want := strings.Split(c.want, "|")
		if c.want == "" {
			want = nil
		}
		if !slices.Equal(pieces, want) || CountTokens(c.text) != len(want) {
			t.Errorf("%q: %q, want %q", c.text, pieces, want)
		}
	}
}

// A cut between two tokens never changes how the parts count: what streams in
// pieces counts as the whole does.
func TestTokensPrefix(t *testing.T) {
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab cdefg  \n\r\t12.,;\"{ÄßЖ海🚢\u0301\u2028\u200d")))
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "text")
		pieces := Tokens(s)
		if strings.Join(pieces, "") != s {
			t.Fatalf("%q does not join to %q", pieces, s)
		}
		for n := range pieces {
			if got := CountTokens(strings.Join(pieces[:n], "")); got != n {
				t.Fatalf("the first %d of %q count %d", n, pieces, got)
			}
		}
	})
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"", "Hello, wörld", "a      \n\n b", "\xff\xfe \xf0\x9f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pieces := Tokens(s)
		if strings.Join(pieces, "") != s || len(pieces) != CountTokens(s) {
			t.Fatalf("%q: %q", s, pieces)
		}
		for _, p := range pieces {
			if text, ok := tokenText(tokenID(p)); !ok || text != p {
				t.Fatalf("%q has id %d, which is %q", p, tokenID(p), text)
			}
			if tokenID(p) >= 1<<49 {
				t.Fatalf("%q has id %d", p, tokenID(p))
			}
		}
	})
}

func TestTokenTextRefuses(t *testing.T) {
	for _, id := range []int64{-1, 0, 1, 2, 255, 1 << 62} {
		if text, ok := tokenText(id); ok {
			t.Errorf("%d is %q", id, text)
		}
	}
}

// A megabyte of anything is tokenised in linear time: the test would not end
// otherwise.
func TestTokensLong(t *testing.T) {
	for _, s := range []string{" ", "\n", "a", ".", "1", "\t", "é"} {
		if n := CountTokens(strings.Repeat(s, 4<<20)); n < 1<<20/2 {
			t.Errorf("%q: %d tokens", s, n)
		}
	}
}

// The text of each regime counts exactly as many tokens as were asked for, and
// so does each beginning of it.
func TestRegimeCounts(t *testing.T) {
	for _, regime := range Regimes() {
		for _, separated := range []bool{false, true} {
			for seed := range 12 {
				s := Scenario{Regime: regime, Separators: separated}
				checkWords(t, regime, answerWords(&s, 320, seed), 320)
			}
		}
	}
	for seed := range 12 {
		for _, n := range []int{0, 1, 5, minThinkTokens, 40, 300} {
			checkWords(t, "reasoning", reasoningWords(n, false, seed), n)
			checkWords(t, "think tags", reasoningWords(n, true, seed), n)
		}
		for n := 1; n < 60; n++ {
			for _, complete := range []bool{false, true} {
				name, arguments := toolWords(n, complete, seed)
				if name.text != toolName || CountTokens(name.text) != 1 {
					t.Fatalf("tool name %q", name.text)
				}
				checkWords(t, "tool", arguments, n-1)
			}
		}
	}
}

func checkWords(t *testing.T, what string, list []*token, n int) {
	t.Helper()
	if len(list) != n {
		t.Errorf("%s: %d tokens, want %d", what, len(list), n)
	}
	var text strings.Builder
	for i, piece := range list {
		text.WriteString(piece.text)
		if got := CountTokens(text.String()); got != i+1 {
			t.Errorf("%s: the first %d tokens count %d: … %q", what, i+1, got, text.String()[max(0, text.Len()-40):])
			return
		}
	}
}

// English prose comes to about what real tokenizers make of it.
func TestTokensResemble(t *testing.T) {
	s := Scenario{Regime: "prose"}
	bytes := 0
	list := answerWords(&s, 1000, 0)
	for _, piece := range list {
		bytes += len(piece.text)
	}
	if perToken := float64(bytes) / float64(len(list)); perToken < 3.2 || perToken > 5 {
		t.Errorf("%.2f bytes a token of prose", perToken)
	}
}

// Whatever is cut into chunks at random: the chunks hold all tokens in order.
func TestTakeCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var list []segment
	var whole []*token
	for _, n := range []int{5, 1, 9} {
		words := answerWords(&Scenario{Regime: "prose"}, n, n)
		list = append(list, segment{kind: KindTool, named: true, tokens: words})
		whole = append(whole, words...)
	}
	for range 200 {
		var got []*token
		names := 0
		for at := 0; at < len(whole); {
			to := min(len(whole), at+1+rng.IntN(6))
			for _, s := range take(list, at, to) {
				got = append(got, s.tokens...)
				if s.named {
					names++
				}
			}
			at = to
		}
		if !slices.Equal(got, whole) || names != len(list) {
			t.Fatalf("%d of %d tokens, %d names", len(got), len(whole), names)
		}
	}
}
