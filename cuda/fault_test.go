//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"testing"

	"velo/engine/ops"
)

// TestFaultIsForGood: the calls of a step that failed are not made in the next one, with its batch, and
// what is asked for afterwards is told of the same fault. No device is needed.
func TestFaultIsForGood(t *testing.T) {
	cause := errors.New("it trapped")
	b := &Backend{options: BackendOptions{Rows: 4}, calls: []call{{kind: embedCall, rows: 1}}}
	say := func(f func()) (err error) {
		defer ops.Recover(&err)
		f()
		return nil
	}
	if err := say(func() { b.must(nil) }); err != nil || len(b.calls) != 1 {
		t.Fatalf("no error is %v, with %d calls left", err, len(b.calls))
	}
	first := say(func() { b.must(cause) })
	if !errors.Is(first, cause) || len(b.calls) != 0 {
		t.Errorf("the fault is %v, with %d calls left", first, len(b.calls))
	}
	if err := say(func() { b.Begin(&ops.Batch{Tokens: []int32{1}}) }); err != first {
		t.Errorf("a step after it is told %v", err)
	}
	if err := say(func() { b.must(errors.New("another")) }); err != first {
		t.Errorf("a second fault is %v", err)
	}
}
