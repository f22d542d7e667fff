package cpu

import (
	"math"

	"velo/engine/ops"
)

// convolve is the task of one segment and one run of channels a piece.
type convolve struct {
	batch *ops.Batch
	x     view
	w     vector
	cache *cache
	layer int
	size  int // channels a piece
}

// Convolve applies the causal depthwise convolution, then SiLU.
func (b *Backend) Convolve(x ops.Tensor, w ops.Vector, c ops.Cache, layer int) {
	t := &b.convolve
	*t = convolve{batch: b.batch, x: of(x), w: w.(vector), cache: c.(*cache), layer: layer}
	cols := t.cache.shape.ConvCols
	t.size = max(64, (cols/(4*b.workers.n)+15)&^15)
	b.workers.run(t, len(b.batch.Segments)*((cols+t.size-1)/t.size))
}

func (t *convolve) do(piece, _ int) {
	cols, taps := t.cache.shape.ConvCols, t.cache.shape.ConvKernel
	pieces := (cols + t.size - 1) / t.size
	s := &t.batch.Segments[piece/pieces]
	from := piece % pieces * t.size
	to := min(from+t.size, cols)
	state := t.cache.conv(s.State, t.layer)
	for row := s.Row; row < s.Row+s.Rows; row++ {
		x := t.x.row(row)
		for c := from; c < to; c++ {
			w := t.w[c*taps : (c+1)*taps]
			in := x[c]
			sum := float32(0)
			for j := range taps - 1 {
				sum += w[j] * state[j*cols+c]
				if j > 0 {
					state[(j-1)*cols+c] = state[j*cols+c]
				}
			}
			if taps > 1 {
				state[(taps-2)*cols+c] = in
			}
			sum += w[taps-1] * in
			x[c] = sum * sigmoid(sum)
		}
	}
}

// deltaRule is the task of one value head of one segment a piece. Rows pass
// in order, in prefill too: on a processor the state of a head stays in the
// cache, and the result is the same bits as that of single steps.
type deltaRule struct {
	b     *Backend
	dst   view
	q, k  view
	v     view
	a, gb view
	alog  vector
	bias  vector
	cache *cache
	layer int
	tiled bool
}

// DeltaRule moves the state on by each row and sets dst to what q reads.
func (b *Backend) DeltaRule(dst ops.Tensor, in *ops.Delta, c ops.Cache, layer int) {
	b.delta = deltaRule{b: b, dst: of(dst), q: of(in.Q), k: of(in.K), v: of(in.V), a: of(in.A), gb: of(in.B),
		alog: in.ALog.(vector), bias: in.Bias.(vector), cache: c.(*cache), layer: layer, tiled: in.Tiled}
	b.workers.run(&b.delta, len(b.batch.Segments)*in.V.Heads)
}

// lengthEps is added to the squared length that q and k are divided by.
const lengthEps = 1e-6

func (t *deltaRule) do(piece, worker int) {
	heads := t.v.heads
	s := &t.b.batch.Segments[piece/heads]
	head := piece % heads
	keyHead := head / (heads / t.k.heads)
	if t.tiled {
		keyHead = head % t.k.heads
	}
	shape := &t.cache.shape
	dk, dv := shape.KeyDim, shape.ValueDim
	state := t.cache.matrix(s.State, t.layer, head)
	c := &t.b.scratch[worker]
	c.head = grow(c.head, 2*dk+dv)
	q, k, delta := c.head[:dk], c.head[dk:2*dk], c.head[2*dk:2*dk+dv]
	rate := -exp(t.alog[head])
	for row := s.Row; row < s.Row+s.Rows; row++ {
		unit(q, t.q.head(row, keyHead), 1/math.Sqrt(float64(dk)))
		unit(k, t.k.head(row, keyHead), 1)
		factor := exp(rate * softplus(gate(t.a, row, head)+t.bias[head]))
		beta := sigmoid(gate(t.gb, row, head))
		clear(delta)
		t.b.k.decay(&state[0], &k[0], factor, dk, dv, &delta[0])
		for i, x := range t.v.head(row, head) {
			delta[i] = beta * (x - delta[i])
		}
		out := t.dst.head(row, head)
		clear(out)
		t.b.k.learn(&state[0], &k[0], &delta[0], &q[0], dk, dv, &out[0])
	}
}

func gate(v view, row, head int) float32 { return v.data[row*v.cols+v.offset+head] }

// unit sets dst to x·scale/√(Σx²+lengthEps).
func unit(dst, x []float32, scale float64) {
	sum := float32(0)
	for _, v := range x {
		sum += v * v
	}
	f := float32(scale / math.Sqrt(float64(sum+lengthEps)))
	for i, v := range x {
		dst[i] = v * f
	}
}

// softplus is ln(1+eˣ), x itself above 20, as PyTorch has it.
func softplus(x float32) float32 {
	if x > 20 {
		return x
	}
	return float32(math.Log1p(math.Exp(float64(x))))
}
