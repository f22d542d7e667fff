package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A span is a part of a string, in bytes; match says whether the pattern matched it or it lies
// between two matches.
type span struct {
	start, end int
	match      bool
}

// A pattern cuts a string into matches and what lies between them, which together cover it.
type pattern interface {
	cut(dst []span, s string) []span
}

// A matcher returns the end of the match that starts exactly at byte i of s, or i if there is none.
type matcher func(t *classPages, s string, i int) int

func (m matcher) cut(dst []span, s string) []span {
	m.each(s, func(x span) { dst = append(dst, x) })
	return dst
}

// each hands out the spans of cut one by one.
func (m matcher) each(s string, yield func(span)) {
	t := classTable()
	loose := 0 // start of what no match has taken
	for i := 0; i < len(s); {
		end := m(t, s, i)
		if end == i {
			_, n := t.at(s, i)
			i += n
			continue
		}
		if loose < i {
			yield(span{loose, i, false})
		}
		yield(span{i, end, true})
		i, loose = end, end
	}
	if loose < len(s) {
		yield(span{loose, len(s), false})
	}
}

// literal is a pattern that is a plain string.
type literal string

func (p literal) cut(dst []span, s string) []span {
	from := 0
	for {
		i := strings.Index(s[from:], string(p))
		if i < 0 {
			break
		}
		if i > 0 {
			dst = append(dst, span{from, from + i, false})
		}
		dst = append(dst, span{from + i, from + i + len(p), true})
		from += i + len(p)
	}
	if from < len(s) {
		dst = append(dst, span{from, len(s), false})
	}
	return dst
}

// The patterns that families of models share, as their tokenizer.json files spell them.
const (
	patternGPT2     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternLlama3   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen2    = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen35   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternGPT4o    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternTekken   = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternDeepSeek = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
	patternKanaHan  = `[一-龥぀-ゟ゠-ヿ]+`
	patternNumber3  = `\p{N}{1,3}`
	patternNumber   = `\p{N}`
)

var matchers = map[string]matcher{
	patternGPT2:     matchGPT2,
	patternLlama3:   wordStyle{digits: 3}.match,
	patternQwen2:    wordStyle{digits: 1}.match,
	patternQwen35:   wordStyle{digits: 1, marks: mark}.match,
	patternGPT4o:    caseStyle{digits: 3, contractions: true}.match,
	patternTekken:   caseStyle{digits: 1}.match,
	patternDeepSeek: matchDeepSeek,
	patternKanaHan:  matchKanaHan,
	patternNumber3:  func(t *classPages, s string, i int) int { return t.digits(s, i, 3) },
	patternNumber:   func(t *classPages, s string, i int) int { return t.digits(s, i, 1) },
}

// compile returns the pattern of a regular expression: a matcher where one is written for it, else
// the general engine.
func compile(expr string) (pattern, error) {
	if m, ok := matchers[expr]; ok {
		return m, nil
	}
	if expr == "" {
		return nil, fmt.Errorf("cannot use an empty regular expression")
	}
	return newExpression(expr)
}

// digits matches \p{N}{1,most}.
func (t *classPages) digits(s string, i, most int) int {
	for ; most > 0; most-- {
		c, n := t.at(s, i)
		if c&number == 0 {
			break
		}
		i += n
	}
	return i
}

// contraction matches 's|'t|'re|'ve|'m|'ll|'d. Without regard to case ſ counts as an s, because it
// folds to one.
func contraction(s string, i int, anyCase bool) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	fold := func(b byte) byte {
		if anyCase && 'A' <= b && b <= 'Z' {
			return b + 'a' - 'A'
		}
		return b
	}
	switch a := fold(s[i+1]); a {
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v', 'l':
		if i+2 < len(s) {
			if b := fold(s[i+2]); a == 'l' && b == 'l' || a != 'l' && b == 'e' {
				return i + 3
			}
		}
	default:
		if anyCase && strings.HasPrefix(s[i+1:], "ſ") {
			return i + 1 + len("ſ")
		}
	}
	return i
}

// blanks matches \s*[\r\n]+|\s+(?!\S)|\s+, the first alternative only if newlines is set. What it
// comes to: a run of white space up to its last line end; without one, all of the run but its last
// character, which is left to the word that follows, if any follows and the run has two.
func (t *classPages) blanks(s string, i int, newlines bool) int {
	end, last, lineEnd := i, i, i
	for {
		c, n := t.at(s, end)
		if n == 0 || c&space == 0 {
			break
		}
		last = end
		if s[end] == '\n' || s[end] == '\r' {
			lineEnd = end + 1
		}
		end += n
	}
	switch {
	case newlines && lineEnd > i:
		return lineEnd
	case end == len(s) || last == i:
		return end
	default:
		return last
	}
}

// lineEnds matches [\r\n]*, and slashes too if slash is set.
func lineEnds(s string, i int, slash bool) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || slash && s[i] == '/') {
		i++
	}
	return i
}

