// Package backend chooses what a model computes on.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package backend

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"velo/engine/cpu"
	"velo/engine/ops"
	"velo/engine/weights"
)

// CPU is the processor, which is always there. CUDA is an NVIDIA GPU, in builds with the tag
// cuda on Linux.
const (
	CPU  = "cpu"
	CUDA = "cuda"
)

// Names lists the backends of this build.
func Names() []string {
	if gpu == nil {
		return []string{CPU}
	}
	return []string{CPU, CUDA}
}

// accelerator is a backend that a build may have besides the processor.
type accelerator struct {
	open   func(o Options, kv ops.KVType) (Backend, error)
	bytes  func(t *weights.Tensor) int64 // what a weight takes there
	choice func(vocab, rows int) int64   // what the choice of so many tokens takes there
	own    func(n *Needs) Own            // what it takes beside what a model asks for
	look   func(o Options) (*Facts, error)
}

// Options choose and size a backend. The zero value is the best one that this machine has.
type Options struct {
	Name    string // one of Names, or "" or "auto" for the best one
	Rows    int    // most rows of a step, 512 if 0
	Workers int    // threads of the processor, all of them if 0
	Exact   bool   // float32 arithmetic for every weight, on the processor
	KV      string // how keys and values are stored: f32, bf16, fp8, q8, or "" or "auto" for the backend's own choice
	Reserve int64  // bytes that a model will ask for, which a GPU takes at once; 0 = as they are asked for
	// PrefillFP4 computes steps of more than 16 rows with both operands in FP4 where weights are in NVFP4: faster, and
	// less accurate. It takes a GPU of compute capability 12.1; elsewhere it is an error.
	PrefillFP4 bool
}

// noFP4 says that the processor does not do it.
var noFP4 = errors.New("cannot compute prompts in FP4 on the processor: that takes a GPU of compute capability 12.1; leave --prefill-fp4 out")

// CheckFP4 says why options that want prompts in FP4 cannot have them, as far as that is known
// before a backend is made.
func CheckFP4(o Options) error {
	if o.PrefillFP4 && (o.Name == CPU || gpu == nil) {
		return noFP4
	}
	return nil
}

// CheckFP4Weights says that a model has no weights for it.
func CheckFP4Weights(o Options, m *weights.Model) error {
	if !o.PrefillFP4 {
		return nil
	}
	found := false
	m.Each(func(t *weights.Tensor) { found = found || t.Type == ops.NVFP4 && len(t.Shape) > 1 })
	if !found {
		return errors.New("cannot compute prompts in FP4: the model has no weights in NVFP4; leave --prefill-fp4 out")
	}
	return nil
}

// KVType is how a backend of these options stores keys and values: as asked for, else bf16 on
// the GPU and f32 on the processor. As with WeightBytes, no name means the processor where nothing
// is asked for. The processor has f32 alone.
func KVType(o Options) (ops.KVType, error) {
	if o.KV == "" || o.KV == "auto" {
		if o.Name == CUDA && gpu != nil {
			return ops.KVBF16, nil
		}
		return ops.KVF32, nil
	}
	t, err := weights.ParseKVType(o.KV)
	if err == nil && t != ops.KVF32 && (o.Name == CPU || gpu == nil && o.Name != CUDA) {
		err = fmt.Errorf("cannot keep keys and values in %s on the processor: it has f32 alone", t)
	}
	return t, err
}

// WeightBytes is the memory that a model's weights take while it computes, before any of it is
// taken. The processor packs quantised matrices anew; their mapped files are not read again, and the
// system can have those pages back. With no name it is the processor's: Resolve finds out which one is
// meant.
func WeightBytes(o Options, m *weights.Model) int64 {
	n := int64(0)
	m.Each(func(t *weights.Tensor) {
		if o.Name == CUDA && gpu != nil {
			n += gpu.bytes(t)
			return
		}
		packed := int64(0)
		if len(t.Shape) > 1 && !o.Exact {
			packed = cpu.Packed(t.Type, t.Rows(), t.Cols())
		}
		if packed == 0 {
			packed = int64(len(t.Data) + len(t.Scale))
		}
		n += packed
	})
	return n
}

// ChoiceBytes is the memory of a backend that the choice of tokens takes, from so many rows of logits of
// a vocabulary: none on the processor, where the scheduler chooses. No name means the processor.
func ChoiceBytes(o Options, vocab, rows int) int64 {
	if o.Name == CUDA && gpu != nil {
		return gpu.choice(vocab, rows)
	}
	return 0
}

// Needs says what a backend's own memory depends on.
type Needs struct {
	Rows      int // most rows of a step
	Outputs   int // most rows whose logits are wanted
	Sequences int // most sequences at a time
	Pages     int // of the cache
	Cols      int // of the widest matrix
	Vocab     int
	Shape     ops.CacheShape
}

// Own is what a backend takes, in bytes, beside weights and what a model asks it for.
type Own struct {
	Device  int64 // scratch of the kernels, and operands
	Pinned  int64 // page-locked memory of the host: what a step brings and what comes of it
	Loading int64 // weights on their way, of the device and as much of the host, until all are there
}

// OwnBytes is what a backend of these options takes beside weights and what a model asks it for; nothing
// where that is not known, as on the processor.
func OwnBytes(o Options, n *Needs) Own {
	if o.Name == CUDA && gpu != nil {
		return gpu.own(n)
	}
	return Own{}
}

// Backend is a backend to be closed after use.
type Backend interface {
	ops.Backend
	io.Closer
}

type processor struct{ *cpu.Backend }

func (p processor) Close() error { p.Backend.Close(); return nil }

// New makes the backend. With no name that is the GPU, if this build has one and it opens, else the
// processor. The error says which names there are.
func New(o Options) (Backend, error) {
	kv, err := KVType(o)
	if err == nil {
		err = CheckFP4(o)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case o.Name == CUDA && gpu != nil:
		return gpu.open(o, kv)
	case gpu != nil && (o.Name == "" || o.Name == "auto"):
		asked := kv
		if o.KV == "" || o.KV == "auto" {
			kv = ops.KVBF16
		}
		b, err := gpu.open(o, kv)
		if err == nil {
			return b, nil
		}
		if o.PrefillFP4 {
			return nil, err
		}
		if asked != ops.KVF32 {
			return nil, fmt.Errorf("cannot keep keys and values in %s on the processor, which has f32 alone, and there is no GPU: %w", kv, err)
		}
	case o.Name == "" || o.Name == "auto":
	case o.Name != CPU:
		return nil, fmt.Errorf("cannot compute on %q: this build has %s", o.Name, strings.Join(Names(), ", "))
	}
	return processor{cpu.New(cpu.Options{Rows: o.Rows, Workers: o.Workers, Exact: o.Exact})}, nil
}
