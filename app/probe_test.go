package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"velo/engine/backend"
	"velo/engine/enginetest"
	"velo/engine/probe"
	"velo/ui/console"
)

func withoutGPU(t *testing.T) {
	t.Helper()
	if b, err := backend.New(backend.Options{Name: backend.CUDA}); err == nil {
		_ = b.Close()
		t.Skip("there is a GPU on this machine")
	}
}

func TestProbeWithoutAGPU(t *testing.T) {
	withoutGPU(t)
	code, out, errs := velo(context.Background(), "probe", "--synthetic", "qwen3.5-0.8b")
	if code != exitFailed || out != "" || !strings.Contains(errs, "cannot ") || !strings.Contains(errs, "Install NVIDIA's driver") {
		t.Errorf("exit code %d, %q, %q", code, out, errs)
	}
	code, out, _ = velo(context.Background(), "probe", "--json")
	var a probeAnswer
	if err := json.Unmarshal([]byte(out), &a); err != nil || code != exitFailed || a.Report != nil || !strings.HasPrefix(a.Error, "cannot ") || a.Advice == "" {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	code, out, _ = velo(context.Background(), "probe", "--facts")
	var p placed
	if err := json.Unmarshal([]byte(out), &p); err != nil || code != exitOK || p.Name != backend.CPU || p.Available <= 0 || p.Total < p.Available {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
}

func TestProbeRefusesFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--synthetic", "gpt-9"}, "qwen3.6-27b"}, {[]string{"--rows", "0"}, "0 rows"}, {[]string{"--rows", "x"}, "x"}, {[]string{"--seconds", "0"}, "--seconds is 0"},
		{[]string{"--estimate", "abacus"}, "gb10"}, {[]string{"--context", "-3"}, "-3 positions"}, {[]string{"--kv-type", "int3"}, "int3"}, {[]string{"--synthetic", "qwen3.5-9b", "--model-dir", "x"}, "synthetic"}, {[]string{"more"}, "more"},
	} {
		code, _, errs := velo(context.Background(), append([]string{"probe"}, c.args...)...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, %s", c.args, code, errs)
		}
	}
}

var probed = &probe.Report{Device: probe.Device{Name: "NVIDIA H200", Capability: "9.0", SMs: 132, Memory: 150 << 30, Free: 149 << 30, L2: 60 << 20, Clock: 1980, CUDA: "13.0",
	Driver: "580.159.03", KernelSet: "portable, sm_90", KernelReason: "because"},
	Ceilings: probe.Ceilings{Bytes: 4 << 30, Read: 4.3e12, Copy: 4.2e12, Launch: 3.9, Round: 9, GraphLaunch: 2, GraphRound: 7, Node: 0.56, Dependent: 0.44},
	State:    &probe.State{Power: 312, SMClock: 1980, MemoryClock: 3201, Temperature: 41, Throttled: []string{"power cap"}},
	Model: &probe.Model{Name: "qwen3.6-27b:nvfp4", Weights: 17e9, Load: 0.1, Steps: []probe.Step{{Rows: 1, Context: 128, Launches: 842, Bytes: 14.8e9, Roofline: 3437.2, Graph: 6990.7,
		Step: 7139.2, Kernels: 6392.7, Between: 598, Share: 0.49, Gap: 3553.5, Rate: 140.1, Estimate: 63793.1, Costs: []probe.Cost{
			{Kernel: "linear_nvfp4", Shape: "34816 × 5120", Launches: 64, Bytes: 6436400000, Time: 1793.2, Share: 0.83, Estimate: 27743.1},
			{Kernel: "gather", Launches: 1, Time: 1.6}, {Kernel: "late", Launches: 2}}}}, Left: []int{8}},
	Seconds: 0.9, Estimate: "gb10"}

func TestPrintProbe(t *testing.T) {
	var b bytes.Buffer
	printProbe(&b, probed)
	for _, want := range []string{
		"GPU                NVIDIA H200, compute capability 9.0, 132 SMs at up to 1980 MHz, L2 60 MiB\n",
		"driver             580.159.03, CUDA 13.0\n", "kernels            portable, sm_90 (because)\n", "read               4.300 TB/s, of 4.0 GiB gone through\n",
		"its clocks are kept down: power cap\n", "A decode step of 1 row with 128 positions behind: 842 launches\n",
		"linear_nvfp4  34816 × 5120        64  6436.4    28.02  1793.2               83 %       25.7 %             27743.1\n",
		"gather                             1       –     1.60     1.6                  –        0.0 %                   –\n",
		"late                               2       –        –       –                  –            –                   –\n",
		"roofline              3437.2 µs: 14.80 GB once at the measured bandwidth\n",
		"graph                 6990.7 µs on the device: 49 % of the roofline's rate, a gap of 3553.5 µs\n",
		"kernels               6392.7 µs, each kind by itself, but for 1 of 3 kinds, too short to be measured or after the time was over\n",
		"not measured       a decode step of 8 rows: the time was over, --seconds gives more\n",
		"on gb10              63793.1 µs at least (estimate: the same bytes at 232 GB/s)\n", "took 0.9 s\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no line %q in\n%s", want, b.String())
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9*math.Abs(b) }

// script makes a program of a shell script.
func script(t *testing.T, text string) func() (string, error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no shell")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() (string, error) { return path, nil }
}

