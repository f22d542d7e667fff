package ops

import "velo/engine/weights"

// The types that a [Weight] may be stored in, see velo/engine/weights.
const (
	F32      = weights.F32
	F16      = weights.F16
	BF16     = weights.BF16
	Q8_0     = weights.Q8_0
	Q4_0     = weights.Q4_0
	Q4_1     = weights.Q4_1
	Q4_K     = weights.Q4_K
	Q5_K     = weights.Q5_K
	Q6_K     = weights.Q6_K
	FP8Row   = weights.FP8Row
	FP8Block = weights.FP8Block
	NVFP4    = weights.NVFP4
)

// WeightType says how the numbers of a weight are stored.
type WeightType = weights.Type

// KVType says how keys and values are stored, see velo/engine/weights.
type KVType = weights.KVType

// The types of keys and values.
const (
	KVF32  = weights.KVF32
	KVBF16 = weights.KVBF16
	KVFP8  = weights.KVFP8
	KVQ8   = weights.KVQ8
)
