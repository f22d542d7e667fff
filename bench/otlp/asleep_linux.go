package otlp

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep is how long the machine has slept since it was started: CLOCK_BOOTTIME counts that time,
// CLOCK_MONOTONIC does not.
func asleep() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	if d := time.Duration(boot.Nano() - mono.Nano()); d > time.Millisecond { // less is the time between the two calls
		return d
	}
	return 0
}
