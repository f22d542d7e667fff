// Package about shows which program this is, and the licences of everything it is made of.
package about

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/ui/look"
	"velo/ui/table"
)

//go:generate go run collect.go

//go:embed licences.json
var document []byte

// Part is something that the program is made of.
type Part struct {
	Name    string `json:"name"`
	Version string `json:"version"` // empty: this program's own
	Licence string `json:"licence"` // short names of the SPDX list
	Texts   []int  `json:"texts"`
}

type list struct {
	Entries []Part   `json:"entries"`
	Texts   []string `json:"texts"`
}

var parts = sync.OnceValue(func() list {
	var l list
	if err := json.Unmarshal(document, &l); err != nil {
		panic(err) // it travels in the binary, and a test reads it
	}
	return l
})

// Parts are the program itself, Go, the fonts, and every module of go.mod: what is linked in, and what
// it is tested with.
func Parts() []Part { return parts().Entries }

// Text is the licence of a part, word for word.
func Text(p Part) string {
	var texts []string
	for _, i := range p.Texts {
		texts = append(texts, parts().Texts[i])
	}
	return strings.Join(texts, "\n"+strings.Repeat("─", 78)+"\n\n")
}

// lineLength is how many letters of a licence are shown in a line; nearly all are written for that.
const lineLength = 80

// lines cuts a text into lines, the long ones at a blank.
func lines(text string) (out []string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		for utf8.RuneCountInString(line) > lineLength {
			r := []rune(line)
			at := lineLength
			for at > 0 && r[at] != ' ' {
				at--
			}
			if at == 0 {
				at = lineLength
			}
			out = append(out, string(r[:at]))
			line = strings.TrimLeft(string(r[at:]), " ")
		}
		out = append(out, line)
	}
	return out
}

// Params is what is told of this program.
type Params struct {
	Version, Built, DataDir string
}

// View is what the program is, with a list of its parts and the licence of the one that is chosen.
type View struct {
	Object fyne.CanvasObject
	table  *table.Table
	title  *look.Text
	text   *widget.List // of lines: it makes objects only for those in view
	lines  []string
}

// New builds it.
func New(p Params) *View {
	v := &View{}
	head := look.Rows(look.Half,
		look.NewText("Velo "+p.Version).Sized(look.Head).Bold(),
		look.NewParagraph("Measures OpenAI-compatible endpoints per token, per request and under load, and serves models on this machine."),
		look.NewParagraph("Free software: the console under the GNU Affero General Public License 3, the engine under the Apache License 2.0. There is no warranty.").In(look.Muted),
		look.NewText(p.Built).Sized(look.Small).In(look.Muted).Fixed(320),
		look.NewText("Data folder: "+p.DataDir).Sized(look.Small).In(look.Muted).Fixed(320))
	all := Parts()
	v.table = table.New(look.Small, table.Column{Title: "Made of", Stretch: true, Least: 240}, table.Column{Title: "Version", Stretch: true, Least: 72}, table.Column{Title: "Licence", Stretch: true, Least: 88})
	v.table.SetRows(len(all), func(r, c int) table.Cell {
		return table.Cell{Text: [...]string{all[r].Name, all[r].Version, all[r].Licence}[c]}
	})
	rows := look.NewScroll(v.table)
	rows.OnScroll = v.table.SetView
	v.table.OnScroll = rows.Scrolled
	v.title = look.NewText("").Bold().Fixed(240)
	v.text = widget.NewList(func() int { return len(v.lines) },
		func() fyne.CanvasObject { return look.NewMono("").Sized(look.Small).Fixed(lineLength) },
		func(i widget.ListItemID, o fyne.CanvasObject) { o.(*look.Text).Set(v.lines[i]) })
	v.text.HideSeparators = true
	v.table.OnSelect = func(row int) {
		if row < 0 {
			return
		}
		v.title.Set(all[row].Name + " · " + all[row].Licence)
		v.lines = lines(Text(all[row]))
		v.text.UnselectAll()
		v.text.Refresh()
		v.text.ScrollToTop()
	}
	right := look.Frame(look.Inset(0, 0, look.Step, look.Gap, v.title), nil, nil, look.Inset(0, 0, 0, look.Gap-look.Half, v.text))
	v.Object = look.Frame(look.Inset(0, 0, look.Gap, 0, head), nil, nil, look.Columns(0, []float32{8, 10}, rows, right))
	v.table.Select(0)
	v.table.OnShow = rows.Reveal // not before there is a size to scroll in
	return v
}

// Focus is what the keys are for: up and down choose a part.
func (v *View) Focus() fyne.Focusable { return v.table }
