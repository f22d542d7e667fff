package quantize

import (
	"errors"
	"fmt"
	"math"
)

// Perplexity is exp of the mean negative log-likelihood, in nats, of the
// tokens of a text, each given those before it in its window; windows of that
// many tokens follow one another and the first token of each is not predicted.
//
// logits computes one window from an empty context and calls predict once for
// each position but the last, in order, with the logits of the token after it.
func Perplexity(tokens []int32, window int, logits func(window []int32, predict func(logits []float32)) error) (float64, error) {
	if window < 2 || len(tokens) < 2 {
		return 0, fmt.Errorf("cannot work out a perplexity of %d tokens in windows of %d: at least two are needed", len(tokens), window)
	}
	sum, count := 0.0, 0
	for len(tokens) > 1 {
		part := tokens[:min(window, len(tokens))]
		tokens = tokens[len(part):]
		at := 0
		var wrong error
		err := logits(part, func(l []float32) {
			at++
			if at >= len(part) || part[at] < 0 || int(part[at]) >= len(l) {
				wrong = errors.New("cannot work out a perplexity: more predictions than tokens, or a token outside the vocabulary")
				return
			}
			sum -= logProbability(l, int(part[at]))
			count++
		})
		switch {
		case err != nil:
			return 0, err
		case wrong != nil:
			return 0, wrong
		case at != len(part)-1:
			return 0, fmt.Errorf("cannot work out a perplexity: %d predictions for %d tokens", at, len(part))
		}
	}
	return math.Exp(sum / float64(count)), nil
}

// logProbability is the logarithm of the softmax at i.
func logProbability(logits []float32, i int) float64 {
	top := math.Inf(-1)
	for _, v := range logits {
		top = math.Max(top, float64(v))
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - top)
	}
	return float64(logits[i]) - top - math.Log(sum)
}
