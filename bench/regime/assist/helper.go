// Package assist lets a second model tell kinds of prose apart that have no marks of their own: a story, an
// argument, plain information. It goes on from what package regime found. Code, mathematics, structured text
// and reasoning stay as they are; only the prose of the answer is cut into blocks and sent, numbered and
// without a word about where it comes from.
//
// The work is bounded: by the number of blocks, of calls at once, of attempts and by a time limit a call.
// Nothing is kept of an analysis that fails; what was there before still holds.
package assist

import (
	"context"
	"fmt"
	"sync"
	"time"

	"velo/bench/client"
	"velo/bench/regime"
)

// Bounds of an analysis.
const (
	blockSize      = 300  // bytes of a block, about
	fineSize       = 50   // bytes of a block at a change of regime
	blocksPerCall  = 40   // in the first round
	finePerCall    = 48   // in the second
	maxBlocks      = 4000 // in the first round
	maxSites       = 96   // changes that are looked at again; further ones stay where the blocks meet
	attempts       = 3
	defaultTimeout = 600 * time.Second
	defaultCalls   = 4
	maxCalls       = 32
	longestPause   = time.Minute // however long a server asks to be left alone
)

// Options say how to ask.
type Options struct {
	Model    string        // of the helper
	Parallel int           // calls at once, 1 to 32; 0 = 4
	Timeout  time.Duration // of a call; 0 = 600 s
	// Progress is told how many calls are done, out of how many. The second round is known only after the
	// first, so the number may grow once. It is called by one goroutine at a time.
	Progress func(done, total int)
}

// Provenance is who decided on a regime.
type Provenance string

const (
	Free     Provenance = "free"     // a Classifier: no model was asked
	Assisted Provenance = "assisted" // the helper model
)

// Segment is a span and who decided on it.
type Segment struct {
	regime.Span
	By Provenance
}

// Refine asks the helper model at an endpoint about the prose among the spans, which are those of a
// Classifier that was pushed text. The segments are in order, cover what the spans cover, and neighbours
// differ. An error says which call failed and why; if ctx ended, it is that of ctx.
func Refine(ctx context.Context, c *client.Client, o Options, text string, spans []regime.Span) ([]Segment, error) {
	if n := len(spans); n > 0 && spans[n-1].To != len(text) {
		return nil, fmt.Errorf("cannot analyse the text: the spans end at byte %d, the text at %d", spans[n-1].To, len(text))
	}
	if o.Parallel < 0 || o.Parallel > maxCalls {
		return nil, fmt.Errorf("cannot analyse the text with %d calls at once: use 1 to %d", o.Parallel, maxCalls)
	}
	if o.Parallel == 0 {
		o.Parallel = defaultCalls
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	a := &analysis{client: c, options: o, text: text, pause: pause}
	return a.run(ctx, spans)
}

// analysis is one call of Refine.
type analysis struct {
	client  *client.Client
	options Options
	text    string
	pause   func(context.Context, time.Duration) error

	mu          sync.Mutex
	done, total int
	plain       bool // the server refuses a schema
}

// block is a piece of text and, once it is known, its regime.
type block struct {
	from, to int
	regime   regime.Regime
	locked   bool // not prose, or not to be asked about
}

func (a *analysis) run(ctx context.Context, spans []regime.Span) ([]Segment, error) {
	blocks := split(a.text, spans)
	var asked []*block
	for i := range blocks {
		if !blocks[i].locked {
			asked = append(asked, &blocks[i])
		}
	}
	if len(asked) > maxBlocks {
		return nil, fmt.Errorf("cannot analyse the text: its prose makes %d blocks, more than %d; analyse a shorter part of it", len(asked), maxBlocks)
	}
	if err := a.round(ctx, asked, blocksPerCall); err != nil {
		return nil, err
	}
	blocks = refine(a.text, blocks)
	asked = asked[:0]
	for i := range blocks {
		if blocks[i].regime == undecided {
			asked = append(asked, &blocks[i])
		}
	}
	if err := a.round(ctx, asked, finePerCall); err != nil {
		return nil, err
	}
	var segments []Segment
	for _, b := range blocks {
		by := Assisted
		if b.locked {
			by = Free
		}
		if n := len(segments); n > 0 && segments[n-1].Regime == b.regime && segments[n-1].By == by {
			segments[n-1].To = b.to
			continue
		}
		segments = append(segments, Segment{regime.Span{From: b.from, To: b.to, Regime: b.regime}, by})
	}
	return segments, nil
}

// round asks about blocks, so many a call and so many calls at once. The first failure ends all calls.
func (a *analysis) round(ctx context.Context, blocks []*block, perCall int) error {
	a.mu.Lock()
	a.total += (len(blocks) + perCall - 1) / perCall
	a.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	free := make(chan struct{}, a.options.Parallel)
	var calls sync.WaitGroup
	for len(blocks) > 0 && ctx.Err() == nil {
		n := min(perCall, len(blocks))
		part := blocks[:n]
		blocks = blocks[n:]
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		calls.Go(func() {
			defer func() { <-free }()
			if err := a.ask(ctx, part); err != nil {
				cancel(err)
				return
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.done++
			if a.options.Progress != nil {
				a.options.Progress(a.done, a.total)
			}
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

// pause waits, or returns early with the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
