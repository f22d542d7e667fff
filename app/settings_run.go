package app

import (
	"context"
	"encoding/json"
	"fmt"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/runner"
	"velo/store"
	"velo/ui/console"
)

// modelRun is what is set for the model that a run measures.
type modelRun struct {
	parameters map[string]json.RawMessage
	level      string
	ways       func(level string) []runner.Way
	tokens     bench.TokenCounter
	notes      []string // for the reader of the session
}

// forRun is what is set for a model, for a run that begins. A tokenizer that was never compared with the
// server's count is compared now; none is used that was not.
func (c *theConsole) forRun(ctx context.Context, cl *client.Client, e console.Endpoint, model, owner string) (modelRun, error) {
	m, err := c.store.Model(e.ID, model)
	if err != nil {
		return modelRun{}, err
	}
	o := modelRun{parameters: members(m.Parameters), level: m.Reasoning, ways: waysOf(familyOf(e, cl.BaseURL(), owner))}
	o.tokens, o.notes, err = c.tokenizerOf(ctx, cl, e, m, owner)
	return o, err
}

// tokenizerOf is the tokenizer that is set for a model, if it is verified: nil where there is none. What
// stands against it is said in notes.
func (c *theConsole) tokenizerOf(ctx context.Context, cl *client.Client, e console.Endpoint, m store.Model, owner string) (bench.TokenCounter, []string, error) {
	if m.Tokenizer == console.TokenizerNone || m.Tokenizer == console.TokenizerServer {
		return nil, nil, nil // the server is asked anyway, and checked
	}
	verdict, why := verdictOf(m)
	if verdict == console.TokenizerNotTried {
		err := c.try(ctx, cl, e, m.Name, owner)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err == nil {
			if m, err = c.store.Model(e.ID, m.Name); err == nil {
				verdict, why = verdictOf(m)
			}
		}
		if err != nil {
			why = sentence(err.Error())
		}
	}
	if verdict != console.TokenizerVerified {
		return nil, []string{fmt.Sprintf("The tokenizer %s was not used, since it is not verified. %s", m.Tokenizer, why)}, nil
	}
	counter, err := c.tokenizers.open(m.Tokenizer)
	if err != nil {
		return nil, []string{fmt.Sprintf("The tokenizer %s was not used. %s", m.Tokenizer, sentence(err.Error()))}, nil
	}
	return counter, nil, nil
}

// refute notes that a run showed a tokenizer not to be the model's.
func (c *theConsole) refute(endpointID, model, why string) {
	err := c.changeModel(endpointID, model, func(m *store.Model) {
		if m.Trial == nil {
			m.Trial = &store.Trial{}
		}
		m.Trial.Tokenizer, m.Trial.Verdict, m.Trial.Why = identity(m.Tokenizer), console.TokenizerWrong, why
	})
	if err != nil {
		c.notice(err.Error())
	}
}

// waysOf are the ways in which a family is asked for a level of reasoning.
func waysOf(f family) func(level string) []runner.Way {
	return func(level string) []runner.Way {
		var list []runner.Way
		for _, o := range reasoningOptions(f, level) {
			w := runner.Way{How: o.how, Body: map[string]json.RawMessage{}}
			for _, m := range o.members {
				w.Body[m.name] = m.value
			}
			list = append(list, w)
		}
		return list
	}
}
