// Package engine loads a model with all that it takes to answer with it: weights on a backend,
// tokenizer, chat template, and its makers' defaults. What serves the model (engine/sched,
// engine/server) and what uses it from the command line starts here.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"velo/engine/backend"
	"velo/engine/chat"
	"velo/engine/memory"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
	"velo/engine/tokenizer"
	"velo/engine/weights"
)

// Options size an engine. The zero value serves up to eight requests of up to 4096 tokens.
type Options struct {
	Backend         string         // one of backend.Names; "" is the best one there is
	Context         int            // tokens of one request, prompt and answer; 0 = 4096 or the model's own, if less
	Lanes           int            // requests in one step; 0 = 8
	Tokens          int            // tokens remembered of all together; 0 = Lanes × Context
	Checkpoints     int            // recurrent states kept beside the lanes' own, of a hybrid model
	CheckpointBytes int64          // the same as so many bytes of them, 4 a lane at most; Checkpoints goes before it
	Rows            int            // most rows of a step; 0 = 512
	Outputs         int            // most rows of a step whose logits are wanted; 0 = 16, and at least Lanes
	Workers         int            // threads of the processor; 0 = all
	Exact           bool           // float32 arithmetic for every weight
	KV              string         // how keys and values are stored: f32, bf16, fp8 or q8; "" or "auto" is the backend's choice
	PrefillFP4      bool           // prompts with both operands in FP4, as backend.Options has it
	Available       int64          // bytes of memory that may be used; 0 = as much as it takes
	Shared          bool           // a GPU's memory is the machine's
	Progress        func(Progress) // how far loading is; may be nil
}

// Engine is a loaded model.
type Engine struct {
	Path      string
	Name      string // of the model, from its files
	Weights   *weights.Model
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template // nil if the model has none
	Source    string         // the template's text
	Model     *model.Model
	Device    string     // what it is computed on, in words
	Loaded    ops.Loaded // how the weights came, if the backend reads them itself
	Memory    memory.Plan
	EOS       []int32 // all ids that end an answer, ascending
	Context   int     // most tokens of one request, prompt and answer
	Lanes     int
	Defaults  sample.Params // what the model's makers advise; greedy if they say nothing

	backend backend.Backend
	addBOS  bool // a prompt begins with BOS even where the template leaves it out
	turns   model.Turns
}

// At chooses the place that a backend was resolved to, and as much of its memory as may be used: keep bytes
// of the machine's are left.
func (o *Options) At(p backend.Place, keep int64) {
	o.Backend, o.Available, o.Shared = p.Name, p.Room(keep), p.Unified
}

// Plan fills in the sizes that were left open and reckons the memory, without taking any. Whether that
// fits is for the plan's Check to say.
func Plan(w *weights.Model, o Options) (memory.Plan, error) {
	return memory.Reckon(w, memory.Sizes{Backend: o.Backend, Exact: o.Exact, KV: o.KV, Context: o.Context, Lanes: o.Lanes, Tokens: o.Tokens,
		Checkpoints: o.Checkpoints, CheckpointBytes: o.CheckpointBytes, Rows: o.Rows, Outputs: o.Outputs, Available: o.Available, Shared: o.Shared})
}

// Load opens the model at path, a folder or a GGUF file, and makes it ready. Memory is reckoned,
// and refused, before anything large is taken. When ctx ends, loading does with the tensor that is being
// taken over; a disk that does not answer holds it up, so whoever cannot wait leaves it behind.
func Load(ctx context.Context, path string, o Options) (*Engine, error) {
	w, err := weights.Open(path)
	if err != nil {
		return nil, err
	}
	e, err := load(ctx, path, w, o)
	if err != nil {
		_ = w.Close()
		return nil, err
	}
	return e, nil
}

