// Package look is how Velo looks: its theme (two palettes, four text sizes, an 8 px grid) and the
// few widgets that every page is built of. A widget of this package takes its colours from the theme
// at each refresh, so that a change of theme reaches all of them.
package look

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// Palette is one set of colours. Text, Muted, Accent, Green, Amber and Red have a contrast of at
// least 4.5 to Background and to Surface, and so has each On colour to what it lies on.
type Palette struct {
	Background color.NRGBA // of the window
	Surface    color.NRGBA // of bars, menus and dialogs
	Raised     color.NRGBA // of buttons and fields
	Hover      color.NRGBA // of what the pointer is on
	Selected   color.NRGBA // behind a selected row
	Line       color.NRGBA // of rules
	Border     color.NRGBA // of fields and boxes to tick
	Grid       color.NRGBA // of charts
	Text       color.NRGBA
	Muted      color.NRGBA // units, captions, axes
	Faint      color.NRGBA // what is disabled, or not measured
	Accent     color.NRGBA // action and selection
	OnAccent   color.NRGBA
	Green      color.NRGBA // a trust line that holds
	Amber      color.NRGBA // look at this
	Red        color.NRGBA // failure, nothing else
	OnRed      color.NRGBA
	Series     []color.NRGBA // colour-blind safe: Okabe and Ito (2008)
}

// Dark comes first.
var Dark = Palette{
	Background: rgb(0x14181d),
	Surface:    rgb(0x1a1f25),
	Raised:     rgb(0x262d35),
	Hover:      rgb(0x303842),
	Selected:   rgb(0x1d3b52),
	Line:       rgb(0x2c343d),
	Border:     rgb(0x4a5561),
	Grid:       rgb(0x29313a),
	Text:       rgb(0xe6eaee),
	Muted:      rgb(0x9aa6b2),
	Faint:      rgb(0x6b7682),
	Accent:     rgb(0x56b4e9),
	OnAccent:   rgb(0x0b1218),
	Green:      rgb(0x34c08f),
	Amber:      rgb(0xf0b429),
	Red:        rgb(0xff6b6b),
	OnRed:      rgb(0x1a0808),
	Series: []color.NRGBA{
		rgb(0x56b4e9), rgb(0xe69f00), rgb(0x009e73), rgb(0xcc79a7),
		rgb(0xf0e442), rgb(0xd55e00), rgb(0xffffff), rgb(0x0072b2),
	},
}

// Light is its equal.
var Light = Palette{
	Background: rgb(0xffffff),
	Surface:    rgb(0xf4f6f8),
	Raised:     rgb(0xe6eaee),
	Hover:      rgb(0xdae0e6),
	Selected:   rgb(0xcfe6f5),
	Line:       rgb(0xd9dfe5),
	Border:     rgb(0xb0bac4),
	Grid:       rgb(0xe4e8ec),
	Text:       rgb(0x1b2127),
	Muted:      rgb(0x59646f),
	Faint:      rgb(0x8a949e),
	Accent:     rgb(0x0069a6),
	OnAccent:   rgb(0xffffff),
	Green:      rgb(0x0b7a57),
	Amber:      rgb(0x955800),
	Red:        rgb(0xc62828),
	OnRed:      rgb(0xffffff),
	Series: []color.NRGBA{
		rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7),
		rgb(0x56b4e9), rgb(0xe69f00), rgb(0x000000), rgb(0xf0e442),
	},
}

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

func alpha(c color.NRGBA, a uint8) color.NRGBA {
	c.A = a
	return c
}

// Now is the palette that the program shows at this moment. Call it on the UI thread.
func Now() Palette {
	s := fyne.CurrentApp().Settings()
	if t, ok := s.Theme().(*Theme); ok {
		return t.palette(s.ThemeVariant())
	}
	return of(s.ThemeVariant())
}

func of(v fyne.ThemeVariant) Palette {
	if v == theme.VariantLight {
		return Light
	}
	return Dark
}

// Ink is a role that a colour plays.
type Ink int

// The roles of a text's colour.
const (
	Plain Ink = iota
	Muted
	Faint
	Accent
	Green
	Amber
	Red
)

// Ink returns the colour of a role.
func (p Palette) Ink(i Ink) color.NRGBA {
	switch i {
	case Muted:
		return p.Muted
	case Faint:
		return p.Faint
	case Accent:
		return p.Accent
	case Green:
		return p.Green
	case Amber:
		return p.Amber
	case Red:
		return p.Red
	}
	return p.Text
}
