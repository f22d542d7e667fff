//go:build linux && cuda && cgo

package backend

import "velo/cuda"

var gpu = &accelerator{
	open: func(o Options) (Backend, error) {
		return cuda.NewBackend(cuda.BackendOptions{Rows: o.Rows})
	},
	bytes: cuda.WeightBytes,
	look:  func(Options) (*Facts, error) { return cuda.Look(0) },
}
