package ops

import "velo/engine/weights"

// Weights on their way from files, see velo/engine/weights.
type (
	File   = weights.File
	Place  = weights.Place
	Reader = weights.Reader
	Read   = weights.Read
)

// RecoverRead is [weights.Recover], for whatever looks at weights in mapped memory on a goroutine of its own:
//
//	defer ops.RecoverRead(debug.SetPanicOnFault(true), &err)
var RecoverRead = weights.Recover

// ReadAlign is what offsets, lengths and memory of a direct read are multiples of.
const ReadAlign = weights.ReadAlign

// NewReader makes a reader that has up to inFlight reads on their way at once.
func NewReader(inFlight int) *Reader { return weights.NewReader(inFlight) }

// ReadSpace is how large a buffer must be to read n bytes from anywhere.
func ReadSpace(n int) int { return weights.ReadSpace(n) }

// Loaded tells how weights came from their files.
type Loaded struct {
	Read    int64  // bytes that were read rather than looked at in mapped memory
	Cached  int64  // of these, bytes that were in the page cache
	Refused string // why files were not read directly, "" if they were
}

// Loader is a [Backend] that reads weights from their files itself. It may have some on their way
// after Matrix has returned; they are there, or it is an error, when Cache returns.
type Loader interface{ Loaded() Loaded }
