package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/runner"
	"velo/store"
	"velo/ui/console"
)

// A trial asks for a text that is long enough to tell tokenizers apart, and to compare lengths.
const (
	trialPrompt = "Describe in one dense paragraph of about 150 words how a river changes the valley that it runs through, with three numbers, one date and a quotation in it."
	trialOutput = 320 // tokens
	trialLeast  = 32  // tokens that must be seen for a verdict
	ratioLeast  = 48  // and for the ratio
	ratioMost   = 50_000
)

// identity is what tells a tokenizer from a later one in the same place; "" where it cannot be read.
func identity(tokenizer string) string {
	if tokenizer == console.TokenizerNone || tokenizer == console.TokenizerServer {
		return tokenizer
	}
	file := tokenizer
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		file = filepath.Join(tokenizer, "tokenizer.json")
		info, err = os.Stat(file)
	}
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", file, info.Size(), info.ModTime().UnixNano())
}

// verdictOf is what is known about a model's tokenizer: a verdict about another one, or about an earlier
// file, is none.
func verdictOf(m store.Model) (verdict, why string) {
	if m.Trial == nil || m.Tokenizer == console.TokenizerNone || m.Trial.Verdict == "" {
		return console.TokenizerNotTried, ""
	}
	if now := identity(m.Tokenizer); m.Trial.Tokenizer != now {
		if strings.HasPrefix(m.Trial.Tokenizer, m.Tokenizer) {
			return console.TokenizerNotTried, "Its file changed since it was verified."
		}
		return console.TokenizerNotTried, ""
	}
	return m.Trial.Verdict, m.Trial.Why
}

// tokenizers keeps those that were read last: reading one takes a while.
type tokenizers struct {
	mu   sync.Mutex
	read map[string]bench.TokenCounter // by identity
}

func (t *tokenizers) open(path string) (bench.TokenCounter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := identity(path)
	if c := t.read[id]; c != nil && id != "" {
		return c, nil
	}
	c, err := openTokenizer(path)
	if err != nil {
		return nil, err
	}
	if t.read == nil || len(t.read) >= 4 { // they are large
		t.read = map[string]bench.TokenCounter{}
	}
	t.read[id] = c
	return c, nil
}

// TryModel implements console.Preferences.
func (c *theConsole) TryModel(ctx context.Context, endpointID, model string) (console.Model, error) {
	if c.Run().Active {
		return console.Model{}, errors.New("cannot try the model while a run is measured: it would disturb it; wait for its end, or stop it")
	}
	e, key, err := c.connect(ctx, endpointID)
	if err != nil {
		return console.Model{}, err
	}
	cl, err := client.New(client.Options{BaseURL: e.URL, Key: key, Timeout: c.timeouts(), Clock: bench.StartClock(), Connections: 1, ThinkTags: e.ThinkTags})
	if err != nil {
		return console.Model{}, err
	}
	defer cl.Close()
	owner := ""
	if known, err := cl.Models(ctx); err == nil { // a server that lists none may serve the model all the same
		for _, m := range known {
			if m.ID == model {
				owner = m.OwnedBy
			}
		}
	}
	if err := c.try(ctx, cl, e, model, owner); err != nil {
		return console.Model{}, err
	}
	return c.Model(endpointID, model)
}

