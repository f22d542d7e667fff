package supervise

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// The codes of failures. Those up to Internal are the engine's own words for them.
const (
	PortTaken  = "port_taken"
	BadModel   = "bad_model"
	NoMemory   = "no_memory"
	BadFlag    = "bad_flag"
	DriverLost = "driver_lost"
	Panic      = "panic"
	Hung       = "hung" // a step that never ends
	Internal   = "internal"
	Killed     = "killed"      // a signal from outside
	Unstarted  = "not_started" // there never was a process
)

// The exit codes of the engine.
const (
	exitLoad   = 1
	exitFlag   = 2
	exitMemory = 3
	exitAbort  = 70
	exitHung   = 71
)

// failureLines is how many lines of the log a failure keeps.
const failureLines = 20

// Failure is why the engine ended although nobody asked it to.
type Failure struct {
	Code     string
	Exit     int      // of the process; -1 where a signal ended it, or none ran
	Signal   string   // that ended it, or empty
	Message  string   // what and why, one sentence
	Advice   string   // what to do
	Lines    []string // of its log: the last ones, or the beginning of a stack trace
	NextPort int      // of PortTaken: the next port that is free; 0 = none was found
}

// Ended says how the process ended: "exit code 70", "signal killed".
func (f Failure) Ended() string {
	switch {
	case f.Signal != "":
		return "signal " + f.Signal
	case f.Exit >= 0:
		return "exit code " + strconv.Itoa(f.Exit)
	}
	return "not started"
}

// end is what is known of a process that is gone.
type end struct {
	command Command
	code    int
	signal  string
	said    *message // the engine's own explanation
	lines   []string // of its log
	starved bool     // the kernel killed something for want of memory meanwhile
}

// explain finds the reason.
func (e end) explain() *Failure {
	f := &Failure{Exit: e.code, Signal: e.signal, Lines: e.telling()}
	if e.signal != "" {
		f.Exit = -1
	}
	f.Code, f.Message = e.guess()
	if e.said != nil {
		if e.said.Code != "" {
			f.Code = e.said.Code
		}
		if e.said.Message != "" {
			f.Message = e.said.Message
		}
		f.Advice = e.said.Advice
	}
	if f.Code == PortTaken {
		if e.command.Port > 0 {
			f.Message = fmt.Sprintf("Port %d is taken by another program.", e.command.Port)
		}
		f.NextPort = freePort(e.command.Host, e.command.Port)
		if f.NextPort > 0 {
			f.Advice = fmt.Sprintf("Use port %d, which is free, or end the program that has port %d.", f.NextPort, e.command.Port)
		}
	}
	if f.Advice == "" {
		f.Advice = advice(f.Code)
	}
	return f
}

// telltales are how a line begins with which the Go runtime ends a program, and what it means.
var telltales = []struct{ prefix, code, message string }{
	{"fatal error: runtime: out of memory", NoMemory, "The memory of this machine ran out."},
	{"fatal error: runtime: cannot allocate memory", NoMemory, "The memory of this machine ran out."},
	{"runtime: out of memory", NoMemory, "The memory of this machine ran out."},
	{"SIGBUS: ", BadModel, "A file of the model became shorter, or could not be read, while the engine used it."},
	{"[signal SIGBUS", BadModel, "A file of the model became shorter, or could not be read, while the engine used it."},
	{"unexpected fault address", BadModel, "A file of the model became shorter, or could not be read, while the engine used it."},
	{"SIG", Panic, "The engine was ended by a fault in it."},
	{"panic: ", Panic, "The engine stopped itself because of an error in it."},
	{"fatal error: ", Panic, "The engine stopped itself because of an error in it."},
}

// guess is the reason as the exit code, the signal and the log have it.
func (e end) guess() (code, message string) {
	for _, t := range telltales {
		if slices.ContainsFunc(e.lines, func(l string) bool { return strings.HasPrefix(l, t.prefix) }) {
			return t.code, t.message
		}
	}
	switch {
	case e.signal == "killed" && e.starved:
		return NoMemory, "The memory of this machine ran out, and the system ended the engine."
	case e.signal == "killed":
		return Killed, "The engine was killed from outside (signal 9)."
	case e.signal == "bus error":
		return BadModel, "A file of the model became shorter, or could not be read, while the engine used it."
	case e.signal != "":
		return Panic, "The engine was ended by a fault (" + e.signal + ")."
	case e.code == exitAbort:
		return Panic, "The engine stopped itself because of an error in it."
	case e.code == exitHung:
		return Hung, "A step of the engine did not end, so it stopped itself."
	case e.code == exitMemory:
		return NoMemory, "The memory of this machine was about to run out, so the engine ended."
	case e.code == exitFlag && slices.ContainsFunc(e.lines, func(l string) bool {
		return strings.Contains(l, "address already in use") || strings.Contains(l, "Only one usage of each socket address")
	}):
		return PortTaken, fmt.Sprintf("Port %d is taken by another program.", e.command.Port)
	case e.code == exitFlag:
		return BadFlag, "The engine does not take one of its flags" + e.lastWords()
	case e.code == exitLoad:
		return Internal, "The engine could not load the model" + e.lastWords()
	}
	return Internal, fmt.Sprintf("The engine ended with code %d, which has no meaning.", e.code)
}

// telling are the lines to show: the last ones, or the first ones of a stack trace, which says at
// its beginning what it is about.
func (e end) telling() []string {
	for i, l := range e.lines {
		for _, t := range telltales {
			if strings.HasPrefix(l, t.prefix) {
				return e.lines[i:min(i+failureLines, len(e.lines))]
			}
		}
	}
	return e.lines[max(len(e.lines)-failureLines, 0):]
}

// lastWords ends a sentence with what the engine said last.
func (e end) lastWords() string {
	for _, l := range slices.Backward(e.lines) {
		line := parseLine(l)
		if line.Level == "ERROR" || line.Level == "" && strings.HasPrefix(line.Text, "velo: ") {
			return ": " + strings.TrimPrefix(line.Text, "velo: ")
		}
	}
	return "; its last lines say more."
}

// advice is what to do about a failure.
func advice(code string) string {
	switch code {
	case PortTaken:
		return "Choose another port, or end the program that has this one."
	case BadModel:
		return "Choose another model; if the file was copied or downloaded, do that again."
	case NoMemory:
		return "Take a shorter context, fewer lanes or a model of fewer bits, or end other programs."
	case BadFlag:
		return "Correct the setting that is named, and start the engine again."
	case DriverLost:
		return "Start the engine again; if that fails, restart the machine so that the driver starts anew."
	case Hung:
		return "Start the engine again. If it does not start, or hangs again, restart the machine, so that the GPU's driver starts anew; copy the log and report it."
	case Killed:
		return "Start the engine again; if it happens again, see what ends it: a limit of the session or another program."
	case Unstarted:
		return "Check that the program's file is still where it was when the window opened."
	}
	return "Start the engine again; if it happens again, copy the log and report it."
}

// freePort is the next port above one that is free on a host; 0 = none of the next hundred is.
func freePort(host string, port int) int {
	for p := port + 1; p <= min(port+100, 65535); p++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if err == nil {
			_ = l.Close()
			return p
		}
	}
	return 0
}

// kernelKills is how many processes Linux has killed because memory ran out; 0 on other systems.
func kernelKills() uint64 {
	f, err := os.Open("/proc/vmstat")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if n, ok := strings.CutPrefix(s.Text(), "oom_kill "); ok {
			v, _ := strconv.ParseUint(n, 10, 64)
			return v
		}
	}
	return 0
}
