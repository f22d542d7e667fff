package ops

import "fmt"

// Fault is a device that failed in the middle of its work: a kernel that trapped, memory that ran
// out, a driver that is gone. Nothing that was computed since the last Read is to be trusted, and
// most faults are for good: the process has to open the device again. Operations return no error,
// so a backend panics with a *Fault; model.Model returns it as an error.
type Fault struct{ Err error }

func (f *Fault) Error() string { return fmt.Sprintf("cannot compute on the GPU: %v", f.Err) }

// Unwrap is what the device said.
func (f *Fault) Unwrap() error { return f.Err }

// Recover turns a panic with a *Fault into an error, unless there is one already. It is for defer:
//
//	defer ops.Recover(&err)
//
// Any other panic goes on.
func Recover(err *error) {
	v := recover()
	if v == nil {
		return
	}
	f, ok := v.(*Fault)
	if !ok {
		panic(v)
	}
	if *err == nil {
		*err = f
	}
}
