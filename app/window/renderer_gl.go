//go:build (!arm64 && !arm) || darwin

package window

import "github.com/go-gl/gl/v2.1/gl"

// loadGL readies OpenGL for the context that is current.
func loadGL() error { return gl.Init() }

// renderer is who paints, as OpenGL names it. A context must be current.
func renderer() string { return gl.GoStr(gl.GetString(gl.RENDERER)) }
