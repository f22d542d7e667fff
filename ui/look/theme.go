package look

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"velo/assets"
)

// The text sizes, in units; there are no others.
const (
	Small = 12 // labels and axes
	Body  = 14
	Head  = 18
	Hero  = 40
)

// The steps of the grid, in units.
const (
	Half   = 4
	Step   = 8
	Gap    = 16
	Margin = 24 // between the edge of a page and its content
	Radius = 6
)

// Mode says which palette is shown.
type Mode string

// The modes.
const (
	Auto       Mode = "auto" // as the desktop
	AlwaysDark Mode = "dark"
	AlwaysLite Mode = "light"
)

// Theme is the Fyne theme of Velo.
type Theme struct{ Mode Mode }

var _ fyne.Theme = (*Theme)(nil)

var (
	textRegular = fyne.NewStaticResource("VeloSans-Regular.ttf", assets.TextRegular)
	textBold    = fyne.NewStaticResource("VeloSans-Bold.ttf", assets.TextBold)
	monoRegular = fyne.NewStaticResource("VeloMono-Regular.ttf", assets.MonoRegular)
	monoBold    = fyne.NewStaticResource("VeloMono-Bold.ttf", assets.MonoBold)
)

func (t *Theme) palette(v fyne.ThemeVariant) Palette {
	switch t.Mode {
	case AlwaysDark:
		return Dark
	case AlwaysLite:
		return Light
	}
	return of(v)
}

// Color returns the colour that Fyne's own widgets take for a name.
func (t *Theme) Color(n fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	p := t.palette(v)
	switch n {
	case theme.ColorNameBackground:
		return p.Background
	case theme.ColorNameButton, theme.ColorNameInputBackground:
		return p.Raised
	case theme.ColorNameDisabledButton:
		return p.Surface
	case theme.ColorNameDisabled:
		return p.Faint
	case theme.ColorNameForeground:
		return p.Text
	case theme.ColorNamePlaceHolder:
		return p.Muted
	case theme.ColorNamePrimary, theme.ColorNameHyperlink:
		return p.Accent
	case theme.ColorNameForegroundOnPrimary:
		return p.OnAccent
	case theme.ColorNameFocus:
		return alpha(p.Accent, 0x66)
	case theme.ColorNameSelection:
		return alpha(p.Accent, 0x40)
	case theme.ColorNameHover:
		return alpha(p.Text, 0x14)
	case theme.ColorNamePressed:
		return alpha(p.Text, 0x28)
	case theme.ColorNameError:
		return p.Red
	case theme.ColorNameForegroundOnError:
		return p.OnRed
	case theme.ColorNameWarning:
		return p.Amber
	case theme.ColorNameSuccess:
		return p.Green
	case theme.ColorNameForegroundOnWarning, theme.ColorNameForegroundOnSuccess:
		return p.Background
	case theme.ColorNameMenuBackground:
		return p.Raised
	case theme.ColorNameHeaderBackground, theme.ColorNameOverlayBackground:
		return p.Surface
	case theme.ColorNameInputBorder:
		return p.Border
	case theme.ColorNameSeparator, theme.ColorNameInnerWindowBorder, theme.ColorNameInnerWindowBorderInactive:
		return p.Line
	case theme.ColorNameScrollBar:
		return alpha(p.Muted, 0x99)
	case theme.ColorNameScrollBarBackground:
		return color.Transparent
	case theme.ColorNameShadow:
		return color.Transparent // nothing floats here: panels are told apart by lines
	}
	return theme.DefaultTheme().Color(n, v)
}

// Font returns the embedded family for a style: one for text, one for numbers.
func (t *Theme) Font(s fyne.TextStyle) fyne.Resource {
	switch {
	case s.Symbol:
		return theme.DefaultTheme().Font(s)
	case s.Monospace && s.Bold:
		return monoBold
	case s.Monospace:
		return monoRegular
	case s.Bold:
		return textBold
	}
	return textRegular
}

// Icon returns Fyne's icons.
func (t *Theme) Icon(n fyne.ThemeIconName) fyne.Resource { return theme.DefaultTheme().Icon(n) }

// Size returns the sizes of Fyne's own widgets, on the grid of this package.
func (t *Theme) Size(n fyne.ThemeSizeName) float32 {
	switch n {
	case theme.SizeNameText:
		return Body
	case theme.SizeNameCaptionText:
		return Small
	case theme.SizeNameHeadingText, theme.SizeNameSubHeadingText:
		return Head
	case theme.SizeNamePadding:
		return Half
	case theme.SizeNameInnerPadding:
		return 7 // with a line of text: fields and buttons of 32
	case theme.SizeNameInlineIcon:
		return 18
	case theme.SizeNameInputRadius, theme.SizeNameButtonRadius, theme.SizeNameCardRadius,
		theme.SizeNameDialogRadius, theme.SizeNamePopupRadius, theme.SizeNameMenuRadius:
		return Radius
	case theme.SizeNameSelectionRadius, theme.SizeNameScrollBarRadius:
		return Radius / 2
	case theme.SizeNameScrollBar:
		return 10
	case theme.SizeNameModalBlurRadius:
		return 0 // the page behind a question stays readable
	}
	return theme.DefaultTheme().Size(n)
}
