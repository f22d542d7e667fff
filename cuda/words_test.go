//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"strings"
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

// TestRoomForLogits: where logits come to is settled when a model is made, so that a step does not fail
// for want of it; also where the choice is left to the host. Without a device there is no such room.
func TestRoomForLogits(t *testing.T) {
	for _, vocab := range []int{1000, mostVocab + 1} {
		b := &Backend{device: &Device{}}
		b.memory.device = b.device
		err := b.SampleFrom(&buffer{rows: 2, cols: vocab})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d bytes of page-locked memory", 4*2*vocab)) {
			t.Errorf("room for two rows of %d logits: %v", vocab, err)
		}
	}
}
