package store

import (
	"os"

	"golang.org/x/sys/windows"
)

// lockNow locks the open file against every other one, or returns errLocked. The locked byte lies
// far beyond the content, which others may read meanwhile.
func lockNow(f *os.File) error {
	at := windows.Overlapped{Offset: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if err == windows.ERROR_LOCK_VIOLATION {
		return errLocked
	}
	return err
}
