//go:build linux && cuda && cgo

package cuda

import "math"

// fillRandom fills memory with random words, (v & keep) | set.
func (k *Kernels) fillRandom(m Memory, seed int, keep, set uint32) error {
	a := k.device.args.Reset().Pointer(m.at).Pointer(uint64(m.bytes / 4)).Int(seed).Int(int(int32(keep))).Int(int(int32(set)))
	return k.fill.Launch(Grid{X: k.device.facts.SMs * 8, Block: 256}, a)
}

// random fills a matrix with random numbers of a variance of about 1 over its width.
// Zeros would be multiplied faster.
func (k *Kernels) random(m *Matrix) error {
	size := 1 / math.Sqrt(float64(m.in))
	keep, set := uint32(0), uint32(0)
	switch m.format {
	case F16: // ±1 to ±2
		keep, set = 0x83ff83ff, 0x3c003c00
		size /= 1.5
	case FP8:
		keep, set = 0x87878787, 0x38383838
		size *= float64(formats[FP8].factor) / 1.5
	case NVFP4: // codes and scales alike
		keep = 0xbfbfbfbf
		size /= 0.017
	}
	if err := k.fillRandom(m.weights, int(m.weights.at>>8), keep, set); err != nil {
		return err
	}
	factors := make([]float32, m.out)
	for i := range factors {
		factors[i] = float32(size)
	}
	return Upload(m.factors, factors)
}
