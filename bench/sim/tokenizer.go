package sim

import (
	"unicode"
	"unicode/utf8"
)

// The tokenizer of the endpoint is a rule and not a table, so that anybody can
// recount a text. It resembles a byte-pair tokenizer in what matters to a
// measurement: about four bytes of English a token, a leading space belongs to
// the word after it, code and figures take more tokens than prose.
//
// Reading from the left, the next token is the longest of:
//   - up to maxWord bytes of letters (at least one letter),
//   - up to maxDigits digits,
//   - up to maxPunctuation ASCII punctuation characters,
//   - up to maxNewlines of CR and LF,
//   - up to maxSpaces spaces, or tabs, that no word follows directly,
//   - one rune of anything else (symbols, emoji, separators, broken UTF-8).
//
// One space directly before a letter, digit, punctuation or other rune joins
// it. A token is decided by its own text and by whether a word follows a run of
// spaces; so the first n tokens of a text, joined, always count n again.
const (
	maxWord        = 5
	maxDigits      = 3
	maxPunctuation = 3
	maxNewlines    = 2
	maxSpaces      = 6
)

// CountTokens is the number of tokens of text by the endpoint's own rule
// (docs/sim.md). The prompt tokens of usage, the count of /tokenize and the
// lengths of all outputs are in this unit.
func CountTokens(text string) int {
	n := 0
	for len(text) > 0 {
		text = text[tokenLength(text):]
		n++
	}
	return n
}

// Tokens splits text by the rule of CountTokens; the pieces join to text.
func Tokens(text string) []string {
	var pieces []string
	for len(text) > 0 {
		n := tokenLength(text)
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

// tokenLength is the length in bytes of the first token of a non-empty text.
func tokenLength(s string) int {
	switch c := s[0]; c {
	case '\n', '\r':
		return run(s, maxNewlines, func(c byte) bool { return c == '\n' || c == '\r' })
	case '\t':
		return run(s, maxSpaces, func(c byte) bool { return c == '\t' })
	case ' ':
		// Two more than a token can hold decide; a longer look would make a
		// megabyte of spaces quadratic.
		n := run(s, maxSpaces+2, func(c byte) bool { return c == ' ' })
		if n == len(s) || s[n] == '\n' || s[n] == '\r' || s[n] == '\t' {
			return min(n, maxSpaces)
		}
		if n == 1 {
			return 1 + wordLength(s[1:])
		}
		return min(n-1, maxSpaces)
	}
	return wordLength(s)
}

func wordLength(s string) int {
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case isLetter(r, size):
		n := size
		for n < len(s) {
			r, size := utf8.DecodeRuneInString(s[n:])
			if !isLetter(r, size) || n+size > maxWord {
				break
			}
			n += size
		}
		return n
	case r >= '0' && r <= '9':
		return run(s, maxDigits, func(c byte) bool { return c >= '0' && c <= '9' })
	case isPunctuation(s[0]):
		return run(s, maxPunctuation, isPunctuation)
	}
	return size
}

func run(s string, most int, in func(byte) bool) int {
	n := 0
	for n < len(s) && n < most && in(s[n]) {
		n++
	}
	return n
}

func isLetter(r rune, size int) bool {
	if r == utf8.RuneError && size == 1 {
		return false
	}
	return unicode.IsLetter(r) || unicode.IsMark(r)
}

func isPunctuation(c byte) bool {
	return c > ' ' && c < 0x7f && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z')
}

// tokenID is the token's number: a one bit and then its bytes, big end first.
// A token has at most six bytes, so the number stays below 2^49, exact in
// every JSON reader, and tells the text back (tokenText).
func tokenID(piece string) int64 {
	id := int64(1)
	for i := 0; i < len(piece); i++ {
		id = id<<8 | int64(piece[i])
	}
	return id
}

// tokenText is the inverse of tokenID; ok is false for a number that no token
// has.
func tokenText(id int64) (text string, ok bool) {
	var b []byte
	for ; id > 1; id >>= 8 {
		b = append(b, byte(id))
		if len(b) > 6 {
			return "", false
		}
	}
	if id != 1 || len(b) == 0 {
		return "", false
	}
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b), true
}

// Prompt overhead: what a chat template adds to the texts of a request.
const (
	MessageTokens = 4   // each message: its role and its two markers
	ReplyTokens   = 3   // once: the opening of the assistant's reply
	ImageTokens   = 256 // each image part, whatever its size
)
