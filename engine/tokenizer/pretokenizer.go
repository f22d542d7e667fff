package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A preTokenizer cuts a piece of text into smaller ones, which it may rewrite, and hands them out
// in order; merges never cross from one to the next.
type preTokenizer interface {
	preTokenize(s string, where position, yield func(s string, where position))
}

// preTokenizers run one inside the other.
type preTokenizers []preTokenizer

func (l preTokenizers) preTokenize(s string, where position, yield func(string, position)) {
	if len(l) == 0 {
		yield(s, where)
		return
	}
	l[0].preTokenize(s, where, func(s string, where position) {
		l[1:].preTokenize(s, where, yield)
	})
}

// behavior says what becomes of the matches of a split.
type behavior string

const (
	removed            behavior = "removed"
	isolated           behavior = "isolated"
	mergedWithPrevious behavior = "mergedwithprevious"
	mergedWithNext     behavior = "mergedwithnext"
	contiguous         behavior = "contiguous"
)

// split cuts at a pattern.
type split struct {
	pattern  pattern
	behavior behavior
	invert   bool // what lies between the matches is the delimiter
}

func (p split) preTokenize(s string, where position, yield func(string, position)) {
	if m, ok := p.pattern.(matcher); ok && p.behavior == isolated && !p.invert {
		// What nearly every text goes through: every span is a piece, and none needs to be kept.
		m.each(s, func(x span) {
			at := inside
			if x.start == 0 {
				at = where
			}
			yield(s[x.start:x.end], at)
		})
		return
	}
	var buffer [64]span
	spans := p.pattern.cut(buffer[:0], s)
	if p.invert {
		for i := range spans {
			spans[i].match = !spans[i].match
		}
	}
	for _, x := range p.behavior.join(spans) {
		if x.start < x.end {
			at := inside
			if x.start == 0 {
				at = where
			}
			yield(s[x.start:x.end], at)
		}
	}
}

// join puts spans together, or drops them, as the behaviour says. It works in place.
func (b behavior) join(spans []span) []span {
	out := spans[:0]
	switch b {
	case removed:
		for _, x := range spans {
			if !x.match {
				out = append(out, x)
			}
		}
	case contiguous:
		previous := false
		for _, x := range spans {
			if n := len(out); n > 0 && x.match == previous {
				out[n-1].end = x.end
			} else {
				out = append(out, x)
			}
			previous = x.match
		}
	case mergedWithPrevious:
		previous := false
		for _, x := range spans {
			if n := len(out); n > 0 && x.match && !previous {
				out[n-1].end = x.end
			} else {
				out = append(out, x)
			}
			previous = x.match
		}
	case mergedWithNext:
		// From the right; the result is written to the end of the slice.
		previous, at := false, len(spans)
		for i := len(spans) - 1; i >= 0; i-- {
			x := spans[i]
			if at < len(spans) && x.match && !previous {
				spans[at].start = x.start
			} else {
				at--
				spans[at] = x
			}
			previous = x.match
		}
		out = spans[at:]
	default:
		out = spans
	}
	return out
}

// leadingSpace is what byte-level tokenizers put before a text that does not start with one.
type leadingSpace struct{}

func (leadingSpace) preTokenize(s string, where position, yield func(string, position)) {
	if where != resumed && !strings.HasPrefix(s, " ") {
		s = " " + s
	}
	yield(s, where)
}

// metaspace writes spaces as a character of its own, puts one before the text, and cuts before each.
type metaspace struct {
	replacement string
	scheme      string // always, first, never
	split       bool
}

func (p metaspace) preTokenize(s string, where position, yield func(string, position)) {
	s = strings.ReplaceAll(s, " ", p.replacement)
	if !strings.HasPrefix(s, p.replacement) &&
		(p.scheme == "always" && where != resumed || p.scheme == "first" && where == start) {
		s = p.replacement + s
	}
	if !p.split {
		yield(s, where)
		return
	}
	split{pattern: literal(p.replacement), behavior: mergedWithNext}.preTokenize(s, where, yield)
}

// isNumeric matches one character of the number categories.
func isNumeric(t *classPages, s string, i int) int { return t.digits(s, i, 1) }

// readPreTokenizer reads the "pre_tokenizer" member of tokenizer.json. bytes says that the model
// works on bytes, which is so exactly if the last pre-tokenizer is ByteLevel.
func readPreTokenizer(data json.RawMessage) (list preTokenizers, bytes bool, err error) {
	kind, err := kindOf(data, "pre_tokenizer")
	if err != nil || kind == "" {
		return nil, false, err
	}
	var c struct {
		PreTokenizers  []json.RawMessage `json:"pretokenizers"`
		Pattern        patternSource     `json:"pattern"`
		Behavior       string            `json:"behavior"`
		Invert         bool              `json:"invert"`
		AddPrefixSpace *bool             `json:"add_prefix_space"`
		UseRegex       *bool             `json:"use_regex"`
		Individual     bool              `json:"individual_digits"`
		Replacement    string            `json:"replacement"`
		PrependScheme  *string           `json:"prepend_scheme"`
		Split          *bool             `json:"split"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, false, fmt.Errorf("cannot read the pre_tokenizer %s: %w", kind, err)
	}
	switch kind {
	case "Sequence":
		for _, d := range c.PreTokenizers {
			if bytes {
				return nil, false, fmt.Errorf("cannot use a pre_tokenizer after ByteLevel: this program reads text as bytes from there on")
			}
			var l preTokenizers
			if l, bytes, err = readPreTokenizer(d); err != nil {
				return nil, false, err
			}
			list = append(list, l...)
		}
		return list, bytes, nil
	case "Split":
		p, err := c.Pattern.compile()
		if err != nil {
			return nil, false, err
		}
		b := behavior(strings.ToLower(c.Behavior))
		switch b {
		case removed, isolated, mergedWithPrevious, mergedWithNext, contiguous:
		default:
			return nil, false, fmt.Errorf("cannot use the split behavior %q: it is none of Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous", c.Behavior)
		}
		return preTokenizers{split{p, b, c.Invert}}, false, nil
	case "ByteLevel":
		if c.AddPrefixSpace == nil || *c.AddPrefixSpace {
			list = append(list, leadingSpace{})
		}
		if c.UseRegex == nil || *c.UseRegex {
			list = append(list, split{matchers[patternGPT2], isolated, false})
		}
		return list, true, nil
	case "Digits":
		b := contiguous
		if c.Individual {
			b = isolated
		}
		return preTokenizers{split{matcher(isNumeric), b, false}}, false, nil
	case "Metaspace":
		m := metaspace{replacement: c.Replacement, scheme: "always", split: c.Split == nil || *c.Split}
		if c.PrependScheme != nil {
			m.scheme = *c.PrependScheme
		}
		if err := m.check(c.AddPrefixSpace); err != nil {
			return nil, false, err
		}
		return preTokenizers{m}, false, nil
	}
	return nil, false, unknownKind("pre_tokenizer", kind, "Sequence, Split, ByteLevel, Digits, Metaspace")
}

// check completes the settings; addPrefixSpace is the older way to say "never".
func (p *metaspace) check(addPrefixSpace *bool) error {
	if addPrefixSpace != nil && !*addPrefixSpace {
		p.scheme = "never"
	}
	if utf8.RuneCountInString(p.replacement) != 1 {
		return fmt.Errorf("cannot use the Metaspace replacement %q: it must be one character", p.replacement)
	}
	switch p.scheme {
	case "always", "first", "never":
		return nil
	}
	return fmt.Errorf("cannot use the Metaspace prepend_scheme %q: it is none of always, first, never", p.scheme)
}
