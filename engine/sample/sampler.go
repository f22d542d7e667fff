package sample

import (
	"errors"
	"fmt"
	"math"
)

// Sampler is scratch memory for a vocabulary. It serves one call at a time.
type Sampler struct {
	x      []float32 // logits after bias, penalties, mask and temperature, minus their maximum
	weight []float32 // exp(x)
	kept   []int32   // tokens still in the choice, in the order of ids
	edge   []int32   // tokens of the bin in which a cut falls
	bins   [binCount]bin
	top    []LogProb
}

// New returns a sampler for a vocabulary of that size.
func New(vocab int) *Sampler {
	return &Sampler{x: make([]float32, vocab), weight: make([]float32, vocab), kept: make([]int32, 0, vocab), edge: make([]int32, 0, vocab)}
}

// LogProb is a token and the natural logarithm of its probability.
type LogProb struct {
	Token   int32
	LogProb float32
}

// Result is a choice. The probabilities are the model's own: the softmax of the logits as they
// came, before bias, penalties, temperature and truncation.
type Result struct {
	LogProb           // the chosen token; its LogProb is 0 where none was asked for
	Top     []LogProb // the likeliest tokens, likeliest first; valid until the next call
}

// NoLogProbs asks Sample for no probabilities, which saves two passes over the vocabulary.
const NoLogProbs = -1

// MaxTop is the largest number of likeliest tokens that Sample returns.
const MaxTop = 64

// Sample chooses the token that follows the sequence and does not append it. logits has one value
// per token of the vocabulary and is left as it is. top is the number of likeliest tokens to
// return with their log-probabilities, 0 for the chosen one's alone, or NoLogProbs.
//
// NaN counts as -Inf. It is an error where no token is left: every logit is -Inf, or the mask and
// the bias forbid all.
func (s *Sampler) Sample(q *Sequence, logits []float32, mask Mask, top int) (Result, error) {
	p := q.Pick(mask, top)
	return s.Choose(&p, logits)
}

// Choose is Sample of a choice in numbers.
func (s *Sampler) Choose(p *Pick, logits []float32) (Result, error) {
	if len(logits) != len(s.x) {
		return Result{}, fmt.Errorf("cannot sample: %d logits for a vocabulary of %d", len(logits), len(s.x))
	}
	if p.Mask != nil && len(p.Mask) != (len(s.x)+63)/64 {
		return Result{}, fmt.Errorf("cannot sample: a mask of %d words for a vocabulary of %d", len(p.Mask), len(s.x))
	}
	if p.Top > MaxTop {
		return Result{}, fmt.Errorf("cannot return the %d likeliest tokens: %d is the most", p.Top, MaxTop)
	}
	if !p.Changes() && !p.Draws() {
		best := argmax(logits)
		if best < 0 {
			return Result{}, ErrNone
		}
		r := Result{LogProb: LogProb{Token: best}}
		if p.Top >= 0 {
			s.logProbs(logits, p.Top, &r)
		}
		return r, nil
	}
	copy(s.x, logits)
	for _, b := range p.Bias {
		s.x[b.Token] += b.Bias
	}
	p.penalise(s.x)
	if p.Mask != nil {
		applyMask(s.x, p.Mask)
	}
	best := argmax(s.x)
	if best < 0 {
		return Result{}, ErrNone
	}
	var r Result
	r.Token = best
	if p.Draws() && !math.IsInf(float64(s.x[best]), 1) {
		r.Token = s.draw(p, s.x[best], p.Uniform)
	}
	if p.Top >= 0 {
		s.logProbs(logits, p.Top, &r)
	}
	return r, nil
}

// ErrNone is the error of a choice among nothing.
var ErrNone = errors.New("cannot sample: no token can follow, every one has a logit of -Inf or is forbidden")

func (p *Pick) penalise(x []float32) {
	for _, id := range p.Seen {
		if p.Repeats() {
			if x[id] > 0 {
				x[id] /= p.Repetition
			} else {
				x[id] *= p.Repetition
			}
		}
		if n := p.Count[id]; n > 0 {
			x[id] -= p.Presence + p.Frequency*float32(n)
		}
	}
}

