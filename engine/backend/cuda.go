//go:build linux && cuda && cgo

package backend

import (
	"velo/cuda"
	"velo/engine/ops"
)

var gpu = &accelerator{
	open: func(o Options, kv ops.KVType) (Backend, error) {
		return cuda.NewBackend(cuda.BackendOptions{Rows: o.Rows, KV: kv})
	},
	bytes:  cuda.WeightBytes,
	choice: cuda.ChoiceBytes,
	look:   func(Options) (*Facts, error) { return cuda.Look(0) },
}
