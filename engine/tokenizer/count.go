package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Prefixes returns, for each part, the number of tokens of all the parts up to and including it,
// put together, without special tokens. A text is cut where nothing that follows can change the
// tokens before, so that the work grows with the text and not with its square; a tokenizer for
// which no such places are known counts every prefix anew.
func (t *Tokenizer) Prefixes(parts []string) []int {
	counts := make([]int, len(parts))
	settled, tail, where := 0, "", start
	for i, part := range parts {
		tail += part
		if t.resumable && len(tail) > 256 {
			if cut := t.lastCut(tail); cut > 0 {
				settled += len(t.encode(nil, tail[:cut], where, false))
				tail, where = tail[cut:], resumed
			}
		}
		counts[i] = settled + len(t.encode(nil, tail, where, false))
	}
	return counts
}

// lastCut returns the last place in s at which it can be cut whatever follows, 0 if there is none:
// before a single space between two characters that are not white space, or, in a byte-level
// vocabulary, between a letter and a punctuation mark, as far from the end as an added token or a
// contraction may reach.
func (t *Tokenizer) lastCut(s string) int {
	classes := classTable()
	reach := max(16, 2*max(t.raw.length, t.normalized.length))
	for i := len(s) - reach; i > 0; i-- {
		if !utf8.RuneStart(s[i]) {
			continue
		}
		before, n := utf8.DecodeLastRuneInString(s[:i])
		r, size := utf8.DecodeRuneInString(s[i:])
		if before == utf8.RuneError || r == utf8.RuneError || n == 0 || size == 0 {
			continue
		}
		b, c := classes.classOf(before), classes.classOf(r)
		switch {
		case r == ' ':
			next, _ := classes.at(s, i+1)
			if b&space != 0 || next&space != 0 || next&mark != 0 {
				continue
			}
		case t.model.bytes && b&letter != 0 && c&punct != 0 && r != '\'':
		default:
			continue
		}
		if !t.model.bytes && t.model.glue[before] {
			continue
		}
		if t.inAdded(s, i) {
			continue
		}
		return i
	}
	return 0
}

// inAdded reports whether an added token may lie across byte i of s, or touch it and reach for the
// white space there.
func (t *Tokenizer) inAdded(s string, i int) bool {
	from := max(0, i-max(t.raw.length, t.normalized.length)-1)
	for _, set := range []*addedSet{&t.raw, &t.normalized} {
		if len(set.next) == 0 {
			continue
		}
		for j := from; j <= i; j++ {
			if !set.first[s[j]] {
				continue
			}
			if token, _ := set.longest(s, j); token != nil {
				return true
			}
		}
	}
	return strings.Contains(s[from:i], "\uFFFD")
}
