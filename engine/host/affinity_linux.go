package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

func pinBig() (Affinity, error) {
	if runtime.GOARCH != "arm64" {
		return Affinity{Reason: "The engine runs on all processors: only arm64 machines have a choice of big cores."}, nil
	}
	allowed, err := current()
	if err != nil {
		return Affinity{}, err
	}
	cpus, how := bigCores("/sys/devices/system/cpu", allowed)
	if cpus == nil {
		return Affinity{Reason: "The engine runs on all processors: " + how + "."}, nil
	}
	a, err := pinTo(cpus, formatList(cpus))
	if err == nil {
		a.Reason = fmt.Sprintf("The engine runs on processors %s: the big cores by %s.", formatList(cpus), how)
	}
	return a, err
}

// bigCores picks among the processors that the process may use. The kernel
// tells the capacity of each where it knows it; the highest clock rate is the
// next best. how says by what, or why there are none.
func bigCores(folder string, allowed []int) (cpus []int, how string) {
	for _, source := range []struct{ file, name string }{
		{"cpu_capacity", "their capacity"}, {"cpufreq/cpuinfo_max_freq", "their highest clock rate"},
	} {
		strength := map[int]int{}
		for _, c := range allowed {
			n, _ := readNumber(path.Join(folder, "cpu"+strconv.Itoa(c)), source.file)
			strength[c] = int(n)
		}
		if cpus := big(strength); cpus != nil {
			return cpus, source.name
		}
	}
	return nil, "they are of one kind, as far as the system tells"
}

// current is where the process may run now.
func current() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("cannot read which processors may be used: %w", err)
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

func pinTo(cpus []int, what string) (Affinity, error) {
	allowed, err := current()
	if err != nil {
		return Affinity{}, err
	}
	var set unix.CPUSet
	set.Zero()
	for _, c := range cpus {
		set.Set(c)
		if !set.IsSet(c) {
			return Affinity{}, fmt.Errorf("cannot run on processors %q: %d is beyond the largest that can be asked for, %d", what, c, len(set)*64-1)
		}
	}
	// A thread's children inherit its set, so it is enough to go over the
	// threads until there is none that was not there the time before.
	done := map[int]bool{}
	for more := true; more; {
		more = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return Affinity{}, fmt.Errorf("cannot find the threads to pin: %w", err)
		}
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[id] {
				continue
			}
			switch err := unix.SchedSetaffinity(id, &set); {
			case errors.Is(err, unix.ESRCH): // it ended meanwhile
			case errors.Is(err, unix.EINVAL):
				return Affinity{}, fmt.Errorf("cannot run on processors %q: none of them can be used here; those that can are %s", what, formatList(allowed))
			case err != nil:
				return Affinity{}, fmt.Errorf("cannot run on processors %q: %w", what, err)
			}
			done[id], more = true, true
		}
	}
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.SetDefaultGOMAXPROCS()
	}
	got, err := current()
	if err != nil {
		return Affinity{}, err
	}
	a := Affinity{CPUs: got, Reason: fmt.Sprintf("The engine runs on processors %s.", formatList(got))}
	if len(got) < len(cpus) {
		a.Reason = fmt.Sprintf("The engine runs on processors %s: of %s those that can be used here.", formatList(got), what)
	}
	return a, nil
}
