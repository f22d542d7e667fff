package app

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"

	"velo/engine"
	"velo/engine/backend"
	"velo/engine/weights"
	"velo/ui/console"
)

// modelFacts looks into a model's files, for where it would be computed. Nothing of the weights is
// read, and no driver of a GPU is asked. A file that gets shorter meanwhile is an error, not the end of the window: reading behind
// its end panics here, where it would end the process otherwise.
func modelFacts(c console.EngineConfig, place backend.Place) (f console.ModelFacts, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("cannot read the model %s: %v; is it still being copied?", c.Model, p)
		}
	}()
	f.Path = c.Model
	if c.Model == "" {
		return f, errors.New("no model was chosen")
	}
	m, err := weights.Open(c.Model)
	if err != nil {
		return f, err
	}
	defer m.Close()
	f.Name = modelName(c.Model)
	f.Architecture, f.Layers, f.MaxContext = m.Config.Architecture, m.Config.Layers, m.Config.MaxPosition
	f.Format, f.Type = "safetensors", mostly(m)
	if strings.EqualFold(filepath.Ext(c.Model), ".gguf") {
		f.Format = "GGUF"
	}
	// As `velo serve` starts with no flag but the window's own; it would end where it leaves less than it keeps.
	absent := &serving{memory: "auto", prefix: onOff(c.PrefixCache), checkpoints: usualCheckpoints, context: c.Context, lanes: c.Lanes}
	keep, _ := absent.watchLimit()
	o := absent.size()
	o.At(place, keep)
	p, err := engine.Plan(m, o)
	if err != nil {
		f.Problem = err.Error()
		o.Context = 0
		if p, err = engine.Plan(m, o); err != nil {
			return f, err
		}
	}
	f.Context, f.Lanes = p.Sizes.Context, p.Sizes.Lanes
	f.Weights, f.KV, f.State, f.Scratch, f.Choice, f.Need = p.Weights, p.Pages, p.States+p.Checkpoints, p.Scratch, p.Choice, p.Total
	f.Own, f.Estimate = p.Total-p.Asked(), p.Estimated()
	f.Available = p.Sizes.Available
	f.Device, err = device(place, c.Threads)
	return f, err
}

// modelName is that of the file or the folder.
func modelName(path string) string {
	base := filepath.Base(path)
	if ext := filepath.Ext(base); strings.EqualFold(ext, ".gguf") {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}

// mostly is the type that most of the weights are stored in.
func mostly(m *weights.Model) string {
	bytes := map[weights.Type]int{}
	for _, name := range m.Names() {
		if strings.Contains(name, "q_proj") || strings.Contains(name, "k_proj") {
			continue // asking for those of a GGUF file may copy them
		}
		if t, ok := m.Tensor(name); ok {
			bytes[t.Type] += len(t.Data)
		}
	}
	var most weights.Type
	for t, n := range bytes {
		if n > bytes[most] || n == bytes[most] && t < most {
			most = t
		}
	}
	return most.String()
}

// device is what the engine computes on, in words.
func device(place backend.Place, threads int) (string, error) {
	if place.Name != backend.CPU {
		words := place.Name + " (" + place.Device + ")"
		if place.Unified {
			words += ", whose memory is the machine's"
		}
		return words, nil
	}
	b, err := backend.New(backend.Options{Name: backend.CPU, Rows: 1, Workers: threads})
	if err != nil {
		return "", err
	}
	defer b.Close()
	return b.Name(), nil
}
