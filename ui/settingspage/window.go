package settingspage

import (
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// appearance is how the window looks.
type appearance struct {
	section
	page    *Page
	theme   *widget.RadioGroup
	size    *widget.RadioGroup
	needs   *look.Paragraph
	filling bool
}

var themes = []choice{{string(look.Auto), "As the desktop"}, {string(look.AlwaysDark), "Dark"}, {string(look.AlwaysLite), "Light"}}

func (a *appearance) build(g *Page) {
	a.page = g
	a.theme = widget.NewRadioGroup(wordsOf(themes), func(words string) {
		if !a.filling && words != "" {
			g.SetMode(look.Mode(idOf(themes, words)))
		}
	})
	a.theme.Horizontal, a.theme.Required = true, true
	var sizes []string
	for _, n := range console.TextSizes {
		sizes = append(sizes, percent(n))
	}
	a.size = widget.NewRadioGroup(sizes, func(words string) {
		if a.filling {
			return
		}
		for _, n := range console.TextSizes {
			if percent(n) == words {
				g.SetTextSize(n)
			}
		}
	})
	a.size.Horizontal, a.size.Required = true, true
	a.section.shown = a.fill
	a.needs = small("")
	a.view = content(heading("Appearance"),
		look.Rows(look.Half, look.NewText("Theme").Sized(look.Small).In(look.Muted), look.Line(0, a.theme)),
		look.Rows(look.Half, look.NewText("Size of text and everything else").Sized(look.Small).In(look.Muted), look.Line(0, a.size)),
		a.needs, small("Reports as PDF are always light. The size adds to that of the desktop."))
}

func percent(n int) string { return fmt.Sprintf("%d %%", n) }

func (a *appearance) fill() {
	s := a.page.Settings()
	a.filling = true
	mode := s.Theme
	if mode == "" {
		mode = string(look.Auto)
	}
	a.theme.SetSelected(wordsFor(themes, mode))
	size := s.TextSize
	if size == 0 {
		size = 100
	}
	a.size.SetSelected(percent(size))
	width, height := a.page.Needs()
	a.needs.Set(fmt.Sprintf("At %s the window takes at least %d × %d pixels of the screen.", percent(size), width, height))
	a.filling = false
}

// limitsForm is how long requests may take.
type limitsForm struct {
	section
	saver
	entries [4]*look.Entry
	status  status
}

var limitNames = [4]string{"To connect", "Until the first byte", "Silence within an answer", "A whole request"}

func (f *limitsForm) build(g *Page) {
	f.saver = saver{page: g, save: f.store, job: func() func() error {
		l, err := f.read()
		return func() error {
			if err != nil {
				return err
			}
			return g.Preferences.SaveLimits(l)
		}
	}}
	f.section.shown, f.section.flush = f.fill, f.saver.flush
	fields := look.Flow(look.Gap, wideWidth)
	for i, name := range limitNames {
		f.entries[i] = look.NewEntry("no limit")
		f.entries[i].OnChanged = func(string) {
			if !f.filling {
				f.status.typed()
			}
			f.touched()
		}
		fields.Add(look.Field(name, wideWidth, f.entries[i]))
	}
	f.entries[0].SetPlaceHolder("15s")
	f.status = newStatus()
	f.view = content(heading("Limits of time"),
		small("Of requests in runs and chats. Write a number with a unit, such as 500ms, 15s, 10m or 1h; what is empty has no limit. A session notes the limits that it had."),
		fields, f.status.Paragraph)
}

func (f *limitsForm) fill() {
	if f.dirty {
		return
	}
	l := f.page.Preferences.Limits()
	f.byProgram(func() {
		for i, d := range [4]time.Duration{l.Connect, l.FirstByte, l.Idle, l.Total} {
			f.entries[i].SetText(duration(d))
		}
	})
}

// duration writes a time as the form takes it; 0 is empty.
func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// read is what the form has.
func (f *limitsForm) read() (console.Limits, error) {
	var d [4]time.Duration
	for i, e := range f.entries {
		text := strings.TrimSpace(e.Text)
		if text == "" {
			continue
		}
		var err error
		if d[i], err = time.ParseDuration(strings.ReplaceAll(text, " ", "")); err != nil {
			return console.Limits{}, fmt.Errorf("%s: a time with its unit, such as 15s or 2m, and not %q", limitNames[i], text)
		}
	}
	return console.Limits{Connect: d[0], FirstByte: d[1], Idle: d[2], Total: d[3]}, nil
}

func (f *limitsForm) store() {
	l, err := f.read()
	if err != nil {
		f.status.wrong(err)
		return
	}
	f.page.Thread.Work(func() func() {
		err := f.page.Preferences.SaveLimits(l)
		return func() {
			if err != nil {
				f.status.wrong(err)
				if f.page.current != &f.section {
					f.page.Say(look.OnRed, sentence(err.Error()))
				}
				return
			}
			f.status.saved()
		}
	})
}
