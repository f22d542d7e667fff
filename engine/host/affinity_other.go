//go:build !linux

package host

import (
	"fmt"
	"runtime"
)

func pinBig() (Affinity, error) {
	return Affinity{Reason: "The engine runs on all processors: " + runtime.GOOS + " places threads by itself."}, nil
}

func pinTo(_ []int, what string) (Affinity, error) {
	return Affinity{Reason: fmt.Sprintf("The engine runs on all processors: %s cannot pin it to %s.", runtime.GOOS, what)}, nil
}
