package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"velo/store"
	"velo/store/handoff"
)

// openWindow opens the window, or hands the files to the window that is open already.
func openWindow(cmd *cobra.Command, files []string, window Window) error {
	for i, f := range files {
		if abs, err := filepath.Abs(f); err == nil {
			files[i] = abs
		}
	}
	dir := store.DefaultDir()
	if noDisplay() {
		return exit{exitFailed, "cannot open a window: neither DISPLAY nor WAYLAND_DISPLAY is set. " +
			"Start Velo on a desktop, or do the job without a window: velo bench quick"}
	}
	if window == nil {
		return exit{exitFailed, "cannot open a window: this build has none"}
	}
	// The window's library keeps a cache there and complains on stderr where the folder is missing.
	if cache, err := os.UserCacheDir(); err == nil {
		_ = os.MkdirAll(cache, 0o700)
	}
	dir, moved := store.Settle(dir)
	st, err := store.Open(dir, store.Options{Version: version})
	if errors.Is(err, store.ErrBusy) {
		if _, sendErr := handoff.Send(dir, handoff.Message{Open: files, Raise: true}); sendErr == nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "velo: a window is open already; it was brought to the front")
			return nil
		}
		return exit{exitFailed, err.Error()}
	}
	if err != nil {
		return exit{exitFailed, err.Error()}
	}
	watch, last, watchErr := watchCrashes(dir)
	c := newConsole(st, dir)
	if moved != "" {
		c.notice(moved)
	}
	if watchErr != nil {
		c.notice("A crash would leave no report: " + watchErr.Error())
	}
	if last != nil {
		c.tellFault(last)
	}
	raise := make(chan []string, 16)
	listener, err := handoff.Listen(dir, func(m handoff.Message) handoff.Reply {
		if m.Session != "" {
			return c.takeSession(m.Session)
		}
		if m.Endpoint != "" {
			return c.tellSettings(m.Endpoint, m.Model)
		}
		select {
		case raise <- m.Open:
		default:
		}
		return handoff.Reply{}
	})
	if err != nil {
		c.notice("A second start of Velo cannot reach this window: " + err.Error())
	} else {
		defer listener.Close()
	}
	c.engine.launch()
	code := window(c, files, raise)
	err = c.Close()
	watch.end()
	if err != nil {
		return exit{exitFailed, err.Error()}
	}
	if code != 0 {
		return exit{code, ""}
	}
	return nil
}

// tellFault tells how the last window ended, once the keys are out of its report. Those that shape
// gives away are taken out at once; asking the keyring for the others may take time.
func (c *theConsole) tellFault(last *fault) {
	if last.report == "" {
		c.notice(last.String())
		return
	}
	if err := cleanReport(last.report, nil); err != nil {
		c.notice("The crash report could not be read: " + err.Error())
	}
	go func() {
		var keys []string
		for _, e := range c.Endpoints() {
			if e.HasKey {
				if key, err := c.secrets.Get(e.ID); err == nil {
					keys = append(keys, key)
				}
			}
		}
		if err := cleanReport(last.report, keys); err != nil {
			c.notice("The crash report could not be read: " + err.Error())
		}
		c.notice(last.String())
	}()
}
