package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Affinity says where the process runs.
type Affinity struct {
	CPUs   []int  // ascending; nil = wherever the system puts it
	Reason string // a sentence for the log
}

// Pin makes the process run on some processors only: "auto", the big cores of
// an arm64 machine that has cores of several kinds and elsewhere all; "none",
// all; or a list such as 0-3,8. Threads that are there and threads to come are
// pinned, and the Go runtime then uses as many as there are processors. The
// error says what is wrong with the list.
func Pin(what string) (Affinity, error) {
	switch what {
	case "none", "off":
		return Affinity{Reason: "The engine runs on all processors: --cpu-affinity " + what + "."}, nil
	case "auto", "":
		return pinBig()
	}
	cpus, err := parseList(what)
	if err != nil {
		return Affinity{}, fmt.Errorf("cannot run on processors %q: %w", what, err)
	}
	return pinTo(cpus, what)
}

// mostCPUs bounds a list; Linux has 8192 at most.
const mostCPUs = 8192

// parseList reads a list as the Linux kernel writes it: 0-3,8.
func parseList(text string) ([]int, error) {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := number(low)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = number(high); err != nil {
				return nil, err
			}
			if last < first {
				return nil, fmt.Errorf("%s ends before it begins", part)
			}
		}
		for c := first; c <= last; c++ {
			cpus = append(cpus, c)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

func number(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a processor's number; write auto, none or a list such as 0-3,8", text)
	}
	if n >= mostCPUs {
		return 0, fmt.Errorf("processor %d is beyond the largest possible, %d", n, mostCPUs-1)
	}
	return int(n), nil
}

// formatList writes a list as parseList reads it.
func formatList(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		j := i
		for j+1 < len(cpus) && cpus[j+1] == cpus[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, strconv.Itoa(cpus[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// alike is what the weakest core must have of the strongest for all to be
// used. Cores of one kind differ by a few percent where some may clock higher;
// a Cortex-A725 has about two thirds of a Cortex-X925.
const alike = 0.8

// big picks the strong cores: those with at least four fifths of the
// strongest. nil if that is all of them or if the strength of one is unknown
// (0 or less).
func big(strength map[int]int) []int {
	strongest, known := 0, true
	for _, s := range strength {
		strongest = max(strongest, s)
		known = known && s > 0
	}
	if !known {
		return nil
	}
	var cpus []int
	for c, s := range strength {
		if float64(s) >= alike*float64(strongest) {
			cpus = append(cpus, c)
		}
	}
	if len(cpus) == len(strength) {
		return nil
	}
	slices.Sort(cpus)
	return cpus
}
