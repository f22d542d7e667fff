// Package app is the composition root: the command line, the program behind the window, and the
// wiring between what measures (bench), what keeps (store) and what shows (ui). It measures nothing
// and draws nothing itself.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"velo/ui/console"
)

// version is set by the Makefile.
var version = "unknown"

// Version is this program's version.
func Version() string { return version }

// Window opens the window on a console and returns the exit code when it has been closed. raise
// delivers the files that a second start was given.
type Window func(c console.Console, open []string, raise <-chan []string) int

// The exit codes of the command line: a contract with scripts.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitSLO     = 3
	exitStopped = 130
)

// exit is an error that carries its exit code. An empty text prints nothing: the command has said
// it already.
type exit struct {
	code int
	text string
}

func (e exit) Error() string { return e.text }

func usage(format string, a ...any) error { return exit{exitUsage, fmt.Sprintf(format, a...)} }

// exactly takes n arguments; takes is a sentence about what they are.
func exactly(n int, takes string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > n:
			return usage("%s: %q is one too many", takes, args[n])
		case len(args) < n:
			return usage("%s: %d of %d arguments are there", takes, len(args), n)
		}
		return nil
	}
}

// Main runs the program with the arguments after its name and returns the exit code.
func Main(args []string, window Window) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first Ctrl-C ends the measurement and keeps what there is; a second one ends the program.
	context.AfterFunc(ctx, stop)
	return run(ctx, args, os.Stdin, os.Stdout, os.Stderr, window)
}

func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer, window Window) int {
	root := rootCommand(window)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var e exit
	if !errors.As(err, &e) {
		// Whatever cobra itself refuses is a matter of usage.
		e = exit{exitUsage, err.Error()}
	}
	if e.text != "" {
		fmt.Fprintln(errs, "velo: "+e.text)
		if e.code == exitUsage {
			fmt.Fprintln(errs, "velo: `velo help` lists the commands, `velo COMMAND --help` their flags")
		}
	}
	return e.code
}

func rootCommand(window Window) *cobra.Command {
	root := &cobra.Command{
		Use:   "velo [FILE…]",
		Short: "Measures OpenAI-compatible endpoints, per token, per request and under load",
		Long: "Without a command Velo opens its window, and in it the files that are named (suites, sessions).\n" +
			"The commands do the same jobs without a window.",
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, a := range args {
				if _, err := os.Stat(a); err != nil {
					if strings.ContainsAny(a, "/.\\") {
						return usage("cannot open %q: %v", a, errors.Unwrap(err))
					}
					return usage("there is no command and no file %q", a)
				}
			}
			return openWindow(cmd, args, window)
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(benchCommand(), runCommand(), serveCommand(), probeCommand(), quantizeCommand(), simCommand(), sessionsCommand(), reportCommand(), calibrateCommand(), versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of Velo and of what it was built with",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "velo %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// noDisplay tells whether a window cannot be opened here.
func noDisplay() bool {
	return runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == ""
}
