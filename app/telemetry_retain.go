package app

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"velo/store"
	"velo/ui/console"
)

// Recordings from telemetry are deleted by age and by size where the settings say so: at the start, after each
// recording, when the settings change, and once an hour.

const retainEvery = time.Hour

// begin looks after the recordings that are there, and goes on doing so until the telemetry is closed.
func (t *theTelemetry) begin() {
	t.retain()
	go func() {
		tick := time.NewTicker(retainEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				t.retain()
			case <-t.end:
				return
			}
		}
	}()
}

// outlived are the recordings that the settings do not let stay, the oldest first. list has all sessions,
// newest first. What the user put into a category stays, and what is being recorded.
func outlived(list []store.Summary, s console.TelemetrySettings, now time.Time) (gone []store.Summary) {
	var kept int64
	for _, x := range list {
		if !x.Told || x.State == store.StateRunning {
			continue
		}
		kept += x.Bytes
		old := s.DeleteAfter > 0 && now.Sub(x.Began.Add(x.Duration)) > s.DeleteAfter
		large := s.DiskBytes > 0 && kept > s.DiskBytes
		if (old || large) && x.Category == "" {
			kept -= x.Bytes
			gone = append([]store.Summary{x}, gone...)
		}
	}
	return gone
}

// retain deletes what has outlived the settings, says so, and counts the rest.
func (t *theTelemetry) retain() {
	list, err := t.console.store.Sessions()
	if err != nil {
		t.console.notice("The recordings from telemetry could not be counted: " + err.Error())
		return
	}
	var deleted []string
	for _, x := range outlived(list, t.Settings(), time.Now()) {
		switch err := t.console.store.Delete(x.ID); {
		case err == nil:
			deleted = append(deleted, "“"+x.Title+"” of "+x.Began.Local().Format("2 January, 15:04"))
		case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrRunning):
			t.console.notice("A recording that has outlived its time could not be deleted: " + err.Error())
		}
	}
	if n := len(deleted); n > 0 {
		what := strings.Join(deleted[:min(n, 3)], ", ")
		if n > 3 {
			what += fmt.Sprintf(" and %d more", n-3)
		}
		t.console.notice("Deleted, as the settings of the receiver say how long recordings stay: " + what + ".")
		t.console.changed(console.ChangedSessions)
	}
	t.count()
}

// count takes note of what the recordings take on disk.
func (t *theTelemetry) count() {
	d, err := t.weighed()
	if err != nil {
		return // it was told when they were last looked through
	}
	t.mu.Lock()
	t.disk = d
	t.mu.Unlock()
}

// weighed is what the recordings that have ended take on disk.
func (t *theTelemetry) weighed() (d console.TelemetryDisk, err error) {
	list, err := t.console.store.Sessions()
	for _, x := range list {
		if x.Told && x.State != store.StateRunning {
			d.Recordings++
			d.Bytes += x.Bytes
			d.Oldest = x.Began // the list is newest first
		}
	}
	return d, err
}

// Disk implements console.Telemetry.
func (t *theTelemetry) Disk() console.TelemetryDisk {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.disk
	for id := range t.recordings {
		d.Writing++
		d.WritingBytes += t.written[id]
	}
	return d
}
