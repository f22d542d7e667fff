package app

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"velo/bench/sim"
)

func simCommand() *cobra.Command {
	var (
		addr, scenario, log    string
		ttft, itl              time.Duration
		tokens, tokensPerChunk int
		withParent             bool
	)
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serves a scripted endpoint whose true token times are known",
		Long: "A scripted OpenAI-compatible endpoint: its schedule is known, and it logs the time before and after\n" +
			"each write, so that a client's stamps can be checked against it. It is not a model.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if scenario == "list" {
				for _, s := range sim.Scenarios() {
					fmt.Fprintf(out, "%-24s %s\n", s.Name, s.Description)
				}
				return nil
			}
			s, err := sim.Load(scenario)
			if err != nil {
				return exit{exitUsage, err.Error()}
			}
			flags := cmd.Flags()
			if flags.Changed("ttft") {
				s.TTFT = sim.Duration(ttft)
			}
			if flags.Changed("itl") {
				s.ITL = sim.Duration(itl)
			}
			if flags.Changed("tokens") {
				s.Tokens = tokens
			}
			if flags.Changed("tokens-per-chunk") {
				s.TokensPerChunk = tokensPerChunk
			}
			o := sim.Options{Addr: addr, Scenario: s}
			if log != "" {
				f, err := os.Create(log)
				if err != nil {
					return exit{exitFailed, fmt.Sprintf("cannot write the log %q: %v", log, err)}
				}
				defer f.Close()
				o.Log = f
			}
			server, err := sim.Start(o)
			if err != nil {
				return exit{exitFailed, err.Error()}
			}
			fmt.Fprintln(out, server.URL())
			ctx := cmd.Context()
			if withParent {
				gone := make(chan struct{})
				go func() {
					_, _ = io.Copy(io.Discard, cmd.InOrStdin())
					close(gone)
				}()
				select {
				case <-gone:
				case <-ctx.Done():
				}
			} else {
				<-ctx.Done()
			}
			return server.Close()
		},
	}
	f := cmd.Flags()
	f.StringVar(&addr, "addr", "127.0.0.1:8177", "`HOST:PORT` to listen on; port 0 picks a free one")
	f.DurationVar(&ttft, "ttft", 0, "time to first token")
	f.DurationVar(&itl, "itl", 0, "time between tokens")
	f.IntVar(&tokens, "tokens", 0, "tokens of an answer that nothing else limits")
	f.IntVar(&tokensPerChunk, "tokens-per-chunk", 0, "tokens in each stream event")
	f.StringVar(&scenario, "scenario", "steady", "`NAME` of a built-in scenario or a file; list prints the names")
	f.StringVar(&log, "log", "", "`FILE` that takes one JSON line a chunk: the times before and after its write")
	f.BoolVar(&withParent, "with-parent", false, "end when standard input closes")
	_ = f.MarkHidden("with-parent")
	return cmd
}
