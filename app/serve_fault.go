package app

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"velo/engine/backend"
	"velo/engine/emit"
	"velo/engine/ops"
	"velo/engine/sched"
	"velo/engine/weights"
)

// usualStepLimit is how long a step may take on a GPU, where tens of milliseconds are usual, before it is
// taken for one that never ends. The processor is never taken to hang: a step of a large model may well
// take so long on a small machine.
const usualStepLimit = 60 * time.Second

// hungAdvice is what to do about a step that does not end.
const hungAdvice = "Start the engine again. If it does not start, or hangs again, restart the machine, so that the GPU's driver starts anew; copy the log and report it."

// faultAdvice is what to do about a GPU that failed while it computed.
const faultAdvice = "Start the engine again. If it does not start, restart the machine, so that the GPU's driver starts anew; if it happens again, copy the log and report it."

// lessMemory names the flags that make an engine smaller.
const lessMemory = "lower --max-seq-len, --max-batch, --kv-tokens or --prefill-chunk, or keep keys and values in fewer bits with --kv-type fp8"

// latePatience is how long files and a driver may take to answer before the log says what is waited for.
var latePatience = 30 * time.Second

// tellWhenLate says in the log, unless it is stopped before, what has not answered yet: a disk or a driver
// that hangs cannot be told from one that takes long.
func (s *service) tellWhenLate(what string) *time.Timer {
	return time.AfterFunc(latePatience, func() {
		s.log.Warn("waiting for "+what+", which did not answer yet; if it stays so, end the engine, and restart the machine where that does not help", "seconds", latePatience.Seconds())
	})
}

// stepLimit is how long a step may take on a backend, by what --step-watchdog-s has; 0 is no limit.
func stepLimit(watch, on string) (time.Duration, error) {
	switch watch {
	case "off":
		return 0, nil
	case "auto":
		if on != backend.CUDA {
			return 0, nil
		}
		return usualStepLimit, nil
	}
	s, err := strconv.ParseFloat(watch, 64)
	if err != nil || s < 0 || s > 1e6 || math.IsNaN(s) {
		return 0, fmt.Errorf("--step-watchdog-s cannot be %q: it is auto, off, or a number of seconds", watch)
	}
	return time.Duration(s * float64(time.Second)), nil
}

// ended is the end after the engine failed while it ran.
func (s *service) ended(err error) error {
	if err == nil {
		err = errors.New("cannot go on: the scheduler ended")
	}
	s.fault.Store(new(err.Error()))
	s.emitter.Load().EmitStatus()
	s.shut(2 * time.Second) // the clients get their errors
	switch {
	case errors.As(err, new(*sched.HangError)):
		return s.fail(exitHung, codeHung, hungAdvice, err)
	case errors.As(err, new(*weights.Fault)):
		return s.fail(exitAbort, codeModel, "Copy or download the model's files anew, and start it again.", err)
	case errors.As(err, new(*ops.NoRoom)):
		return s.fail(exitAbort, codeNoMemory, "Start it again with less: "+lessMemory+".", err)
	case errors.As(err, new(*ops.Fault)):
		return s.fail(exitAbort, codeDriver, faultAdvice, err)
	}
	return s.fail(exitAbort, codePanic, "Start it again; if it happens again, copy the log and report it.", err)
}

// notLoaded is the end of a model that could not be loaded.
func (s *service) notLoaded(err error) error {
	if errors.As(err, new(*ops.NoRoom)) {
		return s.fail(exitLoad, codeNoMemory, "End other programs that use the GPU, take a model of fewer bits, or "+lessMemory+".", fmt.Errorf("%w; %s", err, lessMemory))
	}
	if errors.As(err, new(*ops.Fault)) {
		return s.fail(exitLoad, codeDriver, faultAdvice, err)
	}
	return s.fail(exitLoad, codeModel, "Choose another model; if it was copied or downloaded, do that again.", err)
}

// statusAttributes are those of a status record: the GPU's, and why the engine ended, where it did.
func (s *service) statusAttributes() []emit.Attribute {
	list := s.gpuAttributes()
	if why := s.fault.Load(); why != nil {
		list = append(list, emit.Attribute{Key: "velo.engine.fault", Text: *why})
	}
	return list
}
