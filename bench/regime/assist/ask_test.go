package assist

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"velo/bench/regime"
)

func TestAnswers(t *testing.T) {
	two := []regime.Regime{regime.Creative, regime.Prose}
	for _, good := range []string{
		`{"1":"creative_prose","2":"other_prose"}`,
		" {\"2\": \"other_prose\",\n\"1\": \"creative_prose\"}\n",
		"```json\n{\"1\":\"creative_prose\",\"2\":\"other_prose\"}\n```",
	} {
		if got, err := answers(good, 2); err != nil || !slices.Equal(got, two) {
			t.Errorf("%s: %v, %v", good, got, err)
		}
	}
	for bad, want := range map[string]string{
		``:                                   "no JSON object",
		`["creative_prose"]`:                 "no JSON object",
		`{"1":"creative_prose"}`:             "block 2 is missing",
		`{"1":"code","1":"code","2":"code"}`: "twice",
		`{"1":"code","3":"code"}`:            "not asked",
		`{"1":"code","2":"poem"}`:            `label "poem"`,
		`{"1":"code","2":7}`:                 "no label",
		`{"1":"code","2":"code"`:             "cut off",
		`{"1":"code","2":"code"} {}`:         "follows",
		`{"1":"code" "2":"code"}`:            "",
	} {
		if got, err := answers(bad, 2); err == nil || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v: want %q", bad, got, err, want)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(`{"1":"code","2":"math"}`, 2)
	f.Add("```json\n{\"1\":\"structured\"}\n```", 1)
	f.Add(`{"1":{}}`, 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = max(0, min(n, 100))
		got, err := answers(text, n)
		if (err == nil) != (got != nil) || err == nil && len(got) != n {
			t.Fatalf("%v, %v", got, err)
		}
	})
}

// TestSplit: blocks cover the text, in order, between characters; prose blocks are not too long, and cutting changes keeps
// that so.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"word ", "line\n", "\n\n", "   ", "größer", "夜の海", "x", "a long stretch of words to fill blocks with. "})).Draw(t, "text"), "")
		var spans []regime.Span
		for at := 0; at < len(text); {
			to := min(at+rapid.IntRange(1, 900).Draw(t, "span"), len(text))
			for to < len(text) && text[to]&0xc0 == 0x80 {
				to++
			}
			spans = append(spans, regime.Span{From: at, To: to, Regime: rapid.SampledFrom(regime.All()).Draw(t, "regime")})
			at = to
		}
		blocks := split(text, spans)
		check := func(size int) {
			at := 0
			for _, b := range blocks {
				if b.from != at || b.to <= b.from || b.to < len(text) && text[b.to]&0xc0 == 0x80 {
					t.Fatalf("%v of %q", blocks, text)
				}
				if !b.locked && len(strings.TrimRight(text[b.from:b.to], " \n")) > size {
					t.Fatalf("a block has %d bytes", b.to-b.from)
				}
				at = b.to
			}
			if at != len(text) {
				t.Fatalf("blocks end at %d of %d", at, len(text))
			}
		}
		check(blockSize)
		for i := range blocks {
			if !blocks[i].locked {
				blocks[i].regime = rapid.SampledFrom([]regime.Regime{regime.Prose, regime.Creative}).Draw(t, "label")
			}
		}
		blocks = refine(text, blocks)
		check(blockSize)
	})
}
