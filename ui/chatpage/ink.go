package chatpage

import (
	"html"
	"image/color"
	"regexp"

	"velo/ui/look"
)

// ink is what a piece of text is, for its colour.
type ink uint8

const (
	inkPlain ink = iota
	inkMuted
	inkLink
	inkCode
	inkKeyword
	inkString
	inkNumber
	inkComment
	inkName
	inkRed
	inkAmber
	inkReasoning
)

// shades are the colours of highlighted code. Each has a contrast of at least 4.5 to what code lies
// on; keywords are bold besides, comments say by themselves what they are.
type shades struct{ keyword, text, number, name, reasoning color.NRGBA }

var (
	onDark = shades{
		keyword: hex(0x56b4e9), text: hex(0x5cc9a0), number: hex(0xf0b45a), name: hex(0xd9a0c4), reasoning: hex(0xb79ae0),
	}
	onLight = shades{
		keyword: hex(0x00609a), text: hex(0x0a6b4c), number: hex(0x874f00), name: hex(0x8a3f6d), reasoning: hex(0x6b479f),
	}
)

func hex(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

func shadesOf(p look.Palette) shades {
	if p.Background == look.Light.Background {
		return onLight
	}
	return onDark
}

func (i ink) color(p look.Palette) color.NRGBA {
	s := shadesOf(p)
	switch i {
	case inkMuted, inkComment:
		return p.Muted
	case inkLink:
		return p.Accent
	case inkKeyword:
		return s.keyword
	case inkString:
		return s.text
	case inkNumber:
		return s.number
	case inkName:
		return s.name
	case inkReasoning:
		return s.reasoning
	case inkRed:
		return p.Red
	case inkAmber:
		return p.Amber
	}
	return p.Text
}

var escapes = regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])`)

// unescape takes the backslashes and entities of Markdown out of a text.
func unescape(t string) string {
	return html.UnescapeString(escapes.ReplaceAllString(t, "$1"))
}
