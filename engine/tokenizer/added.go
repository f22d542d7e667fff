package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// An addedToken is a token that is recognised in the text itself, before any pre-tokenizer sees it.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only where no word character touches it
	LStrip     bool   `json:"lstrip"`      // takes the white space before it
	RStrip     bool   `json:"rstrip"`      // takes the white space after it
	Normalized bool   `json:"normalized"`  // is looked for in the normalised text
	Special    bool   `json:"special"`     // a control token rather than text
}

// addedSet finds the added tokens of a text: from left to right, at each place the longest. It is a
// trie; node 0 is its root.
type addedSet struct {
	next   map[uint32]uint32 // node<<8 | byte → node
	token  []*addedToken     // by node; nil where no token ends
	first  [256]bool         // bytes with which a token starts
	length int               // of the longest token, bytes
}

// add makes the set find token where text stands; of two tokens with one text the later holds.
func (a *addedSet) add(text string, token *addedToken) {
	if text == "" {
		return
	}
	if a.next == nil {
		a.next, a.token = map[uint32]uint32{}, []*addedToken{nil}
	}
	a.first[text[0]] = true
	a.length = max(a.length, len(text))
	node := uint32(0)
	for i := range len(text) {
		key := node<<8 | uint32(text[i])
		child, ok := a.next[key]
		if !ok {
			child = uint32(len(a.token))
			a.token = append(a.token, nil)
			a.next[key] = child
		}
		node = child
	}
	a.token[node] = token
}

// longest returns the longest token that starts at byte i of s, and its end.
func (a *addedSet) longest(s string, i int) (*addedToken, int) {
	var found *addedToken
	end, node := i, uint32(0)
	for j := i; j < len(s); j++ {
		child, ok := a.next[node<<8|uint32(s[j])]
		if !ok {
			break
		}
		node = child
		if t := a.token[node]; t != nil {
			found, end = t, j+1
		}
	}
	return found, end
}

// A piece is a part of the text on its way to ids: an added token, or text still to be encoded.
type piece struct {
	text  string
	token *addedToken // nil for text
	where position
}

// position says what stands before a piece of text; it decides which stages put a space in front.
type position uint8

const (
	inside  position = iota // something else of the same text
	start                   // nothing: the piece starts the text
	resumed                 // text that was counted before; nothing is put in front
)

// split cuts s, which stands at the given position, at the added tokens and hands out the pieces.
// Special tokens are passed over as text unless special is set.
func (a *addedSet) split(s string, where position, special bool, yield func(piece)) {
	text := func(from, to int) {
		if from < to {
			p := piece{text: s[from:to]}
			if from == 0 {
				p.where = where
			}
			yield(p)
		}
	}
	if len(a.next) == 0 {
		text(0, len(s))
		return
	}
	done := 0
	for i := 0; i < len(s); {
		if !a.first[s[i]] {
			i++
			continue
		}
		token, end := a.longest(s, i)
		if token == nil {
			i++
			continue
		}
		from := i
		i = end // what was found is not searched again, used or not
		if token.Special && !special || token.SingleWord && touched(s, from, end) {
			continue
		}
		if token.LStrip {
			from = max(done, leadingEdge(s, from))
		}
		if token.RStrip {
			end = trailingEdge(s, end)
		}
		text(done, from)
		yield(piece{text: s[from:end], token: token})
		done = end
	}
	text(done, len(s))
}

// touched reports whether a word character stands right before or after s[from:to].
func touched(s string, from, to int) bool {
	before, n := utf8.DecodeLastRuneInString(s[:from])
	if n > 0 && wordCharacter(before) {
		return true
	}
	after, n := utf8.DecodeRuneInString(s[to:])
	return n > 0 && wordCharacter(after)
}

// leadingEdge returns the start of the white space that ends at byte i of s.
func leadingEdge(s string, i int) int {
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		if !unicode.IsSpace(r) {
			break
		}
		i -= n
	}
	return i
}

// trailingEdge returns the end of the white space that starts at byte i of s.
func trailingEdge(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsSpace(r) {
			break
		}
		i += n
	}
	return i
}
