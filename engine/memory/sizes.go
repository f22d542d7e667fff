package memory

import (
	"errors"
	"fmt"
	"math"

	"velo/engine/backend"
	"velo/engine/ops"
	"velo/engine/weights"
)

// Sizes are what a plan is made for. Zero members get the defaults of serving.
type Sizes struct {
	Backend string // backend.CPU or backend.CUDA; "" is reckoned as the processor
	Exact   bool   // float32 arithmetic for every weight, on the processor
	KV      string // how keys and values are stored, as backend.Options has it

	Context         int   // tokens of one request; 0 = 4096 or the model's own, if less
	Lanes           int   // answers written at a time; 0 = 8
	Tokens          int   // tokens remembered of all together; 0 = Lanes × Context
	Checkpoints     int   // recurrent states beside the lanes' own, of a hybrid model
	CheckpointBytes int64 // the same as so many bytes of them, 4 a lane at most; Checkpoints goes before it
	Rows            int   // most rows of a step; 0 = 512
	Outputs         int   // most rows of a step whose logits are wanted; 0 = 16, and at least Lanes

	Shared    bool  // a GPU's memory is the machine's: page-locked memory counts too
	Available int64 // bytes that may be used, as backend.Place.Room tells them; 0 = not known
}

// The defaults of serving, and how many checkpoints a lane may have where their bytes are given.
const (
	usualContext = 4096
	usualLanes   = 8
	usualRows    = 512
	leastOutputs = 16
	mostPerLane  = 4
)

// settle fills in what was left open for a model whose recurrent state has so many bytes, 0 for none.
// changed says, a sentence each, what is not as it was asked for.
func (z *Sizes) settle(c *weights.Config, state int64) (changed []string, err error) {
	change := func(format string, a ...any) { changed = append(changed, fmt.Sprintf(format, a...)) }
	most := c.MaxPosition
	switch {
	case z.Context < 0 || z.Lanes < 0 || z.Tokens < 0:
		return nil, errors.New("cannot size the engine: a context, lanes and tokens below 0 mean nothing")
	case z.Context == 0:
		z.Context = usualContext
		if most > 0 && most < z.Context {
			z.Context = most
			change("a request has %d tokens at most instead of %d: the model was made for no more", most, usualContext)
		}
	case most > 0 && z.Context > most:
		return nil, fmt.Errorf("cannot give a request %d tokens: the model was made for %d at most", z.Context, most)
	}
	if z.Lanes == 0 {
		z.Lanes = usualLanes
	}
	if z.Tokens == 0 {
		z.Tokens = times(z.Lanes, z.Context)
	}
	if z.Tokens < z.Context {
		change("%d tokens are remembered instead of %d: one request may have so many", z.Context, z.Tokens)
		z.Tokens = z.Context
	}
	if z.Rows <= 0 {
		z.Rows = usualRows
	}
	if z.Rows < z.Lanes {
		change("a step has %d rows instead of %d: one for each lane", z.Lanes, z.Rows)
		z.Rows = z.Lanes
	}
	z.Outputs = max(z.Outputs, leastOutputs, z.Lanes)
	switch asked := times(mostPerLane, z.Lanes); {
	case state == 0:
		if z.Checkpoints > 0 {
			change("no checkpoints are kept: the model has no recurrent states")
		}
		z.Checkpoints = 0
	case z.Checkpoints > 0:
	default:
		z.Checkpoints = int(min(max(0, z.CheckpointBytes)/state, int64(asked)))
		if z.CheckpointBytes > 0 && z.Checkpoints < asked {
			change("of %d checkpoints %d are kept: %s hold no more", asked, z.Checkpoints, bytes(z.CheckpointBytes))
		}
	}
	z.CheckpointBytes = 0 // they are counted now
	return changed, nil
}

// backend are the options that decide how a backend stores weights, keys and values.
func (z *Sizes) backend() backend.Options {
	return backend.Options{Name: z.Backend, Exact: z.Exact, KV: z.KV}
}

// pages is how many a model of these sizes is made with: every sequence may leave its last one partly
// empty.
func (z *Sizes) pages() int {
	return (z.Tokens-1)/ops.PageTokens + 1 + z.Lanes + z.Checkpoints
}

// times multiplies sizes that a user gave and stops at the largest int32.
func times(a, b int) int {
	if a > 0 && b > math.MaxInt32/a {
		return math.MaxInt32
	}
	return a * b
}
