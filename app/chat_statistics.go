package app

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime/share"
	"velo/store"
	"velo/ui/console"
)

// resultCache keeps what was computed of the requests of chats, by session. They never change: a
// request that has ended is computed once.
type resultCache struct {
	mu       sync.Mutex
	sessions map[string]map[int]*measure.Request
	order    []string // of the sessions, oldest first
	arrivals int

	statistics map[string]console.ChatStatistics
	asked      []string // their keys, oldest first
}

const (
	maxCachedArrivals   = 1 << 20 // about 50 MB
	maxCachedStatistics = 16
)

func (c *resultCache) put(session string, number int, r *measure.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions == nil {
		c.sessions = map[string]map[int]*measure.Request{}
	}
	if c.sessions[session] == nil {
		c.sessions[session] = map[int]*measure.Request{}
		c.order = append(c.order, session)
	}
	if c.sessions[session][number] == nil {
		c.arrivals += len(r.Arrivals)
	}
	c.sessions[session][number] = r
	for c.arrivals > maxCachedArrivals && len(c.order) > 1 && c.order[0] != session {
		for _, old := range c.sessions[c.order[0]] {
			c.arrivals -= len(old.Arrivals)
		}
		delete(c.sessions, c.order[0])
		c.order = c.order[1:]
	}
}

func (c *resultCache) get(session string, number int) *measure.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[session][number]
}

// resultsOf is what was measured of turns, in their order. It is nil for a turn that goes on, that never
// got to the server, or whose session is gone.
func (t *theChats) resultsOf(turns []store.ChatTurn) []*measure.Request {
	out := make([]*measure.Request, len(turns))
	read := map[string]bool{}
	for i, u := range turns {
		if u.Session == "" || u.Status == "" {
			continue
		}
		if out[i] = t.results.get(u.Session, u.Request); out[i] != nil || read[u.Session] {
			continue
		}
		read[u.Session] = true
		s, err := t.sessionEvents(u.Session)
		if err != nil {
			continue
		}
		for _, v := range turns {
			if x := exchangeOf(s, v); x != nil && v.Session == u.Session && v.Status != "" {
				r := measure.Of(x, measure.Options{})
				t.results.put(v.Session, v.Request, &r)
			}
		}
		out[i] = t.results.get(u.Session, u.Request)
	}
	return out
}

// exchangeOf is what a session holds of a turn, nil if it holds nothing.
func exchangeOf(s *bench.Session, u store.ChatTurn) *bench.Exchange {
	if u.Request < 0 || u.Request >= len(s.Exchanges) || s.Exchanges[u.Request].Request == nil {
		return nil
	}
	return s.Exchanges[u.Request]
}

// sessionEvents reads the session of a chat, what still waits to be written included.
func (t *theChats) sessionEvents(id string) (*bench.Session, error) {
	var rec *store.Recorder
	t.mu.Lock()
	if s := t.sessionOf(id); s != nil {
		rec = s.rec.Load()
	}
	t.mu.Unlock()
	if rec != nil {
		_ = rec.Flush() // what it cannot write, it says itself
	}
	return t.console.store.Session(id)
}

// Statistics implements console.Chats.
func (t *theChats) Statistics(chatID, turnID string) (console.ChatStatistics, error) {
	c, turns, err := t.console.store.Chat(chatID)
	if err != nil {
		return console.ChatStatistics{}, err
	}
	branch := branchTo(turns, c.Shown)
	if turnID != "" {
		branch = nil
		for _, u := range turns {
			if u.ID == turnID {
				branch = append(branch, u)
			}
		}
		if branch == nil {
			return console.ChatStatistics{}, fmt.Errorf("cannot measure the turn %s: the chat does not have it", turnID)
		}
	}
	var key strings.Builder
	for _, u := range branch {
		fmt.Fprintf(&key, "%s %s %s %d\n", u.ID, u.Status, u.Session, u.Request)
	}
	if st, ok := t.results.statisticsOf(key.String()); ok {
		return st, nil
	}
	joined, err := t.joined(branch)
	if err != nil {
		return console.ChatStatistics{}, err
	}
	st := statisticsOf(joined)
	t.results.keepStatistics(key.String(), st)
	return st, nil
}

