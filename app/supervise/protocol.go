package supervise

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"
)

// message is a line that the engine writes about itself.
type message struct {
	State   string `json:"state"`
	Done    int64  `json:"done"`
	Total   int64  `json:"total"`
	URL     string `json:"url"`
	Model   string `json:"model"`
	Context int    `json:"context"`
	Lanes   int    `json:"lanes"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// parse reads a line. Errors name what is wrong with it.
func parse(line string) (message, error) {
	var m message
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return m, fmt.Errorf("it is not JSON: %w", err)
	}
	switch m.State {
	case "loading":
		if m.Done < 0 || m.Total <= 0 || m.Done > m.Total {
			return m, fmt.Errorf("%d of %d bytes cannot be", m.Done, m.Total)
		}
	case "ready":
		u, err := url.Parse(m.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" {
			return m, fmt.Errorf("%q is no address of a server", m.URL)
		}
	case "stopping", "failed":
	default:
		return m, fmt.Errorf("there is no state %q", m.State)
	}
	return m, nil
}

// heard takes what a process says about itself.
func (s *Supervisor) heard(p *process, line string) {
	m, err := parse(line)
	if err != nil {
		s.log.add(fmt.Sprintf("%s WARN a state of the engine is left out error=%q line=%q", time.Now().UTC().Format(stamp), err, line))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != p {
		return
	}
	st := s.status
	before := st.State == Starting || st.State == Loading
	switch m.State {
	case "loading":
		if !before || p.probed {
			return
		}
		first := st.State != Loading
		st.State, st.Done, st.Total = Loading, m.Done, m.Total
		st.Rate = p.loads.add(time.Now(), m.Done)
		if first {
			s.become(st)
		} else {
			s.status = st // whoever shows progress looks by itself
		}
	case "ready":
		if !before || p.probed {
			return
		}
		p.probed = true
		st.State, st.Checking = Loading, true
		st.Done = st.Total
		st.URL, st.Model, st.Context, st.Lanes = m.URL, m.Model, m.Context, m.Lanes
		s.become(st)
		s.wg.Go(func() { s.probe(p, m.URL) })
	case "stopping":
		if before || st.State == Ready {
			st.State, st.Figures, st.Ill, st.Checking = Stopping, Figures{}, "", false
			s.become(st)
			p.unwatch()
		}
	case "failed":
		p.failed = &m
	}
}

// rate is how fast something grows, over the last seconds.
type rate struct {
	at   []time.Time
	done []int64
}

// rateOver is the time that a rate looks back, rateStep that between two readings that it keeps.
const (
	rateOver = 3 * time.Second
	rateStep = 50 * time.Millisecond
)

// add takes a reading and returns the rate a second, 0 = not known yet.
func (r *rate) add(at time.Time, done int64) float64 {
	if n := len(r.done); n > 0 && done < r.done[n-1] {
		r.at, r.done = nil, nil
	}
	if n := len(r.at); n < 2 || at.Sub(r.at[n-1]) >= rateStep { // however many readings there are, few are kept
		r.at, r.done = append(r.at, at), append(r.done, done)
	}
	for len(r.at) > 2 && at.Sub(r.at[1]) >= rateOver {
		r.at, r.done = r.at[1:], r.done[1:]
	}
	took := at.Sub(r.at[0]).Seconds()
	if took < rateStep.Seconds() {
		return 0
	}
	return float64(done-r.done[0]) / took
}
