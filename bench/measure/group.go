package measure

import (
	"math"
	"slices"
)

// group is a set of measured requests whose metrics are summed up together: a run or a step. Failed
// ones have none of the metrics, but are drawn with the others. Dist after Dist is filled;
// bootstrapped intervals are left to finish, which makes them all at once.
type group struct {
	requests    []*Request
	repetition  []int // of each request, dense from 0
	repetitions int
	seed        uint64
	ratios      []ratio
}

func newGroup(requests []*Request, repetitionOf func(*Request) int, seed uint64) *group {
	g := &group{requests: requests, repetition: make([]int, len(requests)), seed: seed}
	var seen []int
	for _, r := range requests {
		seen = append(seen, repetitionOf(r))
	}
	order := slices.Clone(seen)
	slices.Sort(order)
	order = slices.Compact(order)
	g.repetitions = len(order)
	for i, s := range seen {
		g.repetition[i], _ = slices.BinarySearch(order, s)
	}
	return g
}

// values are a metric's values of the requests, NaN where a request failed or has none.
func (g *group) values(of func(*Request) Num) []float64 {
	v := make([]float64, len(g.requests))
	for i, r := range g.requests {
		v[i] = math.NaN()
		if !r.Fails() {
			v[i] = float64(of(r))
		}
	}
	return v
}

// dist fills d with the distribution of a metric over the requests that have it.
func (g *group) dist(d *Dist, metric string, of func(*Request) Num) {
	v := g.values(of)
	*d = newDist(metric, sortedOf(v), nil)
	d.Source = Clock
	if m, ok := MetricByID(metric); ok && m.Counts {
		d.Source = ""
		for i, r := range g.requests {
			if v[i] == v[i] {
				d.Source = least(d.Source, r.Source)
			}
		}
	}
	for i := range d.Quantiles {
		if q := &d.Quantiles[i]; q.Supported {
			q.Interval = orderInterval(d.Values, q.Q)
		}
	}
	g.mean(d, v)
	g.repeat(d, func(rep int) Dist {
		var part []float64
		for i := range v {
			if g.repetition[i] == rep {
				part = append(part, v[i])
			}
		}
		return newDist(metric, sortedOf(part), nil)
	})
}

// mean asks for the bootstrap interval of the mean of v.
func (g *group) mean(d *Dist, v []float64) {
	num := slices.Clone(v)
	var den []float64
	for i := range num {
		if math.IsNaN(num[i]) || math.IsInf(num[i], 0) {
			if den == nil {
				den = make([]float64, len(num))
				for k := range den {
					den[k] = 1
				}
			}
			num[i], den[i] = 0, 0
		}
	}
	g.ratio(&d.MeanInterval, num, den)
}

// ratio asks for the bootstrap interval of Σ num / Σ den.
func (g *group) ratio(out *Interval, num, den []float64) {
	*out = noInterval()
	g.ratios = append(g.ratios, ratio{num, den, out})
}

// repeat fills in what three repetitions or more say; of is the distribution within one of them.
func (g *group) repeat(d *Dist, of func(repetition int) Dist) {
	d.BetweenRuns = noInterval()
	if g.repetitions < 2 {
		d.RepetitionMean = []Num{d.Mean}
		return
	}
	parts := make([]Dist, g.repetitions)
	for i := range parts {
		parts[i] = of(i)
		d.RepetitionMean = append(d.RepetitionMean, parts[i].Mean)
	}
	d.BetweenRuns = betweenRuns(d.RepetitionMean)
	for i := range d.Quantiles {
		per := make([]Num, len(parts))
		for k := range parts {
			if q := parts[k].Quantiles[i]; q.Supported {
				per[k] = q.Value
			} else {
				per[k] = Missing
			}
		}
		if t := betweenRuns(per); t.Ok() {
			d.Quantiles[i].Interval = t
		}
	}
}

