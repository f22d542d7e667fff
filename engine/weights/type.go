package weights

import "fmt"

// Type says how the numbers of a tensor are stored.
type Type uint8

// The storage types. Those from Q8_0 to Q6_K are ggml's; a block of them holds
// the values of 32 or 256 neighbours of one row.
const (
	F32      Type = iota // IEEE single precision
	F16                  // IEEE half precision
	BF16                 // the upper half of a single
	Q8_0                 // 32 values: f16 scale, int8 codes
	Q4_0                 // 32 values: f16 scale, 4-bit codes less 8
	Q4_1                 // 32 values: f16 scale and minimum, 4-bit codes
	Q4_K                 // 256 values: f16 scale and minimum, 8 × 6-bit scales and minima, 4-bit codes
	Q5_K                 // as Q4_K with 5-bit codes
	Q6_K                 // 256 values: f16 scale, 16 × int8 scales, 6-bit codes less 32
	FP8Row               // e4m3, one f32 scale a row (multiplied)
	FP8Block             // e4m3, one f32 scale a block of 128 × 128 (multiplied)
	NVFP4                // e2m1, an e4m3 scale per 16 values, one f32 scale a tensor (both multiplied)
	types                // how many there are
)

// layouts gives each type's name, values a block and bytes a block.
var layouts = [types]struct {
	name           string
	values, octets int
}{
	F32: {"F32", 1, 4}, F16: {"F16", 1, 2}, BF16: {"BF16", 1, 2},
	Q8_0: {"Q8_0", 32, 34}, Q4_0: {"Q4_0", 32, 18}, Q4_1: {"Q4_1", 32, 20},
	Q4_K: {"Q4_K", 256, 144}, Q5_K: {"Q5_K", 256, 176}, Q6_K: {"Q6_K", 256, 210},
	FP8Row: {"FP8Row", 1, 1}, FP8Block: {"FP8Block", 1, 1}, NVFP4: {"NVFP4", 16, 8},
}

// FP8BlockSize is the side of the square that shares one scale in FP8Block.
const FP8BlockSize = 128

// NVFP4Group is how many neighbours of one row share a scale in NVFP4.
const NVFP4Group = 16

// String is the type's name.
func (t Type) String() string {
	if t < types {
		return layouts[t].name
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Block is how many values share a block of Data and how many bytes it has.
// The scales of FP8 and NVFP4 are not part of it: they lie in Tensor.Scale.
func (t Type) Block() (values, octets int) { return layouts[t].values, layouts[t].octets }

// Bits is the storage of one value in bits, scales within the block included.
func (t Type) Bits() float64 { return float64(layouts[t].octets) * 8 / float64(layouts[t].values) }
