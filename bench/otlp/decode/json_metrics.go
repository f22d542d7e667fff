package decode

import (
	"fmt"

	"velo/bench/otlp/scan"
)

var temporalities = map[string]int64{"AGGREGATION_TEMPORALITY_DELTA": 1, "AGGREGATION_TEMPORALITY_CUMULATIVE": 2}

func (r *reader) jsonMetrics(body string, visit func(*Origin, *Point) bool) (int, error) {
	err := jsonScopes(r, body, [2]string{"resourceMetrics", "resource_metrics"}, [2]string{"scopeMetrics", "scope_metrics"},
		[2]string{"metrics", "metrics"}, func(p *scan.Scanner, o *Origin) error {
			return r.jsonMetric(p, o, visit)
		})
	return r.count, err
}

// jsonMetric reads a Metric and its points, which are read last: name and temporality may stand behind
// them, and mostly do.
func (r *reader) jsonMetric(p *scan.Scanner, o *Origin, visit func(*Origin, *Point) bool) (stop error) {
	pt := &r.point
	*pt = Point{Attributes: pt.Attributes, Bounds: pt.Bounds, Buckets: pt.Buckets, Quantiles: pt.Quantiles,
		Positive: pt.Positive, Negative: pt.Negative}
	points := ""
	data := func(k MetricKind) {
		pt.Kind = k
		object(p, func(key string) bool {
			switch key {
			case "dataPoints", "data_points":
				points = p.Raw()
			case "aggregationTemporality", "aggregation_temporality":
				pt.Temporality = temporality(int64(jsonEnum(p, temporalities)))
			case "isMonotonic", "is_monotonic":
				pt.Monotonic = p.Bool()
			default:
				return false
			}
			return true
		})
	}
	object(p, func(key string) bool {
		switch key {
		case "name":
			pt.Name = p.Text()
		case "description":
			pt.Description = p.Text()
		case "unit":
			pt.Unit = p.Text()
		case "gauge":
			data(Gauge)
		case "sum":
			data(Sum)
		case "histogram":
			data(Histogram)
		case "exponentialHistogram", "exponential_histogram":
			data(Exponential)
		case "summary":
			data(Summary)
		default:
			return false
		}
		return true
	})
	if p.Err() != nil || points == "" {
		return nil
	}
	q := scan.New(points)
	array(&q, func() {
		r.resetPoint()
		r.jsonPoint(&q)
		if q.Err() != nil {
			return
		}
		if stop = r.seenPoint(o, visit); stop != nil {
			q.Fail("stopped")
		}
	})
	if stop == nil {
		stop = q.Err()
	}
	return stop
}

func (r *reader) jsonPoint(p *scan.Scanner) {
	pt := &r.point
	object(p, func(key string) bool {
		switch key {
		case "attributes":
			pt.Attributes = r.jsonAttributes(p, pt.Attributes[:0], 0)
		case "startTimeUnixNano", "start_time_unix_nano":
			pt.Start = p.Uint()
		case "timeUnixNano", "time_unix_nano":
			pt.Time = p.Uint()
		case "flags":
			pt.flags(uint32(p.Uint()))
		case "asDouble", "as_double":
			pt.Value = p.Float()
		case "asInt", "as_int":
			pt.Value = float64(p.Int())
		case "count":
			pt.Count = p.Uint()
		case "sum":
			pt.Sum = p.Float()
		case "min":
			pt.Min = p.Float()
		case "max":
			pt.Max = p.Float()
		case "bucketCounts", "bucket_counts":
			pt.Buckets = r.jsonCounts(p, pt.Buckets[:0])
		case "explicitBounds", "explicit_bounds":
			pt.Bounds = pt.Bounds[:0]
			array(p, func() {
				if len(pt.Bounds) >= mostBuckets {
					p.Fail(fmt.Sprintf("a histogram has more than %d bounds", mostBuckets))
				}
				pt.Bounds = append(pt.Bounds, p.Float())
			})
		case "scale":
			pt.Scale = int32(p.Int())
		case "zeroCount", "zero_count":
			pt.Zero = p.Uint()
		case "zeroThreshold", "zero_threshold":
			pt.ZeroThreshold = p.Float()
		case "positive":
			r.jsonBuckets(p, &pt.Positive)
		case "negative":
			r.jsonBuckets(p, &pt.Negative)
		case "quantileValues", "quantile_values":
			r.jsonQuantiles(p)
		default:
			return false
		}
		return true
	})
}

func (r *reader) jsonCounts(p *scan.Scanner, into []uint64) []uint64 {
	array(p, func() {
		if len(into) >= mostBuckets {
			p.Fail(fmt.Sprintf("a histogram has more than %d buckets", mostBuckets))
		}
		into = append(into, p.Uint())
	})
	return into
}

func (r *reader) jsonBuckets(p *scan.Scanner, b *Buckets) {
	object(p, func(key string) bool {
		switch key {
		case "offset":
			b.Offset = int32(p.Int())
		case "bucketCounts", "bucket_counts":
			b.Counts = r.jsonCounts(p, b.Counts[:0])
		default:
			return false
		}
		return true
	})
}

func (r *reader) jsonQuantiles(p *scan.Scanner) {
	array(p, func() {
		if err := r.more(1); err != nil {
			p.Fail(err.Error())
		}
		var q Quantile
		object(p, func(key string) bool {
			switch key {
			case "quantile":
				q.Q = p.Float()
			case "value":
				q.Value = p.Float()
			default:
				return false
			}
			return true
		})
		r.point.Quantiles = append(r.point.Quantiles, q)
	})
}
