//go:build !windows && !arm64 && !arm

package window

import "github.com/go-gl/gl/v2.1/gl"

// renderer is who paints, as OpenGL names it. Call it while the window is painted.
func renderer() string { return gl.GoStr(gl.GetString(gl.RENDERER)) }
