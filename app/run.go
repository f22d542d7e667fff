package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"velo/engine"
	"velo/engine/chat"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
)

// runHungAdvice is what to do about a step that does not end.
const runHungAdvice = "Try it again. If it does not begin, or hangs again, restart the machine, so that the GPU's driver starts anew, and report it."

// answering are the flags of `velo run`.
type answering struct {
	prompt, system, file                     string
	most, context                            int
	plain, greedy, asJSON, ignoreEOS, silent bool
	watch                                    string
	force                                    bool
	computing
	sampling sampling
	seed     uint64
}

// runCommand is `velo run`: one answer on the terminal.
func runCommand() *cobra.Command {
	f := &answering{}
	cmd := &cobra.Command{
		Use:   "run FOLDER|FILE.gguf --prompt TEXT",
		Short: "Answers a prompt with a model of your own, on the terminal",
		Long: "Loads a model (a folder with config.json and safetensors, or a GGUF file) and answers one prompt: the text\n" +
			"to the standard output, the timings to the standard error. Sampling is as the model's makers advise unless\n" +
			"a flag says otherwise.\n\n" +
			"Exit code: 0 answered, 1 the model cannot be loaded or the prompt not be answered, 2 wrong usage, 71 a step did\n" +
			"not end, 130 stopped.",
		Example: "  velo run SmolLM2-135M-Instruct.Q4_1.gguf --prompt \"What is the capital of France?\"\n" +
			"  velo run ~/models/qwen3 --prompt-file question.txt --max-tokens 500 --greedy",
		Args: exactly(1, "run takes one model, a folder or a GGUF file (and a prompt of several words in quotes)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			return f.run(cmd, args[0])
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.prompt, "prompt", "p", "", "the prompt; without it, or -, it is read from the standard input")
	fl.StringVar(&f.file, "prompt-file", "", "read the prompt from a file")
	fl.StringVar(&f.system, "system", "", "a system message before it")
	fl.BoolVar(&f.plain, "plain", false, "leave the chat template out: the model goes on with the text")
	fl.IntVarP(&f.most, "max-tokens", "n", 512, "most tokens to generate; 0 = as many as the context has room for")
	fl.BoolVar(&f.ignoreEOS, "ignore-eos", false, "go on when the model would end")
	fl.BoolVar(&f.greedy, "greedy", false, "take the likeliest token each time")
	f.sampling.register(fl, "")
	fl.Uint64Var(&f.seed, "seed", 0, "seed of the random numbers (a new one each time)")
	fl.IntVar(&f.context, "context", 0, "tokens of prompt and answer together (4096, or what the model was made for)")
	f.computing.register(fl)
	fl.BoolVar(&f.force, "load-force", false, "load although the memory that is free is reckoned not to be enough")
	fl.StringVar(&f.watch, "step-watchdog-s", "auto", "end with code 71 when a step takes longer than so many `SECONDS` (and 20 times the longest of the last ones); auto = 60 on a GPU, off on the processor; off")
	fl.BoolVar(&f.asJSON, "json", false, "timings as one JSON object")
	fl.BoolVarP(&f.silent, "quiet", "q", false, "no progress and no timings")
	return cmd
}

// check refuses flags that make no sense, before anything is read.
func (f *answering) check(fl *pflag.FlagSet) error {
	for _, pair := range [][]string{{"prompt", "prompt-file"}, {"json", "quiet"}, {"plain", "system"}, {"greedy", "temperature"}} {
		if err := atMostOne(fl, pair...); err != nil {
			return err
		}
	}
	if f.most < 0 {
		return usage("--max-tokens is %d: it starts at 0, which is as many as the context has room for", f.most)
	}
	if f.context < 0 {
		return usage("--context is %d: it is a number of tokens, or 0 for 4096 or what the model was made for", f.context)
	}
	if err := f.computing.check(); err != nil {
		return usage("%v", err)
	}
	if _, err := stepLimit(f.watch, ""); err != nil {
		return usage("%v", err)
	}
	p := f.sampling.over(sample.Params{}, false)
	if err := p.Validate(1); err != nil {
		return usage("%v", err)
	}
	return nil
}

// run loads the model and prints its answer.
func (f *answering) run(cmd *cobra.Command, path string) error {
	flags, out, errs := cmd.Flags(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	text, err := promptText(cmd, f.prompt, f.file, flags.Changed("prompt"))
	if err != nil {
		return err
	}
	o := engine.Options{Backend: f.device, KV: f.kv, Context: f.context, Lanes: 1, Workers: f.threads, PrefillFP4: bool(f.fp4)}
	if !f.silent {
		o.Progress = loading(errs)
	}
	began := time.Now()
	e, err := loadModel(cmd.Context(), path, o, f.force)
	if err != nil {
		if o.Progress != nil {
			fmt.Fprint(errs, "\r\x1b[K") // the line of progress is not the error's beginning
		}
		return err
	}
	left := false // whether something of the engine goes on until the process ends
	defer func() {
		if !left {
			_ = e.Close()
		}
	}()
	loaded := time.Since(began)
	params := e.Defaults
	if f.greedy {
		params = sample.Params{}
	}
	params = f.sampling.over(params, false)
	if params.Seed = f.seed; !flags.Changed("seed") {
		params.Seed = uint64(time.Now().UnixNano())
	}
	var unwritten atomic.Pointer[error]
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	if limit, _ := stepLimit(f.watch, e.Memory.Sizes.Backend); limit > 0 {
		go func() {
			if hang := e.Watch(limit, ctx.Done()); hang != nil {
				cancel(hang)
			}
		}()
	}
	var a engine.Answer
	a, left, err = within(ctx, func() (engine.Answer, error) {
		ids, err := f.ids(e, text)
		if err != nil {
			return engine.Answer{}, err
		}
		return e.Generate(ctx, ids, params, f.most, f.ignoreEOS, func(s string) {
			if _, err := io.WriteString(out, s); err != nil {
				unwritten.CompareAndSwap(nil, &err)
				cancel(nil) // nobody reads any more
			}
		})
	})
	hang := new(model.HangError)
	switch broken := unwritten.Load(); {
	case errors.As(context.Cause(ctx), &hang):
		return exit{exitHung, hang.Error() + "\n" + runHungAdvice}
	case broken != nil:
		return unwritable(*broken)
	case left: // in the middle of a step that takes long
		return exit{exitStopped, "stopped; the text so far is there, the timings are not"}
	case err != nil:
		return exit{exitFailed, err.Error()}
	}
	fmt.Fprintln(out)
	t := timings{Model: e.Name, Device: e.Device, Seed: params.Seed, PromptTokens: a.Prompt, GeneratedTokens: a.Generated, Finish: a.Finish,
		LoadSeconds: loaded.Seconds(), Memory: e.Memory.Sum(), MemoryBytes: e.Memory.Total}
	if a.Generated > 0 {
		t.TTFT, t.PromptRate = a.First.Sub(a.Begin).Seconds(), a.Prefill()
	}
	if a.Generated > 1 {
		t.DecodeRate = a.Decode()
	}
	if err := t.print(errs, f.asJSON, f.silent); err != nil {
		return exit{exitFailed, err.Error()}
	}
	if a.Finish == engine.Cancelled && cmd.Context().Err() != nil {
		return exit{exitStopped, ""}
	}
	return nil
}

// ids encodes the prompt, as a conversation if the model has a template for that.
func (f *answering) ids(e *engine.Engine, text string) (ids []int32, err error) {
	switch {
	case !f.plain && e.Template != nil:
		ids, err = conversation(e, f.system, text)
	case f.system != "":
		err = fmt.Errorf("cannot begin with a system message: %s has no chat template; leave --system out", e.Name)
	default:
		ids = e.Text(text)
	}
	if err == nil && len(ids) >= e.Context {
		advice := "shorten it"
		if most := e.Weights.Config.MaxPosition; most > e.Context {
			advice += fmt.Sprintf(", or give a larger --context, %d at most", most)
		}
		err = fmt.Errorf("cannot answer a prompt of %d tokens: the context is %d, prompt and answer together; %s", len(ids), e.Context, advice)
	}
	return ids, err
}

// promptText is the prompt, wherever it comes from.
func promptText(cmd *cobra.Command, prompt, file string, given bool) (text string, err error) {
	switch {
	case file != "":
		if text, err = fileText(cmd.Context(), "the prompt", file); err == nil && text == "" {
			err = usage("--prompt-file %s is empty", file)
		}
		return text, err
	case given && prompt == "":
		return "", usage("--prompt is empty")
	case given && prompt != "-":
		if err := encoded([]byte(prompt)); err != nil {
			return "", exit{exitFailed, fmt.Sprintf("cannot use the prompt: %v", err)}
		}
		return prompt, nil
	}
	in := cmd.InOrStdin()
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintln(cmd.ErrOrStderr(), "Type the prompt and end it with Ctrl-D on a line of its own (Ctrl-Z and Enter on Windows).")
	}
	text, err = readText(cmd.Context(), "the prompt from the standard input", func() (io.ReadCloser, error) { return io.NopCloser(in), nil })
	if err == nil && text == "" {
		err = usage("there is no prompt: give --prompt TEXT, --prompt-file FILE, or one on the standard input")
	}
	return text, err
}

// conversation renders a conversation of one question.
func conversation(e *engine.Engine, system, text string) ([]int32, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	messages := []message{{"user", text}}
	if system != "" {
		messages = append([]message{{"system", system}}, messages...)
	}
	data, err := json.Marshal(messages)
	if err != nil {
		return nil, err
	}
	_, ids, err := e.Prompt(chat.Request{Messages: data, AddGenerationPrompt: true})
	var refused *chat.RefusedError
	if errors.As(err, &refused) {
		return nil, fmt.Errorf("cannot render the conversation: the model's template refuses it: %w; --plain leaves the template out", err)
	}
	return ids, err
}

// timings are what `velo run` says when it is done. Times are of the engine itself: nothing is
// transferred.
type timings struct {
	Model           string  `json:"model"`
	Device          string  `json:"device"`
	Seed            uint64  `json:"seed"`
	PromptTokens    int     `json:"prompt_tokens"`
	GeneratedTokens int     `json:"generated_tokens"`
	Finish          string  `json:"finish"`
	LoadSeconds     float64 `json:"load_s"`
	Memory          string  `json:"memory"` // the arithmetic, in words
	MemoryBytes     int64   `json:"memory_bytes"`
	TTFT            float64 `json:"ttft_s,omitempty"`
	PromptRate      float64 `json:"prefill_tok_per_s,omitempty"`
	DecodeRate      float64 `json:"decode_tok_per_s,omitempty"` // of the tokens after the first
}

func (t timings) print(w io.Writer, asJSON, silent bool) error {
	if silent {
		return nil
	}
	if asJSON {
		return json.NewEncoder(w).Encode(t)
	}
	fmt.Fprintf(w, "\n%s on %s\n", t.Model, t.Device)
	fmt.Fprintf(w, "memory   %s\n", t.Memory)
	fmt.Fprintf(w, "load     %.2f s\n", t.LoadSeconds)
	if t.TTFT > 0 {
		fmt.Fprintf(w, "prefill  %d tokens, %.1f tok/s, first token after %.3f s\n", t.PromptTokens, t.PromptRate, t.TTFT)
	}
	if t.DecodeRate > 0 {
		fmt.Fprintf(w, "decode   %d tokens, %.1f tok/s\n", t.GeneratedTokens, t.DecodeRate)
	} else {
		fmt.Fprintf(w, "decode   %d tokens\n", t.GeneratedTokens)
	}
	fmt.Fprintf(w, "ended    %s\n", map[string]string{engine.Stopped: "by the model", engine.Length: "at the limit of tokens", engine.Cancelled: "stopped"}[t.Finish])
	return nil
}

// loading shows how far loading has got and how fast it goes, where a person looks on.
func loading(w io.Writer) func(engine.Progress) {
	if !animated(w) {
		return nil
	}
	last := -1
	return func(p engine.Progress) {
		percent := int(math.Floor(100 * float64(p.Done) / float64(max(1, p.Total))))
		if percent == last {
			return
		}
		last = percent
		fmt.Fprintf(w, "\rloading %3d %%%s\x1b[K", percent, rateText(", ", p.Rate))
		if p.Done == p.Total {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}

// rateText is a rate of loading, with what stands before it; nothing while it is not known.
func rateText(before string, bytes float64) string {
	if bytes <= 0 {
		return ""
	}
	return fmt.Sprintf("%s%.2f GB/s", before, bytes/1e9)
}

// loadedText says how weights came, "" if the backend does not read them itself.
func loadedText(l ops.Loaded, took time.Duration) string {
	if l.Read <= 0 || took <= 0 {
		return ""
	}
	text := fmt.Sprintf("%.2f GB, %.2f GB/s", float64(l.Read)/1e9, float64(l.Read)/1e9/took.Seconds())
	switch {
	case l.Cached >= l.Read:
		text += ", from the page cache"
	case l.Cached > 0:
		text += fmt.Sprintf(", %d %% from the page cache", 100*l.Cached/l.Read)
	}
	if l.Refused != "" {
		text += "; " + l.Refused
	}
	return text
}
