package measure

import (
	"math"
	"time"
)

// lag is how far behind the newest event a running line is left open, for the chunks of other
// streams that are still on their way here.
const lag = time.Second

// liveLine is a line that grows while a session runs. It is swept three times over: frozen has come
// to where nothing can change any more, as every request up to there has ended; ahead has come to a
// second ago, with the counts as they are known; the rest is swept anew for each snapshot. When a
// request begins or ends, ahead starts over from frozen. So a snapshot costs the same however long
// the session has run.
type liveLine struct {
	line     *line
	finished periods
	frozen   track
	ahead    track
	dirty    bool
	until    time.Duration // to where frozen has come
}

// track is how far a sweep has come and what it has seen.
type track struct {
	sweep sweep
	thin  thinner
	rates *rateBins // nil: not wanted
}

func newLiveLine(w time.Duration, points int, rates bool) *liveLine {
	l := &liveLine{line: newLine(w, 0, mostCells/4), until: -farthest}
	l.frozen.thin = newThinner(points)
	l.ahead.thin = newThinner(points)
	if rates {
		l.frozen.rates, l.ahead.rates = newRateBins(), newRateBins()
	}
	return l
}

// copyFrom makes t a copy of o in t's own memory.
func (t *track) copyFrom(o *track) {
	t.sweep = o.sweep
	t.thin.copyFrom(&o.thin)
	if o.rates != nil && t.rates != nil {
		t.rates.copyFrom(o.rates)
	}
}

func (t *track) walk(l *line, ps periods, until int) {
	t.sweep.walk(l, ps, until, func(p RollingSample, sample bool) {
		t.thin.add(p)
		if sample && t.rates != nil {
			t.rates.add(p.Rate, 1)
		}
	})
}

// add counts tokens that arrived at a time, or takes them back. What comes later than lag allows makes
// ahead start over, which would otherwise let go of tokens that it never took in.
func (l *liveLine) add(at time.Duration, tokens int) {
	l.line.add(at, tokens)
	if known(at) && bucketOf(at, l.line.step) < l.ahead.sweep.cell {
		l.dirty = true
	}
}

// finish takes the decoding of a request that has ended.
func (l *liveLine) finish(p period) {
	l.dirty = true
	if p = l.later(p); p.to >= p.from {
		l.finished.add(p)
	}
}

// later cuts off what of a period lies before the end of what is frozen: it comes too late for that.
func (l *liveLine) later(p period) period {
	if p.from <= l.until {
		p.from, p.open = l.until+1, 0
	}
	return p
}

// advance brings frozen up to the time before which every request has ended, and forgets what it
// no longer needs.
func (l *liveLine) advance(settled time.Duration) {
	k := bucketOf(settled, l.line.step) - 1
	if !l.frozen.sweep.begun && len(l.finished) == 0 || k < l.frozen.sweep.cell && l.frozen.sweep.begun {
		return
	}
	l.frozen.walk(l.line, l.finished, k)
	l.until = max(l.until, time.Duration(k+1)*l.line.step)
	if l.ahead.sweep.cell < l.frozen.sweep.cell {
		l.dirty = true
	}
}

// forget drops the cells and periods that lie behind frozen's window.
func (l *liveLine) forget() {
	l.line.trim(l.frozen.sweep.cell)
	d := l.frozen.sweep.tail.next - 1
	if d < 256 {
		return
	}
	l.finished = l.finished[:copy(l.finished, l.finished[d:])]
	for _, t := range []*track{&l.frozen, &l.ahead} {
		t.sweep.head.next -= d
		t.sweep.tail.next -= d
		t.sweep.entered -= d
	}
}

// snapshot sweeps the line up to now into t. running are the first chunks of the streams that are
// decoding; newest is the time of the newest event, settled that before which every request has
// ended.
func (l *liveLine) snapshot(t *track, running []period, settled, newest, now time.Duration) {
	l.advance(min(settled, newest-lag))
	if l.dirty {
		l.ahead.copyFrom(&l.frozen)
		l.dirty = false
	}
	l.forget()
	ps := append(make(periods, 0, len(l.finished)+len(running)), l.finished...)
	for _, p := range running {
		p.to = farthest
		ps.add(l.later(p))
	}
	l.ahead.walk(l.line, ps, bucketOf(newest-lag, l.line.step)-1)
	t.copyFrom(&l.ahead)
	t.walk(l.line, ps, bucketOf(now, l.line.step)-1+wholeCell(now, l.line.step))
}

// wholeCell is 1 where a cell ends at t, and so is complete.
func wholeCell(t, step time.Duration) int {
	if t%step == 0 {
		return 1
	}
	return 0
}

// rateBins counts rates in bins of 0.2 %, so that their median is known to 0.1 % at any time without
// all of them being kept.
type rateBins struct {
	counts []int32
	n      int
	zeros  int
	least  float64
	most   float64
}

const (
	binsPerOctave = 512
	lowestOctave  = -10 // 2^−10 tok/s and below count as the lowest bin
	octaves       = 44
)

func newRateBins() *rateBins {
	return &rateBins{counts: make([]int32, binsPerOctave*octaves), least: math.Inf(1), most: math.Inf(-1)}
}

func (b *rateBins) copyFrom(o *rateBins) {
	copy(b.counts, o.counts)
	b.n, b.zeros, b.least, b.most = o.n, o.zeros, o.least, o.most
}

func (b *rateBins) add(rate float64, d int32) {
	b.n += int(d)
	b.least, b.most = min(b.least, rate), max(b.most, rate)
	if rate <= 0 {
		b.zeros += int(d)
		return
	}
	b.counts[min(max(binOf(rate), 0), len(b.counts)-1)] += d
}

// binOf is the bin of a rate above 0; below 0 or beyond the last one where it has none of its own.
func binOf(rate float64) int {
	fraction, exponent := math.Frexp(rate) // rate = fraction · 2^exponent, fraction in [½, 1)
	return (exponent-1-lowestOctave)*binsPerOctave + int((2*fraction-1)*binsPerOctave)
}

// median is the middle of the bin in which the middle rate lies.
func (b *rateBins) median() Num {
	if b.n == 0 {
		return Missing
	}
	seen := b.zeros
	if 2*seen >= b.n {
		return 0
	}
	for i, c := range b.counts {
		if seen += int(c); 2*seen >= b.n {
			low := math.Ldexp(1+float64(i%binsPerOctave)/binsPerOctave, i/binsPerOctave+lowestOctave)
			mid := low * (1 + 0.5/binsPerOctave)
			return Num(min(max(mid, b.least), b.most))
		}
	}
	return Missing
}
