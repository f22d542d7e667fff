package host

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A GB10: ten Cortex-X925 and ten Cortex-A725 in two clusters, five of each.
func TestBigCoresOfAGB10(t *testing.T) {
	all := make([]int, 20)
	for _, file := range []string{"cpu_capacity", "cpufreq/cpuinfo_max_freq"} {
		root := t.TempDir()
		for c := range all {
			all[c] = c
			strength := map[string][2]int{"cpu_capacity": {718, 1024}, "cpufreq/cpuinfo_max_freq": {2808000, 3900000}}[file][c/5%2]
			writeFile(t, filepath.Join(root, fmt.Sprintf("cpu%d", c), file), fmt.Sprintln(strength))
		}
		if cpus, how := bigCores(root, all); formatList(cpus) != "5-9,15-19" {
			t.Errorf("%s: %s (%s)", file, formatList(cpus), how)
		}
		// Only some of them may be used.
		if cpus, _ := bigCores(root, []int{3, 4, 5, 6}); formatList(cpus) != "5-6" {
			t.Errorf("%s: %s of 3-6", file, formatList(cpus))
		}
		if cpus, how := bigCores(root, []int{5, 6}); cpus != nil {
			t.Errorf("%s: %s of 5-6 (%s)", file, formatList(cpus), how)
		}
	}
	if cpus, how := bigCores(t.TempDir(), all); cpus != nil || how == "" {
		t.Errorf("%s, %q where the system tells nothing", formatList(cpus), how)
	}
}

type pinned struct {
	Affinity
	Err        string
	Threads    []string // the sets of all threads
	GOMAXPROCS int
}

func init() { childWays["pin"] = pinInChild }

func pinInChild(what string) {
	// Some threads that are there before, and some after.
	spawn := func() {
		ready, hold := make(chan struct{}), make(chan struct{})
		for range 4 {
			go func() { runtime.LockOSThread(); ready <- struct{}{}; <-hold }()
		}
		for range 4 {
			<-ready
		}
	}
	spawn()
	a, err := Pin(what)
	p := pinned{Affinity: a, GOMAXPROCS: runtime.GOMAXPROCS(0)}
	if err != nil {
		p.Err = err.Error()
	}
	spawn()
	tasks, _ := filepath.Glob("/proc/self/task/*/status")
	for _, t := range tasks {
		text, _ := os.ReadFile(t)
		for line := range strings.Lines(string(text)) {
			if set, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				p.Threads = append(p.Threads, strings.TrimSpace(set))
			}
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(p)
}

func TestPin(t *testing.T) {
	allowed, err := current()
	if err != nil {
		t.Fatal(err)
	}
	pin := func(what string) (p pinned) {
		t.Helper()
		out, err := child(t, "pin "+what).Output()
		if err == nil {
			err = json.Unmarshal(out, &p)
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return p
	}
	last := fmt.Sprint(allowed[len(allowed)-1])
	p := pin(last)
	if p.Err != "" || fmt.Sprint(p.CPUs) != "["+last+"]" || p.GOMAXPROCS != 1 || !strings.Contains(p.Reason, "runs on processors "+last) {
		t.Errorf("%+v", p)
	}
	if len(p.Threads) < 8 || slices.ContainsFunc(p.Threads, func(set string) bool { return set != last }) {
		t.Errorf("threads run on %q, want %s", p.Threads, last)
	}
	// One that exists and one that does not.
	if p := pin(last + ",1000"); p.Err != "" || fmt.Sprint(p.CPUs) != "["+last+"]" || !strings.Contains(p.Reason, "those that can be used") {
		t.Errorf("%+v", p)
	}
	if p := pin("1000"); !strings.Contains(p.Err, "none of them can be used here; those that can are "+formatList(allowed)) {
		t.Errorf("%+v", p)
	}
	for _, what := range []string{"none", "auto"} {
		p := pin(what)
		if p.Err != "" || p.Reason == "" {
			t.Errorf("%s: %+v", what, p)
		}
		if p.CPUs == nil && slices.ContainsFunc(p.Threads, func(set string) bool { return set != formatList(allowed) }) {
			t.Errorf("%s: threads run on %q", what, p.Threads)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
