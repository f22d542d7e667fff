package ui

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// endpointForm is what is asked about an endpoint.
type endpointForm struct {
	shell                 *Shell
	old                   console.Endpoint
	name, url, key, model *look.Entry
	think, forget         *widget.Check
	result                *look.Paragraph
	check, save           *look.PushButton
	dialog                *dialog.CustomDialog
	cancel                context.CancelFunc
}

// editEndpoint asks about a new endpoint (the zero one) or changes one.
func (s *Shell) editEndpoint(e console.Endpoint) {
	if e.BuiltIn || e.Engine {
		return
	}
	f := &endpointForm{shell: s, old: e}
	f.build()
	s.show(f.dialog)
	s.Window.Canvas().Focus(f.url)
}

func (f *endpointForm) build() {
	f.name, f.url = look.NewEntry("As you call it; empty: its address"), look.NewEntry("http://127.0.0.1:8000/v1")
	f.key, f.model = look.NewSecret("Empty: none"), look.NewEntry("Empty: the server's first")
	f.name.SetText(f.old.Name)
	f.url.SetText(f.old.URL)
	f.model.SetText(f.old.Model)
	if f.old.HasKey {
		f.key.SetPlaceHolder("A key is kept; type to replace it")
	}
	f.think = widget.NewCheck("Answers carry their reasoning in <think> tags", nil)
	f.think.SetChecked(f.old.ThinkTags)
	f.forget = widget.NewCheck("Remove the key that is kept", nil)
	if !f.old.HasKey {
		f.forget.Hide()
	}
	f.result = look.NewParagraph("The address may come with or without /v1. A key goes to the keyring of the system and is never written to a report.").In(look.Muted)
	f.check = look.Button("Check", f.try)
	f.save = look.MainButton("Save", f.keep)
	cancel := look.Button("Cancel", func() { f.close() })
	f.url.OnChanged = func(string) { f.states() }
	f.states()

	body := look.Rows(look.Gap,
		look.Field("Address", 0, f.url), look.Field("Name", 0, f.name), look.Field("Key", 0, f.key), f.forget,
		look.Field("Model", 0, f.model), f.think, look.Sized(0, 64, f.result))
	title := "Add endpoint"
	if f.old.ID != "" {
		title = "Edit endpoint"
	}
	f.dialog = dialog.NewCustomWithoutButtons(title, look.Sized(520, 0, body), f.shell.Window)
	f.dialog.SetButtons([]fyne.CanvasObject{cancel, f.check, f.save})
}

func (f *endpointForm) states() {
	if strings.TrimSpace(f.url.Text) == "" {
		f.check.Disable()
		f.save.Disable()
		return
	}
	f.check.Enable()
	f.save.Enable()
}

func (f *endpointForm) close() {
	if f.cancel != nil {
		f.cancel()
	}
	f.dialog.Hide()
}

// read is the endpoint as the form has it. The key is nil where it stays as it is.
func (f *endpointForm) read() (console.Endpoint, *string) {
	e := f.old
	e.Name, e.URL, e.Model = strings.TrimSpace(f.name.Text), strings.TrimSpace(f.url.Text), strings.TrimSpace(f.model.Text)
	e.ThinkTags = f.think.Checked
	var key *string
	if text := strings.TrimSpace(f.key.Text); text != "" {
		key = &text
	} else if f.forget.Checked {
		key = new(string)
		e.HasKey = false
	}
	return e, key
}

// try asks the server, and says what it answered.
func (f *endpointForm) try() {
	e, key := f.read()
	ctx, cancel := context.WithTimeout(f.shell.ctx, 20*time.Second)
	f.cancel = cancel
	f.check.Disable()
	f.result.SetIn("Asking "+e.URL+" …", look.Muted)
	text := ""
	if key != nil {
		text = *key
	}
	f.shell.Thread.Work(func() func() {
		defer cancel()
		found, err := f.shell.Console.Check(ctx, e, text)
		return func() {
			f.check.Enable()
			if err != nil {
				f.result.SetIn(err.Error(), look.Red)
				return
			}
			f.result.SetIn(found, look.Green)
		}
	})
}

// keep saves the endpoint and makes it the chosen one.
func (f *endpointForm) keep() {
	e, key := f.read()
	f.save.Disable()
	f.shell.Thread.Work(func() func() {
		kept, err := f.shell.Console.SaveEndpoint(e, key)
		if err == nil {
			f.shell.Console.SelectEndpoint(kept.ID)
		}
		return func() {
			f.save.Enable()
			if err != nil {
				f.result.SetIn(err.Error(), look.Red)
				return
			}
			f.close()
			f.shell.reloadEndpoints()
		}
	})
}

// removeEndpoint asks, and removes the chosen endpoint.
func (s *Shell) removeEndpoint() {
	e := s.chosen.endpoint
	if !s.ownChosen() {
		return
	}
	s.ask("Remove endpoint", fmt.Sprintf("Remove “%s” and its key? Sessions that measured it stay.", e.Name), "Remove endpoint", func() {
		s.Thread.Work(func() func() {
			err := s.Console.DeleteEndpoint(e.ID)
			return func() {
				if err != nil {
					s.say(look.OnRed, err.Error())
				}
				s.reloadEndpoints()
			}
		})
	})
}
