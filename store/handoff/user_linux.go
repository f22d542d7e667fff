package handoff

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sameUser refuses a process of another user at the other end. The folder's mode keeps them out
// already; this holds where somebody has opened it.
func sameUser(c net.Conn) error {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if credErr != nil {
		return credErr
	}
	if int(cred.Uid) != os.Getuid() {
		return errors.New("a process of another user is at the other end of the socket")
	}
	return nil
}
