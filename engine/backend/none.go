//go:build !(linux && cuda && cgo)

package backend

var gpu *accelerator