// tokenDist fills d with the distribution of a metric of which every request has several values,
// with weights or without.
func (g *group) tokenDist(d *Dist, metric string, of func(*Request) (values, weights []float64)) {
	all := make([][2][]float64, len(g.requests))
	src := Source("")
	for i, r := range g.requests {
		if r.Fails() {
			continue
		}
		all[i][0], all[i][1] = of(r)
		if len(all[i][0]) > 0 {
			src = least(src, r.Source)
		}
	}
	*d = pooled(metric, all, nil)
	d.Source = Clock
	if m, ok := MetricByID(metric); ok && m.Counts {
		d.Source = src
	}
	thresholds := make([]float64, len(d.Quantiles))
	for i := range d.Quantiles {
		thresholds[i] = float64(d.Quantiles[i].Value)
	}
	clusters := make([]cluster, len(all))
	num, den := make([]float64, len(all)), make([]float64, len(all))
	for i := range all {
		clusters[i] = clusterOf(all[i][0], all[i][1], thresholds)
		den[i] = clusters[i].total
		for k, v := range all[i][0] {
			if all[i][1] != nil {
				v *= all[i][1][k]
			}
			num[i] += v
		}
	}
	for i := range d.Quantiles {
		if q := &d.Quantiles[i]; q.Supported {
			q.Interval = woodruffInterval(d, clusters, i, q.Q)
		}
	}
	g.ratio(&d.MeanInterval, num, den)
	g.repeat(d, func(rep int) Dist {
		return pooled(metric, all, func(i int) bool { return g.repetition[i] == rep })
	})
}

// gaps fills in the distributions of the gaps and of the times between tokens. Where every chunk
// held one token they are the same list, and it is sorted once.
func (g *group) gaps(icl, itl *Dist) {
	g.tokenDist(icl, "icl", iclOf)
	for _, r := range g.requests {
		v, w := itlOf(r)
		if !r.Fails() && (len(v) != len(r.ICL) || w != nil) {
			g.tokenDist(itl, "itl", itlOf)
			return
		}
	}
	*itl = *icl
	itl.Metric, itl.Source = "itl", ""
	itl.Quantiles = slices.Clone(icl.Quantiles)
	for _, r := range g.requests {
		if !r.Fails() && len(r.ICL) > 0 {
			itl.Source = least(itl.Source, r.Source)
		}
	}
	last := g.ratios[len(g.ratios)-1]
	g.ratio(&itl.MeanInterval, last.num, last.den)
}

// pooled puts the values of the requests that are wanted together; wanted nil = all.
func pooled(metric string, all [][2][]float64, wanted func(int) bool) Dist {
	n, weighted := 0, false
	for i := range all {
		n += len(all[i][0])
		weighted = weighted || all[i][1] != nil
	}
	values := make([]float64, 0, n)
	if !weighted {
		for i := range all {
			if wanted == nil || wanted(i) {
				values = append(values, all[i][0]...)
			}
		}
		sortFloats(values)
		return newDist(metric, values, nil)
	}
	type pair struct{ v, w float64 }
	pairs := make([]pair, 0, n)
	for i := range all {
		if wanted != nil && !wanted(i) {
			continue
		}
		for k, v := range all[i][0] {
			w := 1.0
			if all[i][1] != nil {
				w = all[i][1][k]
			}
			pairs = append(pairs, pair{v, w})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		switch {
		case a.v < b.v:
			return -1
		case a.v > b.v:
			return 1
		}
		return 0
	})
	weights := make([]float64, len(pairs))
	for i, p := range pairs {
		values = append(values, p.v)
		weights[i] = p.w
	}
	return newDist(metric, values, weights)
}

// finish makes the bootstrap intervals.
func (g *group) finish() { bootstrap(g.ratios, len(g.requests), g.seed) }

// sortedOf is the values that are not NaN, sorted.
func sortedOf(v []float64) []float64 {
	s := make([]float64, 0, len(v))
	for _, x := range v {
		if !math.IsNaN(x) {
			s = append(s, x)
		}
	}
	sortFloats(s)
	return s
}

// least is the lesser of two sources; empty is none yet.
func least(a, b Source) Source {
	order := func(s Source) int { return slices.Index([]Source{"", Server, Tokenizer, Estimate}, s) }
	if order(b) > order(a) {
		return b
	}
	return a
}

// itlOf are a request's gaps divided by the tokens that ended them, with those tokens as weights
// (nil: one each). A chunk without a token of its own leaves its gap to the next that has one, or
// to the last that had, so that the mean stays (cm − c1)/(N − n1).
func itlOf(r *Request) (values, weights []float64) {
	if !r.ITL.Ok() {
		return nil, nil
	}
	ones := true
	for _, a := range r.Arrivals[1:] {
		ones = ones && a.Tokens == 1
	}
	if ones {
		return r.ICL, nil
	}
	gap := 0.0
	for i, a := range r.Arrivals[1:] {
		gap += r.ICL[i]
		if a.Tokens > 0 {
			values = append(values, gap/float64(a.Tokens))
			weights = append(weights, float64(a.Tokens))
			gap = 0
		}
	}
	if n := len(values); n > 0 && gap > 0 {
		values[n-1] += gap / weights[n-1]
	}
	return values, weights
}

// iclOf are a request's gaps.
func iclOf(r *Request) (values, weights []float64) { return r.ICL, nil }
