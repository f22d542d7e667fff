package sample

import "slices"

// Sequence is one request as sampling sees it: its parameters and all of its tokens.
type Sequence struct {
	params Params
	bias   []Bias // in the order of ids: the sum does not depend on that of a map
	tokens []int32
	prompt int // how many of tokens were given
	window *window
}

// NewSequence checks the parameters and returns a sequence that holds the prompt. room is the
// number of tokens to generate for which memory is set aside.
func NewSequence(p Params, vocab int, prompt []int32, room int) (*Sequence, error) {
	if err := p.Validate(vocab); err != nil {
		return nil, err
	}
	s := &Sequence{params: p, tokens: make([]int32, 0, len(prompt)+max(room, 0)), prompt: len(prompt)}
	for id, b := range p.LogitBias {
		s.bias = append(s.bias, Bias{id, b})
	}
	slices.SortFunc(s.bias, func(a, b Bias) int { return int(a.Token) - int(b.Token) })
	if p.penalises() {
		s.window = newWindow(vocab)
	}
	for _, id := range prompt {
		s.Append(id)
	}
	return s, nil
}

// Len returns the number of tokens, prompt included. It is also the position that the next draw
// is for.
func (s *Sequence) Len() int { return len(s.tokens) }

// Append adds a token, whoever chose it.
func (s *Sequence) Append(id int32) {
	s.tokens = append(s.tokens, id)
	if s.window == nil {
		return
	}
	n := len(s.tokens)
	s.window.add(id, n > s.prompt)
	if w := s.params.PenaltyWindow; w > 0 && n > w {
		s.window.remove(s.tokens[n-1-w], n-1-w >= s.prompt)
	}
}

// Truncate takes back tokens until n are left: what speculation guessed and the model refused. The
// prompt stays.
func (s *Sequence) Truncate(n int) {
	for len(s.tokens) > max(n, s.prompt) {
		k := len(s.tokens)
		if s.window != nil {
			s.window.remove(s.tokens[k-1], true)
			if w := s.params.PenaltyWindow; w > 0 && k > w {
				s.window.add(s.tokens[k-1-w], k-1-w >= s.prompt)
			}
		}
		s.tokens = s.tokens[:k-1]
	}
}

// window counts the tokens that penalties look at. It is as large as the vocabulary, so that a
// step costs the number of different tokens in it and no hashing.
type window struct {
	count     []int32 // per token: occurrences in prompt and answer
	generated []int32 // per token: occurrences in the answer
	distinct  []int32 // the tokens that occur
	place     []int32 // per token: where it is in distinct
}

func newWindow(vocab int) *window {
	return &window{make([]int32, vocab), make([]int32, vocab), make([]int32, 0, vocab), make([]int32, vocab)}
}

func (w *window) add(id int32, generated bool) {
	if id < 0 || int(id) >= len(w.count) {
		return // a token that the model cannot produce cannot be penalised
	}
	if w.count[id] == 0 {
		w.place[id] = int32(len(w.distinct))
		w.distinct = append(w.distinct, id)
	}
	w.count[id]++
	if generated {
		w.generated[id]++
	}
}

func (w *window) remove(id int32, generated bool) {
	if id < 0 || int(id) >= len(w.count) {
		return
	}
	w.count[id]--
	if generated {
		w.generated[id]--
	}
	if w.count[id] == 0 {
		last := w.distinct[len(w.distinct)-1]
		w.distinct[w.place[id]] = last
		w.place[last] = w.place[id]
		w.distinct = w.distinct[:len(w.distinct)-1]
	}
}
