package ui

import (
	"fmt"

	"velo/ui/console"
	"velo/ui/look"
)

// editEndpoint leads to the form of an endpoint among the settings: a new one, of which something may be known
// already, or one that is there.
func (s *Shell) editEndpoint(e console.Endpoint) {
	if e.BuiltIn || e.Engine {
		return
	}
	s.Show(SettingsPage)
	s.set.Fill(e)
}

// endpointAdded makes a new endpoint the one that a run takes.
func (s *Shell) endpointAdded(id string) {
	s.Thread.Work(func() func() {
		s.Console.SelectEndpoint(id)
		return s.reloadEndpoints
	})
}

// removeEndpoint asks, and removes the chosen endpoint.
func (s *Shell) removeEndpoint() {
	e := s.chosen.endpoint
	if !s.ownChosen() {
		return
	}
	s.warn("Remove endpoint", fmt.Sprintf("Remove “%s” and its key? Sessions that measured it stay.", e.Name), "Remove endpoint", func() {
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