// try asks a model once and keeps what that shows.
func (c *theConsole) try(ctx context.Context, cl *client.Client, e console.Endpoint, model, owner string) error {
	m, err := c.store.Model(e.ID, model)
	if err != nil {
		return err
	}
	p := chatOf(m)
	if p.MaxTokens == nil {
		n := trialOutput
		p.MaxTokens = &n
	}
	plan, err := newParameterPlan(p, familyOf(e, cl.BaseURL(), owner), nil)
	if err != nil {
		return err
	}
	x, result, err := askOnce(ctx, cl, model, plan)
	if err != nil {
		return err
	}
	r := measure.Of(x, measure.Options{})
	t := store.Trial{At: time.Now().UTC(), Remarks: plan.remarks(), Tokenizer: identity(m.Tokenizer)}
	hidden := 0
	if u := x.End.Usage; u != nil {
		hidden = max(0, u.Reasoning)
	}
	if reasoning := plan.choice("reasoning"); reasoning != nil {
		tags := strings.HasPrefix(strings.TrimSpace(result.Answer), "<think>")
		t.Remarks = append(t.Remarks, reasoningRemark(p.Reasoning, reasoning.option().sentAs(), &r, hidden, tags))
	}
	if m.Tokenizer != console.TokenizerNone {
		t.Verdict, t.Why = c.judge(ctx, cl, model, m.Tokenizer, x, result)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return c.changeModel(e.ID, model, func(k *store.Model) {
		k.Trial = &t
		if ratio, tokens, ok := lengthRatio(x); ok {
			k.Ratio, k.Weight = blend(k.Ratio, k.Weight, ratio, tokens)
		}
	})
}

// askOnce asks for the trial's text, again without a parameter as often as the server refuses one.
func askOnce(ctx context.Context, cl *client.Client, model string, plan *parameterPlan) (*bench.Exchange, client.Result, error) {
	for {
		call, err := cl.Prepare(client.Chat{Model: model, Messages: []client.Message{{Role: "user", Content: trialPrompt}}, Extra: plan.extra()})
		if err != nil {
			return nil, client.Result{}, err
		}
		s := &oneExchange{}
		result := call.Do(ctx, &bench.Request{Session: "velo-trial"}, s)
		switch {
		case ctx.Err() != nil:
			return nil, result, context.Cause(ctx)
		case refuses(result.End):
			if o, _ := plan.drop(result.End.Error); o != nil {
				continue
			}
		}
		if s.x.End.Status != bench.OK && len(s.x.Chunks) == 0 {
			return nil, result, fmt.Errorf("cannot try the model %q: %s", model, result.End.Error)
		}
		return &s.x, result, nil
	}
}

// oneExchange is a sink for one request.
type oneExchange struct{ x bench.Exchange }

func (s *oneExchange) Append(e bench.Event) {
	switch e := e.(type) {
	case *bench.Request:
		e.Planned = e.Start
		s.x.Request = e
	case *bench.Conn:
		s.x.Conn = e
	case bench.Chunks:
		s.x.Chunks = append(s.x.Chunks, e...)
	case *bench.End:
		s.x.End = e
	}
}

// judge compares a tokenizer's count of an answer with the server's.
func (c *theConsole) judge(ctx context.Context, cl *client.Client, model, tokenizer string, x *bench.Exchange, result client.Result) (verdict, why string) {
	count := func() (int, error) {
		if tokenizer == console.TokenizerServer {
			n := 0
			for _, text := range []string{result.Reasoning, result.Answer} {
				if text == "" {
					continue
				}
				some, err := cl.Tokenize(ctx, model, text)
				if err != nil {
					return 0, err
				}
				n += some
			}
			return n, nil
		}
		counter, err := c.tokenizers.open(tokenizer)
		if err != nil {
			return 0, err
		}
		n := 0
		if counts := measure.CountChunks(x.Chunks, counter); counts != nil {
			for _, some := range counts.Tokens {
				n += int(some)
			}
		}
		return n, nil
	}
	n, err := count()
	switch u := x.End.Usage; {
	case errors.Is(err, client.ErrNoTokenizer):
		return console.TokenizerUnclear, "The server does not count tokens for others: it has no /tokenize, in neither form."
	case err != nil:
		return console.TokenizerUnclear, sentence(err.Error())
	case x.End.Status != bench.OK:
		return console.TokenizerUnclear, "The answer did not come to its end: " + sentence(x.End.Error)
	case u == nil || u.Completion <= 0:
		return console.TokenizerUnclear, "The server does not say how many tokens it made, so there is nothing to compare with."
	case n < trialLeast:
		return console.TokenizerUnclear, fmt.Sprintf("The answer has %d tokens that were seen: too few to tell.", n)
	case u.Reasoning > 0 && result.Reasoning == "":
		return console.TokenizerUnclear, fmt.Sprintf("Of the %s tokens that the server counts, %s are reasoning that it does not show.", grouped(u.Completion), grouped(u.Reasoning))
	}
	if why := runner.Disagreement(n, x.End); why != "" {
		return console.TokenizerWrong, "It " + why + "."
	}
	if u := x.End.Usage.Completion; u != n {
		return console.TokenizerVerified, fmt.Sprintf("It makes %s tokens of an answer that the server counts as %s, an end token or the like among them.", grouped(n), grouped(u))
	}
	return console.TokenizerVerified, fmt.Sprintf("It makes %s tokens of an answer, as the server does.", grouped(n))
}

// lengthRatio is the server's count of an answer over the estimate by its length, where both are of the
// same text.
func lengthRatio(x *bench.Exchange) (ratio float64, tokens int, ok bool) {
	u := x.End.Usage
	if x.End.Status != bench.OK || u == nil || u.Completion < ratioLeast {
		return 0, 0, false
	}
	unknown := *x
	end := *x.End
	end.Usage = nil
	unknown.End, unknown.Counts = &end, nil
	unknown.Chunks = append(bench.Chunks(nil), x.Chunks...)
	for i := range unknown.Chunks {
		unknown.Chunks[i].Usage, unknown.Chunks[i].Exact = -1, -1
	}
	r := measure.Of(&unknown, measure.Options{})
	if r.Counted != measure.ByLength || r.Answer+r.Thought == 0 || u.Reasoning > 0 && r.Thought == 0 {
		return 0, 0, false
	}
	ratio = float64(u.Completion) / float64(r.Answer+r.Thought)
	return ratio, u.Completion, ratio >= 0.2 && ratio <= 5
}

// blend adds an observation to a ratio, each weighed by its tokens.
func blend(ratio float64, weight int, seen float64, tokens int) (float64, int) {
	w, t := float64(min(weight, ratioMost)), float64(min(tokens, ratioMost))
	if w == 0 || math.IsNaN(ratio) || ratio <= 0 {
		return seen, min(tokens, ratioMost)
	}
	return (ratio*w + seen*t) / (w + t), min(weight+tokens, ratioMost)
}

// sentence makes an error one: with a capital letter and a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	if !strings.ContainsAny(s[len(s)-1:], ".?!") {
		s += "."
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