func load(ctx context.Context, path string, w *weights.Model, o Options) (*Engine, error) {
	plan, err := Plan(w, o)
	if err == nil {
		err = plan.Check()
	}
	if err != nil {
		return nil, err
	}
	z := plan.Sizes
	e := &Engine{Path: path, Name: name(path, w), Weights: w, Memory: plan, Context: z.Context, Lanes: z.Lanes, Defaults: defaults(w.Generation)}
	if e.Tokenizer, e.addBOS, err = Tokenizer(w); err != nil {
		return nil, err
	}
	if n := e.Tokenizer.Vocab(); n > w.Config.Vocab {
		return nil, fmt.Errorf("cannot use the tokenizer of %s: it has %d ids, and the model's embedding %d rows", path, n, w.Config.Vocab)
	}
	if e.Source = w.ChatTemplate(); e.Source != "" {
		if e.Template, err = chat.NewTemplate(e.Source); err != nil {
			return nil, fmt.Errorf("cannot use the chat template of %s: %w", path, err)
		}
	}
	e.EOS = ends(w, e.Tokenizer)
	device := backend.Options{Name: o.Backend, Rows: z.Rows, Workers: o.Workers, Exact: o.Exact, KV: o.KV, Reserve: plan.Asked(), PrefillFP4: o.PrefillFP4}
	if err := backend.CheckFP4Weights(device, w); err != nil {
		return nil, err
	}
	if e.backend, err = backend.New(device); err != nil {
		return nil, err
	}
	e.Device = e.backend.Name()
	source := w.Counted(paced(o.Progress))
	e.Model, err = model.New(&w.Config, until{ctx, source}, e.backend, model.Options{Tokens: z.Tokens, Context: z.Context, Sequences: z.Lanes + z.Checkpoints, Outputs: z.Outputs})
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx) // whatever else is wrong comes from that
	case err == nil:
		err = w.Unchanged()
	}
	if err != nil {
		_ = e.backend.Close()
		return nil, fmt.Errorf("cannot load %s: %w", path, err)
	}
	source.End()
	if l, ok := e.backend.(ops.Loader); ok {
		e.Loaded = l.Loaded()
	}
	return e, nil
}

// until hands out tensors until a context ends, and none from then on.
type until struct {
	ctx    context.Context
	source model.Source
}

func (u until) Tensor(name string) (*weights.Tensor, bool) {
	if u.ctx.Err() != nil {
		return nil, false
	}
	return u.source.Tensor(name)
}

// Close ends the backend and unmaps the weights. Nothing may compute any more.
func (e *Engine) Close() error {
	return errors.Join(e.backend.Close(), e.Weights.Close())
}

// Prompt renders a conversation and encodes it. The template's special tokens become their ids.
// As in transformers, a prompt of a folder has the BOS that its template writes; as in llama.cpp,
// that of a GGUF file has one BOS if the file asks for it.
func (e *Engine) Prompt(r chat.Request) (text string, ids []int32, err error) {
	if e.Template == nil {
		return "", nil, fmt.Errorf("cannot render a conversation: %s has no chat template; send a plain prompt", e.Name)
	}
	if r.BOS == "" && e.Tokenizer.BOS() >= 0 {
		r.BOS = e.Tokenizer.Decode([]int32{e.Tokenizer.BOS()})
	}
	if eos := e.Tokenizer.EOS(); r.EOS == "" && len(eos) > 0 {
		r.EOS = e.Tokenizer.Decode(eos[:1])
	}
	if text, err = e.Template.Render(r); err != nil {
		return "", nil, err
	}
	ids = e.Tokenizer.Encode(text, true)
	if bos := e.Tokenizer.BOS(); e.addBOS && bos >= 0 && (len(ids) == 0 || ids[0] != bos) {
		ids = slices.Insert(ids, 0, bos)
	}
	return text, ids, nil
}

// Text encodes a plain prompt, with what the model wants around a text. Special tokens in it are
// plain text.
func (e *Engine) Text(prompt string) []int32 {
	ids := slices.Clone(e.Tokenizer.Before())
	ids = e.Tokenizer.AppendEncode(ids, prompt, false)
	return append(ids, e.Tokenizer.After()...)
}

// Tokenizer makes the tokenizer that a model brings. addBOS tells that a rendered conversation
// needs BOS even where the template leaves it out.
func Tokenizer(w *weights.Model) (t *tokenizer.Tokenizer, addBOS bool, err error) {
	files := w.TokenizerFiles()
	switch {
	case files.JSON != nil:
		t, err = tokenizer.FromJSON(files.JSON, files.Config)
	case files.Meta != nil:
		t, err = tokenizer.FromGGUF(files.Meta)
		addBOS = err == nil && t.AddBOS()
	default:
		err = errors.New("there is no tokenizer.json")
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot use the tokenizer of %s: %w", w.Path, err)
	}
	return t, addBOS, nil
}

// ends are the ids that end an answer, by all of the model's files together.
func ends(w *weights.Model, t *tokenizer.Tokenizer) []int32 {
	ids := slices.Clone(t.EOS())
	for _, id := range w.Config.EOS {
		ids = append(ids, int32(id))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// defaults are the makers' sampling parameters. Without any the answer is greedy.
func defaults(g weights.Generation) sample.Params {
	var p sample.Params
	if g.DoSample != nil && !*g.DoSample {
		return p
	}
	set := func(dst *float32, src *float64) {
		if src != nil {
			*dst = float32(*src)
		}
	}
	set(&p.Temperature, g.Temperature)
	set(&p.TopP, g.TopP)
	set(&p.MinP, g.MinP)
	set(&p.RepetitionPenalty, g.RepetitionPenalty)
	if g.TopK != nil {
		p.TopK = *g.TopK
	}
	if g.Temperature == nil && g.DoSample != nil {
		p.Temperature = 1
	}
	return p
}
