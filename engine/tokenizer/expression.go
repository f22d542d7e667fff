package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/dlclark/regexp2/v2"
)

// expression is a pattern that no matcher is written for, run by a backtracking engine: right, and
// several times slower than a matcher.
type expression struct{ re *regexp2.Regexp }

// patience is how long one match of an expression may take; microseconds are usual. A file from a stranger
// may hold one that backtracks without end, such as (a+)+$.
const patience = 5 * time.Second

// newExpression compiles an expression and tries it on texts that make one which backtracks without end
// do so: what takes so long is refused with the file, and not found out with somebody's prompt.
func newExpression(expr string) (pattern, error) {
	p, err := compileWithin(expr, patience)
	if err != nil {
		return nil, err
	}
	for _, text := range trials(expr) {
		if _, err := p.re.FindAllStringIndex(text, -1); err != nil {
			return nil, fmt.Errorf("cannot use the regular expression %.200q: it takes longer than %v for the %d characters %.20q…", expr, p.re.MatchTimeout, len([]rune(text)), text)
		}
	}
	return p, nil
}

func compileWithin(expr string, limit time.Duration) (expression, error) {
	re, err := regexp2.Compile(widen(expr), regexp2.OptionMaxBacktrackingStackSize(-1))
	if err != nil {
		return expression{}, fmt.Errorf("cannot read the regular expression %q: %w", expr, err)
	}
	re.MatchTimeout = limit
	return expression{re}, nil
}

// cut leaves a text whole of which a match takes longer than patience, the only way to fail: that is not
// how the model learned it, but it ends.
func (p expression) cut(dst []span, s string) []span {
	matches, _ := p.re.FindAllStringIndex(s, -1)
	from := 0
	for _, m := range matches {
		if m[0] == m[1] {
			continue // an empty match cuts nothing off
		}
		if m[0] > from {
			dst = append(dst, span{from, m[0], false})
		}
		dst = append(dst, span{m[0], m[1], true})
		from = m[1]
	}
	if from < len(s) {
		dst = append(dst, span{from, len(s), false})
	}
	return dst
}

// trials are texts in which characters that an expression names, or some of each class, repeat, alone and
// in turns of two: 64 of them are enough for what doubles with each. Then comes one that ends the match,
// and all others, since an engine that looks for what must follow may not begin without it.
func trials(expr string) []string {
	const length, most, turns = 64, 40, 8
	seen, runes := map[rune]bool{}, []rune(nil)
	add := func(r rune) {
		if !seen[r] && len(runes) < most {
			seen[r] = true
			runes = append(runes, r)
		}
	}
	for _, r := range "a1 A\n_!é中" {
		add(r)
	}
	for _, r := range expr {
		if unicode.IsPrint(r) {
			add(r)
		}
	}
	end := "\x00" + string(runes)
	var texts []string
	for i, r := range runes {
		run := strings.Repeat(string(r), length)
		texts = append(texts, run, run+end)
		for _, q := range runes[max(0, i-turns):i] {
			texts = append(texts, strings.Repeat(string([]rune{q, r}), length/2)+end)
		}
	}
	return texts
}
