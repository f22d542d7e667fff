package runner

import (
	"context"
	"math"
	"strings"
	"testing"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/sim"
)

// wordCounter counts words and what is between them, as a tokenizer might.
type wordCounter struct{}

func (wordCounter) Count(text string) int { return len(strings.Fields(text)) }
func (wordCounter) Prefixes(parts []string) []int {
	out, all := make([]int, len(parts)), ""
	for i, p := range parts {
		all += p
		out[i] = len(strings.Fields(all))
	}
	return out
}
func (wordCounter) Name() string { return "words" }

// TestRulerFills: fills have the length that was asked for, by the best count there is.
func TestRulerFills(t *testing.T) {
	server, err := sim.Start(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	nobody := "http://127.0.0.1:1/v1"
	for _, c := range []struct {
		name, url, source string
		tokens            bench.TokenCounter
		exact             bool
	}{
		{"tokenizer", nobody, "tokenizer", wordCounter{}, true},
		{"server", server.URL(), "server", nil, true},
		{"estimate", nobody, "estimate", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl, err := client.New(client.Options{BaseURL: c.url})
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			r, err := NewRuler(t.Context(), cl, "velo-sim", c.tokens)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for i, tokens := range []int{1, 40, 1024, 8192, 32_768} {
				f, err := r.Fill(t.Context(), tokens, uint64(i)*0x9e3779b97f4a7c15)
				if err != nil {
					t.Fatal(err)
				}
				if f.Source != c.source || (f.Why == "") != (c.source != "estimate") {
					t.Errorf("counted by %q, %q", f.Source, f.Why)
				}
				if c.exact && f.Tokens != tokens || math.Abs(float64(f.Tokens-tokens)) > 2+0.01*float64(tokens) {
					t.Errorf("a fill of %d tokens has %d", tokens, f.Tokens)
				}
				if c.tokens != nil && c.tokens.Count(f.Text) != f.Tokens {
					t.Errorf("the text has %d tokens, the fill says %d", c.tokens.Count(f.Text), f.Tokens)
				}
				if n := len(f.Text); tokens >= 40 && seen[f.Text[:min(n, 20)]] {
					t.Error("two fills begin alike: a prefix cache would know the second")
				} else {
					seen[f.Text[:min(n, 20)]] = true
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := r.Fill(ctx, 4096, 1); err == nil && c.source != "estimate" {
				t.Error("a fill was made although it was stopped")
			}
		})
	}
}
