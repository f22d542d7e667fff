package memory

import (
	"math"

	"velo/engine/backend"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/weights"
)

// Plan is what a model takes, in bytes. On a GPU it is all that will be taken, while the model is made:
// a step takes nothing. On the processor all but the scratch is what will be taken to the byte.
type Plan struct {
	Sizes   Sizes      // with what was left open filled in
	KV      ops.KVType // how keys and values are stored
	Changed []string   // what is not as it was asked for, a sentence without a full stop each

	Weights     int64       // as the backend holds them
	Pages       int64       // keys and values
	States      int64       // recurrent states of the lanes
	Checkpoints int64       // recurrent states of the prefix cache
	Scratch     int64       // activations and logits of a step; what the processor adds to them is not in it (estimate)
	Choice      int64       // what choosing tokens needs where the backend does it, about 1 MB a row of logits on a GPU
	Own         backend.Own // of a GPU: kernels' scratch, operands, what goes to the host and comes from there
	Total       int64
}

// Asked is what the model asks the backend for.
func (p *Plan) Asked() int64 {
	return sum(p.Weights, p.Pages, p.States, p.Checkpoints, p.Scratch, p.Choice)
}

// Reckon plans the memory of a model. The error says which size makes no sense; whether the plan fits
// is up to [Plan.Check]. Numbers that no machine could hold are capped at the largest int64.
func Reckon(w *weights.Model, z Sizes) (Plan, error) {
	return reckon(&w.Config, backend.WeightBytes(z.backend(), w), z)
}

// reckon is Reckon for weights of so many bytes.
func reckon(c *weights.Config, weightBytes int64, z Sizes) (Plan, error) {
	shape := model.Shape(c)
	changed, err := z.settle(c, shape.StateBytes())
	if err != nil {
		return Plan{}, err
	}
	if shape.KV, err = backend.KVType(z.backend()); err != nil {
		return Plan{}, err
	}
	row, output := model.Activations(c)
	p := Plan{Sizes: z, KV: shape.KV, Changed: changed, Weights: weightBytes}
	p.Pages = product(int64(z.pages()), shape.PageBytes())
	p.States = product(int64(z.Lanes), shape.StateBytes())
	p.Checkpoints = product(int64(z.Checkpoints), shape.StateBytes())
	p.Scratch = sum(product(int64(z.Rows), row), product(int64(min(z.Outputs, z.Rows)), output))
	p.Choice = backend.ChoiceBytes(z.backend(), c.Vocab, min(z.Outputs, z.Rows))
	longest := shape
	longest.Longest = z.Context
	p.Own = backend.OwnBytes(z.backend(), &backend.Needs{Rows: z.Rows, Outputs: min(z.Outputs, z.Rows), Sequences: z.Lanes + z.Checkpoints,
		Pages: z.pages(), Cols: model.Widest(c), Vocab: c.Vocab, Shape: longest})
	p.Total = sum(p.Asked(), p.Own.Device, p.Own.Loading)
	if z.Shared {
		p.Total = sum(p.Total, p.Own.Pinned, p.Own.Loading)
	}
	return p, nil
}

// product multiplies numbers ≥ 0 and stops at the largest int64.
func product(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// sum adds numbers ≥ 0 and stops at the largest int64.
func sum(terms ...int64) (s int64) {
	for _, t := range terms {
		if s > math.MaxInt64-t {
			return math.MaxInt64
		}
		s += t
	}
	return s
}
