package app

import (
	"errors"
	"fmt"
	"os"
	"time"

	"velo/bench"
	"velo/store"
	"velo/ui/console"
)

var _ console.Preferences = (*theConsole)(nil)

// Preferences implements console.Console.
func (c *theConsole) Preferences() console.Preferences { return c }

// Presets implements console.Preferences.
func (c *theConsole) Presets() []console.Preset { return presets }

// ReasoningWays implements console.Preferences.
func (c *theConsole) ReasoningWays() []console.Choice { return reasoningWays }

// ParameterKinds implements console.Preferences.
func (c *theConsole) ParameterKinds() []console.ParameterKind {
	list := make([]console.ParameterKind, len(parameterKinds))
	for i, k := range parameterKinds {
		list[i] = k.ParameterKind
	}
	return list
}

// mostLimit is the longest that a limit of time may be.
const mostLimit = 24 * time.Hour

// Limits implements console.Preferences.
func (c *theConsole) Limits() console.Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.settings.Limits; l != nil {
		return *l
	}
	return console.Limits{Connect: defaultTimeout.Connect, FirstByte: defaultTimeout.FirstByte, Idle: defaultTimeout.Idle, Total: defaultTimeout.Total}
}

// SaveLimits implements console.Preferences.
func (c *theConsole) SaveLimits(l console.Limits) error {
	for _, f := range []struct {
		name string
		d    time.Duration
		none bool // 0 is allowed
	}{{"connecting", l.Connect, false}, {"the first byte", l.FirstByte, true}, {"silence", l.Idle, true}, {"a whole request", l.Total, true}} {
		switch {
		case f.d == 0 && !f.none:
			return fmt.Errorf("cannot do without a limit for %s: a server that is not there would be waited for for ever", f.name)
		case f.d < 0 || f.d > 0 && f.d < 100*time.Millisecond:
			return fmt.Errorf("cannot limit %s to %v: 100 ms is the least", f.name, f.d)
		case f.d > mostLimit:
			return fmt.Errorf("cannot limit %s to %v: %v is the most; 0 is no limit", f.name, f.d, mostLimit)
		}
	}
	c.mu.Lock()
	c.settings.Limits = &l
	c.mu.Unlock()
	return c.putSettings()
}

// timeouts are the limits that requests have.
func (c *theConsole) timeouts() bench.Timeout {
	l := c.Limits()
	return bench.Timeout{Connect: l.Connect, FirstByte: l.FirstByte, Idle: l.Idle, Total: l.Total}
}

// Categories implements console.Preferences.
func (c *theConsole) Categories() ([]console.Category, error) {
	names, err := c.store.Categories()
	if err != nil {
		return nil, err
	}
	sessions, err := c.store.Sessions()
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, s := range sessions {
		count[s.Category]++
	}
	list := make([]console.Category, len(names))
	for i, n := range names {
		list[i] = console.Category{Name: n, Sessions: count[n]}
	}
	return list, nil
}

// categorised tells the window what a change of categories changes.
func (c *theConsole) categorised(err error) error {
	if err == nil {
		c.changed(console.ChangedCategories)
		c.changed(console.ChangedSessions)
	}
	return err
}

// AddCategory implements console.Preferences.
func (c *theConsole) AddCategory(name string) error {
	_, err := c.store.AddCategory(name)
	return c.categorised(err)
}

// RenameCategory implements console.Preferences.
func (c *theConsole) RenameCategory(old, name string) error {
	return c.categorised(c.store.RenameCategory(old, name))
}

// DeleteCategory implements console.Preferences.
func (c *theConsole) DeleteCategory(name string) error {
	return c.categorised(c.store.DeleteCategory(name))
}

// SetCategory implements console.Preferences.
func (c *theConsole) SetCategory(sessionID, name string) error {
	return c.categorised(c.store.SetCategory(sessionID, name))
}

// Data implements console.Preferences.
func (c *theConsole) Data() console.Data {
	d := console.Data{Dir: c.dir, Bytes: c.store.Size(), Keys: c.secrets.Where(), Moving: c.store.Moving(), Restoring: c.store.Restoring()}
	switch {
	case os.Getenv("VELO_DATA") != "":
		d.Fixed = "The variable VELO_DATA names the folder: it is changed there."
	case c.dir != store.DefaultDir():
		d.Fixed = "This window uses a folder that is not the usual one."
	}
	return d
}

// MoveData implements console.Preferences.
func (c *theConsole) MoveData(to string) (err error) {
	if to == "" {
		err = c.store.CancelMove()
	} else {
		err = c.store.Move(to)
	}
	c.changed(console.ChangedData)
	return err
}

// Backups implements console.Preferences.
func (c *theConsole) Backups() ([]console.Backup, error) {
	kept, err := c.store.Backups()
	list := make([]console.Backup, len(kept))
	for i, b := range kept {
		list[i] = console.Backup(b)
	}
	return list, err
}

// MakeBackup implements console.Preferences.
func (c *theConsole) MakeBackup() (console.Backup, error) {
	if c.Run().Active {
		return console.Backup{}, errors.New("cannot make a backup while a run is measured: it would disturb it; wait for its end, or stop it")
	}
	b, err := c.store.MakeBackup()
	c.changed(console.ChangedData)
	return console.Backup(b), err
}

// DeleteBackup implements console.Preferences.
func (c *theConsole) DeleteBackup(name string) error {
	err := c.store.DeleteBackup(name)
	c.changed(console.ChangedData)
	return err
}

// RestoreBackup implements console.Preferences.
func (c *theConsole) RestoreBackup(name string) (err error) {
	if name == "" {
		err = c.store.CancelRestore()
	} else {
		err = c.store.Restore(name)
	}
	c.changed(console.ChangedData)
	return err
}
