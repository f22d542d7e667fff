package emit

import (
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	data "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// metricsRequest writes what was gathered as OTLP metrics, after
// OpenTelemetry's Prometheus compatibility page: names stay as they are, but for those
// of hardware;
// counters become monotonic cumulative sums and histograms cumulative
// histograms with explicit bounds, both from when they began; gauges and
// untyped samples become gauges. It tells how many data points there are.
func (e *Emitter) metricsRequest(families []*dto.MetricFamily, now time.Time) (*data.MetricsData, int) {
	var all []*data.Metric
	points := 0
	for _, f := range families {
		if m, n := e.metric(f, uint64(now.UnixNano())); n > 0 {
			all = append(all, m)
			points += n
		}
	}
	return &data.MetricsData{ResourceMetrics: []*data.ResourceMetrics{{
		Resource:     e.resource(),
		ScopeMetrics: []*data.ScopeMetrics{{Scope: e.scope(), Metrics: all}},
	}}}, points
}

func (e *Emitter) metric(f *dto.MetricFamily, now uint64) (*data.Metric, int) {
	out := &data.Metric{Name: metricName(f.GetName()), Description: f.GetHelp(), Unit: unit(f)}
	begun := func(t *timestamppb.Timestamp) uint64 {
		if t == nil {
			return uint64(e.started.UnixNano())
		}
		return uint64(t.AsTime().UnixNano())
	}
	var numbers []*data.NumberDataPoint
	point := func(m *dto.Metric, start uint64, v float64) {
		numbers = append(numbers, &data.NumberDataPoint{Attributes: labels(m), StartTimeUnixNano: start, TimeUnixNano: now,
			Value: &data.NumberDataPoint_AsDouble{AsDouble: v}})
	}
	const cumulative = data.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	switch f.GetType() {
	case dto.MetricType_GAUGE, dto.MetricType_UNTYPED:
		for _, m := range f.Metric {
			if m.Gauge != nil {
				point(m, 0, m.Gauge.GetValue())
			} else if m.Untyped != nil {
				point(m, 0, m.Untyped.GetValue())
			}
		}
		out.Data = &data.Metric_Gauge{Gauge: &data.Gauge{DataPoints: numbers}}
	case dto.MetricType_COUNTER:
		for _, m := range f.Metric {
			if m.Counter != nil {
				point(m, begun(m.Counter.CreatedTimestamp), m.Counter.GetValue())
			}
		}
		out.Data = &data.Metric_Sum{Sum: &data.Sum{DataPoints: numbers, AggregationTemporality: cumulative, IsMonotonic: true}}
	case dto.MetricType_HISTOGRAM:
		var some []*data.HistogramDataPoint
		for _, m := range f.Metric {
			if h := m.Histogram; h != nil {
				some = append(some, histogram(h, labels(m), begun(h.CreatedTimestamp), now))
			}
		}
		out.Data = &data.Metric_Histogram{Histogram: &data.Histogram{DataPoints: some, AggregationTemporality: cumulative}}
		return out, len(some)
	case dto.MetricType_SUMMARY:
		var some []*data.SummaryDataPoint
		for _, m := range f.Metric {
			if s := m.Summary; s != nil {
				p := &data.SummaryDataPoint{Attributes: labels(m), StartTimeUnixNano: begun(s.CreatedTimestamp), TimeUnixNano: now,
					Count: s.GetSampleCount(), Sum: s.GetSampleSum()}
				for _, q := range s.Quantile {
					p.QuantileValues = append(p.QuantileValues, &data.SummaryDataPoint_ValueAtQuantile{Quantile: q.GetQuantile(), Value: q.GetValue()})
				}
				some = append(some, p)
			}
		}
		out.Data = &data.Metric_Summary{Summary: &data.Summary{DataPoints: some}}
		return out, len(some)
	default: // gauge histograms, which nothing here makes
		return nil, 0
	}
	return out, len(numbers)
}

// histogram turns Prometheus's buckets, each with all that is at or below its
// bound, into OTLP's, each with what is between its bound and the one before,
// and one more for what is above the last.
func histogram(h *dto.Histogram, attributes []*common.KeyValue, start, now uint64) *data.HistogramDataPoint {
	p := &data.HistogramDataPoint{Attributes: attributes, StartTimeUnixNano: start, TimeUnixNano: now, Count: h.GetSampleCount()}
	sum := h.GetSampleSum()
	p.Sum = &sum
	below := uint64(0)
	for _, b := range h.Bucket {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		p.ExplicitBounds = append(p.ExplicitBounds, b.GetUpperBound())
		p.BucketCounts = append(p.BucketCounts, b.GetCumulativeCount()-below)
		below = b.GetCumulativeCount()
	}
	p.BucketCounts = append(p.BucketCounts, p.Count-below)
	return p
}

func labels(m *dto.Metric) []*common.KeyValue {
	out := make([]*common.KeyValue, 0, len(m.Label))
	for _, l := range m.Label {
		name := l.GetName()
		if strings.HasPrefix(name, hardware) {
			name = strings.ReplaceAll(name, "_", ".")
		}
		out = append(out, text(name, l.GetValue()))
	}
	return out
}

// hardware begins the names of OpenTelemetry's conventions for hardware, which Prometheus writes
// with underscores and the unit behind.
const hardware = "hw_"

// metricName is the name that the conventions have; all other names stay as they are.
func metricName(name string) string {
	if !strings.HasPrefix(name, hardware) {
		return name
	}
	for _, unit := range []string{"_ratio", "_bytes", "_watts", "_celsius", "_hertz"} {
		name = strings.TrimSuffix(name, unit)
	}
	if name == "hw_gpu_power_limit" {
		return "hw.gpu.power_limit" // as hw.gpu.throttled no name of the conventions
	}
	return strings.ReplaceAll(name, "_", ".")
}

// unit is the family's, or what its name says, in UCUM.
func unit(f *dto.MetricFamily) string {
	if u := f.GetUnit(); u != "" {
		return u
	}
	name := strings.TrimSuffix(f.GetName(), "_total")
	for _, u := range []struct{ suffix, unit string }{
		{"_tokens_per_second", "{token}/s"}, {"_seconds", "s"}, {"_bytes", "By"}, {"_ratio", "1"},
		{"_watts", "W"}, {"_celsius", "Cel"}, {"_hertz", "Hz"},
	} {
		if strings.HasSuffix(name, u.suffix) {
			return u.unit
		}
	}
	return ""
}
