//go:build linux && cuda && cgo

package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/cuda/kernels"
)

// gate is something that has to hold on a device before kernels are released. Each runs as a process
// of this test binary.
type gate struct {
	name  string
	holds string // in words
	run   string // the tests, a regular expression
	skip  string
	tool  string // of compute-sanitizer
	env   []string
	limit time.Duration
	alone bool // it watches memory or takes all of it
	fails bool // the tool has to find something
}

const gateTests = "^TestGate"

// gatesMost is how long all gates may take together; what does not end by then has failed.
const gatesMost = 8 * time.Minute

var gates = []gate{
	{name: "kernels", holds: "every kernel against float64 or the processor on random inputs (seeds in the log), with poisoned outputs and guards",
		run: ".", skip: gateTests + "|^Test(Goldens|Steps|StepsAllocateNothing|Types|Greedy|FaultsAreNamed|OpenAndCloseLeakNothing|OutOfMemory)$", limit: 200 * time.Second},
	{name: "models", holds: "logits against transformers' and the processor's, for each family and type of weights",
		run: "^Test(Goldens|Types|Greedy|StepsAllocateNothing)$", limit: 200 * time.Second},
	{name: "steps", holds: "a text in any steps, alone or in company, and after a snapshot", run: "^TestSteps$", limit: 200 * time.Second},
	{name: "rows", holds: "a row has the same bits among 1 to 16 rows", run: "^TestGateRows$", limit: 120 * time.Second},
	{name: "greedy", holds: "greedy text is the processor's, or a tie by the rule of docs/engine.md", run: "^TestGateGreedy$", limit: 120 * time.Second},
	{name: "rollback", holds: "after a rollback the state has the same bytes, and goes on so", run: "^TestGateRollback$", limit: 60 * time.Second},
	{name: "memcheck finds", holds: "compute-sanitizer sees a write behind a piece of memory", run: "^TestGatePlanted$", tool: "memcheck",
		env: []string{"VELO_FAULT=near"}, limit: 90 * time.Second, fails: true},
	{name: "memcheck", holds: "compute-sanitizer finds no access outside memory", run: "^TestGateSmall$", tool: "memcheck", limit: 200 * time.Second},
	{name: "racecheck", holds: "compute-sanitizer finds no race in shared memory", run: "^TestGateSmall$", tool: "racecheck", limit: 200 * time.Second},
	{name: "faults", holds: "no memory, a kernel that traps, one that writes outside: a sentence and an exit code in bounded time",
		run: "^Test(GateFaults|FaultsAreNamed|OutOfMemory|OpenAndCloseLeakNothing)$", limit: 120 * time.Second, alone: true},
	{name: "starts", holds: "20 processes one after another", run: "^TestGateStarts$", limit: 120 * time.Second, alone: true},
	{name: "cycles", holds: "1,000 times loaded and unloaded in one process, no growth", run: "^TestGateCycles$",
		env: []string{"VELO_CYCLES=1000"}, limit: 400 * time.Second, alone: true},
}

// outcome is how a gate ended.
type outcome struct {
	Name    string  `json:"name"`
	Holds   string  `json:"holds"`
	Result  string  `json:"result"` // passed, failed, unavailable
	Seconds float64 `json:"seconds"`
	Note    string  `json:"note,omitempty"`
}

// record is what docs/gpu-gates.json holds.
type record struct {
	Commit     string            `json:"commit"`
	Date       string            `json:"date"`
	Device     string            `json:"device"`
	Capability string            `json:"capability"`
	Driver     string            `json:"driver"`
	Seconds    float64           `json:"seconds"`
	Gates      []outcome         `json:"gates"`
	Modules    map[string]string `json:"modules"` // SHA-256 of each PTX
}

// TestGates runs all gates and writes the record and each gate's log into the folder $VELO_GATES; see
// scripts/gates. VELO_GATES_ONLY is a regular expression of those to run; VELO_CYCLES is for a shorter
// last one.
func TestGates(t *testing.T) {
	folder := os.Getenv("VELO_GATES")
	if folder == "" {
		t.Skip("scripts/gates runs it")
	}
	only := regexp.MustCompile(os.Getenv("VELO_GATES_ONLY"))
	launched := filepath.Join(folder, "launched")
	if err := os.MkdirAll(launched, 0o755); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	r := record{Commit: os.Getenv("VELO_COMMIT"), Date: begin.UTC().Format(time.RFC3339), Modules: kernels.Hashes()}
	capability := 0
	func() {
		d, err := Open(0, Options{Cache: "-"})
		if err != nil {
			t.Fatal(err)
		}
		f := d.Facts()
		capability = f.Capability()
		r.Device, r.Capability = f.Name, fmt.Sprintf("%d.%d", f.Major, f.Minor)
		r.Driver = strings.TrimSpace(driverVersion() + fmt.Sprintf(" CUDA %d.%d", f.Driver/1000, f.Driver%1000/10))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	results := make([]outcome, len(gates))
	var together sync.WaitGroup
	slots := make(chan struct{}, 5)
	one := func(i int) {
		results[i] = gates[i].through(folder, launched, begin.Add(gatesMost))
		fmt.Printf("%-15s %-11s %6.1f s  %s\n", results[i].Name, results[i].Result, results[i].Seconds, results[i].Note)
	}
	for i := range gates {
		if g := &gates[i]; !g.alone && only.MatchString(g.name) {
			together.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				one(i)
			})
		}
	}
	together.Wait()
	for i := range gates {
		if g := &gates[i]; g.alone && only.MatchString(g.name) {
			one(i)
		}
	}
	for _, o := range results {
		if o.Name != "" {
			r.Gates = append(r.Gates, o)
		}
	}
	if only.String() == "" {
		o := coverage(t, launched, capability)
		fmt.Printf("%-15s %-11s %6.1f s  %s\n", o.Name, o.Result, o.Seconds, o.Note)
		r.Gates = append(r.Gates, o)
	}
	r.Seconds = rounded(time.Since(begin))
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "gpu-gates.json"), append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range r.Gates {
		if o.Result != "passed" {
			t.Errorf("%s: %s: %s", o.Name, o.Result, o.Note)
		}
	}
}

