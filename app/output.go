package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// output is the standard output of a command. It remembers that something could not be written, which a
// command that prints a table does not look at: what is not there was not said.
type output struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// failure is what went wrong first.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// unwritable is the exit of a command whose output could not be written. Nobody is told that nobody reads.
func unwritable(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return exit{exitFailed, ""}
	}
	return exit{exitFailed, fmt.Sprintf("cannot write to the standard output: %v", reason(err))}
}

// animated tells whether w is a terminal on which a line can be written anew.
func animated(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
