package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// A normalizer rewrites a piece of text before it is cut into words.
type normalizer interface {
	normalize(s string, where position) string
}

type normalizers []normalizer

func (l normalizers) normalize(s string, where position) string {
	for _, n := range l {
		s = n.normalize(s, where)
	}
	return s
}

type unicodeForm struct{ form norm.Form }

func (n unicodeForm) normalize(s string, _ position) string { return n.form.String(s) }

// prepend puts a text before every piece that is not empty.
type prepend string

func (n prepend) normalize(s string, where position) string {
	if s == "" || where == resumed {
		return s
	}
	return string(n) + s
}

// replace puts content in the place of every match.
type replace struct {
	pattern pattern
	content string
}

func (n replace) normalize(s string, _ position) string {
	if p, ok := n.pattern.(literal); ok {
		return strings.ReplaceAll(s, string(p), n.content)
	}
	var b strings.Builder
	for _, x := range n.pattern.cut(nil, s) {
		if x.match {
			b.WriteString(n.content)
		} else {
			b.WriteString(s[x.start:x.end])
		}
	}
	return b.String()
}

// strip takes white space off the ends.
type strip struct{ left, right bool }

func (n strip) normalize(s string, _ position) string {
	if n.left {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
	}
	if n.right {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
	}
	return s
}

// readNormalizer reads the "normalizer" member of tokenizer.json; nil where there is none.
func readNormalizer(data json.RawMessage) (normalizer, error) {
	kind, err := kindOf(data, "normalizer")
	if err != nil || kind == "" {
		return nil, err
	}
	var c struct {
		Normalizers []json.RawMessage `json:"normalizers"`
		Prepend     string            `json:"prepend"`
		Pattern     patternSource     `json:"pattern"`
		Content     string            `json:"content"`
		Left        bool              `json:"strip_left"`
		Right       bool              `json:"strip_right"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("cannot read the normalizer %s: %w", kind, err)
	}
	switch kind {
	case "Sequence":
		var l normalizers
		for _, d := range c.Normalizers {
			n, err := readNormalizer(d)
			if err != nil {
				return nil, err
			}
			if n != nil {
				l = append(l, n)
			}
		}
		return l, nil
	case "NFC":
		return unicodeForm{norm.NFC}, nil
	case "NFD":
		return unicodeForm{norm.NFD}, nil
	case "NFKC":
		return unicodeForm{norm.NFKC}, nil
	case "NFKD":
		return unicodeForm{norm.NFKD}, nil
	case "Prepend":
		return prepend(c.Prepend), nil
	case "Replace":
		p, err := c.Pattern.compile()
		if err != nil {
			return nil, err
		}
		return replace{p, c.Content}, nil
	case "Strip":
		return strip{c.Left, c.Right}, nil
	}
	return nil, unknownKind("normalizer", kind, "Sequence, NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip")
}

// patternSource is how tokenizer.json writes a pattern: {"String": "…"} or {"Regex": "…"}.
type patternSource struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

func (p patternSource) compile() (pattern, error) {
	switch {
	case p.Regex != nil:
		return compile(*p.Regex)
	case p.String != nil && *p.String != "":
		return literal(*p.String), nil
	}
	return nil, fmt.Errorf("cannot use a pattern that is neither a String nor a Regex; tokenizer.json is damaged or newer than this program")
}

// kindOf returns the type of a component of tokenizer.json, "" where it is null or absent.
func kindOf(data json.RawMessage, what string) (string, error) {
	if len(data) == 0 || string(data) == "null" {
		return "", nil
	}
	var c struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return "", fmt.Errorf("cannot read the %s: %w", what, err)
	}
	if c.Type == "" {
		return "", fmt.Errorf("cannot read the %s: it has no type", what)
	}
	return c.Type, nil
}

func unknownKind(what, kind, known string) error {
	return fmt.Errorf("cannot use the %s %q: this program knows %s", what, kind, known)
}
