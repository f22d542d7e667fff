// Package series keeps the metrics that engines send or expose: one series for each service, metric and
// set of attributes, with a bounded history, and the gauges of an engine that can be made from them.
//
// A series becomes a line that can be plotted: a gauge's values; the rate of a monotonic sum, per
// second; the level of a sum that may fall; of histograms and summaries the mean of what was observed
// since the point before, with percentiles estimated from the buckets.
//
// # Restarts and resets
//
// A cumulative series that starts anew (a later start time, or a value or count below the one before)
// is counted from zero again: its increase is then what it holds, never a negative number. Points that
// are not later than the one before are left out and counted. Rates divide by the difference of the
// emitter's times where points have them, else by that of the receiver's, never by a mixture.
package series

import (
	"math"
	"slices"
	"strings"
	"time"

	"velo/bench/measure"
	"velo/bench/otlp/decode"
)

// Options are the bounds of a Table; the zero value has usual ones.
type Options struct {
	Series int // kept at most; 0 = 4,000
	Points int // of history a series; 0 = 300
}

// Sample is one point of a line.
type Sample struct {
	At    time.Duration // when it came, receiver's monotonic time
	Value float64
}

// Table holds the series. It has no lock: its owner serialises all calls.
type Table struct {
	options Options
	series  map[string]*series
	order   []*series // as they appeared
	counts  Counts
	engines map[string]*engine
	key     []byte
	sorted  decode.Attributes
}

// Counts are what a Table has taken since it was made. Clear does not touch them.
type Counts struct {
	Points  uint64
	Absent  uint64 // points that say that there is no value, or hold none that is finite
	Stale   uint64 // points not later than the one before
	Resets  uint64 // series that started anew
	Refused uint64 // points of new series beyond Options.Series
	Evicted uint64 // series that had been quiet for an hour and made room
}

// series is one metric of one service with one set of attributes.
type series struct {
	key      string
	service  string
	labels   string
	attrs    map[string]string
	name     string
	unit     string
	describe string
	kind     decode.MetricKind
	temp     decode.Temporality
	rising   bool // a monotonic sum

	hidden bool     // by Clear, until the next point
	points []Sample // a ring from next on once it is full
	next   int

	seen     bool
	at       uint64 // emitter's time of the latest point; 0 = it has none
	got      time.Duration
	start    uint64
	value    float64      // cumulative value, gauge, or level
	total    float64      // increase since the series was first seen
	rate     float64      // per second; of observations for histograms
	rated    bool         // there was enough for a rate
	interval distribution // the latest that has observations
	whole    distribution // cumulative: the latest point; delta: the sum of all
	resets   int
}

// NewTable returns an empty table.
func NewTable(o Options) *Table {
	if o.Series <= 0 {
		o.Series = 4000
	}
	if o.Points <= 0 {
		o.Points = 300
	}
	return &Table{options: o, series: map[string]*series{}, engines: map[string]*engine{}}
}

// Clear empties the histories and hides every series and engine until its next point. What rates are
// computed from stays, so that they go on without a gap.
func (t *Table) Clear() {
	for _, s := range t.order {
		s.points, s.next, s.hidden = nil, 0, true
	}
	for _, e := range t.engines {
		clear(e.history)
		e.hidden = true
	}
}

// Counts are what was taken.
func (t *Table) Counts() Counts { return t.counts }

// Len is the number of series.
func (t *Table) Len() int { return len(t.order) }

// idle is how long a series must have been quiet to make room for a new one.
const idle = time.Hour

// Point takes a data point that came at the receiver's monotonic time.
func (t *Table) Point(received time.Duration, o *decode.Origin, p *decode.Point) {
	name, instance := o.Service()
	if instance != "" {
		name += "/" + instance
	}
	t.point(received, name, p)
}

func (t *Table) point(received time.Duration, service string, p *decode.Point) {
	t.counts.Points++
	if p.Absent || (p.Kind == decode.Gauge || p.Kind == decode.Sum) && (math.IsNaN(p.Value) || math.IsInf(p.Value, 0)) {
		t.counts.Absent++
		return
	}
	s := t.find(received, service, p)
	if s == nil {
		t.counts.Refused++
		return
	}
	if s.seen && p.Time != 0 && p.Time <= s.at {
		t.counts.Stale++
		return
	}
	s.hidden = false
	before := s.resets
	if s.take(received, p) {
		s.push(Sample{received, s.plotted()}, t.options.Points)
	}
	t.counts.Resets += uint64(s.resets - before)
	t.engine(received, s)
}

