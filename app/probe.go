package app

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"velo/engine"
	"velo/engine/backend"
	"velo/engine/probe"
	"velo/engine/synthetic"
	"velo/engine/weights"
)

// probeCommand is `velo probe`: what the GPU can do, and what a step of a model takes of that.
func probeCommand() *cobra.Command {
	var (
		made, folder, estimate string
		kv                     string
		rows                   []int
		behind                 int
		seconds                float64
		asJSON, facts          bool
	)
	cmd := &cobra.Command{
		Use:   "probe [--synthetic MODEL | --model-dir FOLDER|FILE.gguf]",
		Short: "Measures the GPU, and what each kernel of a model's step takes on it",
		Long: "Measures what the GPU of this machine can do (bandwidth, the cost of a launch) and, with a model, for every\n" +
			"kernel of a decode step its bytes, its time and the share of the measured bandwidth, and how far the step is\n" +
			"from the time that reading its bytes takes. --synthetic makes random weights of a model's true shape on the\n" +
			"GPU, so no files are needed: " + strings.Join(synthetic.Names(), ", ") + ",\n" +
			"each with :nvfp4, :fp8 or :bf16 behind it.\n\n" +
			"Exit code: 0 measured, 1 there is no GPU that can be used or no room, 2 wrong flag, 130 stopped.",
		Example: "  velo probe\n" +
			"  velo probe --synthetic qwen3.6-27b:nvfp4 --rows 1,8 --estimate gb10\n" +
			"  velo probe --model-dir ~/models/Qwen3.5-9B-FP8 --context 8192 --json",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := atMostOne(cmd.Flags(), "synthetic", "model-dir"); err != nil {
				return err
			}
			o := probe.Options{Rows: rows, Context: behind, KV: kv, Time: time.Duration(seconds * float64(time.Second)), Estimate: estimate}
			if err := o.Check(); err != nil {
				return exit{exitUsage, err.Error()}
			}
			if facts {
				_, place, err := backend.Resolve(backend.Options{})
				if err == nil {
					err = json.NewEncoder(cmd.OutOrStdout()).Encode(placedAt(place))
				}
				if err != nil {
					return exit{exitFailed, err.Error()}
				}
				return nil
			}
			if _, err := backend.KVType(backend.Options{Name: backend.CUDA, KV: kv}); err != nil {
				return exit{exitUsage, err.Error()}
			}
			if !(seconds > 0) {
				return usage("--seconds is %g: it takes a time above 0", seconds)
			}
			switch {
			case made != "":
				w, err := synthetic.Open(made)
				if err != nil {
					return exit{exitUsage, err.Error()}
				}
				o.Open = func() (*weights.Model, error) { return w, nil }
			case folder != "":
				o.Open = func() (*weights.Model, error) { return weights.Open(folder) }
			}
			errs := cmd.ErrOrStderr()
			if !asJSON {
				o.Say = func(sentence string) { fmt.Fprintln(errs, sentence) }
				if show := loading(errs); show != nil {
					o.Progress = func(done, total int64) { show(engine.Progress{Done: done, Total: total}) }
				}
			}
			r, _, err := within(cmd.Context(), func() (*probe.Report, error) { return runProbe(cmd, o) })
			if err != nil && cmd.Context().Err() != nil {
				return exit{exitStopped, "stopped; nothing is told of what was measured so far"}
			}
			if asJSON {
				answer := probeAnswer{Report: r}
				if err != nil {
					answer.Error, answer.Advice = err.Error(), probeAdvice(err)
				}
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(answer); err != nil {
					return exit{exitFailed, fmt.Sprintf("cannot write the result: %v", err)}
				}
			}
			if err != nil {
				text := err.Error()
				if advice := probeAdvice(err); advice != "" {
					text += "\n" + advice
				}
				return exit{exitFailed, text}
			}
			if !asJSON {
				printProbe(cmd.OutOrStdout(), r)
			}
			if cmd.Context().Err() != nil {
				return exit{exitStopped, "stopped; the rest was not measured"}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&made, "synthetic", "", "`MODEL` to make up on the GPU, as qwen3.6-27b:nvfp4")
	f.StringVar(&folder, "model-dir", "", "`FOLDER|FILE.gguf` of a real model instead")
	f.IntSliceVar(&rows, "rows", []int{1}, "sequences of a decode step, several as 1,8: each is a step of its own")
	f.IntVar(&behind, "context", 128, "positions behind each sequence")
	registerKV(f, &kv, "")
	f.Float64Var(&seconds, "seconds", 60, "begin nothing new after so many; making the model ready is not cut short")
	f.StringVar(&estimate, "estimate", "", "estimate the times on another device too: gb10")
	f.BoolVar(&facts, "facts", false, "where a model would be computed and how much memory there is, as JSON; nothing is measured")
	f.BoolVar(&asJSON, "json", false, "the result as one JSON object")
	return cmd
}

// probeAnswer is what `velo probe --json` prints: a report, or why there is none.
type probeAnswer struct {
	*probe.Report
	Error  string `json:"error,omitempty"`
	Advice string `json:"advice,omitempty"`
}

// runProbe opens the GPU and probes it.
func runProbe(cmd *cobra.Command, o probe.Options) (*probe.Report, error) {
	b, err := backend.New(backend.Options{Name: backend.CUDA, KV: o.KV})
	if err != nil {
		return nil, noDevice{err}
	}
	defer b.Close()
	p, ok := b.(backend.Prober)
	if !ok {
		return nil, fmt.Errorf("cannot probe %s: it tells nothing of itself", b.Name())
	}
	return probe.Run(cmd.Context(), p, o)
}

// noDevice is a GPU that cannot be opened.
type noDevice struct{ error }

// probeAdvice says what to do about an error, or nothing.
func probeAdvice(err error) string {
	if _, ok := err.(noDevice); ok {
		return "Install NVIDIA's driver, of 580 or newer, and check that nvidia-smi lists the GPU; in a container, start it with access to the GPU."
	}
	return ""
}

// printProbe prints a report for a person.
func printProbe(w io.Writer, r *probe.Report) {
	d, c := &r.Device, &r.Ceilings
	line := func(name, format string, a ...any) { fmt.Fprintf(w, "%-18s %s\n", name, fmt.Sprintf(format, a...)) }
	line("GPU", "%s, compute capability %s, %d SMs at up to %d MHz, L2 %.0f MiB", d.Name, d.Capability, d.SMs, d.Clock, float64(d.L2)/(1<<20))
	where := ""
	if d.Integrated {
		where = ", shared with the processor"
	}
	line("memory", "%.1f GiB, %.1f free%s", float64(d.Memory)/(1<<30), float64(d.Free)/(1<<30), where)
	driver := "CUDA " + d.CUDA
	if d.Driver != "" {
		driver = d.Driver + ", " + driver
	}
	line("driver", "%s", driver)
	line("kernels", "%s (%s)", d.KernelSet, d.KernelReason)
	line("read", "%.3f TB/s, of %.1f GiB gone through", c.Read/1e12, float64(c.Bytes)/(1<<30))
	line("copy", "%.3f TB/s, read and written together", c.Copy/1e12)
	line("launch", "%.2f µs of the host, %.1f µs until it is known to be done", c.Launch, c.Round)
	line("graph", "%.2f µs of the host, %.1f µs until it is known to be done", c.GraphLaunch, c.GraphRound)
	node := ""
	if c.Dependent > 0 {
		node = fmt.Sprintf(", %.2f µs where it may begin before the one ahead has ended", c.Dependent)
	}
	line("kernel in a graph", "%.2f µs that does nothing%s", c.Node, node)
	if r.State != nil {
		if text := probeState(r.State); text != "" {
			line("afterwards", "%s", text)
		}
	}
	if r.Model == nil {
		fmt.Fprintf(w, "took %.1f s\n", r.Seconds)
		return
	}
	line("model", "%s, %.2f GB on the GPU, ready after %.1f s", r.Model.Name, float64(r.Model.Weights)/1e9, r.Model.Load)
	for i := range r.Model.Steps {
		printStep(w, &r.Model.Steps[i], r.Estimate)
	}
	for _, n := range r.Model.Left {
		line("not measured", "a decode step of %s: the time was over, --seconds gives more", amount(n, "row"))
	}
	fmt.Fprintf(w, "\ntook %.1f s\n", r.Seconds)
}

// probeState is what the GPU told right after a probe, in words; empty: nothing.
func probeState(s *probe.State) string {
	var parts []string
	for _, p := range []struct {
		v      float64
		format string
	}{{s.Power, "%.0f W"}, {s.SMClock, "SMs at %.0f MHz"}, {s.MemoryClock, "memory at %.0f MHz"}, {s.Temperature, "%.0f °C"}} {
		if p.v > 0 {
			parts = append(parts, fmt.Sprintf(p.format, p.v))
		}
	}
	switch {
	case len(s.Throttled) > 0:
		parts = append(parts, "its clocks are kept down: "+strings.Join(s.Throttled, ", "))
	case s.Throttled != nil:
		parts = append(parts, "nothing keeps its clocks down")
	}
	return strings.Join(parts, ", ")
}

// printStep prints the kernels of a step and its budget.
func printStep(w io.Writer, s *probe.Step, estimate string) {
	fmt.Fprintf(w, "\nA decode step of %s with %s behind: %d launches\n\n", amount(s.Rows, "row"), amount(s.Context, "position"), s.Launches)
	head := []string{"kernel", "shape", "launches", "MB", "µs each", "µs", "of read bandwidth", "of the step"}
	if estimate != "" {
		head = append(head, estimate+" µs (estimate)")
	}
	table := [][]string{head}
	for _, k := range s.Costs {
		row := []string{k.Kernel, k.Shape, fmt.Sprint(k.Launches), "–", "–", "–", "–", "–"}
		if k.Bytes > 0 {
			row[3] = fmt.Sprintf("%.1f", float64(k.Bytes)/1e6)
		}
		if k.Time > 0 {
			row[4], row[5] = fmt.Sprintf("%.2f", k.Time/float64(k.Launches)), fmt.Sprintf("%.1f", k.Time)
			row[7] = fmt.Sprintf("%.1f %%", 100*k.Time/s.Graph)
			if k.Bytes > 0 {
				row[6] = fmt.Sprintf("%.0f %%", 100*k.Share)
			}
		}
		if estimate != "" {
			row = append(row, "–")
			if k.Estimate > 0 {
				row[8] = fmt.Sprintf("%.1f", k.Estimate)
			}
		}
		table = append(table, row)
	}
	columns(w, table, 2)
	line := func(name, format string, a ...any) { fmt.Fprintf(w, "%-18s %s\n", name, fmt.Sprintf(format, a...)) }
	fmt.Fprintln(w)
	line("roofline", "%9.1f µs: %.2f GB once at the measured bandwidth", s.Roofline, float64(s.Bytes)/1e9)
	line("graph", "%9.1f µs on the device: %.0f %% of the roofline's rate, a gap of %.1f µs", s.Graph, 100*s.Share, s.Gap)
	left := ""
	if n := s.Unmeasured(); n > 0 {
		left = fmt.Sprintf(", but for %d of %s, too short to be measured or after the time was over", n, amount(len(s.Costs), "kind"))
	}
	line("kernels", "%9.1f µs, each kind by itself%s", s.Kernels, left)
	switch {
	case s.Between > 0:
		line("between kernels", "%9.1f µs: from one kind to the next", s.Between)
	case s.Between < 0:
		line("overlap", "%9.1f µs: kernels of different kinds run beside each other", -s.Between)
	}
	line("step", "%9.1f µs for the host: %.1f tok/s", s.Step, s.Rate)
	if s.Estimate > 0 {
		line("on "+estimate, "%9.1f µs at least (estimate: the same bytes at %.0f GB/s)", s.Estimate, probe.Targets[estimate]/1e9)
	}
}

func amount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// columns writes a table whose first left columns are aligned to the left, all others to the right.
func columns(w io.Writer, table [][]string, left int) {
	wide := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			wide[i] = max(wide[i], len([]rune(cell)))
		}
	}
	for _, row := range table {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", wide[i]-len([]rune(cell)))
			if i > 0 {
				b.WriteString("  ")
			}
			if i < left {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
