//go:build linux && cuda && cgo

package cuda

import (
	"math"
	"testing"

	"velo/engine/sample"
)

// TestWordsOfManyTokens: a top_k beyond 32 bits keeps all tokens and not a few of them. No device is
// needed.
func TestWordsOfManyTokens(t *testing.T) {
	w := make([]int32, pickWords)
	for _, k := range []int{mostVocab, math.MaxInt32, 1 << 31, 1<<32 + 1, math.MaxInt} {
		words32(w, &sample.Pick{Temperature: 1, TopK: k, Top: sample.NoLogProbs}, 0, nil)
		if w[4] < mostVocab {
			t.Errorf("a top_k of %d is %d on the device", k, w[4])
		}
	}
}
