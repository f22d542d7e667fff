//go:build !unix

package app

import "syscall"

func apart() *syscall.SysProcAttr { return nil }
