package window

import (
	"fmt"
	"runtime"
	"strings"

	"fyne.io/fyne/v2"
	"github.com/go-gl/glfw/v3.4/glfw"
)

// probe opens and closes an invisible window with what Fyne asks for, and notes who paints it. Fyne itself ends the process
// with a line of log where there is no display or no OpenGL; here that becomes a sentence.
func probe() (err error) {
	const instead = "Velo also works without a window: velo bench quick"
	defer func() {
		if r := recover(); r != nil { // the binding panics on errors that it does not expect
			err = fmt.Errorf("cannot open a window: %v. %s", r, instead)
		}
	}()
	if err := glfw.Init(); err != nil {
		return fmt.Errorf("cannot open a window: the display cannot be reached (%v). Start Velo on a desktop, or check DISPLAY. %s", err, instead)
	}
	defer func() {
		// The connection is kept for Fyne: some X servers reset themselves when the last one closes,
		// and would refuse the next for a moment.
		if err != nil {
			glfw.Terminate()
		}
	}()
	glfw.WindowHint(glfw.Visible, glfw.False)
	if (runtime.GOARCH == "arm64" || runtime.GOARCH == "arm") && runtime.GOOS != "darwin" {
		glfw.WindowHint(glfw.ClientAPI, glfw.OpenGLESAPI)
		glfw.WindowHint(glfw.ContextVersionMajor, 2)
		glfw.WindowHint(glfw.ContextVersionMinor, 0)
	} else {
		glfw.WindowHint(glfw.ContextVersionMajor, 2)
		glfw.WindowHint(glfw.ContextVersionMinor, 1)
	}
	w, err := glfw.CreateWindow(16, 16, "Velo", nil, nil)
	if err != nil {
		return fmt.Errorf("cannot open a window: the display has no OpenGL 2.1 (%v). Install a driver, or Mesa's software one (libgl1-mesa-dri). %s", err, instead)
	}
	defer w.Destroy()
	w.MakeContextCurrent()
	defer glfw.DetachCurrentContext()
	if loadGL() == nil { // Fyne will say it better
		paints = renderer()
	}
	return nil
}

// paints is who paints, as OpenGL names it; empty where it is not known.
var paints string

// bySoftware tells whether a renderer paints with the processor, not with a GPU.
func bySoftware(renderer string) bool {
	name := strings.ToLower(renderer)
	for _, s := range []string{"llvmpipe", "softpipe", "swrast", "software", "swiftshader", "gdi generic", "basic render"} {
		if strings.Contains(name, s) {
			return true
		}
	}
	return false
}

// screen is the size of the largest screen in pixels, without panels and docks; zero where it is not known. probe has
// opened the display.
func screen() (size fyne.Size) {
	defer func() {
		_ = recover() // the binding panics on errors that it does not expect
	}()
	for _, m := range glfw.GetMonitors() {
		_, _, w, h := m.GetWorkarea()
		if s := fyne.NewSize(float32(w), float32(h)); s.Width*s.Height > size.Width*size.Height {
			size = s
		}
	}
	return size
}
