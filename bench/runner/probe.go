package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"velo/assets"
	"velo/bench"
	"velo/bench/client"
)

// rules are what a few requests before the measurement found out about the server.
type rules struct {
	ruler
	fallback         ruler           // for when the server stops counting
	refused          map[string]bool // fields, by their names in a request
	ways             map[string]int  // by run.kind: which of the ways to ask for a level of reasoning is in use
	completionTokens bool            // the output limit is called max_completion_tokens
	noStreamOptions  bool            // usage cannot be asked for
}

// A parameter is something that a suite may ask of a server and that not every server knows.
type parameter struct {
	field  string
	apply  func(*client.Chat)
	needed bool     // without it the suite would measure something else
	lost   string   // what goes without it
	level  string   // of reasoning; "" = another parameter
	names  []string // by which a refusal may name it; nil = field alone
}

// named tells whether a refusal names the parameter.
func (p *parameter) named(refusal string) bool {
	if p.names == nil {
		return strings.Contains(refusal, p.field)
	}
	return slices.ContainsFunc(p.names, func(n string) bool { return strings.Contains(refusal, n) })
}

// parameters are those that the run would send. There is one for each reasoning level.
func (r *run) parameters() []parameter {
	var all []parameter
	if t := r.o.Suite.Temperature; t != nil {
		all = append(all, parameter{field: "temperature", apply: func(c *client.Chat) { c.Temperature = t }, needed: true})
	}
	if r.o.ContinuousUsage {
		all = append(all, parameter{field: "continuous_usage_stats", apply: func(c *client.Chat) { c.ContinuousUsage = true }, lost: "tokens are counted by other means"})
	}
	exact := false
	var levels []string
	for _, st := range r.stages {
		exact = exact || st.Exact()
		if level := r.level(st); level != "" && !slices.Contains(levels, level) {
			levels = append(levels, level)
		}
	}
	if exact {
		all = append(all,
			parameter{field: "min_tokens", apply: func(c *client.Chat) { c.MinTokens = c.MaxTokens }, lost: "outputs may end early"},
			parameter{field: "ignore_eos", apply: func(c *client.Chat) { c.IgnoreEOS = true }, lost: "outputs may end early"})
	}
	for _, name := range slices.Sorted(maps.Keys(r.o.Parameters)) {
		if slices.ContainsFunc(r.stages, func(st stage) bool { return !r.said(name, st, r.o.Suite.OutputLimit(st.Step)) }) {
			value := r.o.Parameters[name]
			all = append(all, parameter{field: name, apply: func(c *client.Chat) { c.Extra = with(c.Extra, map[string]json.RawMessage{name: value}) },
				lost: "its value, set for the model, is not in force"})
		}
	}
	for _, level := range levels {
		if r.way(level) != nil {
			all = append(all, r.reasoning(level))
		}
	}
	return all
}

// probe asks what has to be known before anything is measured: which parameters the server takes, and
// how many tokens it makes of a text. What it finds is told in notes. A server that cannot be reached
// ends the run here.
func (r *run) probe(ctx context.Context) error {
	r.rules.refused, r.rules.ways = map[string]bool{}, map[string]int{}
	r.rules.ruler = estimator(pieceTokens)
	fills := slices.ContainsFunc(r.stages, func(st stage) bool { return st.Fill() > 0 })
	wanted := r.parameters()
	if !fills && len(wanted) == 0 {
		return nil
	}
	if fills {
		r.findCounter(ctx)
	}
	short := r.salt(place{index: -1, warmup: true}) + prose(r.chance("probe", place{}), 300) + goOn
	end, err := r.settle(ctx, short, wanted)
	l := &r.rules.ruler
	if err != nil || !fills {
		return err
	}
	if end.Usage == nil || end.Usage.Prompt < 0 {
		why := "it sends no usage"
		if end.Status != bench.OK && end.Status != bench.Empty {
			why = "the probe failed: " + end.Error
		}
		if l.source == byEstimate {
			r.note("Prompt lengths are an estimate, %.2f tokens a word or mark: the server does not say how long prompts are (%s).", pieceTokens, why)
		} else {
			r.note("Prompt lengths are counted by the %s, without the chat template: the server does not say how long prompts are (%s).", l.source, why)
		}
		return nil
	}
	if l.source == byEstimate {
		return r.weigh(ctx, short, end.Usage.Prompt)
	}
	n, err := l.count(ctx, short)
	if err != nil {
		return ctx.Err()
	}
	if n > end.Usage.Prompt || end.Usage.Prompt > 3*n+300 {
		r.note("The %s makes %d tokens of a text that the model was given as %d: it is not the model's, and was not used.", l.source, n, end.Usage.Prompt)
		if l.source == byTokenizer {
			r.counting.reject(fmt.Sprintf("It makes %d tokens of a text that the model was given as %d.", n, end.Usage.Prompt))
		}
		r.rules.ruler = estimator(pieceTokens)
		return r.weigh(ctx, short, end.Usage.Prompt)
	}
	l.template = end.Usage.Prompt - n
	r.rules.fallback.template = l.template
	r.note("Prompt lengths are counted by the %s; the chat template adds %d tokens, which are part of the length asked for.", l.source, l.template)
	return nil
}

