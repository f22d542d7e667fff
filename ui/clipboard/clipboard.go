// Package clipboard reads pictures from the desktop's clipboard: Fyne's own holds text only. On X11,
// and so under the X server of a Wayland desktop, it speaks the protocol itself, in Go: nothing is
// linked or loaded for it. On other systems there is no way to a picture.
package clipboard

import "errors"

// most is the size of a picture, in bytes, beyond which it is not taken.
const most = 20 << 20

// kinds are the types of pictures that are taken, the best first.
var kinds = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

var (
	errNone  = errors.New("cannot paste a picture: there is none on the clipboard. Copy one first, or attach it as a file")
	errLarge = errors.New("cannot paste the picture: it has more than 20 MiB. Save it, make it smaller, and attach it as a file")
	errLate  = errors.New("cannot paste the picture: the program that holds the clipboard does not answer. Copy it again, or attach it as a file")
)
