//go:build unix

package handoff

import (
	"os"
	"syscall"
)

// ownedByUser tells whether a folder is the user's, and nobody else can enter it.
func ownedByUser(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
