//go:build linux && cuda && cgo

package backend

import (
	"velo/cuda"
	"velo/engine/ops"
)

var gpu = &accelerator{
	open: func(o Options, kv ops.KVType) (Backend, error) {
		return cuda.NewBackend(cuda.BackendOptions{Rows: o.Rows, KV: kv, Reserve: o.Reserve, FP4: o.PrefillFP4})
	},
	bytes:  cuda.WeightBytes,
	choice: cuda.ChoiceBytes,
	own: func(n *Needs) Own {
		needs := cuda.Needs(*n)
		device, pinned := needs.Bytes()
		return Own{Device: device, Pinned: pinned, Loading: cuda.LoadingBytes()}
	},
	look: func(Options) (*Facts, error) { return cuda.Look(0) },
}
