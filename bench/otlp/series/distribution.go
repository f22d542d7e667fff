package series

import (
	"math"
	"slices"

	"velo/bench/otlp/decode"
)

// mostBuckets is how many buckets of a histogram are kept; of a finer one only count and sum are.
const mostBuckets = 1024

// distribution is what a histogram or a summary holds.
type distribution struct {
	count uint64
	sum   float64 // NaN = not given

	lowest, highest float64 // no value is below or above them; NaN = not given

	bounds []float64 // histogram with bounds
	counts []uint64

	scale              int32 // exponential histogram
	exponential        bool
	zero               uint64
	positive, negative buckets

	quantiles []decode.Quantile // summary
}

type buckets struct {
	offset int
	counts []uint64
}

func distributionOf(p *decode.Point) distribution {
	d := distribution{count: p.Count, sum: p.Sum, lowest: math.NaN(), highest: math.NaN()}
	if !(p.Min > p.Max) && p.Kind != decode.Summary {
		d.lowest, d.highest = p.Min, p.Max
	}
	switch p.Kind {
	case decode.Histogram:
		if len(p.Buckets) == len(p.Bounds)+1 && len(p.Buckets) <= mostBuckets && slices.IsSorted(p.Bounds) {
			d.bounds, d.counts = slices.Clone(p.Bounds), slices.Clone(p.Buckets)
		}
	case decode.Exponential:
		if len(p.Positive.Counts)+len(p.Negative.Counts) <= mostBuckets && p.Scale >= -20 && p.Scale <= 24 {
			d.exponential, d.scale, d.zero = true, p.Scale, p.Zero
			d.positive = buckets{int(p.Positive.Offset), slices.Clone(p.Positive.Counts)}
			d.negative = buckets{int(p.Negative.Offset), slices.Clone(p.Negative.Counts)}
		}
	case decode.Summary:
		d.quantiles = slices.Clone(p.Quantiles)
	}
	return d
}

func (d *distribution) mean() float64 {
	if d.count == 0 {
		return math.NaN()
	}
	return d.sum / float64(d.count)
}

// minus is what d holds more than an earlier one; false where it holds less of anything, so that it
// must have started anew. What bounds all values since the start bounds those of the interval too.
func (d *distribution) minus(o *distribution) (distribution, bool) {
	if d.count < o.count {
		return distribution{}, false
	}
	r := distribution{count: d.count - o.count, sum: d.sum - o.sum, lowest: d.lowest, highest: d.highest}
	switch {
	case d.exponential && o.exponential:
		a, b := d.at(min(d.scale, o.scale)), o.at(min(d.scale, o.scale))
		var ok, ok2 bool
		r.exponential, r.scale = true, a.scale
		if a.zero < b.zero {
			return distribution{}, false
		}
		r.zero = a.zero - b.zero
		r.positive, ok = a.positive.minus(b.positive)
		r.negative, ok2 = a.negative.minus(b.negative)
		if !ok || !ok2 {
			return distribution{}, false
		}
	case d.counts != nil && slices.Equal(d.bounds, o.bounds):
		r.bounds, r.counts = d.bounds, make([]uint64, len(d.counts))
		for i := range d.counts {
			if d.counts[i] < o.counts[i] {
				return distribution{}, false
			}
			r.counts[i] = d.counts[i] - o.counts[i]
		}
	}
	return r, true
}

// plus adds two distributions; buckets that do not fit each other are given up.
func (d *distribution) plus(o *distribution) distribution {
	r := distribution{count: d.count + o.count, sum: d.sum + o.sum, lowest: min(d.lowest, o.lowest), highest: max(d.highest, o.highest)} // NaN where either is
	switch {
	case d.count == 0:
		return *o
	case d.exponential && o.exponential:
		a, b := d.at(min(d.scale, o.scale)), o.at(min(d.scale, o.scale))
		r.exponential, r.scale, r.zero = true, a.scale, a.zero+b.zero
		r.positive, r.negative = a.positive.plus(b.positive), a.negative.plus(b.negative)
		if len(r.positive.counts)+len(r.negative.counts) > mostBuckets {
			r = distribution{count: r.count, sum: r.sum, lowest: r.lowest, highest: r.highest}
		}
	case d.counts != nil && slices.Equal(d.bounds, o.bounds):
		r.bounds, r.counts = d.bounds, slices.Clone(d.counts)
		for i := range r.counts {
			r.counts[i] += o.counts[i]
		}
	}
	return r
}

// at is an exponential histogram at a lower scale: 2^k buckets become one.
func (d *distribution) at(scale int32) distribution {
	r := *d
	r.positive, r.negative, r.scale = d.positive.coarser(d.scale-scale), d.negative.coarser(d.scale-scale), scale
	return r
}

func (b buckets) coarser(k int32) buckets {
	if k <= 0 || len(b.counts) == 0 {
		return b
	}
	k = min(k, 62)
	first := b.offset >> k
	out := buckets{offset: first, counts: make([]uint64, (b.offset+len(b.counts)-1)>>k-first+1)}
	for i, n := range b.counts {
		out.counts[(b.offset+i)>>k-first] += n
	}
	return out
}

func (b buckets) get(i int) uint64 {
	if i -= b.offset; i >= 0 && i < len(b.counts) {
		return b.counts[i]
	}
	return 0
}

func (b buckets) minus(o buckets) (buckets, bool) {
	r := buckets{b.offset, slices.Clone(b.counts)}
	for i := range o.counts {
		n := o.counts[i]
		if n == 0 {
			continue
		}
		if b.get(o.offset+i) < n {
			return r, false
		}
		r.counts[o.offset+i-b.offset] -= n
	}
	return r, true
}

func (b buckets) plus(o buckets) buckets {
	if len(b.counts) == 0 {
		return o
	}
	if len(o.counts) == 0 {
		return b
	}
	first, last := min(b.offset, o.offset), max(b.offset+len(b.counts), o.offset+len(o.counts))
	if last-first > 2*mostBuckets {
		return buckets{first, make([]uint64, 2*mostBuckets)} // more than is kept: the caller gives it up
	}
	r := buckets{first, make([]uint64, last-first)}
	for i := range r.counts {
		r.counts[i] = b.get(first+i) + o.get(first+i)
	}
	return r
}
