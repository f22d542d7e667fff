//go:build (arm64 || arm) && !darwin

package window

import gl "github.com/go-gl/gl/v3.1/gles2"

// loadGL readies OpenGL for the context that is current.
func loadGL() error { return gl.Init() }

// renderer is who paints, as OpenGL names it. A context must be current.
func renderer() string { return gl.GoStr(gl.GetString(gl.RENDERER)) }
