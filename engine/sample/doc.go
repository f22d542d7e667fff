// Package sample chooses the next token from the logits of a model.
//
// A Sequence holds what belongs to one request: its parameters and its tokens. A Sampler holds
// scratch memory for one vocabulary and serves any number of sequences, one call at a time. After
// the first call with a given set of features nothing is allocated.
//
// The logits of one row go through, in this order: logit bias, penalties, mask, temperature,
// top-k, top-p, min-p, and the draw. It is the order of the transformers library. Among equal
// logits the lower token id comes first everywhere, so that no result depends on how the work was
// split up.
//
// Randomness is counter-based: the number that decides position p of a request with seed s is a
// function of (s, p) alone. The same request gives the same tokens alone and in a batch, after a
// preemption, and when speculation asks for several positions at once.
//
// Licensed under Apache-2.0, see engine/LICENSE.
package sample
