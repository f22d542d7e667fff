package assets

import (
	"embed"
	"io/fs"
)

//go:embed suites/*.json
var suites embed.FS

// Suites holds the files of the built-in suites, one each, named after the suite's id.
func Suites() fs.FS {
	sub, err := fs.Sub(suites, "suites")
	if err != nil {
		panic("assets: " + err.Error()) // the folder's name is a constant
	}
	return sub
}
