package app

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestUnlessLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cause := errors.New("exit status 3")
	if err := unlessLeft(ctx, time.Minute, func() error { return cause }); err != cause {
		t.Errorf("a child that ends by itself: %v", err)
	}
	cancel()
	killed := errors.New("signal: killed")
	if err := unlessLeft(ctx, time.Minute, func() error { <-ctx.Done(); return killed }); err != killed {
		t.Errorf("a child that is killed: %v", err)
	}
	never := make(chan struct{})
	defer close(never)
	done := make(chan error, 1)
	go func() { done <- unlessLeft(ctx, 10*time.Millisecond, func() error { <-never; return nil }) }()
	select {
	case err := <-done:
		if err != errLeft {
			t.Errorf("a child that a driver holds: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("a child that a driver holds is waited for")
	}
}
