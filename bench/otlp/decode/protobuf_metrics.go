package decode

import (
	"fmt"
	"math"
)

// The field of a Metric that holds its data, by kind.
var kindOfField = map[uint64]MetricKind{5: Gauge, 7: Sum, 9: Histogram, 10: Exponential, 11: Summary}

// protoMetric reads a Metric and its points. Name and temporality may stand behind the points: the
// message is walked for these first.
func (r *reader) protoMetric(message string, o *Origin, visit func(*Origin, *Point) bool) error {
	p := &r.point
	*p = Point{Attributes: p.Attributes, Bounds: p.Bounds, Buckets: p.Buckets, Quantiles: p.Quantiles,
		Positive: p.Positive, Negative: p.Negative}
	var data string
	found := false
	err := each(message, func(w *wire, tag uint64) bool {
		switch tag {
		case 1<<3 | bytes:
			p.Name = w.bytes()
		case 2<<3 | bytes:
			p.Description = w.bytes()
		case 3<<3 | bytes:
			p.Unit = w.bytes()
		default:
			k, ok := kindOfField[tag>>3]
			if !ok || tag&7 != bytes {
				return false
			}
			p.Kind, data, found = k, w.bytes(), true
		}
		return true
	})
	if err != nil || !found {
		return err
	}
	err = each(data, func(w *wire, tag uint64) bool {
		switch {
		case tag == 2<<3|varint && p.Kind != Gauge && p.Kind != Summary:
			p.Temporality = temporality(int64(w.varint()))
		case tag == 3<<3|varint && p.Kind == Sum:
			p.Monotonic = w.varint() != 0
		default:
			return false
		}
		return true
	})
	if err != nil {
		return err
	}
	return each(data, func(w *wire, tag uint64) bool {
		if tag != 1<<3|bytes {
			return false
		}
		r.resetPoint()
		err := r.protoPoint(w.bytes())
		if err == nil {
			err = r.seenPoint(o, visit)
		}
		if err != nil {
			w.fail(err)
		}
		return true
	})
}

func temporality(n int64) Temporality {
	if n == 1 || n == 2 {
		return Temporality(n)
	}
	return Unspecified
}

func (r *reader) seenPoint(o *Origin, visit func(*Origin, *Point) bool) error {
	r.count++
	if visit != nil && !visit(o, &r.point) {
		return errStop
	}
	return nil
}

func (r *reader) protoPoint(message string) error {
	p := &r.point
	return each(message, func(w *wire, tag uint64) bool {
		switch {
		case tag == 2<<3|fixed64:
			p.Start = w.fixed64()
		case tag == 3<<3|fixed64:
			p.Time = w.fixed64()
		case p.Kind == Gauge || p.Kind == Sum:
			return r.protoNumber(w, tag)
		case p.Kind == Histogram:
			return r.protoHistogram(w, tag)
		case p.Kind == Exponential:
			return r.protoExponential(w, tag)
		default:
			return r.protoSummary(w, tag)
		}
		return true
	})
}

func (p *Point) flags(n uint32) { p.Absent = n&1 != 0 }

func (r *reader) protoNumber(w *wire, tag uint64) bool {
	p := &r.point
	switch tag {
	case 7<<3 | bytes:
		r.into(&p.Attributes, w)
	case 4<<3 | fixed64:
		p.Value = w.double()
	case 6<<3 | fixed64:
		p.Value = float64(int64(w.fixed64()))
	case 8<<3 | varint:
		p.flags(uint32(w.varint()))
	default:
		return false
	}
	return true
}

