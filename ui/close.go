package ui

// Close ends the program. A run that is going on is asked about once: it is stopped and kept, or
// goes on.
func (s *Shell) Close() {
	if s.quitting {
		return
	}
	if s.status.active || s.Console.Run().Active {
		s.choice("A run is going on", "Stop it and keep what there is, or go on measuring?", "Keep measuring", "Stop and keep what there is", s.quit)
		return
	}
	s.quit()
}

// quit stops what moves, flushes what was measured, and ends the program. The window says so
// meanwhile: it may take seconds.
func (s *Shell) quit() {
	if s.quitting {
		return
	}
	s.quitting = true
	size := s.Window.Canvas().Size()
	s.settings.Width, s.settings.Height = size.Width, size.Height
	s.settings.Page = s.current
	deleted := s.sessions.Pending()
	s.keeper.change(s.settings)
	keepEngine, keepSet := s.engine.Flush(), s.set.Flush()
	s.status.job.Set("Closing: what was measured is being written.")
	if s.bar.running {
		s.status.job.Set("Closing: the engine is being stopped.")
	}
	s.Thread.Work(func() func() {
		s.End()
		s.keeper.keep(s.Console.SaveSettings)
		_ = keepEngine() // what was typed last: there is nobody left to tell
		_ = keepSet()
		for _, id := range deleted {
			_ = s.Console.DeleteSession(id) // it stays in the list of the next start
		}
		_ = s.Console.Close() // the caller closes it once more and tells of an error
		return func() {
			s.Thread.Close()
			s.Quit()
		}
	})
}
