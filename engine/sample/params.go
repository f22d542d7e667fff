package sample

import (
	"fmt"
	"math"
)

// Params are the sampling parameters of a request. The zero value of a field switches it off; the
// zero value of the whole is greedy decoding.
type Params struct {
	Temperature float32 // logits are divided by it; 0, and all up to 1e-6, is greedy
	TopK        int     // keep the k likeliest; 0 keeps all
	TopP        float32 // keep the fewest tokens whose probabilities reach p; 0 and 1 keep all
	MinP        float32 // keep what has at least this share of the likeliest token's probability

	// RepetitionPenalty divides positive logits and multiplies negative ones of every token of
	// the window, prompt included (Keskar et al. 2019, CTRL). 0 and 1 are off.
	RepetitionPenalty float32
	// PresencePenalty is subtracted once, FrequencyPenalty per occurrence, from the logits of
	// tokens generated within the window, as OpenAI's API describes them.
	PresencePenalty, FrequencyPenalty float32
	// PenaltyWindow is the number of last tokens, of prompt and answer, that penalties look at;
	// 0 looks at all.
	PenaltyWindow int

	LogitBias map[int32]float32 // added to the logits; -Inf bans a token
	Seed      uint64
}

// Usual is what a server takes where neither a request nor the model's makers say anything.
var Usual = Params{Temperature: 0.7, TopP: 0.8, TopK: 20}

// Validate says in one sentence what is wrong with the parameters for a vocabulary of that size.
func (p *Params) Validate(vocab int) error {
	number := func(what string, v, lo, hi float32) error {
		if v != v || v < lo || v > hi {
			return fmt.Errorf("cannot sample: %s is %v; it must be from %v to %v", what, v, lo, hi)
		}
		return nil
	}
	for _, err := range []error{
		number("temperature", p.Temperature, 0, 100),
		number("top_p", p.TopP, 0, 1),
		number("min_p", p.MinP, 0, 1),
		number("repetition_penalty", p.RepetitionPenalty, 0, 100),
		number("presence_penalty", p.PresencePenalty, -100, 100),
		number("frequency_penalty", p.FrequencyPenalty, -100, 100),
	} {
		if err != nil {
			return err
		}
	}
	if p.TopK < 0 {
		return fmt.Errorf("cannot sample: top_k is %d; it must be 0 for all tokens, or more", p.TopK)
	}
	if p.PenaltyWindow < 0 {
		return fmt.Errorf("cannot sample: the penalty window is %d tokens; it must be 0 for all, or more", p.PenaltyWindow)
	}
	for id, b := range p.LogitBias {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("cannot sample: logit_bias names token %d; the model has tokens 0 to %d", id, vocab-1)
		}
		if b != b || math.IsInf(float64(b), 1) {
			return fmt.Errorf("cannot sample: logit_bias of token %d is %v", id, b)
		}
	}
	return nil
}

func (p *Params) penalises() bool {
	return p.repeats() || p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

func (p *Params) repeats() bool { return p.RepetitionPenalty != 0 && p.RepetitionPenalty != 1 }
