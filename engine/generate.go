package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/quantize"
	"velo/engine/sample"
)

// The ways an answer ends.
const (
	Stopped   = "stop"      // the model ended it
	Length    = "length"    // the limit, or the context, was reached
	Cancelled = "cancelled" // the context.Context ended
)

// Answer is what Generate did, and when.
type Answer struct {
	Prompt, Generated int // tokens; the one that ended the answer is counted
	Finish            string
	// Begin is when prefill began, First when the first token was chosen, Last when the last was.
	Begin, First, Last time.Time
}

// Prefill is the rate at which the prompt was read, tokens/s, its first answer token included in
// the time.
func (a Answer) Prefill() float64 { return float64(a.Prompt) / a.First.Sub(a.Begin).Seconds() }

// Decode is the rate of the tokens after the first, tokens/s: NaN for an answer of one.
func (a Answer) Decode() float64 {
	return float64(a.Generated-1) / a.Last.Sub(a.First).Seconds()
}

// Generate answers one prompt, alone, with up to most tokens (0: as many as the context has room
// for), and calls emit with the text of each as it becomes certain. What ends the answer is not
// part of its text. The tokens are those that a scheduler would choose for the same request.
func (e *Engine) Generate(ctx context.Context, prompt []int32, p sample.Params, most int, ignoreEOS bool, emit func(text string)) (a Answer, err error) {
	defer ops.Recover(&err) // of what sequences do on the device
	a.Prompt = len(prompt)
	room := e.Context - len(prompt)
	switch {
	case len(prompt) == 0:
		return a, fmt.Errorf("cannot answer an empty prompt")
	case room < 1:
		return a, fmt.Errorf("cannot answer a prompt of %d tokens: the context is %d, prompt and answer together", len(prompt), e.Context)
	case most <= 0:
		most = room
	}
	most = min(most, room)
	q, err := sample.NewSequence(p, e.Model.Config.Vocab, prompt, most)
	if err != nil {
		return a, err
	}
	sampler := sample.New(e.Model.Config.Vocab)
	s, err := e.Model.Pool().NewSequence()
	if err != nil {
		return a, err
	}
	defer s.Free()
	step, text := e.Model.NewStep(), e.Tokenizer.NewStream()
	a.Begin = time.Now()
	next := prompt
	for {
		if ctx.Err() != nil {
			a.Finish = Cancelled
			break
		}
		part := next[:min(len(next), e.Model.Rows())]
		if next = next[len(part):]; len(next) > 0 {
			if _, err := e.feed(step, s, part, 0); err != nil {
				return a, err
			}
			continue
		}
		step.Reset()
		if err := step.Add(s, part, 1); err != nil {
			return a, err
		}
		pick := q.Pick(nil, sample.NoLogProbs)
		onDevice := step.Pick(0, pick, false)
		logits, err := e.run(step)
		if err != nil {
			return a, err
		}
		var r sample.Result
		if !onDevice {
			r, err = sampler.Choose(&pick, logits)
		} else if r = step.Choices()[0]; r.Token < 0 {
			err = sample.ErrNone
		}
		if err != nil {
			return a, err
		}
		a.Last = time.Now()
		if a.Generated == 0 {
			a.First = a.Last
		}
		a.Generated++
		q.Append(r.Token)
		if _, end := slices.BinarySearch(e.EOS, r.Token); end && !ignoreEOS {
			a.Finish = Stopped
			break
		}
		emit(text.Push(r.Token))
		if a.Generated == most {
			a.Finish = Length
			break
		}
		next = []int32{r.Token}
	}
	emit(text.Flush())
	return a, nil
}

// feed runs one step of one sequence and returns the logits after its last tokens.
func (e *Engine) feed(step *model.Step, s *kv.Sequence, tokens []int32, outputs int) ([]float32, error) {
	step.Reset()
	if err := step.Add(s, tokens, outputs); err != nil {
		return nil, err
	}
	return e.run(step)
}

// run computes a step, where Watch sees it.
func (e *Engine) run(step *model.Step) ([]float32, error) {
	e.turns.Begin()
	defer e.turns.End()
	return e.Model.Run(step)
}

// Watch looks at the steps of Generate, from another goroutine, until one does not end ([model.Model.Watch]).
// It is nil once stop is closed.
func (e *Engine) Watch(limit time.Duration, stop <-chan struct{}) *model.HangError {
	return e.Model.Watch(limit, &e.turns, stop)
}

// Perplexity is that of a text, in windows of that many tokens (Options.Context at most). See
// quantize.Perplexity.
func (e *Engine) Perplexity(ctx context.Context, tokens []int32, window int, progress func(done, total int)) (_ float64, err error) {
	defer ops.Recover(&err)
	window = min(window, e.Context)
	step, done := e.Model.NewStep(), 0
	return quantize.Perplexity(tokens, window, func(part []int32, predict func([]float32)) error {
		s, err := e.Model.Pool().NewSequence()
		if err != nil {
			return err
		}
		defer s.Free()
		for len(part) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(len(part), e.Model.Rows(), e.Model.Outputs())
			logits, err := e.feed(step, s, part[:n], n)
			if err != nil {
				return err
			}
			if part = part[n:]; len(part) == 0 {
				n-- // nothing follows the last token
			}
			for i := range n {
				predict(logits[i*e.Model.Config.Vocab : (i+1)*e.Model.Config.Vocab])
			}
			done += n
			if len(part) == 0 {
				done++
			}
			if progress != nil {
				progress(done, len(tokens))
			}
		}
		return nil
	})
}
