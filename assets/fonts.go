// Package assets holds what travels inside the binary: fonts and other
// files that the window, the reports and the exports need on any machine.
package assets

import _ "embed"

// The fonts of the window, of charts and of PDF files: TrueType with glyf
// outlines, tabular digits, SIL Open Font License 1.1 (fonts/OFL.txt). They
// are read only: a writer must copy.
var (
	// TextRegular is Velo Sans, for text.
	//go:embed fonts/VeloSans-Regular.ttf
	TextRegular []byte
	// TextBold is Velo Sans Bold, for headings.
	//go:embed fonts/VeloSans-Bold.ttf
	TextBold []byte
	// MonoRegular is Velo Mono, for numbers, code and logs.
	//go:embed fonts/VeloMono-Regular.ttf
	MonoRegular []byte
	// MonoBold is Velo Mono Bold.
	//go:embed fonts/VeloMono-Bold.ttf
	MonoBold []byte
)
