package app

import (
	"context"
	"errors"
	"time"
)

// leftPatience is how long after it was killed a child may take to be gone.
const leftPatience = 5 * time.Second

// errLeft is a child that could not be ended: it waits inside a driver that does not answer.
var errLeft = errors.New("cannot end a process of velo probe: it waits for the driver; restart the machine")

// unlessLeft runs a child that ends with ctx. One that the system cannot end, since a driver holds it,
// is left behind; what run would write to is not to be looked at then.
func unlessLeft(ctx context.Context, patience time.Duration, run func() error) error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		return errLeft
	}
}
