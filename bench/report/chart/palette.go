package chart

import (
	"image/color"

	"github.com/wcharczuk/go-chart/v2/drawing"
)

// Palette is the set of colours of a chart, all opaque. Text and Muted have a
// contrast of at least 4.5 to Background.
type Palette struct {
	Background, Text, Muted, Grid, Accent, Amber, Red color.RGBA
	Series                                            []color.RGBA // colour-blind safe: Okabe and Ito (2008), ordered by contrast to the background
}

// Light is for paper and light windows.
var Light = Palette{
	Background: rgb(0xffffff),
	Text:       rgb(0x1b2127),
	Muted:      rgb(0x59646f),
	Grid:       rgb(0xe4e8ec),
	Accent:     rgb(0x0072b2),
	Amber:      rgb(0xb26a00),
	Red:        rgb(0xc62828),
	Series: []color.RGBA{
		rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7),
		rgb(0x56b4e9), rgb(0xe69f00), rgb(0x000000), rgb(0xf0e442),
	},
}

// Dark is for dark windows.
var Dark = Palette{
	Background: rgb(0x14181d),
	Text:       rgb(0xe6eaee),
	Muted:      rgb(0x9aa6b2),
	Grid:       rgb(0x29313a),
	Accent:     rgb(0x56b4e9),
	Amber:      rgb(0xf0b429),
	Red:        rgb(0xff6b6b),
	Series: []color.RGBA{
		rgb(0x56b4e9), rgb(0xe69f00), rgb(0x009e73), rgb(0xcc79a7),
		rgb(0xf0e442), rgb(0xd55e00), rgb(0xffffff), rgb(0x0072b2),
	},
}

// Regime returns the colour of a kind of text, the same everywhere in Velo:
// prose grey-blue, code sky, mathematics yellow, structured green, reasoning
// violet, creative orange. Any other name is a neutral grey.
func Regime(name string) color.RGBA {
	switch name {
	case "prose":
		return rgb(0x7189a6)
	case "code":
		return rgb(0x56b4e9)
	case "mathematics":
		return rgb(0xf0e442)
	case "structured":
		return rgb(0x009e73)
	case "reasoning":
		return rgb(0x8e6bbf)
	case "creative":
		return rgb(0xe69f00)
	}
	return rgb(0x8a929a)
}

// dashes tell lines apart where colour alone would have to: in a legend.
var dashes = [][]float64{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}, {4, 2}}

const tintAlpha = 0x24 // of bands, areas and envelopes: the grid stays visible through it

func rgb(hex uint32) color.RGBA {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

// ink turns an opaque colour into go-chart's, which is not premultiplied.
func ink(c color.RGBA, alpha uint8) drawing.Color {
	return drawing.Color{R: c.R, G: c.G, B: c.B, A: alpha}
}

func opaque(c color.RGBA) drawing.Color { return ink(c, 0xff) }

// series is the colour of the 0-based place i.
func (p Palette) series(i int) color.RGBA {
	if len(p.Series) == 0 {
		return p.Accent
	}
	return p.Series[((i%len(p.Series))+len(p.Series))%len(p.Series)]
}
