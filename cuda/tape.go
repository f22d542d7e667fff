//go:build linux && cuda && cgo

package cuda

// tape notes the launches of a step as they are made, with the operation that each belongs
// to, so that they can be run again, kind by kind. A nil tape notes nothing.
type tape struct {
	calls    []call
	launches []taped
}

// taped is a launch with all that it takes to make it again.
type taped struct {
	kernel *Kernel
	grid   Grid
	args   Args
	call   int // which of calls it belongs to, −1 for none
}

// enter says which operation the launches from here on belong to.
func (t *tape) enter(c *call) {
	if t != nil {
		t.calls = append(t.calls, *c)
	}
}

func (t *tape) note(k *Kernel, g Grid, a *Args) {
	if t != nil {
		t.launches = append(t.launches, taped{k, g, *a, len(t.calls) - 1})
	}
}
