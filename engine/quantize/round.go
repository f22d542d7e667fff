package quantize

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"runtime/debug"
	"sync"

	"velo/engine/weights"
)

// Largest values of the two small number types.
const (
	maxE4M3 = 448
	maxE2M1 = 6
)

// encodeE4M3 is the code of the nearest e4m3 number, ties to even, what lies
// outside at ±448.
func encodeE4M3(v float32) byte {
	u := math.Float32bits(v)
	sign := byte(u >> 24 & 0x80)
	a := math.Float32frombits(u &^ (1 << 31))
	switch {
	case !(a < maxE4M3): // also not a number
		return sign | 0x7e
	case a < 1.0/64: // subnormals are multiples of 2⁻⁹
		return sign | byte(math.RoundToEven(float64(a)*512))
	}
	// Three bits of mantissa stay; the bias changes from 127 to 7.
	b := math.Float32bits(a)
	b += 1<<19 - 1 + b>>20&1
	return sign | byte(b>>20-120<<3)
}

// encodeE2M1 is the code of the nearest e2m1 number, ties to even, what lies
// outside at ±6.
func encodeE2M1(v float32) byte {
	var sign byte
	if math.Signbit(float64(v)) {
		sign, v = 8, -v
	}
	switch {
	case v <= 0.25:
		return sign
	case v < 0.75:
		return sign | 1
	case v <= 1.25:
		return sign | 2
	case v < 1.75:
		return sign | 3
	case v <= 2.5:
		return sign | 4
	case v < 3.5:
		return sign | 5
	case v <= 5:
		return sign | 6
	}
	return sign | 7
}

// encodeBF16 is the nearest bfloat16, ties to even, of a finite number.
func encodeBF16(v float32) uint16 {
	u := math.Float32bits(v)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// largest is the largest magnitude in t, and whether all values are finite.
func largest(ctx context.Context, t *weights.Tensor) (amax float32, finite bool, err error) {
	var mutex sync.Mutex
	finite = true
	err = eachRow(ctx, t, func(row []float32, _ int) {
		m, ok := float32(0), true
		for _, v := range row {
			a := float32(math.Abs(float64(v)))
			m, ok = max(m, a), ok && a <= math.MaxFloat32
		}
		mutex.Lock()
		amax, finite = max(amax, m), finite && ok
		mutex.Unlock()
	})
	return amax, finite, err
}

// toNVFP4 rounds a matrix: the scale of 16 neighbours is e4m3(amax₁₆/6 ·
// divisor), a code the e2m1 nearest to value · divisor / scale. divisor is 6 ·
// 448 / amax of the matrix or of those that are fused with it, so that the
// largest scale is 448 (NVIDIA's two-level scaling).
func toNVFP4(ctx context.Context, t *weights.Tensor, divisor float32) (*weights.Tensor, error) {
	rows, cols := t.Rows(), t.Cols()
	groups := cols / weights.NVFP4Group
	out := &weights.Tensor{Name: t.Name, Type: weights.NVFP4, Shape: t.Shape,
		Data: make([]byte, rows*cols/2), Scale: make([]byte, rows*groups), Global: float32(1 / float64(divisor))}
	err := eachRow(ctx, t, func(row []float32, i int) {
		for g := range groups {
			values := row[g*weights.NVFP4Group : (g+1)*weights.NVFP4Group]
			m := float32(0)
			for _, v := range values {
				m = max(m, float32(math.Abs(float64(v))))
			}
			// A group that is not all zero gets a scale that is not zero.
			code := encodeE4M3(m / maxE2M1 * divisor)
			if code == 0 {
				code = 1
			}
			out.Scale[i*groups+g] = code
			step := weights.E4M3(code) / divisor
			data := out.Data[(i*groups+g)*weights.NVFP4Group/2:]
			for j := 0; j < weights.NVFP4Group; j += 2 {
				data[j/2] = encodeE2M1(values[j]/step) | encodeE2M1(values[j+1]/step)<<4
			}
		}
	})
	return out, err
}

// toFP8 rounds a matrix with one scale a row, amax/448 as a bfloat16, which is
// what transformers keeps a scale in.
func toFP8(ctx context.Context, t *weights.Tensor) (*weights.Tensor, error) {
	out := &weights.Tensor{Name: t.Name, Type: weights.FP8Row, Shape: t.Shape,
		Data: make([]byte, t.Rows()*t.Cols()), Scale: make([]byte, 4*t.Rows())}
	err := eachRow(ctx, t, func(row []float32, i int) {
		m := float32(0)
		for _, v := range row {
			m = max(m, float32(math.Abs(float64(v))))
		}
		scale := weights.BFloat16(encodeBF16(m / maxE4M3))
		if scale == 0 {
			scale = 1 // a row of zeros
		}
		binary.LittleEndian.PutUint32(out.Scale[4*i:], math.Float32bits(scale))
		for j, v := range row {
			out.Data[i*len(row)+j] = encodeE4M3(v / scale)
		}
	})
	return out, err
}

// eachRow calls f with every row of t, on all cores. The error is that of ctx, or of a row that could not
// be read.
func eachRow(ctx context.Context, t *weights.Tensor, f func(row []float32, i int)) error {
	rows := t.Rows()
	workers := min(runtime.GOMAXPROCS(0), rows)
	failed := make([]error, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			defer weights.Recover(debug.SetPanicOnFault(true), &failed[w])
			row := make([]float32, t.Cols())
			for i := w * rows / workers; i < (w+1)*rows/workers && ctx.Err() == nil; i++ {
				t.Row(row, i)
				f(row, i)
			}
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(failed...)
}

// compare is how far q is from t: the root mean square of the differences over
// that of t (0 where t is all zero), and the largest difference.
func compare(ctx context.Context, t, q *weights.Tensor) (rms, largest float64, err error) {
	var mutex sync.Mutex
	var noise, energy float64
	other := sync.Pool{New: func() any { r := make([]float32, q.Cols()); return &r }}
	err = eachRow(ctx, t, func(row []float32, i int) {
		rounded := other.Get().(*[]float32)
		defer other.Put(rounded)
		q.Row(*rounded, i)
		e, s, m := 0.0, 0.0, 0.0
		for j, v := range row {
			d := float64(v) - float64((*rounded)[j])
			e, s, m = e+d*d, s+float64(v)*float64(v), max(m, math.Abs(d))
		}
		mutex.Lock()
		noise, energy, largest = noise+e, energy+s, max(largest, m)
		mutex.Unlock()
	})
	if energy > 0 {
		rms = math.Sqrt(noise / energy)
	}
	return rms, largest, err
}