func (c *resultCache) statisticsOf(key string) (console.ChatStatistics, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st, ok := c.statistics[key]
	return st, ok
}

func (c *resultCache) keepStatistics(key string, st console.ChatStatistics) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.statistics == nil {
		c.statistics = map[string]console.ChatStatistics{}
	}
	if _, ok := c.statistics[key]; !ok {
		c.asked = append(c.asked, key)
	}
	c.statistics[key] = st
	if len(c.asked) > maxCachedStatistics {
		delete(c.statistics, c.asked[0])
		c.asked = c.asked[1:]
	}
}

// joined puts the events of turns together as one session, on the clock of the first, whichever
// sessions they come from.
func (t *theChats) joined(turns []store.ChatTurn) (*bench.Session, error) {
	read := map[string]*bench.Session{}
	out := &bench.Session{}
	for _, u := range turns {
		if u.Session == "" || u.Status == "" {
			continue
		}
		s, ok := read[u.Session]
		if !ok {
			var err error
			if s, err = t.sessionEvents(u.Session); err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			read[u.Session] = s
		}
		if s == nil {
			continue
		}
		x := exchangeOf(s, u)
		if x == nil {
			continue
		}
		n := len(out.Exchanges)
		if n == 0 {
			out.Header = s.Header
		}
		later := s.Header.Anchor.Sub(out.Header.Anchor)
		if st := s.Step(x.Request.Step); st != nil {
			c := *st
			c.Number, c.Index, c.Released = n, n, c.Released+later
			out.Steps = append(out.Steps, &c)
		}
		out.Exchanges = append(out.Exchanges, moved(x, n, later))
	}
	for _, s := range read {
		if s == nil {
			continue
		}
		for _, e := range s.Samples {
			c := *e
			c.At += s.Header.Anchor.Sub(out.Header.Anchor)
			out.Samples = append(out.Samples, &c)
		}
	}
	if len(read) > 1 { // counters of different processes do not belong together
		out.Samples = nil
	}
	return out, nil
}

// moved is an exchange with another number, and so much later.
func moved(x *bench.Exchange, number int, by time.Duration) *bench.Exchange {
	at := func(t time.Duration) time.Duration {
		if t == bench.Unset {
			return t
		}
		return t + by
	}
	o := &bench.Exchange{}
	q := *x.Request
	q.Number, q.Step, q.Start, q.Planned = number, number, at(q.Start), at(q.Planned)
	o.Request = &q
	if x.Conn != nil {
		c := *x.Conn
		c.Request, c.Wrote, c.FirstByte = number, at(c.Wrote), at(c.FirstByte)
		o.Conn = &c
	}
	o.Chunks = make(bench.Chunks, len(x.Chunks))
	for i, c := range x.Chunks {
		c.Request, c.User, c.Kernel = number, at(c.User), at(c.Kernel)
		o.Chunks[i] = c
	}
	if x.Counts != nil {
		c := *x.Counts
		c.Request = number
		o.Counts = &c
	}
	if x.End != nil {
		e := *x.End
		e.Request, e.End, e.Close = number, at(e.End), at(e.Close)
		o.End = &e
	}
	return o
}

// statisticsOf computes a joined session.
func statisticsOf(s *bench.Session) console.ChatStatistics {
	var st console.ChatStatistics
	if len(s.Exchanges) == 0 {
		return st
	}
	st.Run = measure.Compute(s, measure.Options{})
	st.Requests = st.Run.Requests
	end := time.Duration(0)
	var kinds share.Splitter
	for i := range st.Requests {
		r := &st.Requests[i]
		of := share.Of(s.Exchanges[r.Number], r) // joined numbers them in order
		st.Kinds = append(st.Kinds, of)
		kinds.Add(r, of)
		st.Starts = append(st.Starts, end)
		st.Gaps = append(st.Gaps, r.ICL...)
		for _, p := range r.Rolling.Samples {
			p.At += end - r.Start
			st.Rolling = append(st.Rolling, p)
		}
		if n := len(r.Arrivals); n > 0 && r.Start != bench.Unset {
			end += max(0, r.Arrivals[n-1].At-r.Start)
		}
	}
	st.Shares = kinds.Shares()
	return st
}
