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
	written := &output{to: out}
	root.SetOut(written)
	root.SetErr(errs)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		if broken := written.failure(); broken != nil {
			err = unwritable(broken)
		}
	}
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
			fmt.Fprintln(errs, "velo: "+hint(cmd))
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
					return usage("there is no command and no file %q%s", a, commandMeant(cmd, a))
				}
			}
			return openWindow(cmd, args, window)
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand(root))
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(benchCommand(), runCommand(), serveCommand(), probeCommand(), quantizeCommand(), simCommand(), sessionsCommand(), reportCommand(), calibrateCommand(), versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Prints the version of Velo and of what it was built with",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return nil
		},
	}
}

// versionText is the version and what it was built with, on a line.
func versionText() string {
	return fmt.Sprintf("velo %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// noDisplay tells whether a window cannot be opened here.
func noDisplay() bool {
	return runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == ""
}
