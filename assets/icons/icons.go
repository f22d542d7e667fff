// Package icons holds the program's icon.
package icons

import _ "embed"

// PNG is the icon at 512 × 512 pixels. It is read only.
//
//go:embed velo.png
var PNG []byte
