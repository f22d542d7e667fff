package sample

// Pick is all that one choice depends on besides the logits, in numbers: what a device takes to
// choose where the logits are. Sampler.Choose says what comes of it.
type Pick struct {
	Temperature, TopP, MinP         float32
	TopK                            int
	Repetition, Presence, Frequency float32 // the penalties, as in Params
	Uniform                         float64 // the number in [0, 1) that decides the draw

	Bias []Bias // in the order of ids, each id once
	// Seen are the tokens that penalties look at, each once, and Count[id] how often each of them
	// was generated. Both are valid until the sequence changes.
	Seen  []int32
	Count []int32
	Mask  Mask // nil allows all
	Top   int  // likeliest tokens to be told, 0 for the chosen one's probability alone, or NoLogProbs
}

// Bias is added to the logit of a token.
type Bias struct {
	Token int32
	Bias  float32
}

// Pick is the choice of the token that follows the sequence, under a mask. top is as for
// Sampler.Sample.
func (s *Sequence) Pick(mask Mask, top int) Pick {
	p := &s.params
	k := Pick{Temperature: p.Temperature, TopP: p.TopP, MinP: p.MinP, TopK: p.TopK,
		Repetition: p.RepetitionPenalty, Presence: p.PresencePenalty, Frequency: p.FrequencyPenalty,
		Bias: s.bias, Mask: mask, Top: top}
	if k.Draws() {
		k.Uniform = Uniform(p.Seed, s.Len(), Draw)
	}
	if s.window != nil {
		k.Seen, k.Count = s.window.distinct, s.window.generated
	}
	return k
}

// Draws tells whether there is a draw, or only a largest logit.
func (p *Pick) Draws() bool { return p.Temperature > coldest && p.TopK != 1 }

// Repeats tells whether the repetition penalty does anything.
func (p *Pick) Repeats() bool { return p.Repetition != 0 && p.Repetition != 1 }

// Changes tells whether the choice is one among other logits than those of the model.
func (p *Pick) Changes() bool { return len(p.Bias) > 0 || len(p.Seen) > 0 || p.Mask != nil }