// find is the series of a point; it is made if there is none, and nil if there is no room.
func (t *Table) find(received time.Duration, service string, p *decode.Point) *series {
	attributes := p.Attributes
	byKey := func(a, b decode.Attribute) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(attributes, byKey) { // their order says nothing: in another one they are the same
		t.sorted = append(t.sorted[:0], attributes...)
		attributes = t.sorted
		slices.SortStableFunc(attributes, byKey)
	}
	b := append(t.key[:0], service...)
	b = append(b, 0)
	b = append(b, p.Name...)
	b = append(b, 0, byte(p.Kind))
	labels := len(b)
	for i := range attributes {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, attributes[i].Key...)
		b = append(b, '=')
		b = append(b, attributes[i].Value.String()...)
	}
	t.key = b
	if s := t.series[string(b)]; s != nil {
		return s
	}
	if len(b) > 4096 || len(t.order) >= t.options.Series && !t.evict(received) {
		return nil
	}
	key := string(b)
	s := &series{key: key, service: decode.Short(service, 256), labels: key[labels:], attrs: map[string]string{}, name: decode.Short(p.Name, 1024),
		unit: decode.Short(p.Unit, 64), describe: decode.Short(p.Description, 512), kind: p.Kind}
	for _, a := range attributes {
		s.attrs[decode.Short(a.Key, 1024)] = decode.Short(a.Value.String(), 1024)
	}
	t.series[key] = s
	t.order = append(t.order, s)
	return s
}

func (t *Table) evict(now time.Duration) bool {
	i := slices.IndexFunc(t.order, func(s *series) bool { return now-s.got > idle })
	if i < 0 {
		return false
	}
	s := t.order[i]
	t.order = slices.Delete(t.order, i, i+1)
	delete(t.series, s.key)
	if e := t.engines[s.service]; e != nil {
		e.drop(s)
	}
	t.counts.Evicted++
	return true
}

// take applies a point; false where it gives no value to plot.
func (s *series) take(received time.Duration, p *decode.Point) bool {
	s.temp, s.rising = p.Temporality, p.Kind == decode.Sum && p.Monotonic
	since := s.elapsed(received, p)
	first := !s.seen
	restarted := s.seen && p.Start != 0 && s.start != 0 && p.Start > s.start
	ok := true
	switch p.Kind {
	case decode.Gauge:
		s.value = p.Value
	case decode.Sum:
		ok = s.sum(p, first, restarted, since)
	default:
		ok = s.observations(p, first, restarted, since)
	}
	s.seen, s.at, s.got = true, p.Time, received
	if p.Start != 0 {
		s.start = p.Start
	}
	return ok
}

// elapsed is the seconds since the point before, on one clock; 0 where that is not known.
func (s *series) elapsed(received time.Duration, p *decode.Point) float64 {
	switch {
	case !s.seen:
		return 0
	case p.Time != 0 && s.at != 0:
		return float64(p.Time-s.at) / 1e9
	case p.Time == 0 && s.at == 0:
		return (received - s.got).Seconds()
	}
	return 0
}

// own is the seconds that a point says it covers; 0 where it does not say.
func own(p *decode.Point) float64 {
	if p.Start == 0 || p.Time <= p.Start {
		return 0
	}
	return float64(p.Time-p.Start) / 1e9
}

// sum applies a point of a sum.
func (s *series) sum(p *decode.Point, first, restarted bool, since float64) bool {
	increase, over := p.Value-s.value, since
	switch {
	case p.Temporality == decode.Delta:
		increase = p.Value
		if o := own(p); o > 0 {
			over = o
		}
		if s.rising {
			increase = max(0, increase)
		}
		s.value += increase
	case !s.rising: // a level: it may fall, and a restart changes nothing about that
		s.value = p.Value
	case restarted || !first && p.Value < s.value:
		s.resets++
		increase = max(0, p.Value)
		if o := own(p); restarted && o > 0 && o < since {
			over = o
		}
		s.value = p.Value
	default:
		s.value = p.Value
	}
	if !s.rising {
		return true
	}
	if p.Temporality != decode.Delta && first {
		return false // one point of a cumulative sum is no rate
	}
	s.total += increase
	if over <= 0 {
		return false
	}
	s.rate, s.rated = increase/over, true
	return true
}

