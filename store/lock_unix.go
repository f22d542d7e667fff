//go:build unix

package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockNow locks the open file against every other one, or returns errLocked.
func lockNow(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case unix.EINTR:
			continue
		case unix.EWOULDBLOCK:
			return errLocked
		}
		return err
	}
}