func rounded(d time.Duration) float64 { return float64(d.Round(100*time.Millisecond)) / 1e9 }

// through runs the gate, until end at the latest, and keeps its log.
func (g *gate) through(folder, launched string, end time.Time) outcome {
	o := outcome{Name: g.name, Holds: g.holds}
	begin := time.Now()
	limit := min(g.limit, end.Sub(begin))
	if limit <= 0 {
		o.Result, o.Note = "failed", "no time was left"
		return o
	}
	self, err := os.Executable()
	if err != nil {
		o.Result, o.Note = "failed", err.Error()
		return o
	}
	args := []string{"-test.v", "-test.run=" + g.run, "-test.timeout=" + limit.String()}
	if g.skip != "" {
		args = append(args, "-test.skip="+g.skip)
	}
	const found = 99
	name := self
	if g.tool != "" {
		name = "compute-sanitizer"
		args = append([]string{"--tool", g.tool, "--error-exitcode", fmt.Sprint(found), self}, args...)
	}
	env := append([]string{"VELO_GPU=1", "VELO_GATES=", "VELO_LAUNCHED=" + launched}, g.env...)
	if g.tool != "" { // its kernels are others
		env = append(env, "VELO_LAUNCHED=")
	}
	if n := os.Getenv("VELO_CYCLES"); n != "" && g.name == "cycles" {
		env = append(env, "VELO_CYCLES="+n)
		o.Holds = n + " times only: " + o.Holds
	}
	out, err := process(limit+10*time.Second, env, name, args...)
	o.Seconds = rounded(time.Since(begin))
	_ = os.WriteFile(filepath.Join(folder, strings.ReplaceAll(g.name, " ", "-")+".txt"), out, 0o644)
	var e *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		o.Result, o.Note = "unavailable", "compute-sanitizer is not on the PATH"
	case g.tool != "" && strings.Contains(string(out), "Device not supported"):
		o.Result, o.Note = "unavailable", "compute-sanitizer does not know this device"
	case g.fails:
		if errors.As(err, &e) && e.ExitCode() == found {
			o.Result = "passed"
		} else {
			o.Result, o.Note = "failed", fmt.Sprintf("nothing was found (%v)", err)
		}
	case err != nil:
		o.Result, o.Note = "failed", fmt.Sprintf("%v: %s", err, firstFailure(string(out)))
	case !strings.Contains(string(out), "--- PASS"):
		o.Result, o.Note = "failed", "no test ran"
	default:
		o.Result = "passed"
	}
	return o
}

var failure = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: .*$`)

// firstFailure is the line that says what failed.
func firstFailure(out string) string {
	at := strings.Index(out, "--- FAIL")
	if at < 0 {
		return ""
	}
	name, _, _ := strings.Cut(out[at:], "\n")
	line := ""
	// With -v a test's lines stand before its result.
	if all := failure.FindAllString(out[:at], -1); len(all) > 0 {
		line = strings.TrimSpace(all[len(all)-1])
	}
	return strings.TrimPrefix(name, "--- ") + " " + line
}

// driverVersion is the version that the kernel's module tells, "" if it tells none.
func driverVersion() string {
	data, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	return string(regexp.MustCompile(`\d+\.\d+(\.\d+)?`).Find(data))
}

var entry = regexp.MustCompile(`(?m)^\.visible \.entry (\w+)\(`)

// coverage compares the kernels of the modules with those that the gates launched.
func coverage(t *testing.T, folder string, capability int) outcome {
	begin := time.Now()
	o := outcome{Name: "coverage", Holds: "every kernel of every module was launched by a gate", Result: "passed"}
	ran := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.Lines(string(data)) {
			ran[strings.TrimSpace(name)] = true
		}
	}
	var missing []string
	all := 0
	look := func(module string, ptx []byte) {
		for _, m := range entry.FindAllSubmatch(ptx, -1) {
			all++
			if name := module + "/" + string(m[1]); !ran[name] {
				missing = append(missing, name)
			}
		}
	}
	for _, module := range kernels.Modules {
		look(module, kernels.PTX(module, capability))
	}
	look("fp4", kernels.FP4()) // of another device it is the emulated one that ran
	slices.Sort(missing)
	o.Note = fmt.Sprintf("%d of %d", all-len(missing), all)
	if len(missing) > 0 {
		o.Result = "failed"
		o.Note += "; not " + strings.Join(missing, ", ")
	}
	o.Seconds = rounded(time.Since(begin))
	return o
}

// noteLaunched writes down which kernels of a device were launched, for the gate "coverage".
func noteLaunched(t testing.TB, d *Device) {
	folder := os.Getenv("VELO_LAUNCHED")
	if folder == "" {
		return
	}
	var names strings.Builder
	for _, m := range d.modules {
		for _, k := range m.kernels {
			if k.launched {
				fmt.Fprintf(&names, "%s/%s\n", m.name, k.name)
			}
		}
	}
	f, err := os.CreateTemp(folder, "*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(names.String()); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
