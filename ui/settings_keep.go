package ui

import (
	"sync"

	"velo/ui/console"
)

// settingsKeeper writes the window's settings in the order in which they changed: each change is written by a
// goroutine of its own, and the latest settings are to be those that last.
type settingsKeeper struct {
	writing sync.Mutex // one at a time

	mu     sync.Mutex
	latest console.Settings
	number int // of the changes
	kept   int // number of the change that is written
}

// change takes the settings as they are now.
func (k *settingsKeeper) change(set console.Settings) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest = set
	k.number++
}

// keep writes the latest settings, unless they are written already.
func (k *settingsKeeper) keep(save func(console.Settings)) {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	set, number, kept := k.latest, k.number, k.kept
	k.mu.Unlock()
	if number == kept {
		return
	}
	save(set)
	k.mu.Lock()
	k.kept = number
	k.mu.Unlock()
}

// keepSettings writes the settings at once, off the UI thread.
func (s *Shell) keepSettings() {
	s.keeper.change(s.settings)
	s.Thread.Work(func() func() {
		s.keeper.keep(s.Console.SaveSettings)
		return nil
	})
}
