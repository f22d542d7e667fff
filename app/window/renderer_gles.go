//go:build !windows && (arm64 || arm)

package window

import gl "github.com/go-gl/gl/v3.1/gles2"

// renderer is who paints, as OpenGL names it. Call it while the window is painted.
func renderer() string { return gl.GoStr(gl.GetString(gl.RENDERER)) }
