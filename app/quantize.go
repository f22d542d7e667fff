package app

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"velo/engine"
	"velo/engine/quantize"
	"velo/engine/weights"
)

// quantizeCommand is `velo quantize`: a smaller copy of a model, and what was lost.
func quantizeCommand() *cobra.Command {
	var (
		recipe, text string
		window       int
		asJSON       bool
		computed     computing
		force        bool
	)
	cmd := &cobra.Command{
		Use:   "quantize FOLDER OUT",
		Short: "Writes a smaller copy of a model and says what was lost",
		Long: "Writes a folder of NVFP4 and FP8 matrices in the layout of compressed-tensors, which transformers and vLLM\n" +
			"load as well. Reports the error of each matrix and, with --text, the perplexity before and after: for that the\n" +
			"model is loaded twice, where --device says, and refused before anything is written if it does not fit there.\n" +
			"Without --text nothing is loaded: matrices are read from the files one at a time.\n\n" +
			"The recipe is a comma list: all or all:FORMAT, GROUP, GROUP:FORMAT, -GROUP; groups are mlp, attn, gdn, lmhead,\n" +
			"embed, mtp, router and expert, formats nvfp4, fp8 and bf16. Later items win.",
		Example: "  velo quantize ~/models/qwen3-0.6b ~/models/qwen3-0.6b-nvfp4 --text wiki.txt\n" +
			"  velo quantize model small --recipe all:fp8,-lmhead",
		Args: exactly(2, "quantize takes a model's folder and the new folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, out, errs := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			chosen, err := quantize.ParseRecipe(recipe)
			if err != nil {
				return usage("%v", err)
			}
			var passage string
			if err := computed.check(); err != nil {
				return usage("%v", err)
			}
			if text == "" {
				for _, name := range []string{"window", "device", "kv-type", "threads", "load-force"} {
					if cmd.Flags().Changed(name) {
						return usage("--%s is of the perplexity: give --text FILE with it", name)
					}
				}
			}
			if text != "" {
				if window < 2 {
					return usage("--window must be at least 2 tokens")
				}
				if passage, err = fileText(ctx, "the text", text); err != nil {
					return err
				}
			}
			m, left, err := within(ctx, func() (*weights.Model, error) { return openModel(args[0]) })
			if left {
				return stoppedQuantising(args[1])
			}
			if err != nil {
				return exit{exitFailed, err.Error()}
			}
			defer func() {
				if !left {
					_ = m.Close()
				}
			}()
			done := 0
			options := quantize.Options{Recipe: chosen, Progress: func(l quantize.Loss) {
				done++
				if !asJSON {
					fmt.Fprintf(errs, "%4d  %s to %s, relative RMS error %.4f\n", done, l.Name, l.Format, l.RMS)
				}
			}}
			// What can be refused is, before the long work.
			if err := quantize.Check(m, args[1], options); err != nil {
				return exit{exitFailed, err.Error()}
			}
			outcome := quantised{Source: args[0], Folder: args[1]}
			// Perplexity needs the model in memory, once as it is and once as it was written; the rest does not.
			measure := func(path, when string) (p float64, err error) {
				o := engine.Options{Backend: computed.device, KV: computed.kv, Workers: computed.threads, Lanes: 1, Outputs: 64, Context: window}
				if most := m.Config.MaxPosition; most > 0 && !cmd.Flags().Changed("window") {
					o.Context = min(window, most)
				}
				p, outcome.TextTokens, err = perplexity(cmd, path, passage, o, force, when)
				return p, err
			}
			if text != "" {
				if outcome.PerplexityBefore, err = measure(args[0], "before"); err != nil {
					return err
				}
			}
			outcome.Report, left, err = within(ctx, func() (*quantize.Report, error) { return quantize.Write(ctx, m, args[1], options) })
			if err != nil {
				if ctx.Err() != nil {
					return stoppedQuantising(args[1])
				}
				return exit{exitFailed, err.Error()}
			}
			if text != "" {
				if outcome.PerplexityAfter, err = measure(args[1], "after"); err != nil {
					return err
				}
			}
			if asJSON {
				return json.NewEncoder(out).Encode(outcome)
			}
			outcome.print(out)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&recipe, "recipe", quantize.DefaultRecipe, "what becomes what")
	f.StringVar(&text, "text", "", "a text file: work out its perplexity with the model before and after")
	f.IntVar(&window, "window", 512, "tokens that a prediction may look back on, at most")
	computed.register(f)
	f.BoolVar(&force, "load-force", false, "with --text: load although the memory that is free is reckoned not to be enough")
	f.BoolVar(&asJSON, "json", false, "the report as one JSON object")
	return cmd
}

// stoppedQuantising is the exit of a run that was told to stop before the new folder was whole.
func stoppedQuantising(folder string) error {
	if _, err := os.Lstat(folder + ".part"); err == nil {
		return exit{exitStopped, fmt.Sprintf("stopped; remove %s.part, which is not whole", folder)}
	}
	return exit{exitStopped, "stopped; nothing was written"}
}

// perplexity loads a model for a text and lets go of it again. The error is an exit.
func perplexity(cmd *cobra.Command, path, text string, o engine.Options, force bool, when string) (p float64, tokens int, err error) {
	ctx := cmd.Context()
	e, err := loadModel(ctx, path, o, force)
	if err != nil {
		return 0, 0, err
	}
	ids := e.Text(text)
	errs, last := cmd.ErrOrStderr(), 0
	p, left, err := within(ctx, func() (float64, error) {
		return e.Perplexity(ctx, ids, o.Context, func(done, total int) {
			if percent := 100 * done / total; percent/10 > last/10 {
				last = percent
				fmt.Fprintf(errs, "perplexity %s: %d %% of %d tokens\n", when, percent, total)
			}
		})
	})
	if left {
		return 0, 0, exit{exitStopped, "stopped while the perplexity was worked out"}
	}
	_ = e.Close()
	switch {
	case err != nil && ctx.Err() != nil:
		err = exit{exitStopped, "stopped while the perplexity was worked out"}
	case err != nil:
		err = exit{exitFailed, err.Error()}
	}
	return p, len(ids), err
}

// quantised is what `velo quantize` reports.
type quantised struct {
	Source, Folder                    string
	Report                            *quantize.Report
	TextTokens                        int     `json:",omitempty"`
	PerplexityBefore, PerplexityAfter float64 `json:",omitempty"`
}

func (q quantised) print(w io.Writer) {
	r := q.Report
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "matrix\tgroup\tformat\tshape\tRMS error\tlargest\tbytes")
	for _, l := range r.Losses {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%v\t%.2f %%\t%.3g\t%d → %d\n", l.Name, l.Group, l.Format, l.Shape, 100*l.RMS, l.Largest, l.Before, l.After)
	}
	_ = tw.Flush()
	for _, k := range r.Kept {
		fmt.Fprintln(w, "kept:", k)
	}
	fmt.Fprintf(w, "%s: %d matrices by %s, %.1f MB instead of %.1f MB (%.0f %%)\n", q.Folder, len(r.Losses), r.Recipe,
		float64(r.After)/1e6, float64(r.Before)/1e6, 100*float64(r.After)/float64(r.Before))
	if q.TextTokens > 0 {
		fmt.Fprintf(w, "perplexity on %d tokens: %.4f before, %.4f after (%+.2f %%)\n", q.TextTokens, q.PerplexityBefore, q.PerplexityAfter,
			100*(q.PerplexityAfter/q.PerplexityBefore-1))
	}
}
