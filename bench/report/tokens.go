package report

import (
	"fmt"

	"velo/bench/measure"
)

// tokens: what went in and what came out, and who counted.
func (b *builder) tokens() Section {
	r := b.run
	s := Section{ID: "tokens", Title: "Tokens"}
	perRequest, unseen := measure.Missing, measure.Missing
	requests := 0
	for _, q := range b.measured {
		if len(q.Arrivals) > 0 {
			requests++
		}
		if q.Unseen.Ok() {
			if !unseen.Ok() {
				unseen = 0
			}
			unseen += q.Unseen
		}
	}
	if requests > 0 {
		perRequest = measure.Num(float64(r.Tokens) / float64(requests))
	}
	s.Tiles = []Tile{
		tileOf(b.scalar("prompt_tokens"), ""),
		tileOf(b.scalar("cached_tokens"), hitNote(r.CacheHit)),
		tileOf(b.scalar("tokens"), b.reasoningNote()),
		tileOf(b.scalar("answer_tokens"), ""),
		tileOf(b.scalar("reasoning_tokens"), ""),
		tile(metric("tokens_per_request", "Tokens a request", measure.Tokens), "Tokens a request", perRequest, r.Source, "mean over "+plural(requests, "request")),
		tile(metric("unseen", "Unseen tokens", measure.Tokens), "Unseen tokens", unseen, measure.Server, "in usage, but never in a chunk"),
		tileOf(b.scalar("cache_hit"), ""),
	}
	s.Text = b.sourceSentence()
	return s
}

func hitNote(hit measure.Num) string {
	if hit.Ok() && hit >= 0.01 {
		return "a prefix cache helped"
	}
	return ""
}

// sourceSentence says who counted the tokens.
func (b *builder) sourceSentence() string {
	total := 0
	for _, n := range b.sources {
		total += n
	}
	if total == 0 {
		return "No request brought a token, so nothing was counted."
	}
	words := map[measure.Source]string{
		measure.Server:    "by the server",
		measure.Tokenizer: "by the model's own tokenizer",
		measure.Estimate:  "by an estimate",
	}
	var parts []string
	for _, src := range []measure.Source{measure.Server, measure.Tokenizer, measure.Estimate} {
		switch n := b.sources[src]; {
		case n == total:
			parts = append(parts, words[src]+" in every request")
		case n > 0:
			parts = append(parts, fmt.Sprintf("%s in %s", words[src], plural(n, "request")))
		}
	}
	return "The tokens of each chunk were counted " + listed(parts) + "."
}