func TestEngineProbe(t *testing.T) {
	c, folder := configured(t, enginetest.Plain)
	e := c.Engine().(*theEngine)
	choices := e.ProbeChoices()
	if choices[0].ID != probeModel || choices[0].Title != filepath.Base(folder) || choices[len(choices)-1].ID != "" || len(choices) < 4 {
		t.Errorf("choices %+v", choices)
	}
	answer, err := json.Marshal(probeAnswer{Report: probed})
	if err != nil {
		t.Fatal(err)
	}
	asked := filepath.Join(t.TempDir(), "asked")
	e.program = script(t, fmt.Sprintf("echo \"$@\" >> %s; echo noise >&2; cat <<'END'\n%s\nEND\n", asked, answer))
	for _, choice := range []string{"", probeModel, "qwen3.6-27b:nvfp4"} {
		r, err := e.Probe(context.Background(), choice)
		if err != nil {
			t.Fatal(err)
		}
		s := r.Steps[0]
		if r.Model != "qwen3.6-27b:nvfp4" || r.Read != 4.3e12 || !near(s.Roofline, 3437.2e-6) || !near(s.Costs[0].Each, 1793.2e-6/64) || !near(s.Costs[0].OfStep, 1793.2/6990.7) ||
			!strings.Contains(r.State, "312 W") || !strings.Contains(r.State, "kept down: power cap") || !strings.Contains(r.Driver, "580.159.03") || !strings.Contains(r.Device, "132 SMs") {
			t.Errorf("%q: %+v", choice, r)
		}
	}
	got, _ := os.ReadFile(asked)
	want := fmt.Sprintf("probe --json --seconds 20\nprobe --json --seconds 20 --model-dir %s\nprobe --json --seconds 20 --synthetic qwen3.6-27b:nvfp4\n", folder)
	if string(got) != want {
		t.Errorf("it was started with\n%s, want\n%s", got, want)
	}
	for _, bad := range []struct{ script, message, advice string }{
		{`echo '{"error":"cannot open the CUDA driver library: libcuda.so.1: no such file","advice":"Install a driver."}'; exit 1`, "There is no NVIDIA driver on this machine: ", "Install a driver."},
		{`echo "panic: oh" >&2; exit 2`, "ended without a result: panic: oh", ""},
		{`echo '{"device":'; exit 0`, "ended without a result", ""},
		{`exit 9`, "exit status 9", ""},
	} {
		e.program = script(t, bad.script)
		_, err := e.Probe(context.Background(), "")
		var p *console.ProbeError
		if !errors.As(err, &p) || !strings.Contains(p.Message, bad.message) || p.Advice != bad.advice {
			t.Errorf("%s: %v", bad.script, err)
		}
	}
	// One at a time, and closing the console ends it.
	e.program = script(t, "exec sleep 60")
	done := make(chan error, 1)
	go func() { _, err := e.Probe(context.Background(), ""); done <- err }()
	for {
		e.mu.Lock()
		runs := e.probe != nil
		e.mu.Unlock()
		if runs {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := e.Probe(context.Background(), ""); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("two at a time: %v", err)
	}
	e.close()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestInspectLooksAtTheDevice(t *testing.T) {
	if len(backend.Names()) < 2 {
		t.Skip("this build has no GPU backend")
	}
	c, _ := configured(t, enginetest.Plain)
	e := c.Engine().(*theEngine)
	e.program = script(t, `echo '{"name":"cuda","device":"NVIDIA H200","memory_total_bytes":150000000000,"memory_available_bytes":140000000000}'`)
	f, err := e.Inspect(context.Background(), e.Config())
	if err != nil || f.Device != "cuda (NVIDIA H200)" || f.Available != 140000000000-512<<20 {
		t.Errorf("%+v, %v", f, err)
	}
	// Of a GPU everything is reckoned: what its backend takes beside is no scratch, and nothing an estimate.
	if f.Estimate || f.Own < 64<<20 || f.Choice <= 0 || f.Scratch >= f.Own || f.Need != f.Weights+f.KV+f.State+f.Scratch+f.Choice+f.Own {
		t.Errorf("the arithmetic on a GPU: %+v", f)
	}
	cpu, err := modelFacts(e.Config(), backend.Place{Name: backend.CPU, Device: ""})
	if err != nil || !cpu.Estimate || cpu.Own != 0 || cpu.Weights == f.Weights || !strings.HasPrefix(cpu.Device, "cpu") {
		t.Errorf("the same on the processor: %+v, %v", cpu, err)
	}
	// A child that fails leaves the processor; a GPU that shares memory leaves some to the machine.
	e.places.at = time.Time{}
	e.program = script(t, "exit 1")
	if f, err = e.Inspect(context.Background(), e.Config()); err != nil || !strings.HasPrefix(f.Device, "cpu") || f.Available <= 0 {
		t.Errorf("%+v, %v", f, err)
	}
	e.places.at = time.Time{}
	e.program = script(t, `echo '{"name":"cuda","device":"NVIDIA GB10","memory_total_bytes":128000000000,"memory_available_bytes":100000000000,"unified":true}'`)
	if f, err = e.Inspect(context.Background(), e.Config()); err != nil || f.Available > 90000000000 || !strings.Contains(f.Device, "the machine's") {
		t.Errorf("%+v, %v", f, err)
	}
}
