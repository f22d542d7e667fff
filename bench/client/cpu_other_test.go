//go:build !unix

package client

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
