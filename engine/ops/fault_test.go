package ops

import (
	"errors"
	"testing"
)

func TestRecover(t *testing.T) {
	cause := errors.New("it trapped")
	call := func(v any) (err error) {
		defer Recover(&err)
		if v != nil {
			panic(v)
		}
		return nil
	}
	if err := call(nil); err != nil {
		t.Error(err)
	}
	err := call(&Fault{Err: cause})
	var f *Fault
	if !errors.As(err, &f) || !errors.Is(err, cause) || err.Error() != "cannot compute on the GPU: it trapped" {
		t.Errorf("a fault became %v", err)
	}
	defer func() {
		if v := recover(); v != "another" {
			t.Errorf("another panic became %v", v)
		}
	}()
	_ = call("another")
}
