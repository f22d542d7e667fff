package telemetrypage

import (
	"strings"
	"unicode/utf8"

	"fyne.io/fyne/v2"

	"velo/ui/look"
)

// textWindow shows the end of a stream's text, in a fixed number of lines of a fixed-pitch family: a line
// that is full stays as it is while the next one grows.
type textWindow struct {
	view  *fyne.Container
	lines []*look.Text
}

func newTextWindow(lines int) *textWindow {
	w := &textWindow{view: look.Rows(0)}
	for range lines {
		t := look.NewMono("").Sized(look.Small).Fixed(64)
		w.lines = append(w.lines, t)
		w.view.Add(t)
	}
	return w
}

// columns is how many characters a line has room for. Call it on the UI thread.
func (w *textWindow) columns() int {
	one := fyne.MeasureText("0000000000", look.Small, fyne.TextStyle{Monospace: true}).Width / 10
	return max(int(w.lines[0].Size().Width/one), 8)
}

// show puts lines in, the last one at the bottom of what is filled.
func (w *textWindow) show(lines []string) {
	for i, t := range w.lines {
		text := ""
		if i < len(lines) {
			text = lines[i]
		}
		t.Set(text)
	}
}

// tail wraps a text at so many columns and returns its last lines. Only as much of the text is looked at
// as can be shown: from the last line end before it, so that a growing text does not wrap anew.
func tail(text string, columns, lines int) []string {
	if columns < 1 || lines < 1 {
		return nil
	}
	// A column is at most 4 bytes; what is cut off in the middle of a paragraph is cut at a multiple of what
	// can be shown, and not at each new character.
	most := 4 * columns * (lines + 1)
	if len(text) > 2*most {
		text = text[(len(text)-most)/most*most:]
		for text != "" && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	var out []string
	for _, paragraph := range strings.Split(text, "\n") {
		out = append(out, wrap(clean(paragraph), columns)...)
	}
	return out[max(0, len(out)-lines):]
}

// wrap breaks a paragraph at spaces, and a word that is longer than a line where the line ends.
func wrap(paragraph string, columns int) []string {
	var out []string
	line, width := 0, 0  // where the line begins, and its width so far
	space, upTo := -1, 0 // the last space in it, and the width up to there
	for i, c := range paragraph {
		w := cells(c)
		if c == ' ' && width+w > columns { // the line is full, and ends here
			out = append(out, paragraph[line:i])
			line, width, space = i+1, 0, -1
			continue
		}
		if width+w > columns {
			if space > line {
				out = append(out, paragraph[line:space])
				line, width = space+1, width-upTo-1
			} else {
				out = append(out, paragraph[line:i])
				line, width = i, 0
			}
			space = -1
		}
		if c == ' ' {
			space, upTo = i, width
		}
		width += w
	}
	return append(out, paragraph[line:])
}

// cells is the width of a character: those of East Asia and pictures take two.
func cells(c rune) int {
	switch {
	case c < ' ' || c >= 0x300 && c < 0x370 || c == 0x200d || c >= 0xfe00 && c <= 0xfe0f:
		return 0
	case c >= 0x1100 && c <= 0x115f || c >= 0x2e80 && c <= 0xa4cf || c >= 0xac00 && c <= 0xd7a3 || c >= 0xf900 && c <= 0xfaff ||
		c >= 0xfe30 && c <= 0xfe6f || c >= 0xff00 && c <= 0xff60 || c >= 0xffe0 && c <= 0xffe6 || c >= 0x1f300 && c <= 0x1faff || c >= 0x20000:
		return 2
	}
	return 1
}

// clean makes what controls a terminal a space, and a tab four.
func clean(line string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ReplaceAll(strings.ToValidUTF8(line, "�"), "\t", "    "))
}
