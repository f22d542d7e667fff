//go:build unix

package app

import "syscall"

// apart keeps the terminal's Ctrl-C from the built-in endpoint: it must answer until the
// measurement has been stopped.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
