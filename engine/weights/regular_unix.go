//go:build unix

package weights

import "syscall"

// openAtOnce opens a pipe without waiting for somebody who writes to it.
const openAtOnce = syscall.O_NONBLOCK
