//go:build unix

package client

import (
	"fmt"
	"syscall"
)

// spare is how many files the rest of the program needs beside the connections.
const spare = 64

// allowFiles sees to it that this process may open a file for each connection: it raises the soft
// limit as far as the hard one allows.
func allowFiles(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil // then the system will say so when a connection fails
	}
	need := int64(connections) + spare
	if fileLimit(limit.Cur) >= need {
		return nil
	}
	if limit.Cur < limit.Max {
		limit.Cur = limit.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && fileLimit(limit.Cur) >= need {
			return nil
		}
		_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	return fileError(connections, fileLimit(limit.Cur), need)
}

func fileError(connections int, have, need int64) error {
	return fmt.Errorf("cannot open %d connections: this process may have only %d files open; run \"ulimit -n %d\" first, or raise nofile in /etc/security/limits.conf", connections, have, need)
}

// fileLimit is a limit as a number that can be compared: "unlimited" is the largest one.
func fileLimit[T int64 | uint64](n T) int64 {
	if n < 0 || uint64(n) > 1<<62 {
		return 1 << 62
	}
	return int64(n)
}
