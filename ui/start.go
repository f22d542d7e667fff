package ui

import (
	"context"
	"fmt"
	"os"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/startpage"
)

// quickSample is the suite that gives a first number.
const quickSample = "prebuilt-quick"

func (s *Shell) newStartPage() *startpage.Page {
	return startpage.New(startpage.Params{
		Thread: s.Thread,
		Find: func(ctx context.Context) []console.Server {
			return s.Console.FindServers(ctx)
		},
		Measure:  func(found console.Server) { s.useServer(found, s.measureSample) },
		Use:      func(found console.Server) { s.useServer(found, func() { s.used(found) }) },
		Key:      func(found console.Server) { s.editEndpoint(s.asEndpoint(found)) },
		Scripted: s.measureScripted,
		Add:      func() { s.editEndpoint(console.Endpoint{}) },
		Engine:   func() { s.Show(EnginePage) },
		Open:     s.chooseFile,
		Recent:   s.readRecent,
		OpenPath: func(path string) { s.Open(path) },
		Reason: func() string {
			if s.status.active {
				return "A run is going on. Stop it first, or wait for its end."
			}
			return ""
		},
	})
}

// serverName is how a server that was found is named among the endpoints.
func serverName(found console.Server) string {
	return fmt.Sprintf("%s (%s)", found.Kind, startpage.Address(found))
}

// asEndpoint is a server that was found as an endpoint that can be added: of the kind that it is, so that
// reasoning is switched there as that kind does.
func (s *Shell) asEndpoint(found console.Server) console.Endpoint {
	e := console.Endpoint{Name: serverName(found), URL: found.URL}
	for _, p := range s.Console.Preferences().Presets() {
		if p.Name == found.Kind {
			e.Preset = p.ID
		}
	}
	return e
}

// useServer makes a server that was found the chosen endpoint: the one that it is already, or a new one.
func (s *Shell) useServer(found console.Server, then func()) {
	s.Thread.Work(func() func() {
		id := found.EndpointID
		if id == "" {
			kept, err := s.Console.SaveEndpoint(s.asEndpoint(found), nil)
			if err != nil {
				return func() { s.say(look.OnRed, err.Error()) }
			}
			id = kept.ID
		}
		s.Console.SelectEndpoint(id)
		list := s.Console.Endpoints()
		return func() {
			s.chosen.endpoints = list
			for _, e := range list {
				if e.ID == id {
					s.choose(e)
				}
			}
			then()
		}
	})
}

func (s *Shell) used(found console.Server) {
	s.Show(SuitesPage)
	s.say(look.OnAccent, fmt.Sprintf("“%s” is the endpoint that runs take.", s.chosen.endpoint.Name))
}

// measureSample measures the chosen endpoint with the quick sample.
func (s *Shell) measureSample() {
	s.start(console.RunSpec{SuiteID: quickSample, Workers: 1, Repeat: 1, Quiet: true})
}

// measureScripted measures the built-in endpoint with the quick sample.
func (s *Shell) measureScripted() {
	for _, e := range s.chosen.endpoints {
		if e.BuiltIn {
			id := e.ID
			s.choose(e)
			s.measureSample()
			s.Thread.Work(func() func() {
				s.Console.SelectEndpoint(id)
				return nil
			})
			return
		}
	}
}

// readRecent reads what was opened last, and looks whether it is still there.
func (s *Shell) readRecent() []startpage.Recent {
	var out []startpage.Recent
	for _, path := range s.Console.Recent() {
		_, err := os.Stat(path)
		out = append(out, startpage.Recent{Path: path, Missing: os.IsNotExist(err)})
	}
	return out
}

// reloadRecent brings the menu's list of what was opened last up to date.
func (s *Shell) reloadRecent() {
	s.Thread.Work(func() func() {
		list := s.readRecent()
		return func() {
			s.recent = list
			s.buildMenu()
		}
	})
}

// startPage is the page that the window begins with: the last one, or, while there is nothing to go on
// with, the one that finds servers.
func (s *Shell) startPage() string {
	start := s.settings.Page
	switch {
	case start == "":
		return StartPage
	case start == RunPage, start == ReportPage, s.find(start) == nil:
		return SuitesPage // those have nothing to show yet
	}
	return start
}
