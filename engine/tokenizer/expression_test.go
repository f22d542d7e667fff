package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// runaway are expressions that backtrack without end, each on another kind of text.
var runaway = []string{`(a+)+$`, `(x+x+)+y`, `(\w+\s?)+:`, `(?:\p{L}\p{M}?|\w)+;`, `([ \t]*\s*)+!`, `(?:kl|k|l)+m`, `(?:é+|[é-ë])+0`}

// TestRunaway: a file with an expression that backtracks without end is refused when it is loaded; one
// that got past that leaves the text whole instead of never coming back.
func TestRunaway(t *testing.T) {
	for _, expr := range runaway {
		p, err := compileWithin(expr, 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		slow := slices.ContainsFunc(trials(expr), func(text string) bool {
			_, err := p.re.FindAllStringIndex(text, -1)
			if err != nil && !slices.Equal(p.cut(nil, text), []span{{0, len(text), false}}) {
				t.Errorf("%s cuts %q", expr, text)
			}
			return err != nil
		})
		if !slow {
			t.Errorf("no trial finds out %s", expr)
		}
	}
	if _, err := compile(runaway[0]); err == nil || !strings.Contains(err.Error(), "cannot use the regular expression \"(a+)+$\": it takes longer than 5s") {
		t.Errorf("%s: %v", runaway[0], err)
	}
}

// TestTrialsLetGo: what tokenizers have is not taken for it.
func TestTrialsLetGo(t *testing.T) {
	for expr := range matchers {
		if _, err := newExpression(expr); err != nil {
			t.Error(err)
		}
	}
	for _, expr := range []string{`\s+$`, `(?:\p{L}\p{M}*)+`, `[^\s]+`, `\d{1,3}(?=(?:\d{3})*\b)`, `(?=(\d{3})+(?!\d))`} {
		if _, err := newExpression(expr); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkTrials(b *testing.B) {
	for b.Loop() {
		if _, err := newExpression(patternGPT4o); err != nil {
			b.Fatal(err)
		}
	}
}
