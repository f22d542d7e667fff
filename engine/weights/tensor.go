package weights

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Tensor is one array of a model, as it lies on disk.
type Tensor struct {
	// Name is the canonical name: the one of Hugging Face's transformers,
	// also for GGUF files ("model.layers.3.self_attn.q_proj.weight"). The
	// part "language_model." that models with a picture encoder put into the
	// names of their text half is left out.
	Name string
	// Stored is the name in the file, of a quantised matrix that of its codes.
	Stored string
	// Type is the layout of Data.
	Type Type
	// Shape is row-major, outermost first: a linear layer is [out, in].
	Shape []int
	// Data is the raw bytes, rows contiguous. It is aligned as the file
	// aligns it and may be mapped read-only: never write to it.
	Data []byte
	// Scale holds, for FP8Row, Rows() little-endian float32; for FP8Block,
	// ⌈rows/128⌉ × ⌈cols/128⌉ of them; for NVFP4, cols/16 e4m3 bytes a row.
	// It is nil for all other types.
	Scale []byte
	// Global is the factor of a whole NVFP4 tensor: value = e2m1 · e4m3 ·
	// Global. Files that store a divisor are turned round on reading.
	// Projections that are computed together may have different ones.
	Global float32
	// DataAt and ScaleAt are where Data and Scale lie in the model's files, for
	// those who read them rather than touch mapped memory. They are the zero
	// value where the bytes were changed on reading.
	DataAt, ScaleAt Place
}

// Rows is the size of the outermost dimension, 1 for a vector.
func (t *Tensor) Rows() int {
	if len(t.Shape) < 2 {
		return 1
	}
	return t.Shape[0]
}

// Cols is how many values a row has: the product of all dimensions but the
// outermost, and the length of a vector.
func (t *Tensor) Cols() int {
	n := 1
	for i, d := range t.Shape {
		if i > 0 || len(t.Shape) == 1 {
			n *= d
		}
	}
	return n
}

// RowBytes is how many bytes of Data a row takes.
func (t *Tensor) RowBytes() int {
	values, octets := t.Type.Block()
	return t.Cols() / values * octets
}

// RowData is the bytes of row i.
func (t *Tensor) RowData(i int) []byte {
	n := t.RowBytes()
	return t.Data[i*n : (i+1)*n : (i+1)*n]
}

// Row writes the Cols() values of row i to dst. It is the definition of every
// storage type; each product and sum is rounded to single precision on its
// own, as ggml and compressed-tensors do it, so the result is the same on all
// machines. It panics if i or the length of dst is out of range.
func (t *Tensor) Row(dst []float32, i int) {
	cols := t.Cols()
	if len(dst) != cols {
		panic(fmt.Sprintf("weights: row of %s has %d values, not %d", t.Name, cols, len(dst)))
	}
	if i < 0 || i >= t.Rows() {
		panic(fmt.Sprintf("weights: %s has no row %d", t.Name, i))
	}
	src := t.RowData(i)
	switch t.Type {
	case F32:
		for j := range dst {
			dst[j] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*j:]))
		}
	case F16:
		for j := range dst {
			dst[j] = Float16(binary.LittleEndian.Uint16(src[2*j:]))
		}
	case BF16:
		for j := range dst {
			dst[j] = BFloat16(binary.LittleEndian.Uint16(src[2*j:]))
		}
	case Q8_0:
		rowQ8_0(dst, src)
	case Q4_0:
		rowQ4_0(dst, src)
	case Q4_1:
		rowQ4_1(dst, src)
	case Q4_K:
		rowQ4_K(dst, src)
	case Q5_K:
		rowQ5_K(dst, src)
	case Q6_K:
		rowQ6_K(dst, src)
	case FP8Row:
		scale := scaleAt(t.Scale, i)
		for j, c := range src {
			dst[j] = e4m3[c] * scale
		}
	case FP8Block:
		scales := t.Scale[4*(i/FP8BlockSize)*blocks(cols):]
		for j, c := range src {
			dst[j] = e4m3[c] * scaleAt(scales, j/FP8BlockSize)
		}
	case NVFP4:
		groups := cols / NVFP4Group
		scales := t.Scale[i*groups : (i+1)*groups]
		for g, s := range scales {
			scale := float32(e4m3[s] * t.Global)
			for j := range NVFP4Group / 2 {
				c := src[g*NVFP4Group/2+j]
				dst[g*NVFP4Group+2*j] = e2m1[c&15] * scale
				dst[g*NVFP4Group+2*j+1] = e2m1[c>>4] * scale
			}
		}
	default:
		panic(fmt.Sprintf("weights: %s has unknown type %v", t.Name, t.Type))
	}
}

// blocks is how many FP8Block squares cover n values.
func blocks(n int) int { return (n + FP8BlockSize - 1) / FP8BlockSize }

// scaleAt is the i-th float32 of a list of scales.
func scaleAt(scales []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(scales[4*i:]))
}
