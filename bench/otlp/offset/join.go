package offset

import (
	"time"

	"velo/bench"
	"velo/bench/measure"
)

// Join brings the two sides of requests together while they run. It is fed with what the client
// measures (Client) and with the starts of the emitter's streams (Start), in any order. It has no lock.
type Join struct {
	client map[string]*side
	server map[string]*side
	order  []string // sessions of the client, the oldest first
	heard  []string // sessions of the servers, the oldest first
	pairs  []Pair
	bounds map[string]*Estimator // by service
	total  int
}

// side is a request as one side knows it.
type side struct {
	service   string
	t0, first int64 // client: t0 and first byte; server: start
	ttft      measure.Num
	starts    int
	paired    bool
	known     bool // t0 and first byte, or start
	pair      int  // number of the pair, when paired
}

// Bounds of what is remembered.
const (
	mostWaiting = 20_000
	mostPairs   = 1000
)

// NewJoin returns an empty Join.
func NewJoin() *Join {
	return &Join{client: map[string]*side{}, server: map[string]*side{}, bounds: map[string]*Estimator{}}
}

// Estimator is that of a service; it is made if there is none. Beyond 256 services it is nil.
func (j *Join) Estimator(service string) *Estimator {
	e := j.bounds[service]
	if e == nil && len(j.bounds) < 256 {
		e = &Estimator{}
		j.bounds[service] = e
	}
	return e
}

// Bounds are what is known of each service's clock.
func (j *Join) Bounds() map[string]Bounds {
	m := make(map[string]Bounds, len(j.bounds))
	for s, e := range j.bounds {
		m[s] = e.Bounds()
	}
	return m
}

// Pairs are the latest requests that were measured on both sides, the latest last, and how many there
// were in all.
func (j *Join) Pairs() (latest []Pair, total int) { return append([]Pair(nil), j.pairs...), j.total }

func place(m map[string]*side, order *[]string, session string) *side {
	s := m[session]
	if s == nil {
		if len(*order) >= mostWaiting {
			delete(m, (*order)[0])
			*order = (*order)[1:]
		}
		s = &side{ttft: measure.Missing}
		m[session] = s
		*order = append(*order, session)
	}
	return s
}

// Client takes a request of the client: t0 and its first byte, on the client's clock.
func (j *Join) Client(now time.Duration, session string, t0, firstByte int64) {
	s := place(j.client, &j.order, session)
	s.starts++
	s.t0, s.first, s.known = t0, firstByte, true
	j.match(now, session)
}

// Start takes the start of a stream, on the emitter's clock.
func (j *Join) Start(now time.Duration, session, service string, start int64) {
	s := place(j.server, &j.heard, session)
	s.starts++
	s.service, s.t0, s.known = service, start, true
	j.match(now, session)
}

// ClientTTFT and ServerTTFT take the times to first token, in seconds.
func (j *Join) ClientTTFT(session string, ttft measure.Num) {
	if s := j.client[session]; s != nil {
		s.ttft = ttft
		j.fill(session)
	}
}

// ServerTTFT takes a server's time to first token, in seconds.
func (j *Join) ServerTTFT(session string, ttft measure.Num) {
	if s := j.server[session]; s != nil && !s.ttft.Ok() {
		s.ttft = ttft
		j.fill(session)
	}
}

// match pairs the two sides of a session, if each of them has just one request: with more, which
// belongs to which could only be guessed.
func (j *Join) match(now time.Duration, session string) {
	c, s := j.client[session], j.server[session]
	if c == nil || s == nil || c.starts != 1 || s.starts != 1 || c.paired || session == "" {
		return
	}
	e := j.Estimator(s.service)
	if e == nil || !e.Request(now, c.t0, c.first, s.t0) {
		return
	}
	c.paired = true
	c.pair = j.total
	j.total++
	if len(j.pairs) >= mostPairs {
		j.pairs = append(j.pairs[:0], j.pairs[1:]...)
	}
	j.pairs = append(j.pairs, Pair{Session: session, Service: s.service, Low: time.Duration(c.t0 - s.t0), High: time.Duration(c.first - s.t0),
		ServerTTFT: s.ttft, ClientTTFT: c.ttft})
}

func (j *Join) fill(session string) {
	c, s := j.client[session], j.server[session]
	if c == nil || s == nil || !c.paired {
		return
	}
	if i := c.pair - (j.total - len(j.pairs)); i >= 0 {
		j.pairs[i].ServerTTFT, j.pairs[i].ClientTTFT = s.ttft, c.ttft
	}
}

// A Follower is a bench.Sink that tells what a client measures; its functions are called by Append.
type Follower struct {
	Began func(session string, t0, firstByte time.Duration) // session times of the client
	First func(session string, ttft measure.Num)            // seconds
	open  map[int]*bench.Request
}

// NewFollower returns a Follower with these functions.
func NewFollower(began func(string, time.Duration, time.Duration), first func(string, measure.Num)) *Follower {
	return &Follower{Began: began, First: first, open: map[int]*bench.Request{}}
}

// Append takes an event of the client's session.
func (f *Follower) Append(e bench.Event) {
	switch e := e.(type) {
	case *bench.Request:
		if e.Session != "" && len(f.open) < mostWaiting {
			f.open[e.Number] = e
		}
	case *bench.Conn:
		if q := f.open[e.Request]; q != nil && e.FirstByte != bench.Unset && q.Start != bench.Unset {
			f.Began(q.Session, q.Start, e.FirstByte)
		}
	case bench.Chunks:
		if len(e) == 0 {
			return
		}
		if q := f.open[e[0].Request]; q != nil {
			at := e[0].Kernel
			if at == bench.Unset || at > e[0].User || at < q.Start {
				at = e[0].User
			}
			if at != bench.Unset && q.Start != bench.Unset {
				f.First(q.Session, measure.Num((at - q.Start).Seconds()))
			}
			delete(f.open, e[0].Request)
		}
	case *bench.End:
		delete(f.open, e.Request)
	}
}
