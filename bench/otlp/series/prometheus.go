package series

import (
	"fmt"
	"io"
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"velo/bench/otlp/decode"
)

// Exposition takes a page of metrics in the Prometheus text format, read at the receiver's monotonic
// time. service names where it came from. Metrics before a malformed line are taken; it returns how
// many series the page has.
func (t *Table) Exposition(received time.Duration, service string, page io.Reader) (int, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	n := 0
	for name, f := range families {
		for _, m := range f.GetMetric() {
			p := pointOf(name, f, m)
			t.point(received, service, &p)
			n++
		}
	}
	if err != nil {
		return n, fmt.Errorf("cannot read the metrics of %s: %w", service, err)
	}
	return n, nil
}

// pointOf is a metric of a page as a cumulative data point. It has no time: rates take the
// receiver's.
func pointOf(name string, f *dto.MetricFamily, m *dto.Metric) decode.Point {
	p := decode.Point{Name: name, Description: f.GetHelp(), Unit: f.GetUnit(), Temporality: decode.Cumulative, Min: math.NaN(), Max: math.NaN()}
	for _, l := range m.GetLabel() {
		p.Attributes = append(p.Attributes, decode.Attribute{Key: l.GetName(), Value: decode.Text(l.GetValue())})
	}
	if ms := m.GetTimestampMs(); ms > 0 {
		p.Time = uint64(ms) * 1e6
	}
	switch f.GetType() {
	case dto.MetricType_COUNTER:
		p.Kind, p.Monotonic, p.Value = decode.Sum, true, m.GetCounter().GetValue()
	case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
		h := m.GetHistogram()
		p.Kind, p.Count, p.Sum = decode.Histogram, h.GetSampleCount(), h.GetSampleSum()
		before := uint64(0)
		for _, b := range h.GetBucket() {
			if c := b.GetCumulativeCount(); c >= before && !math.IsInf(b.GetUpperBound(), 1) {
				p.Bounds, p.Buckets = append(p.Bounds, b.GetUpperBound()), append(p.Buckets, c-before)
				before = c
			}
		}
		if p.Count >= before {
			p.Buckets = append(p.Buckets, p.Count-before)
		} else {
			p.Bounds, p.Buckets = nil, nil
		}
	case dto.MetricType_SUMMARY:
		s := m.GetSummary()
		p.Kind, p.Count, p.Sum = decode.Summary, s.GetSampleCount(), s.GetSampleSum()
		for _, q := range s.GetQuantile() {
			p.Quantiles = append(p.Quantiles, decode.Quantile{Q: q.GetQuantile(), Value: q.GetValue()})
		}
	case dto.MetricType_UNTYPED:
		p.Value = m.GetUntyped().GetValue()
	default:
		p.Value = m.GetGauge().GetValue()
	}
	return p
}
