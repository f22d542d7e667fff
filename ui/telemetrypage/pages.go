package telemetrypage

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/bench/otlp"
	"velo/ui/console"
	"velo/ui/look"
)

// pagesForm is the part of the settings with the metrics pages: a row for each.
type pagesForm struct {
	form *form
	view *fyne.Container
	list *fyne.Container
	none *look.Paragraph
	rows []*pageRow
}

// pageRow is one page.
type pageRow struct {
	view              *fyne.Container
	url, every, token *look.Entry
	forget            *widget.Check
	state             *look.Paragraph
	was               console.TelemetryPage // as it is kept
}

// Widths of a row's fields, in units.
const (
	everyWidth = 80
	tokenWidth = 168
)

func (f *pagesForm) build(form *form) {
	f.form, f.list = form, look.Rows(look.Gap)
	f.none = look.NewParagraph("None is read. vLLM, SGLang and llama.cpp show their figures on a page such as http://127.0.0.1:8000/metrics.").In(look.Muted)
	f.view = look.Rows(look.Gap, f.none, f.list, look.Line(0, look.Button("Add metrics page", f.add)))
}

// row makes a row without content.
func (f *pagesForm) row() *pageRow {
	r := &pageRow{}
	entry := func(e *look.Entry) *look.Entry {
		e.OnChanged = func(string) { f.form.changed() }
		e.OnSubmitted = func(string) { f.form.Apply() }
		return e
	}
	r.url, r.every, r.token = entry(look.NewEntry("http://127.0.0.1:8000/metrics")), entry(look.NewEntry("2")), entry(look.NewSecret("Empty: none"))
	r.forget = widget.NewCheck("Send no token any more", func(bool) { f.form.changed() })
	r.state = look.NewParagraph("").Sized(look.Small).AtMost(3)
	named := func(name string, e fyne.CanvasObject) fyne.CanvasObject {
		return look.Rows(look.Half, look.NewText(name).Sized(look.Small).In(look.Muted), e)
	}
	remove := look.Button("Remove", func() { f.remove(r) })
	r.view = look.Rows(look.Half,
		look.Trailing(look.Gap, named("Address", r.url), look.Line(look.Gap, look.Sized(everyWidth, 0, named("Every, s", r.every)),
			look.Sized(tokenWidth, 0, named("Token", r.token)), named("", remove))),
		r.forget, r.state)
	r.forget.Hide()
	r.state.Hide()
	return r
}

func (f *pagesForm) add() {
	r := f.row()
	r.every.SetText(seconds(otlp.PollEvery))
	f.rows = append(f.rows, r)
	f.show()
	f.form.changed()
	if c := fyne.CurrentApp().Driver().CanvasForObject(f.form.page.View); c != nil {
		c.Focus(r.url)
		f.form.scroll.Reveal(f.view.Position().Y+f.list.Position().Y+r.view.Position().Y, r.view.Size().Height)
	}
}

func (f *pagesForm) remove(gone *pageRow) {
	var rest []*pageRow
	for _, r := range f.rows {
		if r != gone {
			rest = append(rest, r)
		}
	}
	f.rows = rest
	f.show()
	f.form.changed()
}

// show puts the rows on screen.
func (f *pagesForm) show() {
	f.list.Objects = nil
	for _, r := range f.rows {
		f.list.Add(r.view)
	}
	showIf(f.none, len(f.rows) == 0)
	showIf(f.list, len(f.rows) > 0)
	f.form.scroll.Settle()
}

// fill shows pages. Rows stay what they are, and with them the focus, as long as there are as many.
func (f *pagesForm) fill(pages []console.TelemetryPage) {
	for len(f.rows) < len(pages) {
		f.rows = append(f.rows, f.row())
	}
	f.rows = f.rows[:len(pages)]
	for i, p := range pages {
		r := f.rows[i]
		if r.was.ID != p.ID {
			r.state.Set("")
			r.state.Hide()
		}
		r.was = p
		set(r.url, p.URL)
		set(r.every, seconds(p.Every))
		set(r.token, "")
		hint := "Empty: none"
		if p.HasToken {
			hint = "A token is kept"
		}
		r.token.SetPlaceHolder(hint)
		r.forget.SetChecked(false)
		showIf(r.forget, p.HasToken)
	}
	f.show()
}

// set changes a field's text where it differs: the caret of one that is typed in stays.
func set(e *look.Entry, text string) {
	if e.Text != text {
		e.SetText(text)
	}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'g', 4, 64) }

// read is the pages as the rows have them. A row that was added and not filled in is none.
func (f *pagesForm) read() (pages []console.TelemetryPage, err error) {
	for _, r := range f.rows {
		p := r.was
		p.URL = strings.TrimSpace(r.url.Text)
		text := strings.TrimSpace(r.token.Text)
		if p.ID == "" && p.URL == "" && text == "" {
			continue
		}
		u, bad := url.Parse(p.URL)
		every, wrong := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSpace(r.every.Text), ",", "."), 64)
		switch {
		case err != nil:
		case p.URL == "":
			err = fmt.Errorf("Metrics pages: an address is missing; enter it, or remove the page")
		case bad != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
			err = fmt.Errorf("Metrics pages: %q is no address such as http://127.0.0.1:8000/metrics", p.URL)
		case u.User != nil:
			err = fmt.Errorf("Metrics pages: an address with a name and a password in it is not kept; enter a token instead")
		case wrong != nil || !(every >= 1 && every <= 60):
			err = fmt.Errorf("Metrics pages: %s is read every 1 to 60 s, not %q", p.URL, r.every.Text)
		}
		p.Every = time.Duration(every * float64(time.Second))
		if text != "" {
			p.Token = &text
		} else if r.forget.Checked {
			p.Token = new(string)
		}
		pages = append(pages, p)
	}
	return pages, err
}

// tell says how reading goes. The receiver has the pages in the order in which they are kept.
func (f *pagesForm) tell(polls []otlp.Polled) {
	kept, moved := f.form.settings.Pages, false
	for _, r := range f.rows {
		text, ink := "", look.Muted
		for i := range kept {
			if r.was.ID == "" || kept[i].ID != r.was.ID || i >= len(polls) {
				continue
			}
			switch p := &polls[i]; {
			case !p.Tried:
				text = "Being read for the first time."
			case p.Ok:
				text = plural(p.Series, "metric") + ", " + ago(p.Last)
			default:
				text, ink = sentence(p.Error)+" Tried "+ago(p.Last)+".", look.Red
			}
		}
		if text != r.state.Text() {
			r.state.SetIn(text, ink)
			moved = true
		}
		moved = showIf(r.state, text != "") || moved
	}
	if moved {
		f.form.scroll.Settle()
	}
}
