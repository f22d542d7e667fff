package weights

import (
	"strings"
	"testing"
)

// TestKVTypes: names come back, sizes are those of the layouts, and what is no name is an error
// that lists them.
func TestKVTypes(t *testing.T) {
	c := &Config{Layers: 3, LayerTypes: []string{FullAttention, LinearAttention, FullAttention}, MTPLayers: 1, KVHeads: 4, HeadDim: 80}
	for kv, want := range map[KVType]int64{KVF32: 320, KVBF16: 160, KVFP8: 84, KVQ8: 80 + 3*2} {
		if again, err := ParseKVType(kv.String()); err != nil || again != kv {
			t.Errorf("%s is read as %s, %v", kv, again, err)
		}
		if got := kv.HeadBytes(80); got != want {
			t.Errorf("a head of 80 values takes %d bytes in %s, want %d", got, kv, want)
		}
		// 2 sequences of 3 pages, 3 layers, keys and values.
		if got := c.KVBytes(40, 2, kv); got != 2*48*3*2*4*want {
			t.Errorf("%d bytes in %s, want %d", got, kv, 2*48*3*2*4*want)
		}
	}
	if _, err := ParseKVType("q4"); err == nil || !strings.Contains(err.Error(), "q8") || !strings.Contains(err.Error(), "q4") {
		t.Errorf("q4: %v", err)
	}
}
