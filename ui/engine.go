package ui

import (
	"velo/ui/console"
	"velo/ui/look"
)

// toggleEngine is the switch of the top bar.
func (s *Shell) toggleEngine() {
	if s.bar.running {
		s.stopEngine()
		return
	}
	s.startEngine()
}

// startEngine starts the engine, or leads to where a model is chosen for it.
func (s *Shell) startEngine() {
	if s.Console.Engine().Config().Model == "" {
		s.Show(EnginePage)
		s.say(look.OnAmber, "The engine was not started: choose a model first.")
		return
	}
	s.engine.Start()
}

// stopEngine stops the engine. Where a run measures it, it asks first.
func (s *Shell) stopEngine() {
	stop := func() {
		s.Thread.Work(func() func() {
			s.Console.Engine().Stop()
			return s.ticker.wake
		})
	}
	if s.status.active && s.status.lastSpec.EndpointID == console.EngineID {
		s.ask("Stop the engine", "A run measures the engine just now. The requests that run fail when it stops; what was measured until then is kept.", "Stop engine", stop)
		return
	}
	stop()
}

// measureEngine makes the engine the endpoint that runs take.
func (s *Shell) measureEngine() {
	s.Thread.Work(func() func() {
		s.Console.SelectEndpoint(console.EngineID)
		return func() {
			s.reloadEndpoints()
			s.Show(SuitesPage)
		}
	})
}

// engineCrashed tells of a crash on a page that shows nothing of the engine.
func (s *Shell) engineCrashed(e console.EngineStatus) {
	s.notice.Say(look.OnRed, "The engine ended by itself. "+e.Failure.Message, look.Button("Show engine", func() {
		s.notice.Close()
		s.Show(EnginePage)
	}))
}
