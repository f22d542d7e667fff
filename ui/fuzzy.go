package ui

import (
	"strings"
	"unicode"
)

// fuzzy tells how well a text answers to what was typed: every word that was typed must be found in it,
// letter by letter in order, not necessarily side by side. Letters that begin a word and letters side
// by side count more, letters that are skipped count against it. The better, the higher; ok tells
// whether it answers at all.
func fuzzy(typed, text string) (score int, ok bool) {
	letters := []rune(strings.ToLower(text))
	for _, word := range strings.Fields(strings.ToLower(typed)) {
		s, found := fuzzyWord([]rune(word), letters)
		if !found {
			return 0, false
		}
		score += s
	}
	return score, true
}

// fuzzyWord finds the best way to read a word out of a text: best[j] is that of the word so far ending
// at letter j of the text.
func fuzzyWord(word, text []rune) (score int, ok bool) {
	const none = -1 << 30
	starts := func(j int) bool { return j == 0 || !unicode.IsLetter(text[j-1]) && !unicode.IsDigit(text[j-1]) }
	best := make([]int, len(text))
	next := make([]int, len(text))
	for i, c := range word {
		far := none // best of a letter that is further back than the one before
		for j := range text {
			next[j] = none
			if j >= 2 && best[j-2] > none {
				far = max(far, best[j-2]-2)
			}
			if text[j] != c {
				continue
			}
			gain := 1
			if starts(j) {
				gain = 8
			}
			switch {
			case i == 0:
				next[j] = gain - min(j, 10)/2
			default:
				if far > none {
					next[j] = far + gain
				}
				if j >= 1 && best[j-1] > none {
					next[j] = max(next[j], best[j-1]+gain+7)
				}
			}
		}
		best, next = next, best
	}
	score = none
	for _, b := range best {
		score = max(score, b)
	}
	return score, score > none
}