// weigh finds the tokens a piece by a second, longer probe: what the two have in common cancels out. Its
// text is from all over the corpus, as the fills will be.
func (r *run) weigh(ctx context.Context, short string, shortTokens int) error {
	const places, bytes = 16, 600
	var long strings.Builder
	long.WriteString(r.salt(place{index: -2, warmup: true}))
	length := uint64(len(assets.Corpus()))
	for i := range uint64(places) {
		long.WriteString(prose(i*length/places+r.chance("weigh", place{})%(length/places), bytes))
		long.WriteString("\n\n")
	}
	end, err := r.ask(ctx, long.String(), nil)
	if err != nil {
		return err
	}
	if end.Usage != nil {
		perPiece := float64(end.Usage.Prompt-shortTokens) / float64(pieces(long.String())-pieces(short))
		if perPiece >= 0.5 && perPiece <= 10 {
			r.rules.ruler = estimator(perPiece)
			r.rules.template = max(shortTokens-int(float64(pieces(short))*perPiece), 0)
			r.note("Prompt lengths are an estimate, %.2f tokens a word or mark, by a probe against the server's own count.", perPiece)
			return nil
		}
	}
	r.note("Prompt lengths are an estimate, %.2f tokens a word or mark: a probe against the server's count gave nothing usable.", pieceTokens)
	return nil
}

// findCounter looks for something that counts tokens: the model's tokenizer in this process, else the
// server's.
func (r *run) findCounter(ctx context.Context) {
	l := ruler{source: byServer, calls: 8, count: func(ctx context.Context, text string) (int, error) {
		return r.o.Client.Tokenize(ctx, r.o.Model, text)
	}}
	if t := r.o.Tokens; t != nil {
		l.source, l.calls = byTokenizer, 16
		l.count = func(ctx context.Context, text string) (int, error) { return t.Count(text), ctx.Err() }
	}
	sample := assets.Corpus()[:16<<10]
	n, err := l.count(ctx, sample)
	if err == nil && n > 0 {
		l.perToken = float64(len(sample)) / float64(n)
		r.rules.ruler, r.rules.fallback = l, estimator(float64(n)/float64(pieces(sample)))
	} else if err != nil && !errors.Is(err, client.ErrNoTokenizer) && ctx.Err() == nil {
		r.note("The server's tokenizer was not used: %v.", err)
	}
}

// settle asks with all the parameters that the suite wants and goes without those that the server
// refuses. It returns the end of the last request.
func (r *run) settle(ctx context.Context, text string, wanted []parameter) (*bench.End, error) {
	// One request can have one reasoning level; the others are asked after it.
	var together, further []parameter
	for _, p := range wanted {
		if p.level != "" && slices.ContainsFunc(together, func(q parameter) bool { return q.level != "" }) {
			further = append(further, p)
		} else {
			together = append(together, p)
		}
	}
	end, err := r.reduce(ctx, text, together)
	for _, p := range further {
		if err != nil {
			break
		}
		if r.way(p.level) == nil { // refused with another level
			continue
		}
		_, err = r.reduce(ctx, text, []parameter{p})
	}
	return end, err
}

