package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"velo/engine/ops"
	"velo/engine/weights"
)

// widenFP8 writes the values of row i of an FP8 weight, a run of one scale
// after another. widen does n values, a multiple of 32, or of 16
// if the width of w is. The bits are those of w.Row.
func widenFP8(w *ops.Weight, dst []float32, i int, widen func(dst *float32, src *byte, n int, scale float32)) {
	src, run, first := w.RowData(i), len(dst), i
	if w.Type == weights.FP8Block {
		run = weights.FP8BlockSize
		first = i / run * ((len(dst) + run - 1) / run)
	}
	scales := w.Scale[4*first:]
	for at := 0; at < len(dst); at += run {
		scale := math.Float32frombits(binary.LittleEndian.Uint32(scales[4*(at/run):]))
		n := min(run, len(dst)-at)
		whole := n &^ 15
		if whole > 0 {
			widen(&dst[at], unsafe.SliceData(src[at:]), whole, scale)
		}
		for j := at + whole; j < at+n; j++ {
			dst[j] = weights.E4M3(src[j]) * scale
		}
	}
}
