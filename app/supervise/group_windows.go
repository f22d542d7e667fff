package supervise

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// inherit gives a file to the child and returns how the child calls it: by its handle.
func inherit(cmd *exec.Cmd, f *os.File) string {
	h := syscall.Handle(f.Fd())
	attributes(cmd).AdditionalInheritedHandles = []syscall.Handle{h}
	_ = syscall.SetHandleInformation(h, syscall.HANDLE_FLAG_INHERIT, syscall.HANDLE_FLAG_INHERIT)
	return strconv.Itoa(int(h))
}

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

// ownGroup puts the child into a process group of its own: a Ctrl-C is not for the engine.
func ownGroup(cmd *exec.Cmd) { attributes(cmd).CreationFlags |= syscall.CREATE_NEW_PROCESS_GROUP }

// terminate ends the child: Windows has no way to ask but the end of its pipe, which it had.
func terminate(p *os.Process) { _ = p.Kill() }

// killGroup ends the child.
func killGroup(p *os.Process) { _ = p.Kill() }

// signalOf is empty: there are no signals.
func signalOf(*os.ProcessState) string { return "" }
