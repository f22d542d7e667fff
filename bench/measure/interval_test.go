package measure

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSpecial(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"t, df 1", studentQuantile(0.975, 1), 12.7062047362},
		{"t, df 2", studentQuantile(0.975, 2), 4.3026527297},
		{"t, df 4", studentQuantile(0.975, 4), 2.7764451052},
		{"t, df 30", studentQuantile(0.975, 30), 2.0422724563},
		{"t, df 10000", studentQuantile(0.975, 10000), 1.9602012399},
		{"normal", normalQuantile(0.975), 1.9599639845},
		{"normal, lower", normalQuantile(0.025), -1.9599639845},
		{"normal CDF", normalCDF(1), 0.8413447461},
		{"binomial", binomialCDF(1, 10, 0.5), 11.0 / 1024},
		{"binomial, n large", binomialCDF(500000, 1000000, 0.5), 0.5003989421},
		{"beta", betaInc(2, 3, 0.4), 0.5248},
	} {
		if math.Abs(c.got-c.want) > 1e-8*max(1, math.Abs(c.want)) {
			t.Errorf("%s = %.10f, want %.10f", c.name, c.got, c.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	failing := make([]float64, 101) // 0 … 55, then +∞
	for i := range failing {
		failing[i] = float64(i)
		if i > 55 {
			failing[i] = inf
		}
	}
	for _, c := range []struct {
		values  []float64
		weights []float64
		q, want float64
	}{
		{[]float64{1, 2, 3, 4}, nil, 0.5, 2.5},
		{[]float64{1, 2, 3, 4, 5}, nil, 0.9, 4.6},
		{[]float64{7}, nil, 0.99, 7},
		{[]float64{1, 2, 3, inf}, nil, 0.5, 2.5},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, inf}, nil, 0.9, 10}, // place 9 exactly: +∞ is not met
		{failing, nil, 0.55, 55},                                      // 100 · 0.55 = 55.00000000000001 in binary
		{[]float64{1, 2, 3, inf}, nil, 0.9, inf},
		{[]float64{1, inf, inf, inf}, nil, 0.9, inf},
		{[]float64{1, 5}, []float64{3, 1}, 0.5, 1},         // 1 1 1 5
		{[]float64{1, 5}, []float64{1, 1}, 0.5, 3},         // 1 5
		{[]float64{1, 5}, []float64{2, 2}, 0.5, 3},         // 1 1 5 5
		{[]float64{1, 2, 9}, []float64{1, 3, 1}, 0.9, 6.2}, // 1 2 2 2 9
	} {
		d := newDist("ttft", c.values, c.weights)
		if got := weightedQuantile(d.Values, d.cum, c.q); got != c.want && !near(got, c.want) {
			t.Errorf("q%v of %v × %v = %v, want %v", c.q, c.values, c.weights, got, c.want)
		}
	}
}

// Below 1/(1 − q) observations the greatest value stands in the place of the percentile.
func TestSupport(t *testing.T) {
	for _, c := range []struct {
		n    int
		q    float64
		want bool
	}{{9, 0.9, false}, {10, 0.9, true}, {19, 0.95, false}, {20, 0.95, true}, {99, 0.99, false}, {100, 0.99, true}, {999, 0.999, false}, {1000, 0.999, true}, {20, 0.05, true}, {19, 0.05, false}} {
		v := make([]float64, c.n)
		for i := range v {
			v[i] = float64(i)
		}
		d := newDist("ttft", v, nil)
		got := d.Q(c.q)
		if got.Supported != c.want {
			t.Errorf("p%v of %d supported: %v", 100*c.q, c.n, got.Supported)
		}
		if !c.want && c.q > 0.5 && got.Value != d.Max {
			t.Errorf("p%v of %d: %v, want the greatest", 100*c.q, c.n, got.Value)
		}
	}
}

func TestOrderInterval(t *testing.T) {
	v := make([]float64, 10)
	for i := range v {
		v[i] = float64(i + 1)
	}
	if i := orderInterval(v, 0.5); i.Lo != 2 || i.Hi != 9 {
		t.Errorf("median of ten: %+v, want ranks 2 and 9", i)
	}
	if i := orderInterval(v[:6], 0.5); i.Lo != 1 || i.Hi != 6 {
		t.Errorf("median of six: %+v, want ranks 1 and 6", i)
	}
	if i := orderInterval(v[:5], 0.5); i.Ok() {
		t.Errorf("median of five: %+v, want none", i)
	}
	if i := orderInterval(v, 0.99); i.Ok() {
		t.Errorf("p99 of ten: %+v, want none", i)
	}
}

// covered tells how often intervals of samples hold the truth.
func covered(trials int, trial func(r *rand.Rand) (Interval, float64)) float64 {
	r := rand.New(rand.NewPCG(11, 12))
	hits := 0
	for range trials {
		if i, truth := trial(r); float64(i.Lo) <= truth && truth <= float64(i.Hi) {
			hits++
		}
	}
	return float64(hits) / float64(trials)
}

