package measure

import (
	"math"
	"slices"
)

// sortFloats sorts values upwards; there must be no NaN. Long ones go by a radix sort over the bits,
// digit by digit from the lowest, which for a million gaps is several times faster than comparing:
// digits that all values share are skipped.
func sortFloats(v []float64) {
	if len(v) < 1024 {
		slices.Sort(v)
		return
	}
	const bits, size = 11, 1 << 11
	keys := make([]uint64, len(v))
	spare := make([]uint64, len(v))
	var or, and uint64 = 0, math.MaxUint64
	for i, f := range v {
		k := math.Float64bits(f)
		if k>>63 == 1 {
			k = ^k
		} else {
			k |= 1 << 63
		}
		keys[i] = k
		or |= k
		and &= k
	}
	differ := or &^ and
	for shift := 0; shift < 64; shift += bits {
		if differ>>shift&(size-1) == 0 {
			continue
		}
		var at [size]int
		for _, k := range keys {
			at[k>>shift&(size-1)]++
		}
		sum := 0
		for d, n := range at {
			at[d] = sum
			sum += n
		}
		for _, k := range keys {
			d := k >> shift & (size - 1)
			spare[at[d]] = k
			at[d]++
		}
		keys, spare = spare, keys
	}
	for i, k := range keys {
		if k>>63 == 1 {
			k &^= 1 << 63
		} else {
			k = ^k
		}
		v[i] = math.Float64frombits(k)
	}
}
