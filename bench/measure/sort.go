package measure

import (
	"math"
	"slices"
)

// sortFloats sorts values upwards; there must be no NaN. Long ones go by a radix sort, digit by digit
// from the lowest, which for a million gaps is several times faster than comparing; digits that all
// values share are skipped. Times are whole nanoseconds, of which few digits differ: they are sorted
// as such.
func sortFloats(v []float64) {
	if len(v) < 1024 {
		slices.Sort(v)
		return
	}
	if keys := nanoseconds(v); keys != nil {
		for i, k := range radix(keys) {
			v[i] = float64(k) / 1e9
		}
		return
	}
	keys := make([]uint64, len(v))
	for i, f := range v {
		k := math.Float64bits(f)
		if k>>63 == 1 {
			k = ^k
		} else {
			k |= 1 << 63
		}
		keys[i] = k
	}
	for i, k := range radix(keys) {
		if k>>63 == 1 {
			k &^= 1 << 63
		} else {
			k = ^k
		}
		v[i] = math.Float64frombits(k)
	}
}

// nanoseconds are seconds as whole nanoseconds, nil where some are not exactly that or lie beyond
// four seconds.
func nanoseconds(v []float64) []uint32 {
	keys := make([]uint32, len(v))
	for i, f := range v {
		if !(f >= 0 && f < 4) {
			return nil
		}
		k := uint32(f*1e9 + 0.5)
		if float64(k)/1e9 != f {
			return nil
		}
		keys[i] = k
	}
	return keys
}

// radix sorts keys, which it may overwrite.
func radix[K uint32 | uint64](keys []K) []K {
	const bits, size = 11, 1 << 11
	spare := make([]K, len(keys))
	or, and := K(0), ^K(0)
	for _, k := range keys {
		or |= k
		and &= k
	}
	differ := or &^ and
	for shift := 0; differ>>shift != 0; shift += bits {
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
	return keys
}
