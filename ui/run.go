package ui

import (
	"velo/ui/console"
	"velo/ui/look"
)

// whyNotStart says why no run can begin; empty = one can.
func (s *Shell) whyNotStart() string {
	switch {
	case s.status.active:
		return "A run is going on. Stop it first, or wait for its end."
	case s.chosen.endpoint.ID == "":
		return "Pick an endpoint first."
	}
	return s.chosen.endpoint.Down
}

// start begins a run against the chosen endpoint and model.
func (s *Shell) start(spec console.RunSpec) {
	if why := s.whyNotStart(); why != "" {
		s.say(look.OnAmber, "The run was not started: "+why)
		return
	}
	spec.EndpointID, spec.Model = s.chosen.endpoint.ID, s.chosen.model
	s.begin(spec)
}

func (s *Shell) begin(spec console.RunSpec) {
	s.settings.LastSpec = spec
	s.keepSettings()
	s.Thread.Work(func() func() {
		err := s.Console.Start(spec)
		return func() {
			if err != nil {
				s.say(look.OnRed, err.Error())
				return
			}
			s.status.active = true
			s.notice.Close()
			s.Show(RunPage)
			s.ticker.view(RunPage)
			s.ticker.wake()
			s.suites.Update()
			s.refreshCommands()
		}
	})
}

// again starts the last run once more.
func (s *Shell) again() {
	if !s.status.hasLast {
		s.Show(SuitesPage)
		return
	}
	if s.status.active {
		s.say(look.OnAmber, "The run was not started: a run is going on.")
		return
	}
	s.begin(s.status.lastSpec)
}

// stop ends the run.
func (s *Shell) stop() {
	s.Thread.Work(func() func() {
		s.Console.Stop()
		return s.ticker.wake
	})
}

// openReport shows the report of a session.
func (s *Shell) openReport(id string) {
	if id == "" {
		return
	}
	s.report.Load(id)
	s.Show(ReportPage)
	s.refreshCommands()
}

// loadNewest puts the report of the newest session on the report page, where none was opened yet.
func (s *Shell) loadNewest() {
	s.Thread.Work(func() func() {
		list, err := s.Console.Sessions()
		if err != nil || len(list) == 0 {
			return nil // the page says what to do
		}
		return func() {
			if s.report.Session() == "" {
				s.report.Load(list[0].ID)
				s.refreshCommands()
			}
		}
	})
}
