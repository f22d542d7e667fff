package app

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"sync"
	"time"

	"velo/engine/backend"
	"velo/engine/host"
)

// placed is where a model is computed, as `velo probe --facts` prints it.
type placed struct {
	Name      string `json:"name"` // cpu or cuda
	Device    string `json:"device,omitempty"`
	Total     int64  `json:"memory_total_bytes"`
	Available int64  `json:"memory_available_bytes"`
	Unified   bool   `json:"unified,omitempty"`
	Passed    string `json:"no_gpu,omitempty"` // why there is none
}

func placedAt(p backend.Place) placed {
	a := placed{Name: p.Name, Device: p.Device, Total: p.Memory.Total, Available: p.Memory.Available, Unified: p.Unified}
	if p.Passed != nil {
		a.Passed = p.Passed.Error()
	}
	return a
}

func (a placed) place() backend.Place {
	return backend.Place{Name: a.Name, Device: a.Device, Memory: host.Memory{Total: a.Total, Available: a.Available}, Unified: a.Unified}
}

// places finds out where the engine would compute, for the window: by a child process, since the
// driver is never asked in this one.
type places struct {
	mu   sync.Mutex
	last backend.Place
	at   time.Time
}

const (
	placeKept     = 10 * time.Second // free memory changes
	placePatience = 10 * time.Second // a driver that takes longer is none that a model should wait for
)

// find is the place, the processor where no GPU answers.
func (p *places) find(ctx context.Context, program func() (string, error), env []string) (backend.Place, error) {
	if !slices.Contains(backend.Names(), backend.CUDA) {
		_, place, err := backend.Resolve(backend.Options{Name: backend.CPU})
		return place, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() && time.Since(p.at) < placeKept {
		return p.last, nil
	}
	place, err := askPlace(ctx, program, env)
	if ctx.Err() != nil {
		return place, ctx.Err()
	}
	if err != nil {
		if _, place, err = backend.Resolve(backend.Options{Name: backend.CPU}); err != nil {
			return place, err
		}
	}
	p.last, p.at = place, time.Now()
	return place, nil
}

func askPlace(ctx context.Context, program func() (string, error), env []string) (backend.Place, error) {
	path, err := program()
	if err != nil {
		return backend.Place{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, placePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "probe", "--facts")
	cmd.Env = append(cmd.Environ(), env...)
	cmd.WaitDelay = time.Second
	var out []byte
	err = unlessLeft(ctx, leftPatience, func() (err error) {
		out, err = cmd.Output()
		return err
	})
	if err != nil {
		return backend.Place{}, err
	}
	var a placed
	if err := json.Unmarshal(out, &a); err != nil {
		return backend.Place{}, err
	}
	return a.place(), nil
}
