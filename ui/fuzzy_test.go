package ui

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFuzzy(t *testing.T) {
	all := []string{"Run suite", "Run again", "Stop", "Export PDF", "Export…", "Stop engine", "Start engine", "Restart engine", "Open…", "Dark theme", "Light theme", "Suites", "Sessions"}
	for _, c := range []struct{ typed, first string }{
		{"pdf", "Export PDF"}, {"expdf", "Export PDF"}, {"rs", "Run suite"}, {"run ag", "Run again"}, {"stop", "Stop"}, {"eng stop", "Stop engine"},
		{"se", "Sessions"}, {"sten", "Stop engine"}, {"lt", "Light theme"}, {"DARK", "Dark theme"}, {"rest", "Restart engine"},
	} {
		best, at := -1<<30, ""
		for _, text := range all {
			if s, ok := fuzzy(c.typed, text); ok && s > best {
				best, at = s, text
			}
		}
		if at != c.first {
			t.Errorf("%q finds %q first, want %q", c.typed, at, c.first)
		}
	}
	for _, c := range [][2]string{{"xyz", "Stop"}, {"pots", "Stop"}, {"stop stopp", "Stop"}, {"a", ""}} {
		if _, ok := fuzzy(c[0], c[1]); ok {
			t.Errorf("%q answers to %q", c[1], c[0])
		}
	}
}

// TestFuzzyFindsEverySubsequence: letters that were taken out of a text in order always find it, and
// one more letter of none of its kind never does.
func TestFuzzyFindsEverySubsequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z0-9 .:é]{0,40}`).Draw(t, "text")
		var typed []rune
		for _, c := range text {
			if c != ' ' && rapid.Bool().Draw(t, "take") {
				typed = append(typed, c)
			}
		}
		if _, ok := fuzzy(string(typed), text); !ok {
			t.Fatalf("%q is not found in %q", string(typed), text)
		}
		at := rapid.IntRange(0, len(typed)).Draw(t, "at")
		if _, ok := fuzzy(string(slices.Insert(typed, at, '~')), text); ok {
			t.Fatalf("a letter that is not there is found in %q", text)
		}
		if strings.TrimSpace(text) != "" {
			whole, _ := fuzzy(strings.Fields(text)[0], text)
			if part, ok := fuzzy(strings.Fields(text)[0][:1], text); ok && part > whole {
				t.Fatalf("one letter (%d) answers better than the word (%d) in %q", part, whole, text)
			}
		}
	})
}
