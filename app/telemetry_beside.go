package app

import (
	"fmt"
	"time"

	"velo/bench"
	"velo/bench/otlp/offset"
	"velo/bench/report"
	"velo/store"
)

// Bounds of what a recording is compared with: clocks of two machines may differ by minutes, and
// sessions are read whole.
const (
	compareSlack = 10 * time.Minute
	mostCompared = 20
)

// besides finds the sessions of the store that the client measured while one was recorded from telemetry,
// and lines them up. A session that cannot be read is told, and left out.
func besides(st *store.Store, told *bench.Session, notice func(string)) ([]report.Beside, error) {
	if !told.Header.Told() {
		return nil, nil
	}
	mine, err := st.Summary(told.Header.ID)
	if err != nil {
		return nil, err
	}
	all, err := st.Sessions()
	if err != nil {
		return nil, err
	}
	var out []report.Beside
	read := 0
	for _, s := range all {
		if s.ID == mine.ID || !overlaps(s, mine) || read == mostCompared {
			continue
		}
		client, err := st.Session(s.ID)
		if err != nil {
			notice(fmt.Sprintf("The session %s could not be read back: %v", s.ID, err))
			continue
		}
		if client.Header.Told() {
			continue
		}
		read++
		if a := offset.Align(told, client); len(a.Pairs) > 0 {
			out = append(out, report.Beside{ID: s.ID, Title: s.Title, Alignment: a})
		}
	}
	return out, nil
}

// reportOf is the report of a session of the store.
func reportOf(st *store.Store, id string, notice func(string)) (*report.Report, error) {
	s, err := st.Session(id)
	if err != nil {
		return nil, err
	}
	beside, err := besides(st, s, notice)
	if err != nil {
		notice("What the client measured meanwhile could not be found: " + err.Error())
	}
	return report.New(s, report.Options{Version: version, Beside: beside}), nil
}

// overlaps tells whether two sessions ran at the same time, as far as clocks of two machines say.
func overlaps(a, b store.Summary) bool {
	return a.Began.Before(b.Began.Add(b.Duration+compareSlack)) && b.Began.Before(a.Began.Add(a.Duration+compareSlack))
}
