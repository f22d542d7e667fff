// Velo measures OpenAI-compatible endpoints: in a window, or as a command.
package main

import (
	"os"

	"velo/app"
	"velo/app/window"
)

func main() { os.Exit(app.Main(os.Args[1:], window.Run)) }