// Intervals at 95 % hold the truth about that often, and those that ignore clusters do not.
func TestCoverage(t *testing.T) {
	lognormal := func(r *rand.Rand) float64 { return math.Exp(r.NormFloat64()) }
	sample := func(r *rand.Rand, n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = lognormal(r)
		}
		slices.Sort(v)
		return v
	}
	clustered := func(r *rand.Rand) ([][2][]float64, []cluster, Dist) {
		all := make([][2][]float64, 40)
		for i := range all {
			level := r.NormFloat64()
			for range 20 + r.IntN(60) {
				all[i][0] = append(all[i][0], level+0.3*r.NormFloat64())
			}
		}
		d := pooled("icl", all, nil)
		clusters := make([]cluster, len(all))
		for i := range all {
			clusters[i] = clusterOf(all[i][0], nil, []float64{float64(d.Q(0.5).Value)})
		}
		return all, clusters, d
	}
	for _, c := range []struct {
		name     string
		trials   int
		lo, hi   float64
		interval func(r *rand.Rand) (Interval, float64)
	}{
		{"median by order statistics", 1000, 0.935, 0.98, func(r *rand.Rand) (Interval, float64) { return orderInterval(sample(r, 100), 0.5), 1 }},
		{"p90 by order statistics", 1000, 0.935, 0.985, func(r *rand.Rand) (Interval, float64) {
			return orderInterval(sample(r, 200), 0.9), math.Exp(1.2815515655)
		}},
		{"mean by BCa", 400, 0.89, 0.975, func(r *rand.Rand) (Interval, float64) {
			x := ratio{num: make([]float64, 60), out: new(Interval)}
			for i := range x.num {
				x.num[i] = r.ExpFloat64()
			}
			bootstrap([]ratio{x}, 60, r.Uint64())
			return *x.out, 1
		}},
		{"ratio by BCa", 400, 0.89, 0.975, func(r *rand.Rand) (Interval, float64) {
			x := ratio{num: make([]float64, 60), den: make([]float64, 60), out: new(Interval)}
			for i := range x.num {
				x.den[i] = float64(1 + r.IntN(20))
				x.num[i] = x.den[i] * 2 * r.Float64()
			}
			bootstrap([]ratio{x}, 60, r.Uint64())
			return *x.out, 1
		}},
		{"between five repetitions", 2000, 0.935, 0.965, func(r *rand.Rand) (Interval, float64) {
			v := make([]Num, 5)
			for i := range v {
				v[i] = Num(10 + r.NormFloat64())
			}
			return betweenRuns(v), 10
		}},
		{"median of tokens, clustered", 400, 0.92, 0.98, func(r *rand.Rand) (Interval, float64) {
			_, clusters, d := clustered(r)
			return woodruffInterval(&d, clusters, 0, 0.5), 0
		}},
		{"median of tokens as if independent", 100, 0, 0.6, func(r *rand.Rand) (Interval, float64) {
			_, _, d := clustered(r)
			return orderInterval(d.Values, 0.5), 0
		}},
	} {
		if got := covered(c.trials, c.interval); got < c.lo || got > c.hi {
			t.Errorf("%s: holds the truth in %.1f %%, want %.1f to %.1f %%", c.name, 100*got, 100*c.lo, 100*c.hi)
		}
	}
}

func TestFewClusters(t *testing.T) {
	clusters := make([]cluster, 7)
	for i := range clusters {
		clusters[i] = clusterOf([]float64{1, 2, 3}, nil, []float64{2})
	}
	d := newDist("icl", []float64{1, 2, 3}, nil)
	if i := woodruffInterval(&d, clusters, 0, 0.5); i.Ok() {
		t.Errorf("interval of seven requests: %+v", i)
	}
	if i := betweenRuns([]Num{1, 2}); i.Ok() {
		t.Errorf("interval of two repetitions: %+v", i)
	}
	if i := betweenRuns([]Num{1, 2, 3, 4, 5}); i.Method != "Student t, df 4" || !near(float64(i.Hi), 3+2.7764451052*math.Sqrt(0.5)) {
		t.Errorf("interval of 1 … 5: %+v", i)
	}
}

func TestSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, draw := range []func() float64{
		func() float64 { return float64(r.IntN(4e9)) / 1e9 },
		func() float64 { return float64(r.IntN(40)) / 1e9 },
		func() float64 { return r.NormFloat64() * 1e6 },
		func() float64 { return math.Inf(1 - 2*r.IntN(2)) },
		func() float64 { return math.Copysign(0, float64(r.IntN(2))-0.5) },
	} {
		v := make([]float64, 5000)
		for i := range v {
			v[i] = draw()
		}
		want := slices.Clone(v)
		slices.Sort(want)
		sortFloats(v)
		if !slices.Equal(v, want) {
			t.Error("not sorted alike")
		}
	}
}
