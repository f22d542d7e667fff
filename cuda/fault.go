package cuda

import "velo/engine/ops"

// Fault is what a Backend panics with when the device fails, since operations return no
// errors, and what engine/model returns then. The driver's own word is the *Error in it.
type Fault = ops.Fault
