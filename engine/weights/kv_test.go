package weights

import (
	"strings"
	"testing"
)

// TestKVTypes: names come back, sizes are those of the layouts, and what is no name is an error
// that lists them.
func TestKVTypes(t *testing.T) {
	for kv, want := range map[KVType]int64{KVF32: 320, KVBF16: 160, KVFP8: 84, KVQ8: 80 + 3*2} {
		if again, err := ParseKVType(kv.String()); err != nil || again != kv {
			t.Errorf("%s is read as %s, %v", kv, again, err)
		}
		if got := kv.HeadBytes(80); got != want {
			t.Errorf("a head of 80 values takes %d bytes in %s, want %d", got, kv, want)
		}
	}
	if _, err := ParseKVType("q4"); err == nil || !strings.Contains(err.Error(), "q8") || !strings.Contains(err.Error(), "q4") {
		t.Errorf("q4: %v", err)
	}
}
