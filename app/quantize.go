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
	)
	cmd := &cobra.Command{
		Use:   "quantize FOLDER OUT",
		Short: "Writes a smaller copy of a model and says what was lost",
		Long: "Writes a folder of NVFP4 and FP8 matrices in the layout of compressed-tensors, which transformers and vLLM\n" +
			"load as well. Reports the error of each matrix and, with --text, the perplexity before and after.\n\n" +
			"The recipe is a comma list: all or all:FORMAT, GROUP, GROUP:FORMAT, -GROUP; groups are mlp, attn, gdn, lmhead,\n" +
			"embed, mtp, router and expert, formats nvfp4, fp8 and bf16. Later items win.",
		Example: "  velo quantize ~/models/qwen3-0.6b ~/models/qwen3-0.6b-nvfp4 --text wiki.txt\n" +
			"  velo quantize model small --recipe all:fp8,-lmhead",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := quantize.ParseRecipe(recipe)
			if err != nil {
				return usage("%v", err)
			}
			var passage []byte
			if text != "" {
				if window < 2 {
					return usage("--window must be at least 2 tokens")
				}
				if passage, err = os.ReadFile(text); err != nil {
					return exit{exitFailed, fmt.Sprintf("cannot read the text: %v", err)}
				}
			}
			m, err := weights.Open(args[0])
			if err != nil {
				return exit{exitFailed, err.Error()}
			}
			defer m.Close()
			out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
			outcome := quantised{Source: args[0], Folder: args[1]}
			// The text first: it must be found out before the long work that it cannot be used.
			if passage != nil {
				if outcome.PerplexityBefore, outcome.TextTokens, err = perplexity(cmd, args[0], string(passage), window, "before"); err != nil {
					return exit{exitFailed, err.Error()}
				}
			}
			done := 0
			r, err := quantize.Write(m, args[1], quantize.Options{Recipe: chosen, Progress: func(l quantize.Loss) {
				done++
				if !asJSON {
					fmt.Fprintf(errs, "%4d  %s to %s, relative RMS error %.4f\n", done, l.Name, l.Format, l.RMS)
				}
			}})
			if err != nil {
				return exit{exitFailed, err.Error()}
			}
			outcome.Report = r
			if passage != nil {
				if outcome.PerplexityAfter, _, err = perplexity(cmd, args[1], string(passage), window, "after"); err != nil {
					return exit{exitFailed, err.Error()}
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
	f.BoolVar(&asJSON, "json", false, "the report as one JSON object")
	return cmd
}

// perplexity loads a model for a text and lets go of it again.
func perplexity(cmd *cobra.Command, path, text string, window int, when string) (p float64, tokens int, err error) {
	e, err := engine.Load(path, engine.Options{Lanes: 1, Outputs: 64})
	if err != nil {
		return 0, 0, err
	}
	defer e.Close()
	ids := e.Text(text)
	errs, last := cmd.ErrOrStderr(), 0
	p, err = e.Perplexity(cmd.Context(), ids, window, func(done, total int) {
		if percent := 100 * done / total; percent/10 > last/10 {
			last = percent
			fmt.Fprintf(errs, "perplexity %s: %d %% of %d tokens\n", when, percent, total)
		}
	})
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
