package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"velo/bench/sim"
	"velo/engine/emit"
)

func simCommand() *cobra.Command {
	var (
		addr, scenario, log    string
		ttft, itl              time.Duration
		tokens, tokensPerChunk int
		withParent             bool
		telemetry              sim.EmitOptions
	)
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serves a scripted endpoint whose true token times are known",
		Long: "A scripted OpenAI-compatible endpoint: its schedule is known, and it logs the time before and after\n" +
			"each write, so that a client's stamps can be checked against it. It is not a model.\n\n" +
			"With --otlp it sends the telemetry of an engine that generates to a receiver instead, until it is\n" +
			"interrupted, and prints what was sent.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			if telemetry.URL != "" {
				ctx := cmd.Context()
				if withParent {
					alone, cancel := context.WithCancel(ctx)
					defer cancel()
					go func() {
						_, _ = io.Copy(io.Discard, cmd.InOrStdin())
						cancel()
					}()
					ctx = alone
				}
				return emitTelemetry(ctx, cmd, telemetry)
			}
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
			if err := s.Validate(); err != nil {
				return usage("cannot serve scenario %q so: %v", s.Name, err)
			}
			if _, port, err := net.SplitHostPort(addr); err != nil {
				return usage("--addr takes HOST:PORT, not %q", addr)
			} else if _, err := net.LookupPort("tcp", port); err != nil {
				return usage("--addr takes a port from 0 to 65535, not %q", port)
			}
			o := sim.Options{Addr: addr, Scenario: s}
			if log != "" {
				f, err := os.Create(log)
				if err != nil {
					return exit{exitFailed, fmt.Sprintf("cannot write the log %s: %v", log, reason(err))}
				}
				defer f.Close()
				o.Log = f
			}
			server, err := sim.Start(o)
			if err != nil && errors.As(err, new(*net.OpError)) {
				err = fmt.Errorf("cannot listen on %s: %w", addr, unheard(err))
			}
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
	f.StringVar(&telemetry.URL, "otlp", "", "`URL` of an OTLP receiver to send telemetry to: http://127.0.0.1:4318 or grpc://127.0.0.1:4317, https or grpcs for TLS")
	f.Float64Var(&telemetry.Rate, "otlp-rate", 100, "generation records a second, 1 to 10,000")
	f.Uint64Var(&telemetry.Records, "otlp-records", 0, "end after so many records")
	f.IntVar(&telemetry.Streams, "otlp-streams", 4, "generations at a time")
	f.IntVar(&telemetry.Tokens, "otlp-tokens", 200, "tokens of a generation")
	f.StringVar(&telemetry.Encoding, "otlp-encoding", "json", "json or protobuf, over HTTP")
	f.BoolVar(&telemetry.Gzip, "otlp-gzip", false, "compress bodies")
	f.BoolVar(&telemetry.Usage, "otlp-usage", false, "say with each chunk how many tokens there are so far")
	f.StringVar(&telemetry.Token, "otlp-token", "", "bearer token of the receiver; OTEL_EXPORTER_OTLP_HEADERS is heeded too")
	f.Float64Var(&telemetry.Drop, "otlp-drop", 0, "share of records that are left out, 0 to 1")
	f.Float64Var(&telemetry.Reorder, "otlp-reorder", 0, "share of records that come after later ones, 0 to 1")
	f.Float64Var(&telemetry.Malformed, "otlp-malformed", 0, "malformed bodies for each that is sound, 0 to 1")
	f.DurationVar(&telemetry.Restart, "otlp-restart", 0, "restart the engine that often: generations break off, counters begin at zero")
	f.Uint64Var(&telemetry.Seed, "otlp-seed", 1, "of what is left out, late and malformed, and of the names of sessions")
	f.BoolVar(&withParent, "with-parent", false, "end when standard input closes")
	_ = f.MarkHidden("with-parent")
	return cmd
}

// emitTelemetry sends telemetry until the command is interrupted.
func emitTelemetry(ctx context.Context, cmd *cobra.Command, o sim.EmitOptions) error {
	var failure error
	headers, err := emit.ParseHeaders(os.Getenv(emit.HeadersVariable))
	if err != nil {
		return exit{exitUsage, err.Error()}
	}
	if o.TLS, err = emit.Trusting(os.Getenv(emit.CertificateVariable)); err != nil {
		return exit{exitUsage, err.Error()}
	}
	if o.Headers = headers; o.Token != "" {
		maps.DeleteFunc(o.Headers, func(name, _ string) bool { return strings.EqualFold(name, "authorization") })
	}
	o.Report = func(err error) {
		if failure == nil {
			fmt.Fprintln(cmd.ErrOrStderr(), err)
		}
		failure = err
	}
	n, err := sim.Emit(ctx, o)
	if err != nil {
		return exit{exitUsage, err.Error()}
	}
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
	if n.Bodies == 0 && failure != nil {
		return exit{exitFailed, failure.Error()}
	}
	return nil
}