// observations applies a point of a histogram or a summary.
func (s *series) observations(p *decode.Point, first, restarted bool, since float64) bool {
	d := distributionOf(p)
	over := since
	switch {
	case p.Temporality == decode.Delta && p.Kind != decode.Summary:
		if o := own(p); o > 0 {
			over = o
		}
		s.whole = s.whole.plus(&d)
	case first:
		s.whole = d
		return false
	default:
		part, ok := d.minus(&s.whole)
		if restarted || !ok {
			s.resets++
			part = d
			if o := own(p); restarted && o > 0 && o < since {
				over = o
			}
		}
		part.quantiles = d.quantiles
		s.whole, d = d, part
	}
	s.total += float64(d.count)
	if over > 0 {
		s.rate, s.rated = float64(d.count)/over, true
	}
	if d.count > 0 { // an interval without any observation says nothing about them
		s.interval = d
	}
	return d.count > 0
}

// plotted is the value of the series' line.
func (s *series) plotted() float64 {
	switch {
	case s.kind == decode.Gauge || s.kind == decode.Sum && !s.rising:
		return s.value
	case s.kind == decode.Sum:
		return s.rate
	}
	return s.interval.mean()
}

func (s *series) push(p Sample, most int) {
	if math.IsNaN(p.Value) {
		return
	}
	if len(s.points) < most {
		s.points = append(s.points, p)
		return
	}
	s.points[s.next] = p
	s.next = (s.next + 1) % len(s.points)
}

// history is the points in order of time.
func (s *series) history() []Sample {
	return append(slices.Clone(s.points[s.next:]), s.points[:s.next]...)
}

// Line is one series as the explorer shows it.
type Line struct {
	Service, Name, Unit, Description, Labels string
	Kind                                     string // "gauge", "sum", "histogram", "exponential histogram", "summary"
	Temporality                              string // "", "delta", "cumulative"
	Plotted                                  string // what Value and Points are: "value", "rate per second", "level", "mean of the interval"
	Value                                    measure.Num
	Total                                    measure.Num // what a sum rose by, or a histogram counted, since it was first seen
	Rate                                     measure.Num // observations a second, of a histogram
	P50, P90, P99                            Percentile  // of the last interval that had any
	Resets                                   int
	Age                                      time.Duration // since the latest point came
	Points                                   []Sample      // only where Query.Points asks
}

// Query says which series are wanted.
type Query struct {
	Filter string // text that service, name or labels must contain; "" = all
	Limit  int    // lines at most; 0 = 200, at most 2,000
	Offset int
	Points bool // with their history
}

// Lines are the series that pass the query, in order of service, name and labels, and how many pass.
func (t *Table) Lines(q Query, now time.Duration) (lines []Line, matches int) {
	if q.Limit <= 0 {
		q.Limit = 200
	}
	q.Limit = min(q.Limit, 2000)
	var found []*series
	for _, s := range t.order {
		if s.hidden {
			continue
		}
		if q.Filter == "" || strings.Contains(s.service, q.Filter) || strings.Contains(s.name, q.Filter) || strings.Contains(s.labels, q.Filter) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *series) int { return strings.Compare(a.key, b.key) })
	matches = len(found)
	found = found[min(max(q.Offset, 0), len(found)):]
	for _, s := range found[:min(q.Limit, len(found))] {
		lines = append(lines, s.line(now, q.Points))
	}
	return lines, matches
}

func (s *series) line(now time.Duration, points bool) Line {
	l := Line{Service: s.service, Name: s.name, Unit: s.unit, Description: s.describe, Labels: s.labels, Kind: s.kind.String(),
		Value: measure.Missing, Total: measure.Missing, Rate: measure.Missing,
		Resets: s.resets, Age: max(0, now-s.got)}
	l.P50, l.P90, l.P99 = Percentile{Value: measure.Missing}, Percentile{Value: measure.Missing}, Percentile{Value: measure.Missing}
	if s.kind != decode.Gauge {
		l.Temporality = [...]string{"", "delta", "cumulative"}[s.temp]
		l.Total = measure.Num(s.total)
	}
	switch {
	case s.kind == decode.Gauge:
		l.Plotted, l.Value = "value", measure.Num(s.value)
	case s.kind == decode.Sum && !s.rising:
		l.Plotted, l.Value, l.Total = "level", measure.Num(s.value), measure.Missing
	case s.kind == decode.Sum:
		l.Plotted = "rate per second"
		if s.rated {
			l.Value = measure.Num(s.rate)
		}
	default:
		l.Plotted, l.Value, l.Rate = "mean of the interval", measure.Num(s.interval.mean()), measure.Num(s.rate)
		l.P50, l.P90, l.P99 = s.interval.quantile(0.5), s.interval.quantile(0.9), s.interval.quantile(0.99)
	}
	if points {
		l.Points = s.history()
	}
	return l
}