func applyMask(x []float32, mask Mask) {
	inf := float32(math.Inf(-1))
	for w, word := range mask {
		part := x[w*64 : min(w*64+64, len(x))]
		switch word {
		case ^uint64(0):
		case 0:
			for i := range part {
				part[i] = inf
			}
		default:
			for i := range part {
				if word&(1<<i) == 0 {
					part[i] = inf
				}
			}
		}
	}
}

// argmax returns the first largest value, or -1 where all are -Inf or NaN.
func argmax(x []float32) int32 {
	best, at := float32(math.Inf(-1)), int32(-1)
	for i, v := range x {
		if v > best {
			best, at = v, int32(i)
		}
	}
	return at
}

// draw takes one of the tokens that truncation keeps, with u from [0, 1).
func (s *Sampler) draw(p *Pick, largest float32, u float64) int32 {
	scale := 1 / p.Temperature
	floor := float32(math.Inf(-1))
	if p.MinP > 0 {
		floor = float32(math.Log(float64(p.MinP)))
	}
	s.kept = s.kept[:0]
	total := 0.0
	if p.TopK > 0 && p.TopK <= heapMost && p.TopK < len(s.x) {
		total = s.selectFew(p.TopK, largest, scale)
		return s.pick(p, floor, total, u)
	}
	// A minimum probability can be applied first, since it compares with the largest alone, unless
	// top-p measures the mass of what it would remove.
	early := p.TopP == 0 || p.TopP == 1
	for i, v := range s.x {
		v = (v - largest) * scale
		s.x[i] = v
		if !(v > underflow) || (early && v < floor) {
			continue
		}
		w := exp(v)
		s.weight[i] = w
		total += float64(w)
		s.kept = append(s.kept, int32(i))
	}
	if p.TopK > 0 && p.TopK < len(s.kept) {
		total = s.cut(p.TopK, math.Inf(1))
	}
	return s.pick(p, floor, total, u)
}

// pick applies top-p and min-p to s.kept, whose weights sum to total, and draws.
func (s *Sampler) pick(p *Pick, floor float32, total, u float64) int32 {
	if p.TopP > 0 && p.TopP < 1 {
		total = s.cut(len(s.kept), float64(p.TopP)*total)
	}
	if p.MinP > 0 {
		n := 0
		total = 0
		for _, id := range s.kept {
			if s.x[id] >= floor {
				s.kept[n] = id
				n++
				total += float64(s.weight[id])
			}
		}
		s.kept = s.kept[:n]
	}
	target, sum := u*total, 0.0
	for _, id := range s.kept {
		if sum += float64(s.weight[id]); sum > target {
			return id
		}
	}
	return s.kept[len(s.kept)-1] // u·total met the rounding of the sum
}

func (s *Sampler) logProbs(logits []float32, n int, r *Result) {
	best := argmax(logits)
	if best < 0 { // bias lifted a token over logits that are all -Inf
		r.LogProb.LogProb = float32(math.Inf(-1))
		return
	}
	largest, sum := logits[best], 0.0
	s.top = s.top[:0]
	for i, v := range logits {
		if d := v - largest; d > underflow {
			sum += float64(exp(d))
		}
		if n > 0 && (len(s.top) < n || v > s.top[n-1].LogProb) && v == v {
			s.insert(LogProb{int32(i), v}, n)
		}
	}
	norm := float64(largest) + math.Log(sum)
	r.LogProb.LogProb = float32(float64(logits[r.Token]) - norm)
	for i := range s.top {
		s.top[i].LogProb = float32(float64(s.top[i].LogProb) - norm)
	}
	r.Top = s.top
}

// insert keeps s.top the n largest, largest first; an equal one stays behind those before it.
func (s *Sampler) insert(l LogProb, n int) {
	if len(s.top) < n {
		s.top = append(s.top, l)
	}
	i := len(s.top) - 1
	for ; i > 0 && s.top[i-1].LogProb < l.LogProb; i-- {
		s.top[i] = s.top[i-1]
	}
	s.top[i] = l
}

// coldest is the temperature up to which sampling is greedy: below, dividing logits by it
// overflows.
const coldest = 1e-6
