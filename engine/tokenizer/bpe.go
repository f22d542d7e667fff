package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// bpe is a byte-pair-encoding model. A word starts as its characters (or bytes); of all adjacent
// pairs that have a merge the one of lowest rank, and of these the leftmost, is merged, until none
// is left.
type bpe struct {
	bytes  bool             // symbols are bytes, not characters
	vocab  map[string]int32 // token → id; of a byte-level model by its real bytes
	byteID [256]int32       // byte-level: the token of a byte; else of its fallback <0xNN>; -1 if none
	merges mergeTable
	unk    int32 // -1: characters without a token are dropped

	fallback     bool // characters without a token become byte tokens, if all their bytes have one
	fuseUnk      bool // a run of unknown characters is one unknown token
	ignoreMerges bool // a word that is a token stays one, whatever the merges say

	// Where a text may be cut without changing the result, because no merge makes a token that
	// spans the place: before marker, unless a character of glue stands before it. "" if nowhere.
	marker string
	glue   map[rune]bool
}

// setMarker finds out where texts can be cut before marker, given every token that a merge makes
// and whether a merge takes byte-fallback tokens, whose text is not that of their bytes.
func (m *bpe) setMarker(marker string, products []string, mergesBytes bool) {
	if _, ok := m.vocab[marker]; !ok || m.ignoreMerges {
		return
	}
	m.marker, m.glue = marker, map[rune]bool{}
	for _, p := range products {
		for from := 1; from < len(p); {
			i := strings.Index(p[from:], marker)
			if i < 0 {
				break
			}
			r, _ := utf8.DecodeLastRuneInString(p[:from+i])
			m.glue[r] = true
			from += i + len(marker)
		}
	}
	if mergesBytes && m.glue['>'] {
		m.marker = "" // a byte token may end in any byte, so any character may stand before the marker
	}
}

// cuts hands out the parts of a word that can be encoded one by one.
func (m *bpe) cuts(word string, yield func(string)) {
	if m.marker == "" {
		yield(word)
		return
	}
	done, from := 0, 0
	for {
		i := strings.Index(word[from:], m.marker)
		if i < 0 {
			break
		}
		at := from + i
		if at > done {
			if r, _ := utf8.DecodeLastRuneInString(word[:at]); !m.glue[r] {
				yield(word[done:at])
				done = at
			}
		}
		from = at + len(m.marker)
	}
	if done < len(word) {
		yield(word[done:])
	}
}

// symbols writes the tokens of the word's single characters to dst.
func (m *bpe) symbols(dst []int32, word string) []int32 {
	if m.bytes {
		for i := range len(word) {
			if id := m.byteID[word[i]]; id >= 0 {
				dst = append(dst, id)
			} else if m.unk >= 0 {
				dst = append(dst, m.unk)
			}
		}
		return dst
	}
	pending := false // an unknown token not yet written; byte tokens overtake it, as in the original
	for i := 0; i < len(word); {
		_, n := utf8.DecodeRuneInString(word[i:])
		character := word[i : i+n]
		i += n
		if id, ok := m.vocab[character]; ok {
			if pending {
				dst, pending = append(dst, m.unk), false
			}
			dst = append(dst, id)
			continue
		}
		if m.fallback && m.hasBytes(character) {
			for j := range len(character) {
				dst = append(dst, m.byteID[character[j]])
			}
			continue
		}
		if m.unk >= 0 {
			if pending && !m.fuseUnk {
				dst = append(dst, m.unk)
			}
			pending = true
		}
	}
	if pending {
		dst = append(dst, m.unk)
	}
	return dst
}

func (m *bpe) hasBytes(character string) bool {
	for j := range len(character) {
		if m.byteID[character[j]] < 0 {
			return false
		}
	}
	return true
}

// mergeTable finds the merge of a pair of tokens: a hash table with linear probing, because most
// lookups miss and each text asks for several a byte.
type mergeTable struct {
	slots []mergeSlot
	shift uint
}

type mergeSlot struct {
	pair uint64 // left<<32 | right, plus 1 so that 0 is empty
	rank int32
	id   int32
}

func newMergeTable(n int) mergeTable {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	return mergeTable{slots: make([]mergeSlot, 1<<bits), shift: 64 - bits}
}

// add sets the merge of a pair; a later one replaces an earlier.
func (t *mergeTable) add(left, right, rank, id int32) {
	key := uint64(uint32(left))<<32 | uint64(uint32(right))
	s := t.slot(key + 1)
	*s = mergeSlot{key + 1, rank, id}
}

func (t *mergeTable) slot(pair uint64) *mergeSlot {
	for i := pair * 0x9e3779b97f4a7c15 >> t.shift; ; i = (i + 1) & uint64(len(t.slots)-1) {
		if s := &t.slots[i]; s.pair == pair || s.pair == 0 {
			return s
		}
	}
}

// find returns the rank of the pair's merge and the token that it makes.
func (t *mergeTable) find(left, right int32) (rank, id int32, ok bool) {
	s := t.slot((uint64(uint32(left))<<32 | uint64(uint32(right))) + 1)
	return s.rank, s.id, s.pair != 0
}

// byteAlphabet maps the characters in which byte-level vocabularies write bytes to those bytes:
// printable Latin-1 stands for itself, the rest follow from U+0100 on.
var byteAlphabet = func() map[rune]byte {
	m := map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		if '!' <= b && b <= '~' || 0xa1 <= b && b <= 0xac || 0xae <= b && b <= 0xff {
			m[rune(b)] = byte(b)
		} else {
			m[next] = byte(b)
			next++
		}
	}
	return m
}()

// alphabetBytes returns the bytes that a token of a byte-level vocabulary stands for; ok is false if
// it is not written in the byte alphabet, as added tokens with spaces or other scripts are not.
func alphabetBytes(token string) (bytes string, ok bool) {
	b := make([]byte, 0, len(token))
	for _, r := range token {
		x, ok := byteAlphabet[r]
		if !ok {
			return token, false
		}
		b = append(b, x)
	}
	return string(b), true
}

// fallbackToken writes a byte as sentencepiece does.
func fallbackToken(b byte) string { return fmt.Sprintf("<0x%02X>", b) }
