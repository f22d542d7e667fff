package tokenizer

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A class is what the pre-tokenizers' patterns can ask about a character; a character has several.
type class uint8

const (
	letter class = 1 << iota // \p{L}
	number                   // \p{N}
	space                    // \s: the White_Space property
	mark                     // \p{M}
	upper                    // \p{Lu} \p{Lt} \p{Lm} \p{Lo} \p{M}: may stand in the capitals of a word
	lower                    // \p{Ll} \p{Lm} \p{Lo} \p{M}: may stand in the rest of it
	punct                    // \p{P}
	symbol                   // \p{S}
)

// classPages is a two-level table, 256 characters a page; characters without a class share one page.
type classPages [(unicode.MaxRune + 1) >> 8]*[256]class

var classTable = sync.OnceValue(func() *classPages {
	t := new(classPages)
	empty := new([256]class)
	for i := range t {
		t[i] = empty
	}
	add := func(c class, tables ...*unicode.RangeTable) {
		set := func(r rune) {
			if t[r>>8] == empty {
				t[r>>8] = new([256]class)
			}
			t[r>>8][r&255] |= c
		}
		for _, table := range tables {
			for _, x := range table.R16 {
				for r := rune(x.Lo); r <= rune(x.Hi); r += rune(x.Stride) {
					set(r)
				}
			}
			for _, x := range table.R32 {
				for r := rune(x.Lo); r <= rune(x.Hi); r += rune(x.Stride) {
					set(r)
				}
			}
		}
	}
	addCategories := func(c class, names ...string) {
		for _, name := range names {
			add(c, unicode.Categories[name])
			if more := added16[name]; more != nil {
				add(c, more)
			}
		}
	}
	addCategories(letter, "L")
	addCategories(number, "N")
	addCategories(mark, "M")
	addCategories(upper, "Lu", "Lt", "Lm", "Lo", "M")
	addCategories(lower, "Ll", "Lm", "Lo", "M")
	addCategories(punct, "P")
	addCategories(symbol, "S")
	add(space, unicode.White_Space)
	return t
})

// classOf returns the classes of one character.
func (t *classPages) classOf(r rune) class { return t[r>>8][r&255] }

// at returns the classes and the length in bytes of the character at byte i of s; 0, 0 at the end.
func (t *classPages) at(s string, i int) (class, int) {
	if i >= len(s) {
		return 0, 0
	}
	if b := s[i]; b < utf8.RuneSelf {
		return t[0][b], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return t.classOf(r), n
}

// run returns the end of the longest run of characters of the classes in want that starts at i.
func (t *classPages) run(s string, i int, want class) int {
	for {
		c, n := t.at(s, i)
		if n == 0 || c&want == 0 {
			return i
		}
		i += n
	}
}

// runNot returns the end of the longest run of characters of none of the classes in not.
func (t *classPages) runNot(s string, i int, not class) int {
	for {
		c, n := t.at(s, i)
		if n == 0 || c&not != 0 {
			return i
		}
		i += n
	}
}

// wordCharacter reports whether \w matches r, in the sense of Unicode's regular expressions (UTS
// 18): alphabetic, mark, decimal number, connector punctuation or join control. All numbers that
// Unicode 16 adds are decimal.
func wordCharacter(r rune) bool {
	return classTable().classOf(r)&(letter|mark) != 0 ||
		unicode.In(r, unicode.Nd, added16["N"], unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

// widen writes the categories of a regular expression so that an engine with the Unicode 15 tables
// matches the characters of Unicode 16 too: \p{Ll} becomes [\p{Ll}…] with the new ones listed.
func widen(expr string) string {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\' && i+1 < len(expr):
			name, more := categoryAt(expr[i:])
			switch {
			case more == nil:
				b.WriteString(expr[i : i+2])
				i++
				continue
			case inClass:
				b.WriteString(name + ranges(more))
			default:
				b.WriteString("[" + name + ranges(more) + "]")
			}
			i += len(name) - 1
			continue
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		}
		b.WriteByte(expr[i])
	}
	return b.String()
}

// categoryAt returns the \p{…}, \d or \w that s starts with and what Unicode 16 adds to it, nil if
// neither. All the numbers that it adds are decimal digits.
func categoryAt(s string) (string, []*unicode.RangeTable) {
	switch {
	case strings.HasPrefix(s, `\d`):
		return s[:2], []*unicode.RangeTable{added16["N"]}
	case strings.HasPrefix(s, `\w`):
		return s[:2], []*unicode.RangeTable{added16["L"], added16["M"], added16["N"]}
	case strings.HasPrefix(s, `\p{Nd}`):
		return s[:len(`\p{Nd}`)], []*unicode.RangeTable{added16["N"]}
	case strings.HasPrefix(s, `\p{`):
		if end := strings.IndexByte(s, '}'); end > 0 && added16[s[3:end]] != nil {
			return s[:end+1], []*unicode.RangeTable{added16[s[3:end]]}
		}
	}
	return "", nil
}

// ranges writes tables as the inside of a character class.
func ranges(tables []*unicode.RangeTable) string {
	var b strings.Builder
	write := func(lo, hi rune) {
		b.WriteRune(lo)
		if hi > lo {
			b.WriteString("-" + string(hi))
		}
	}
	for _, t := range tables {
		for _, x := range t.R16 {
			write(rune(x.Lo), rune(x.Hi))
		}
		for _, x := range t.R32 {
			write(rune(x.Lo), rune(x.Hi))
		}
	}
	return b.String()
}
