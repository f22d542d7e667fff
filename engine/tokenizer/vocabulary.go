package tokenizer

import (
	"fmt"
	"strings"
)

// A vocabulary is what both kinds of file say of the model, before it is checked.
type vocabulary struct {
	tokens map[string]int32 // as the file writes them
	merges []merge
	bytes  bool // tokens are written in the byte alphabet

	fallback, fuseUnk, ignoreMerges bool

	unk *string
}

type merge struct {
	left, right string
	rank        int32 // the lower the earlier; of equal ones the leftmost in the text
}

// build makes the model, the table of tokens and the sets of added tokens. The normaliser,
// pre-tokenizers and decoder must be there already.
func (t *Tokenizer) build(v *vocabulary, added []addedToken) error {
	if err := t.table(v, added); err != nil {
		return err
	}
	if err := t.model.build(v); err != nil {
		return err
	}
	for i := range added {
		a := &added[i]
		if !a.Normalized {
			t.raw.add(a.Content, a)
			continue
		}
		text := a.Content
		if t.normalizer != nil {
			text = t.normalizer.normalize(text, start)
		}
		t.normalized.add(text, a)
	}
	t.resumable = t.canResume()
	t.newWorkers()
	return nil
}

// table fills the table of tokens by id.
func (t *Tokenizer) table(v *vocabulary, added []addedToken) error {
	top := int32(-1)
	check := func(text string, id int32) error {
		if id < 0 || id >= maxID {
			return fmt.Errorf("cannot use token %q: its id %d is not between 0 and %d", foldName(text), id, maxID-1)
		}
		top = max(top, id)
		return nil
	}
	for text, id := range v.tokens {
		if err := check(text, id); err != nil {
			return err
		}
	}
	for _, a := range added {
		if err := check(a.Content, a.ID); err != nil {
			return err
		}
		if id, ok := v.tokens[a.Content]; ok && id != a.ID {
			return fmt.Errorf("cannot add token %q as id %d: the vocabulary has it as id %d", foldName(a.Content), a.ID, id)
		}
	}
	// A real vocabulary leaves few ids out; a table a thousand times its tokens is a damaged file.
	if int(top) > 1000*(len(v.tokens)+len(added)) {
		return fmt.Errorf("cannot use a vocabulary of %d tokens whose largest id is %d", len(v.tokens)+len(added), top)
	}
	t.tokens = make([]entry, top+1)
	for text, id := range v.tokens {
		if t.tokens[id].known {
			return fmt.Errorf("cannot use two tokens with id %d, %q and %q", id, foldName(t.tokens[id].text), foldName(text))
		}
		t.tokens[id].text = text
		t.decoder.prepare(&t.tokens[id])
	}
	for _, a := range added {
		e := &t.tokens[a.ID]
		e.text = a.Content
		if a.Normalized && t.normalizer != nil {
			e.text = t.normalizer.normalize(a.Content, start)
		}
		t.decoder.prepare(e)
		e.special = a.Special
	}
	return nil
}

func (m *bpe) build(v *vocabulary) error {
	m.bytes, m.fallback, m.fuseUnk, m.ignoreMerges, m.unk = v.bytes, v.fallback, v.fuseUnk, v.ignoreMerges, -1
	if v.unk != nil && *v.unk != "" {
		id, ok := v.tokens[*v.unk]
		if !ok {
			return fmt.Errorf("cannot use the unknown token %q: it is not in the vocabulary", foldName(*v.unk))
		}
		m.unk = id
	}
	m.vocab = v.tokens
	if v.bytes {
		if v.fallback {
			return fmt.Errorf("cannot use byte_fallback in a byte-level model: every byte is a token already")
		}
		m.vocab = make(map[string]int32, len(v.tokens))
		for text, id := range v.tokens {
			if b, ok := alphabetBytes(text); ok {
				m.vocab[b] = id
			}
		}
	}
	for b := range m.byteID {
		text := string([]byte{byte(b)})
		if !v.bytes {
			text = fallbackToken(byte(b))
		}
		m.byteID[b] = -1
		if id, ok := m.vocab[text]; ok {
			m.byteID[b] = id
		}
	}
	return m.buildMerges(v)
}

func (m *bpe) buildMerges(v *vocabulary) error {
	m.merges = newMergeTable(len(v.merges))
	products := make([]string, 0, len(v.merges))
	mergesBytes := false
	for _, x := range v.merges {
		product := x.left + x.right
		var ids [3]int32
		for i, text := range [3]string{x.left, x.right, product} {
			id, ok := v.tokens[text]
			if !ok {
				return fmt.Errorf("cannot use the merge of %q and %q: %q is not in the vocabulary", foldName(x.left), foldName(x.right), foldName(text))
			}
			ids[i] = id
		}
		m.merges.add(ids[0], ids[1], x.rank, ids[2])
		products = append(products, product)
		for _, text := range [2]string{x.left, x.right} {
			if _, ok := fallbackByte(text); ok && m.fallback {
				mergesBytes = true
			}
		}
	}
	if !v.bytes {
		m.setMarker(spaceMarker, products, mergesBytes)
	}
	return nil
}

// spaceMarker is how sentencepiece writes a space.
const spaceMarker = "▁"

// canResume reports whether the pre-tokenizers are such that Prefixes knows places where a text can
// be cut whatever comes after.
func (t *Tokenizer) canResume() bool {
	if !t.model.bytes {
		return t.spacesBecomeMarkers() && (t.model.marker != "" && t.withoutWords() || t.isMetaspace())
	}
	for _, p := range t.pre {
		switch p := p.(type) {
		case leadingSpace:
		case split:
			if _, ok := p.pattern.(matcher); !ok || p.behavior != isolated && p.behavior != contiguous || p.invert {
				return false
			}
		default:
			return false
		}
	}
	for _, n := range t.normalizerList() {
		if _, ok := n.(unicodeForm); !ok {
			return false
		}
	}
	return len(t.pre) > 0
}

// withoutWords reports whether the text is not cut into words: the one pattern that some files name
// is a space, and the normaliser has left none.
func (t *Tokenizer) withoutWords() bool {
	for _, p := range t.pre {
		if p, ok := p.(split); !ok || p.pattern != literal(" ") || len(t.normalizerList()) == 0 {
			return false
		}
	}
	return true
}

func (t *Tokenizer) isMetaspace() bool {
	if len(t.pre) != 1 {
		return false
	}
	m, ok := t.pre[0].(metaspace)
	return ok && m.replacement == spaceMarker && (m.split || t.model.marker != "")
}

func (t *Tokenizer) normalizerList() normalizers {
	switch n := t.normalizer.(type) {
	case nil:
		return nil
	case normalizers:
		return n
	default:
		return normalizers{n}
	}
}

// spacesBecomeMarkers reports whether the normaliser does no more than write spaces as markers, and
// put one in front.
func (t *Tokenizer) spacesBecomeMarkers() bool {
	for _, n := range t.normalizerList() {
		switch n := n.(type) {
		case prepend:
		case replace:
			p, ok := n.pattern.(literal)
			if !ok || p != " " || !strings.HasPrefix(n.content, spaceMarker) {
				return false
			}
		default:
			return false
		}
	}
	return true
}
