package store

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	bolt "go.etcd.io/bbolt"
)

// FoundChat is a chat that a search found, and a piece of the text in which it found most.
type FoundChat struct {
	Chat
	Excerpt string
}

// SearchChats finds the chats that hold all the words, in whatever case, anywhere in their titles,
// prompts and answers, on all branches. That which changed last comes first.
//
// It reads all texts of all chats. With 10,000 turns of 2,000 bytes that takes tens of milliseconds
// (BenchmarkSearchChats): an index would cost more than it is worth.
func (s *Store) SearchChats(words string) ([]FoundChat, error) {
	w := newWords(words)
	var found []FoundChat
	err := s.view(func(tx *bolt.Tx) error {
		return eachChat(tx, func(c Chat, b *bolt.Bucket) {
			w.reset()
			w.look([]byte(c.Title))
			texts := b.Bucket(keyTexts)
			_ = texts.ForEach(func(k, text []byte) error { // cannot fail: the function does not
				if k[len(k)-1] != textReasoning {
					w.look(text)
				}
				return nil
			})
			if w.all() {
				found = append(found, FoundChat{c, w.excerpt()})
			}
		})
	})
	if err != nil {
		return nil, fmt.Errorf("cannot search the chats: %w", err)
	}
	slices.SortStableFunc(found, func(a, b FoundChat) int { return b.Changed.Compare(a.Changed) })
	return found, nil
}

// words are what a search looks for.
type words struct {
	list [][]byte // folded
	seen []bool
	buf  []byte // the folded text that is looked at

	best     []byte // the text with most of the words
	bestHits int
	bestAt   int // where the first of them is in the folded text
}

func newWords(text string) *words {
	w := &words{}
	for _, f := range strings.Fields(text) {
		if f := fold(nil, []byte(f)); !slices.ContainsFunc(w.list, func(have []byte) bool { return bytes.Equal(have, f) }) {
			w.list = append(w.list, f)
		}
	}
	w.seen = make([]bool, len(w.list))
	return w
}

func (w *words) reset() {
	clear(w.seen)
	w.best, w.bestHits, w.bestAt = nil, 0, 0
}

func (w *words) all() bool { return !slices.Contains(w.seen, false) }

// look looks for the words in a text, which must stay as it is until the excerpt has been taken.
func (w *words) look(text []byte) {
	w.buf = fold(w.buf[:0], text)
	hits, first := 0, -1
	for i, word := range w.list {
		if at := bytes.Index(w.buf, word); at >= 0 {
			w.seen[i] = true
			hits++
			if first < 0 || at < first {
				first = at
			}
		}
	}
	if hits > w.bestHits {
		w.best, w.bestHits, w.bestAt = text, hits, first
	}
}

const excerptBefore, excerptLength = 32, 120 // bytes

// excerpt is a piece of the text with most hits around the first of them, on one line.
func (w *words) excerpt() string {
	text, at := w.best, min(w.bestAt, len(w.best)) // folding hardly ever changes a length
	from := max(0, at-excerptBefore)
	for from > 0 && from < len(text) && !utf8.RuneStart(text[from]) {
		from--
	}
	to := min(len(text), from+excerptLength)
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	piece := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[from:to]), "\ufffd")), " ")
	if from > 0 {
		piece = "… " + piece
	}
	if to < len(text) {
		piece += " …"
	}
	return piece
}

// fold appends a text in lower case. Most text is ASCII, or nearly.
func fold(to, text []byte) []byte {
	for len(text) > 0 {
		n := len(to)
		to = slices.Grow(to, len(text))[:n+len(text)]
		lower := to[n:]
		i := 0
		for ; i < len(text) && text[i] < utf8.RuneSelf; i++ {
			c := text[i]
			if c-'A' < 26 {
				c |= 'a' - 'A'
			}
			lower[i] = c
		}
		to, text = to[:n+i], text[i:]
		for len(text) > 0 && text[0] >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(text)
			to, text = utf8.AppendRune(to, unicode.ToLower(r)), text[size:]
		}
	}
	return to
}
