//go:build unix

package supervise

import (
	"os"
	"os/exec"
	"syscall"
)

// inherit gives a file to the child and returns how the child calls it.
func inherit(cmd *exec.Cmd, f *os.File) string {
	cmd.ExtraFiles = []*os.File{f}
	return "3"
}

// ownGroup puts the child into a process group of its own: a Ctrl-C in the terminal that the window
// was started from is not for the engine, and whatever the engine starts ends with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// terminate asks a process that was not waited for yet to end.
func terminate(p *os.Process) { _ = p.Signal(syscall.SIGTERM) }

// killGroup kills the child and all of its group, unless the child was waited for already: its
// number may be another's by then.
func killGroup(p *os.Process) {
	if p.Signal(syscall.Signal(0)) == nil {
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
}

// signalOf is the name of the signal that ended a process, or empty.
func signalOf(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String()
	}
	return ""
}
