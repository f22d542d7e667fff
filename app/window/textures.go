package window

import (
	"os"
	"time"
	_ "unsafe" // for linkname
)

// Fyne keeps a texture for every text that was ever on screen, for a minute: numbers that change four
// times a second then hold hundreds of megabytes. FYNE_CACHE shortens that, but it is read before
// main begins, when only whoever starts the program can have set it; this is the variable behind it.
//
//go:linkname textureLife fyne.io/fyne/v2/internal/cache.ValidDuration
var textureLife time.Duration

//go:linkname textureCheck fyne.io/fyne/v2/internal/cache.cleanTaskInterval
var textureCheck time.Duration

// keepTexturesShortly does what FYNE_CACHE=10s would have done, unless the user set it.
func keepTexturesShortly() {
	if os.Getenv("FYNE_CACHE") != "" {
		return
	}
	textureLife, textureCheck = 10*time.Second, 5*time.Second
}
