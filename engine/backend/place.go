package backend

import (
	"fmt"
	"strings"

	"velo/engine/host"
)

// Place is where a backend of some options computes and how much memory there is, found out
// before anything large is taken.
type Place struct {
	Name    string      // CPU or CUDA
	Device  string      // of a GPU: its name
	Memory  host.Memory // of the GPU, or of the machine; zero: not known
	Unified bool        // the GPU's memory is the machine's
	Passed  error       // why the GPU was passed over, where none was asked for by name
}

// Resolve decides on a backend as New does, names it in the options, and tells about its memory.
// It asks the driver where a GPU may be meant, so no process calls it that must not touch that.
func Resolve(o Options) (Options, Place, error) {
	return resolve(o, gpu, host.ReadMemory)
}

func resolve(o Options, gpu *accelerator, machine func() (host.Memory, error)) (Options, Place, error) {
	p := Place{Name: CPU}
	automatic := o.Name == "" || o.Name == "auto"
	switch {
	case o.Name == CPU || automatic && gpu == nil:
	case gpu != nil && (automatic || o.Name == CUDA):
		facts, err := gpu.look(o)
		if err == nil {
			p = placeOn(facts, machine)
			break
		}
		if !automatic {
			return o, p, err
		}
		p.Passed = err
	default:
		return o, p, fmt.Errorf("cannot compute on %q: this build has %s", o.Name, strings.Join(Names(), ", "))
	}
	o.Name = p.Name
	if p.Name == CPU {
		p.Memory, _ = machine() // where it cannot be read it is not known
	}
	return o, p, nil
}

// PlaceOn is the place of a GPU that is open already.
func PlaceOn(f *Facts) Place { return placeOn(f, host.ReadMemory) }

func placeOn(f *Facts, machine func() (host.Memory, error)) Place {
	p := Place{Name: CUDA, Device: f.Name, Unified: f.Integrated, Memory: host.Memory{Total: f.Memory, Available: f.Free}}
	if p.Unified {
		// A driver counts the page cache of a shared memory as used; the system gives that back.
		p.Memory, _ = machine()
	}
	return p
}

// ownRoom is what is left free of a GPU's own memory: for its context, the kernels, captured graphs, and
// what the driver takes for itself.
const ownRoom = 512 << 20

// Room is how many bytes a model may take there, 0 if that is not known. keep is what is to be left of the machine's
// memory, of which a tenth at least stays where a GPU shares it; a GPU's own memory is of no
// concern to it.
func (p Place) Room(keep int64) int64 {
	free := p.Memory.Available
	switch {
	case p.Memory.Total == 0:
		return 0
	case p.Name == CPU:
		free -= keep
	case p.Unified:
		free -= max(keep, free/10)
	default:
		free -= ownRoom
	}
	return max(1, free)
}