func (r *reader) protoHistogram(w *wire, tag uint64) bool {
	p := &r.point
	switch tag {
	case 9<<3 | bytes:
		r.into(&p.Attributes, w)
	case 4<<3 | fixed64:
		p.Count = w.fixed64()
	case 5<<3 | fixed64:
		p.Sum = w.double()
	case 6<<3 | bytes, 6<<3 | fixed64:
		packed(w, tag, func(v *wire) { p.Buckets = r.bucket(v, p.Buckets, v.fixed64()) })
	case 7<<3 | bytes, 7<<3 | fixed64:
		packed(w, tag, func(v *wire) {
			if len(p.Bounds) >= mostBuckets {
				v.fail(fmt.Errorf("a histogram has more than %d bounds", mostBuckets))
			}
			p.Bounds = append(p.Bounds, v.double())
		})
	case 10<<3 | varint:
		p.flags(uint32(w.varint()))
	case 11<<3 | fixed64:
		p.Min = w.double()
	case 12<<3 | fixed64:
		p.Max = w.double()
	default:
		return false
	}
	return true
}

// packed takes a repeated number, packed or not.
func packed(w *wire, tag uint64, one func(*wire)) {
	if tag&7 != bytes {
		one(w)
		return
	}
	v := wire{b: w.bytes()}
	for v.b != "" && v.err == nil {
		one(&v)
	}
	if v.err != nil {
		w.fail(v.err)
	}
}

func (r *reader) bucket(w *wire, counts []uint64, n uint64) []uint64 {
	if len(counts) >= mostBuckets {
		w.fail(fmt.Errorf("a histogram has more than %d buckets", mostBuckets))
		return counts
	}
	return append(counts, n)
}

func (r *reader) protoExponential(w *wire, tag uint64) bool {
	p := &r.point
	switch tag {
	case 1<<3 | bytes:
		r.into(&p.Attributes, w)
	case 4<<3 | fixed64:
		p.Count = w.fixed64()
	case 5<<3 | fixed64:
		p.Sum = w.double()
	case 6<<3 | varint:
		p.Scale = w.zigzag()
	case 7<<3 | fixed64:
		p.Zero = w.fixed64()
	case 8<<3 | bytes:
		r.protoBuckets(w, &p.Positive)
	case 9<<3 | bytes:
		r.protoBuckets(w, &p.Negative)
	case 10<<3 | varint:
		p.flags(uint32(w.varint()))
	case 12<<3 | fixed64:
		p.Min = w.double()
	case 13<<3 | fixed64:
		p.Max = w.double()
	case 14<<3 | fixed64:
		p.ZeroThreshold = w.double()
	default:
		return false
	}
	return true
}

func (r *reader) protoBuckets(w *wire, b *Buckets) {
	err := each(w.bytes(), func(w *wire, tag uint64) bool {
		switch tag {
		case 1<<3 | varint:
			b.Offset = w.zigzag()
		case 2<<3 | bytes, 2<<3 | varint:
			packed(w, tag, func(v *wire) { b.Counts = r.bucket(v, b.Counts, v.varint()) })
		default:
			return false
		}
		return true
	})
	if err != nil {
		w.fail(err)
	}
}

func (r *reader) protoSummary(w *wire, tag uint64) bool {
	p := &r.point
	switch tag {
	case 7<<3 | bytes:
		r.into(&p.Attributes, w)
	case 4<<3 | fixed64:
		p.Count = w.fixed64()
	case 5<<3 | fixed64:
		p.Sum = w.double()
	case 6<<3 | bytes:
		var q Quantile
		err := each(w.bytes(), func(w *wire, tag uint64) bool {
			switch tag {
			case 1<<3 | fixed64:
				q.Q = w.double()
			case 2<<3 | fixed64:
				q.Value = w.double()
			default:
				return false
			}
			return true
		})
		if err == nil {
			err = r.more(1)
		}
		if err != nil {
			w.fail(err)
		}
		p.Quantiles = append(p.Quantiles, q)
	case 8<<3 | varint:
		p.flags(uint32(w.varint()))
	default:
		return false
	}
	return true
}

// Base is the ratio of the bounds of an exponential histogram's buckets.
func (p *Point) Base() float64 { return math.Pow(2, math.Pow(2, -float64(p.Scale))) }
