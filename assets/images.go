package assets

import (
	"embed"
	"fmt"
	"path"
)

//go:embed images/*.png
var pictures embed.FS

// PictureSizes are the sides of the pictures that travel along, in pixels. They are square, and show
// the same scene (images/draw.go draws them).
var PictureSizes = []int{240, 320, 512, 768, 1024, 1365}

// PictureName is the file name of the picture of a size, as an image step of a suite gives it.
func PictureName(size int) string { return fmt.Sprintf("velo-%d.png", size) }

// Picture returns the PNG file of that name; false when there is none.
func Picture(name string) ([]byte, bool) {
	if path.Base(name) != name {
		return nil, false
	}
	b, err := pictures.ReadFile("images/" + name)
	return b, err == nil
}
