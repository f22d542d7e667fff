//go:build linux

// Package glstub lets a binary that contains OpenGL code start where there is no libGL.
// It puts an empty libGL.a first on the linker's path and answers go-gl's one link-time symbol
// by loading the real library on demand.
package glstub

// #cgo LDFLAGS: -L${SRCDIR}/lib -ldl
import "C"
