// Package regime tells what kind of text a model is writing, while it writes it: prose, code, mathematics,
// structured text or reasoning. Speed depends on it (code is easier to draft than a story), so a rate without
// its regime says little.
//
// A Classifier takes text in pieces of any size and gives spans of one regime each. It reads Markdown the
// way a model writes it: fences, display mathematics, lists and paragraphs are blocks, a block is judged line
// by line, and the best sequence of regimes over its lines wins (Viterbi's algorithm over scores, with a
// price on every change). What a line scores comes from a lexer and a small grammar of statements that many
// programming languages share; docs/regimes.md defines the regimes and says how often this is right,
// docs/decisions says why it is not a full parser of each language.
//
// Work is linear in the text. The answer does not depend on where the pieces were cut.
package regime

import "fmt"

// Regime is a kind of text.
type Regime uint8

// The regimes. Creative is a finer kind of prose that only a helper model tells apart; a Classifier never
// gives it.
const (
	Prose Regime = iota
	Code
	Mathematics
	Structured
	Reasoning
	Creative
)

var names = [...]string{"prose", "code", "mathematics", "structured", "reasoning", "creative"}

// All lists the regimes that a Classifier gives, in the order in which they are shown.
func All() []Regime { return []Regime{Prose, Code, Mathematics, Structured, Reasoning} }

func (r Regime) String() string {
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("regime(%d)", uint8(r))
}

// Parse is the inverse of String.
func Parse(name string) (Regime, error) {
	for i, n := range names {
		if n == name {
			return Regime(i), nil
		}
	}
	return 0, fmt.Errorf("cannot use regime %q: it is none of prose, code, mathematics, structured, reasoning and creative", name)
}

// MarshalText writes the name.
func (r Regime) MarshalText() ([]byte, error) {
	if int(r) >= len(names) {
		return nil, fmt.Errorf("cannot write regime %d: it has no name", uint8(r))
	}
	return []byte(names[r]), nil
}

// UnmarshalText reads the name.
func (r *Regime) UnmarshalText(text []byte) (err error) {
	*r, err = Parse(string(text))
	return err
}

// Span is text of one regime: bytes From to To, To not included, of all text that was pushed, in the order in
// which it came and whatever its channel.
type Span struct {
	From, To int
	Regime   Regime
}
