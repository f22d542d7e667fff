package ui

import (
	"context"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/enginepage"
	"velo/ui/look"
)

// topBar holds the endpoint and the model that a run takes, and the engine's switch.
type topBar struct {
	shell    *Shell
	view     fyne.CanvasObject
	endpoint *widget.Select
	model    *widget.SelectEntry
	edit     *look.PushButton
	light    *look.Surface // of the engine
	engine   *look.PushButton
	running  bool      // the engine's button stops it
	state    string    // of the engine
	launched time.Time // when it began to start
	filling  bool      // the pickers are set by the program: no intent of the user
	listed   string

	receiver      *look.PushButton
	receiverLight *look.Surface
}

func (b *topBar) build(s *Shell) {
	b.shell = s
	b.endpoint = widget.NewSelect(nil, b.picked)
	b.endpoint.PlaceHolder = "Pick an endpoint"
	b.model = widget.NewSelectEntry(nil)
	b.model.PlaceHolder = "The server's first model"
	b.model.OnChanged = func(text string) {
		if !b.filling {
			s.chosen.model = text
			s.chat.ChosenChanged()
		}
	}
	b.edit = look.Button("Edit…", func() { s.editEndpoint(s.chosen.endpoint) })
	add := look.Button("Add endpoint…", func() { s.editEndpoint(console.Endpoint{}) })
	b.light = look.Dot(look.OnFaint)
	b.engine = look.Button("Engine: stopped", s.toggleEngine)
	b.receiverLight = look.Dot(look.OnFaint)
	b.receiver = look.Button("Receiver: off", func() { s.Show(TelemetryPage) })
	bar := look.Wrap(look.Gap,
		look.Line(look.Step, look.NewText("Endpoint").Sized(look.Small).In(look.Muted), look.Sized(232, 0, b.endpoint), b.edit, add),
		look.Line(look.Step, look.NewText("Model").Sized(look.Small).In(look.Muted), look.Sized(232, 0, b.model)),
		look.Line(look.Step, b.receiverLight, look.Sized(168, 0, b.receiver), b.light, look.Sized(184, 0, b.engine)))
	b.view = look.Rows(0, look.Panel(look.OnSurface, look.Inset(look.Step, look.Margin, look.Step, look.Gap, bar)), look.Rule())
}

// showEngine tells how the engine is.
func (b *topBar) showEngine(s console.EngineStatus) {
	if b.state != s.State {
		switch s.State {
		case console.EngineStarting:
			b.launched = time.Now()
		case console.EngineReady:
			if !b.launched.IsZero() {
				b.shell.ended("Velo: engine", "The engine is ready.", time.Since(b.launched))
			}
		case console.EngineCrashed:
			if b.shell.current != EnginePage {
				b.shell.engineCrashed(s)
			}
			b.shell.ended("Velo: engine", "The engine ended by itself. "+s.Failure.Message, longWork) // however long it ran
		}
	}
	b.state = s.State
	if running := s.Running(); running != b.running {
		b.running = running
		b.shell.refreshCommands()
	}
	b.light.SetTone(enginepage.Tone(s))
	if text := "Engine: " + enginepage.Short(s); text != b.engine.Text {
		b.engine.SetText(text)
	}
	b.engine.SetEnabled(s.State != console.EngineStopping)
}

// label is how an endpoint is named in the picker: names need not be unique, so the address tells
// two of one name apart.
func label(e console.Endpoint, all []console.Endpoint) string {
	name := e.Name
	if name == "" {
		name = e.URL
	}
	for _, other := range all {
		if other.ID != e.ID && other.Name == e.Name && e.URL != "" {
			return name + "  (" + e.URL + ")"
		}
	}
	return name
}

func (b *topBar) picked(text string) {
	if b.filling {
		return
	}
	s := b.shell
	for _, e := range s.chosen.endpoints {
		if label(e, s.chosen.endpoints) == text && e.ID != s.chosen.endpoint.ID {
			s.choose(e)
			id := e.ID
			s.Thread.Work(func() func() {
				s.Console.SelectEndpoint(id)
				return nil
			})
		}
	}
}

// ownEndpoints are those that can be measured, the built-in one excepted.
func (s *Shell) ownEndpoints() []console.Endpoint {
	var own []console.Endpoint
	for _, e := range s.chosen.endpoints {
		if !e.BuiltIn && e.Down == "" {
			own = append(own, e)
		}
	}
	return own
}

// ownChosen tells whether the chosen endpoint is one that the user entered.
func (s *Shell) ownChosen() bool {
	e := s.chosen.endpoint
	return e.ID != "" && !e.BuiltIn && !e.Engine
}

// reloadEndpoints reads the endpoints again and keeps the chosen one chosen. Where none was ever
// picked the first of the user's own is taken, else the built-in one.
func (s *Shell) reloadEndpoints() {
	s.Thread.Work(func() func() {
		list, want := s.Console.Endpoints(), s.Console.SelectedEndpoint()
		return func() {
			s.chosen.endpoints = list
			var pick console.Endpoint
			for _, e := range list {
				if e.ID == want && want != "" {
					pick = e
				}
			}
			if pick.ID == "" {
				for i := len(list) - 1; i >= 0; i-- {
					if !list[i].BuiltIn && list[i].Down == "" || pick.ID == "" {
						pick = list[i]
					}
				}
			}
			s.choose(pick)
		}
	})
}

// choose makes an endpoint the one that a run takes.
func (s *Shell) choose(e console.Endpoint) {
	b := &s.bar
	b.filling = true
	names := make([]string, len(s.chosen.endpoints))
	for i, o := range s.chosen.endpoints {
		names[i] = label(o, s.chosen.endpoints)
	}
	b.endpoint.SetOptions(names)
	if e.ID == "" {
		b.endpoint.ClearSelected()
	} else {
		b.endpoint.SetSelected(label(e, s.chosen.endpoints))
	}
	if e != s.chosen.endpoint {
		s.chosen.model = e.Model
		b.model.SetText(e.Model)
		b.model.SetOptions(nil)
		b.listed = ""
	}
	s.chosen.endpoint = e
	b.edit.SetEnabled(s.ownChosen())
	b.filling = false
	s.chat.ChosenChanged()
	s.suites.Update()
	if b.listed != e.ID && e.ID != "" {
		b.listed = e.ID
		s.loadModels()
	}
	s.refreshCommands()
}

// loadModels asks the endpoint for its models. Where it does not answer the name can be typed, and
// the bar says why there is no list.
func (s *Shell) loadModels() {
	e := s.chosen.endpoint
	if e.ID == "" {
		return
	}
	if e.Down != "" {
		s.bar.model.SetPlaceHolder("The engine is not ready")
		return
	}
	s.bar.model.SetPlaceHolder("Asking for models…")
	s.Thread.Work(func() func() {
		ctx, cancel := context.WithTimeout(s.ctx, 15*time.Second)
		defer cancel()
		models, err := s.Console.Models(ctx, e.ID)
		return func() {
			if s.chosen.endpoint.ID != e.ID {
				return
			}
			if err != nil {
				s.bar.model.SetPlaceHolder("Type a model's name")
				if s.ctx.Err() == nil {
					s.say(look.OnAmber, "The models of "+e.Name+" could not be listed: "+err.Error())
				}
				return
			}
			s.bar.model.SetPlaceHolder("The server's first model")
			if len(models) > 0 {
				s.bar.model.SetPlaceHolder(models[0])
			}
			s.bar.model.SetOptions(models)
		}
	})
}