// reduce asks with the parameters, and again without those that the server names in its refusal. One
// that refuses without a name is asked with each of them alone.
func (r *run) reduce(ctx context.Context, text string, with []parameter) (*bench.End, error) {
	for {
		end, err := r.ask(ctx, text, with)
		if err != nil || !refuses(end) {
			return end, err
		}
		if !r.rules.completionTokens && strings.Contains(end.Error, "max_completion_tokens") {
			r.rules.completionTokens = true
			continue
		}
		if !r.rules.noStreamOptions && strings.Contains(end.Error, "stream_options") && !strings.Contains(end.Error, "continuous_usage_stats") {
			r.rules.noStreamOptions = true
			r.note("The server refuses stream_options, so the run goes without it: it sends no usage, and tokens are counted by other means.")
			continue
		}
		var left []parameter
		dropped := false
		for _, p := range with {
			if !p.named(end.Error) {
				left = append(left, p)
				continue
			}
			dropped = true
			next, err := r.drop(p, end)
			if err != nil {
				return nil, err
			}
			left = append(left, next...)
		}
		if !dropped {
			break
		}
		with = left
	}
	plain, err := r.ask(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	if refuses(plain) {
		return nil, &failure{plain.Error}
	}
	for _, p := range with {
		for alone := []parameter{p}; len(alone) > 0; {
			end, err := r.ask(ctx, text, alone)
			if err != nil {
				return nil, err
			}
			if !refuses(end) {
				break
			}
			if alone, err = r.drop(alone[0], end); err != nil {
				return nil, err
			}
		}
	}
	return plain, nil
}

// drop goes without a parameter, or says why the suite cannot be run. Another way to ask for the same is
// returned, if there is one.
func (r *run) drop(p parameter, end *bench.End) (next []parameter, err error) {
	if p.level != "" {
		r.rules.ways[r.kind(p.level)]++
		if r.way(p.level) != nil {
			return []parameter{r.reasoning(p.level)}, nil
		}
		r.note("The server refuses %s, so the run goes without it: %s.", p.field, p.lost)
		return nil, nil
	}
	if p.needed {
		return nil, &failure{fmt.Sprintf("the server refuses %s, which the suite %q sets: take it out of the suite, or measure another model (%s)", p.field, r.o.Suite.Title, end.Error)}
	}
	r.rules.refused[p.field] = true
	r.note("The server refuses %s, so the run goes without it: %s.", p.field, p.lost)
	return nil, nil
}

// refuses tells whether the server did not accept the request as it is.
func refuses(end *bench.End) bool {
	return end.Status == bench.Failed && (end.Class == "http-400" || end.Class == "http-422")
}

// probeOutput is the number of tokens that a probe asks for.
const probeOutput = 2

// hopeless are the classes of errors that any further request would meet too.
var hopeless = []string{"connect", "dns", "tls", "http-401", "http-403", "http-404"}

// ask sends a short request that is not measured.
func (r *run) ask(ctx context.Context, text string, with []parameter) (*bench.End, error) {
	chat := client.Chat{Model: r.o.Model, Messages: []client.Message{{Role: "user", Content: text}}}
	r.adapt(&chat, probeOutput)
	for _, p := range with {
		p.apply(&chat)
	}
	call, err := r.o.Client.Prepare(chat)
	if err != nil {
		return nil, &failure{err.Error()}
	}
	end := call.Do(ctx, &bench.Request{Session: r.session(-1), Parameters: call.Parameters()}, discard{}).End
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if slices.Contains(hopeless, end.Class) {
		return nil, &failure{end.Error}
	}
	return end, nil
}

// adapt gives a request its output limit (0: none) and writes it as the server wants it.
func (r *run) adapt(chat *client.Chat, tokens int) {
	chat.MaxTokens = tokens
	extra := func(name, value string) {
		if chat.Extra == nil {
			chat.Extra = map[string]json.RawMessage{}
		}
		chat.Extra[name] = json.RawMessage(value)
	}
	if r.rules.completionTokens && tokens > 0 {
		extra("max_completion_tokens", strconv.Itoa(tokens))
	}
	if r.rules.noStreamOptions {
		extra("stream_options", "null")
	}
}

// discard is the sink of requests that are not measured.
type discard struct{}

func (discard) Append(bench.Event) {}
