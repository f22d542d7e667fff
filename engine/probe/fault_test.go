package probe

import (
	"context"
	"errors"
	"testing"

	"velo/engine/backend"
	"velo/engine/enginetest"
	"velo/engine/ops"
	"velo/engine/weights"
)

// lost is a device that is gone when a sequence gets its state, which no step is there to tell of.
type lost struct {
	*fake
	cause error
}

type lostCache struct {
	ops.Cache
	cause error
}

func (l *lost) Cache(shape ops.CacheShape, pages, states int) (ops.Cache, error) {
	c, err := l.fake.Cache(shape, pages, states)
	return lostCache{c, l.cause}, err
}

func (c lostCache) ClearState(int32) { panic(&ops.Fault{Err: c.cause}) }

// TestRunOnLostDevice: a fault ends the probe with a sentence and not with a stack.
func TestRunOnLostDevice(t *testing.T) {
	folder, cause := enginetest.Folder(t, enginetest.Hybrid), errors.New("it has fallen off the bus")
	var b backend.Prober = &lost{prober(t), cause}
	_, err := Run(context.Background(), b, Options{Open: func() (*weights.Model, error) { return weights.Open(folder) }})
	var f *ops.Fault
	if !errors.As(err, &f) || !errors.Is(err, cause) {
		t.Errorf("a device that is gone: %v", err)
	}
}
