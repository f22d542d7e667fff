package runner

import (
	"context"
	"errors"
	"fmt"

	"velo/assets"
	"velo/bench"
	"velo/bench/client"
)

// A Ruler makes texts of a wanted number of tokens, and counts as the model does as far as that is
// possible: with its own tokenizer, else by the server's /tokenize, else by an estimate.
type Ruler struct {
	ruler
	fallback ruler
	why      string
}

// Fill is a text of about as many tokens as were asked for.
type Fill struct {
	Text   string
	Tokens int    // that it has, by Source
	Source string // "tokenizer", "server" or "estimate"
	Why    string // why it is no better than that: a sentence, or empty
}

// NewRuler finds out how the model's tokens can be counted. tokens is its own tokenizer, nil where there
// is none in this process. It fails only when ctx ends.
func NewRuler(ctx context.Context, c *client.Client, model string, tokens bench.TokenCounter) (*Ruler, error) {
	r := &Ruler{ruler: estimator(pieceTokens), fallback: estimator(pieceTokens)}
	l := ruler{source: byServer, calls: 16, count: func(ctx context.Context, text string) (int, error) {
		return c.Tokenize(ctx, model, text)
	}}
	if tokens != nil {
		l.source = byTokenizer
		l.count = func(ctx context.Context, text string) (int, error) { return tokens.Count(text), ctx.Err() }
	}
	sample := assets.Corpus()[:16<<10]
	n, err := l.count(ctx, sample)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil && n > 0:
		l.perToken = float64(len(sample)) / float64(n)
		r.ruler, r.fallback = l, estimator(float64(n)/float64(pieces(sample)))
	case errors.Is(err, client.ErrNoTokenizer):
		r.why = "the server has no /tokenize"
	case err != nil:
		r.why = fmt.Sprintf("the server's tokenizer was not used: %v", err)
	}
	return r, nil
}

// Fill makes a text: prose from the place that chance picks, after a salt that no other prompt has, so
// that no prefix cache knows it. It fails when ctx ends; a server that stops counting leaves an estimate.
func (r *Ruler) Fill(ctx context.Context, tokens int, chance uint64) (Fill, error) {
	head := ""
	if tokens >= saltedFrom {
		head = fmt.Sprintf("[%016x]\n\n", chance)
	}
	l, why := &r.ruler, r.why
	text, err := l.fit(ctx, head, chance, "", tokens)
	if err != nil && ctx.Err() == nil {
		l, why = &r.fallback, fmt.Sprintf("the server stopped counting: %v", err)
		text, err = l.fit(ctx, head, chance, "", tokens)
	}
	var n int
	if err == nil {
		n, err = l.count(ctx, text)
	}
	if err != nil {
		return Fill{}, err
	}
	return Fill{text, n, l.source, why}, nil
}

// Watch records samples of this process (bench.Sample) as a run does: now, each second, and when the
// function that it returns is called. It is for measurements that are no suite.
func Watch(c *client.Client, clock bench.Clock, sink bench.Sink) (stop func()) {
	r := &run{o: Options{Client: c, Clock: clock}, events: newFanIn(sink)}
	end := r.watchSelf()
	return func() {
		end()
		r.events.close()
	}
}
