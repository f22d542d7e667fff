package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"velo/app/supervise"
	"velo/bench/measure"
	"velo/engine/probe"
	"velo/engine/synthetic"
	"velo/ui/console"
)

// gpuFigures are those of a reply to /health.
func gpuFigures(g *supervise.GPU) *console.GPUFigures {
	if g == nil {
		return nil
	}
	number := func(v *float64) measure.Num {
		if v == nil {
			return measure.Missing
		}
		return measure.Num(*v)
	}
	return &console.GPUFigures{Name: g.Name, Busy: number(g.Utilisation), MemoryBusy: number(g.MemoryBusy), Power: number(g.Power), PowerLimit: number(g.PowerLimit),
		SMClock: number(g.SMClock), MemoryClock: number(g.MemoryClock), Temperature: number(g.Temperature), Used: number(g.Used), Total: number(g.Total),
		Unified: g.Source == "meminfo", Throttled: g.Throttled}
}

// probeModel is the choice of the engine's own model.
const probeModel = "model"

// ProbeChoices implements console.Engine.
func (e *theEngine) ProbeChoices() []console.ProbeChoice {
	var list []console.ProbeChoice
	if c := e.Config(); c.Model != "" {
		list = append(list, console.ProbeChoice{ID: probeModel, Title: modelName(c.Model)})
	}
	for _, name := range synthetic.Names() {
		for _, format := range []string{"nvfp4", "fp8", "bf16"} {
			list = append(list, console.ProbeChoice{ID: name + ":" + format, Title: name + " in " + format + ", made up"})
		}
	}
	return append(list, console.ProbeChoice{Title: "The device alone"})
}

// A probe that the window starts: how long it measures, and how long it may take with the model's
// files to read.
const (
	probeSeconds  = 20
	probePatience = 5 * time.Minute
)

// mostProbe bounds what is read of a probe's answer, bytes.
const mostProbe = 4 << 20

// Probe implements console.Engine. The driver is asked by a child process: one that does not answer
// cannot be ended from inside.
func (e *theEngine) Probe(ctx context.Context, choice string) (console.ProbeReport, error) {
	var none console.ProbeReport
	path, err := e.program()
	if err != nil {
		return none, fmt.Errorf("cannot probe: the path of this program is not known: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	e.mu.Lock()
	if e.probe != nil {
		e.mu.Unlock()
		return none, errors.New("cannot probe: another probe is under way")
	}
	e.probe = cancel
	e.mu.Unlock()
	defer func() { e.mu.Lock(); e.probe = nil; e.mu.Unlock() }()
	args := []string{"probe", "--json", "--seconds", fmt.Sprint(probeSeconds)}
	switch choice {
	case "":
	case probeModel:
		args = append(args, "--model-dir", e.Config().Model)
	default:
		args = append(args, "--synthetic", choice)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(cmd.Environ(), e.env...)
	cmd.WaitDelay = 2 * time.Second // a driver that hangs keeps the process, not the window
	var out, errs probeOutput
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = unlessLeft(ctx, leftPatience, cmd.Run)
	if ctx.Err() != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return none, &console.ProbeError{Message: "The probe had not ended after 5 minutes and was stopped.", Advice: "Check with nvidia-smi whether the driver answers; restart the machine if it does not."}
		}
		return none, ctx.Err()
	}
	var answer probeAnswer
	if bad := json.Unmarshal(out.Bytes(), &answer); bad != nil || answer.Report == nil && answer.Error == "" {
		last := strings.TrimSpace(errs.String())
		last = last[strings.LastIndexByte(last, '\n')+1:]
		if last == "" && err != nil {
			last = err.Error()
		}
		return none, &console.ProbeError{Message: "The probe ended without a result: " + last}
	}
	if answer.Error != "" {
		return none, &console.ProbeError{Message: probeSentence(answer.Error), Advice: answer.Advice}
	}
	return probeReport(answer.Report), nil
}

// probeSentence says in few words what the driver's library is missing for.
func probeSentence(text string) string {
	if strings.Contains(text, "libcuda.so") || strings.Contains(text, "built without CUDA") {
		return "There is no NVIDIA driver on this machine: " + text
	}
	return text
}

// probeOutput keeps the first bytes of what is written to it.
type probeOutput struct{ bytes.Buffer }

func (b *probeOutput) Write(p []byte) (int, error) {
	if room := mostProbe - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// probeReport is a report as the window shows it.
func probeReport(r *probe.Report) console.ProbeReport {
	d, c := &r.Device, &r.Ceilings
	const us = 1e-6
	out := console.ProbeReport{
		Device:  fmt.Sprintf("%s, compute capability %s, %d SMs at up to %d MHz, L2 %.0f MiB", d.Name, d.Capability, d.SMs, d.Clock, float64(d.L2)/(1<<20)),
		Memory:  fmt.Sprintf("%.1f GiB, %.1f free", float64(d.Memory)/(1<<30), float64(d.Free)/(1<<30)),
		Driver:  "CUDA " + d.CUDA,
		Kernels: d.KernelSet + " (" + d.KernelReason + ")",
		Read:    c.Read, Copy: c.Copy, Launch: c.Launch * us, Graph: c.GraphLaunch * us, Node: c.Node * us, Duration: r.Seconds}
	if d.Integrated {
		out.Memory += ", shared with the processor"
	}
	if d.Driver != "" {
		out.Driver = d.Driver + ", " + out.Driver
	}
	if r.State != nil {
		out.State = probeState(r.State)
	}
	if r.Model == nil {
		return out
	}
	out.Model, out.Weights = r.Model.Name, r.Model.Weights
	for _, s := range r.Model.Steps {
		step := console.ProbeStep{Rows: s.Rows, Context: s.Context, Launches: s.Launches, Bytes: s.Bytes, Roofline: s.Roofline * us, Graph: s.Graph * us,
			Gap: s.Gap * us, Kernels: s.Kernels * us, Between: s.Between * us, Step: s.Step * us, Share: s.Share, Rate: s.Rate}
		for _, k := range s.Costs {
			one := console.ProbeCost{Kernel: k.Kernel, Shape: k.Shape, Launches: k.Launches, Bytes: k.Bytes, Time: k.Time * us, Share: k.Share}
			if k.Launches > 0 {
				one.Each = one.Time / float64(k.Launches)
			}
			if s.Graph > 0 {
				one.OfStep = k.Time / s.Graph
			}
			step.Costs = append(step.Costs, one)
		}
		out.Steps = append(out.Steps, step)
	}
	return out
}