func matchGPT2(t *classPages, s string, i int) int {
	if end := contraction(s, i, false); end > i {
		return end
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	c, n := t.at(s, j)
	switch {
	case n == 0 || c&space != 0:
		return t.blanks(s, i, false)
	case c&letter != 0:
		return t.run(s, j, letter)
	case c&number != 0:
		return t.run(s, j, number)
	default:
		return t.runNot(s, j, space|letter|number)
	}
}

// wordStyle is the pattern of Llama 3 and Qwen: contractions; a word with at most one character of
// another kind before it; digits; other characters with the line ends after them; white space.
type wordStyle struct {
	digits int   // most digits in a piece
	marks  class // mark: words hold marks as well as letters; 0: marks are other characters
}

func (w wordStyle) match(t *classPages, s string, i int) int {
	if end := contraction(s, i, true); end > i {
		return end
	}
	word := letter | w.marks
	c, n := t.at(s, i)
	if c&word != 0 {
		return t.run(s, i, word)
	}
	if c&number != 0 {
		return t.digits(s, i, w.digits)
	}
	next, size := t.at(s, i+n)
	if next&word != 0 && s[i] != '\r' && s[i] != '\n' {
		return t.run(s, i+n, word)
	}
	if c&space == 0 {
		return lineEnds(s, t.runNot(s, i, space|word|number), false)
	}
	if s[i] == ' ' && size > 0 && next&(space|word|number) == 0 {
		return lineEnds(s, t.runNot(s, i+n, space|word|number), false)
	}
	return t.blanks(s, i, true)
}

// caseStyle is the pattern of GPT-4o, Llama 4 and Tekken: as wordStyle, but a word also ends where
// a capital follows a small letter, and contractions stay with their word.
type caseStyle struct {
	digits       int
	contractions bool
}

func (w caseStyle) match(t *classPages, s string, i int) int {
	if end := w.word(t, s, i); end > i {
		return end
	}
	c, n := t.at(s, i)
	if c&number != 0 {
		return t.digits(s, i, w.digits)
	}
	if c&(space|letter) == 0 {
		return lineEnds(s, t.runNot(s, i, space|letter|number), true)
	}
	if next, size := t.at(s, i+n); s[i] == ' ' && size > 0 && next&(space|letter|number) == 0 {
		return lineEnds(s, t.runNot(s, i+n, space|letter|number), true)
	}
	return t.blanks(s, i, true)
}

// word tries the two alternatives for a word, each first with and then without the character before
// it, in the order in which a backtracking engine would.
func (w caseStyle) word(t *classPages, s string, i int) int {
	starts := [2]int{-1, i}
	if c, n := t.at(s, i); c&(letter|number) == 0 && s[i] != '\r' && s[i] != '\n' {
		starts[0] = i + n
	}
	for _, alternative := range []func(*classPages, string, int) int{capitalsThenSmall, capitals} {
		for _, start := range starts {
			if start < 0 {
				continue
			}
			if end := alternative(t, s, start); end > start {
				if w.contractions {
					end = contraction(s, end, true)
				}
				return end
			}
		}
	}
	return i
}

// capitalsThenSmall matches upper*lower+. Where no small letter follows the capitals, the last one
// of them that may also be a small letter (a mark, or a letter without case) ends the match.
func capitalsThenSmall(t *classPages, s string, i int) int {
	small, end := i, i
	for {
		c, n := t.at(s, end)
		if n == 0 || c&upper == 0 {
			break
		}
		end += n
		if c&lower != 0 {
			small = end
		}
	}
	if e := t.run(s, end, lower); e > end {
		return e
	}
	return small
}

// capitals matches upper+lower*; lower* is empty whenever capitalsThenSmall has failed before.
func capitals(t *classPages, s string, i int) int { return t.run(s, i, upper) }

func matchDeepSeek(t *classPages, s string, i int) int {
	if b := s[i]; b < utf8.RuneSelf && t[0][b]&(punct|symbol) != 0 {
		end := i + 1
		for end < len(s) && ('a' <= s[end]|0x20 && s[end]|0x20 <= 'z') {
			end++
		}
		if end > i+1 {
			return end
		}
	}
	c, n := t.at(s, i)
	if c&(letter|mark) != 0 {
		return t.run(s, i, letter|mark)
	}
	next, _ := t.at(s, i+n)
	if c&(punct|symbol) == 0 && s[i] != '\r' && s[i] != '\n' && next&(letter|mark) != 0 {
		return t.run(s, i+n, letter|mark)
	}
	if c&(punct|symbol) != 0 {
		return lineEnds(s, t.run(s, i, punct|symbol), false)
	}
	if s[i] == ' ' && next&(punct|symbol) != 0 {
		return lineEnds(s, t.run(s, i+1, punct|symbol), false)
	}
	if c&space != 0 {
		return t.blanks(s, i, true)
	}
	return i
}

func matchKanaHan(_ *classPages, s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !('一' <= r && r <= '龥' || '\u3040' <= r && r <= '\u309f' || '\u30a0' <= r && r <= '\u30ff') {
			break
		}
		i += n
	}
	return i
}
