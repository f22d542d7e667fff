package app

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// unheard is why an address cannot be listened on, without the address, which the sentence around it
// names.
func unheard(err error) error {
	var (
		system *os.SyscallError
		name   *net.DNSError
	)
	switch {
	case errors.As(err, &name):
		return fmt.Errorf("no address is known of %s: %s", name.Name, name.Err)
	case !errors.As(err, &system):
		return err
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("another program listens there (%w)", system.Err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("this machine has no such address (%w)", system.Err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("the system does not let this user listen there; a port from 1024 on needs no rights (%w)", system.Err)
	}
	return system.Err
}
