package weights

import "fmt"

// KVType says how keys and values of a cache are stored.
type KVType uint8

// The types of keys and values. What is stored in 8 bits is rounded once, when it is stored.
const (
	KVF32  KVType = iota
	KVBF16        // the upper half of a single, rounded to the nearest
	KVFP8         // e4m3 times a power of two for each position and head, kept as a float32
	KVQ8          // int8 times a half for 32 neighbours of a head, as ggml's Q8_0
	kvTypes
)

var kvNames = [kvTypes]string{"f32", "bf16", "fp8", "q8"}

// String is the type's name, one that [ParseKVType] knows.
func (t KVType) String() string { return kvNames[t] }

// ParseKVType is the type of a name: f32, bf16, fp8 or q8.
func ParseKVType(name string) (KVType, error) {
	for t, n := range kvNames {
		if n == name {
			return KVType(t), nil
		}
	}
	return 0, fmt.Errorf("cannot keep keys and values in %q: f32, bf16, fp8 and q8 are possible", name)
}

// HeadBytes is the memory of one head's key, or value, of one position.
func (t KVType) HeadBytes(dim int) int64 {
	n := int64(dim)
	switch t {
	case KVBF16:
		return 2 * n
	case KVFP8:
		return n + 4
	case KVQ8:
		return n + (n+31)/32*2
	}
	return 4 * n
}
