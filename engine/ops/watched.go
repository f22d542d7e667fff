package ops

// Watched is a [Backend] that tells what it is at. It is discovered by a type assertion, and asked from
// any goroutine, so also while a step runs and does not end.
type Watched interface {
	// Doing names what the device was given last. preparing is true while the host makes something
	// that is made once and may take long, as a graph of launches: that time is not the device's.
	Doing() (last string, preparing bool)
}

// NoRoom is memory that a backend asked for and did not get. Its sentence says how much, and how much
// is free.
type NoRoom struct{ Err error }

func (n *NoRoom) Error() string { return n.Err.Error() }

// Unwrap is what the device said.
func (n *NoRoom) Unwrap() error { return n.Err }
