package sched

import (
	"fmt"
	"time"

	"velo/engine/sample"
)

// Guide narrows one request's answer. Mask may be asked for beside those of
// other answers, on another goroutine than the loop's, and holds up the step:
// it must be quick. The methods of one guide are never called at once.
// *grammar.Matcher is one.
type Guide interface {
	Mask() sample.Mask     // what may come next; nil = everything; valid until the next call
	Accept(id int32) error // called for every token but one of End
	Done() bool            // nothing but an end may follow: the answer ends here
}

// Request is what an answer is wanted to. It must not change until its
// streams have ended.
type Request struct {
	ID         string
	Prompt     []int32
	Boundaries []int // positions in Prompt, ascending, where a checkpoint is worth keeping: ends of messages
	Sampling   sample.Params

	MaxTokens int // of the answer; 0 = up to the context, and more is cut to that
	MinTokens int // until then ids of End are not chosen

	// End are the ids that end an answer. The one that did is the stream's
	// last token. With IgnoreEOS they are tokens like others; under a Guide,
	// where they may stand only at the end of the text, they are then not
	// chosen as long as anything else may follow.
	End       []int32
	IgnoreEOS bool

	Top    int // log-probabilities wanted per token; sample.NoLogProbs for none
	Copies int // answers from one prefill; 0 = 1. Copy i samples with Seed+i

	Guide func(copy int) Guide               // nil, or returning nil = none
	Watch func(copy int) func(id int32) bool // nil, or returning nil = none; called on the loop for each token but one of End, true ends the answer
}

// copies is how many answers are wanted.
func (r *Request) copies() int { return max(r.Copies, 1) }

// check says what is wrong with a request for a model.
func (r *Request) check(vocab, context int) error {
	if len(r.Prompt) == 0 {
		return fmt.Errorf("cannot answer an empty prompt: it needs at least one token")
	}
	if len(r.Prompt) >= context {
		return &TooLongError{Prompt: len(r.Prompt), Context: context}
	}
	for i, id := range r.Prompt {
		if id < 0 || int(id) >= vocab {
			return fmt.Errorf("cannot answer the prompt: token %d of it is %d and the model knows 0 to %d", i, id, vocab-1)
		}
	}
	before := 0
	for _, b := range r.Boundaries {
		if b < before || b > len(r.Prompt) {
			return fmt.Errorf("cannot keep a checkpoint at position %d: boundaries must ascend and lie within the prompt of %d tokens", b, len(r.Prompt))
		}
		before = b
	}
	if r.Copies < 0 || r.MaxTokens < 0 || r.MinTokens < 0 {
		return fmt.Errorf("cannot answer %d times with %d to %d tokens: no number may be negative", r.Copies, r.MinTokens, r.MaxTokens)
	}
	if r.Top < sample.NoLogProbs || r.Top > sample.MaxTop {
		return fmt.Errorf("cannot give %d log-probabilities a token: 0 to %d, or %d for none", r.Top, sample.MaxTop, sample.NoLogProbs)
	}
	return r.Sampling.Validate(vocab)
}

// TooLongError refuses a prompt that leaves no room for an answer.
type TooLongError struct {
	Prompt, Context int // tokens
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("cannot answer a prompt of %d tokens: the context is %d tokens and the answer needs at least one of them; shorten the prompt or start the server with a longer context", e.Prompt, e.Context)
}

// Finish is why an answer ended.
type Finish int

// The ways to end.
const (
	Stop      Finish = iota // by an End id, a stop string, its guide, or as a loop
	Length                  // at MaxTokens or the end of the context
	Cancelled               // by the client, or because nobody read it
	Failed                  // see Result.Err
)

var finishes = [...]string{Stop: "stop", Length: "length", Cancelled: "cancelled", Failed: "error"}

func (f Finish) String() string { return finishes[f] }

// The reasons that Result.Reason adds to Finish.
const (
	ReasonLoop    = "loop_detected" // Stop: the answer repeats itself
	ReasonString  = "stop_string"   // Stop: Watch said so
	ReasonBacklog = "backlog"       // Cancelled: the reader left too many tokens
)

// Result is what there is to say about an answer that ended.
type Result struct {
	Finish Finish
	Reason string
	Err    error // of Failed, and why a context was Cancelled

	Prompt    int // tokens
	Cached    int // tokens of the prompt that were not computed for this answer
	Generated int // tokens that were delivered, an End id included
	Preempted int // how often its memory was taken away and computed again

	Submitted time.Time
	Admitted  time.Time // its prefill began; zero if it never did
	First     time.Time // its first token was sampled; zero if none was
	End       time.Time
}
