package ops

import "velo/engine/sample"

// Sampler is what a [Backend] may do besides: choose tokens where the logits are, so that the host
// gets a few bytes of a step instead of a row of the vocabulary. It is discovered by a type
// assertion. A choice is that of engine/sample on the same logits, up to the rounding of sums: it
// may differ where the draw, or a cut, meets the edge of a token's probability.
type Sampler interface {
	Backend
	// SampleFrom makes room for choices from rows of logits, once when a model is made.
	SampleFrom(logits Buffer) error
	// Samples tells whether a choice can be made there, among a vocabulary of that size and as one
	// of n in a step. If not, the host reads the logits.
	Samples(p *sample.Pick, vocab, n int) bool
	// Sample chooses a token from row rows[i] of logits for picks[i]. Picks may change after it
	// returns.
	Sample(logits Buffer, rows []int32, picks []sample.Pick)
	// Choices waits for the step and sets dst[i] to what was chosen for picks[i], with Token −1
	// where no token can follow. Top is valid until the next Begin.
	Choices(dst []sample.Result)
	// ReadRows waits for the step and gives these rows of x, row-major [len(rows), Cols]. They are
	// valid until the next Begin.
	ReadRows(x Buffer, rows []int32) []float32
}
