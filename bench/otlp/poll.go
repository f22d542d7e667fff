package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Polled is a metrics page that is read, and how that goes.
type Polled struct {
	URL    string // without user and password
	Last   time.Duration
	Ok     bool // the last attempt succeeded
	Series int  // on the page
	Error  string
	seen   bool
}

// mostPage bounds a metrics page.
const mostPage = 16 << 20

// pollers read the metrics pages of engines that do not push.
type pollers struct {
	receiver *Receiver

	mu    sync.Mutex
	stop  context.CancelFunc
	want  []Poll
	state []*Polled
}

// set says which pages are wanted.
func (p *pollers) set(c *Config) {
	want := c.Poll
	if !c.Enabled {
		want = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if equal(want, p.want) {
		return
	}
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	p.want, p.state = append([]Poll(nil), want...), nil
	if len(want) == 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	for _, w := range want {
		s := &Polled{URL: shown(w.URL)}
		p.state = append(p.state, s)
		go p.run(ctx, w, s)
	}
}

func equal(a, b []Poll) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// shown is a URL without user and password.
func shown(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "?"
	}
	u.User = nil
	return u.String()
}

func (p *pollers) run(ctx context.Context, w Poll, s *Polled) {
	every := w.Every
	if every <= 0 {
		every = 2 * time.Second
	}
	t := time.NewTicker(max(every, 200*time.Millisecond))
	defer t.Stop()
	client := &http.Client{Timeout: max(every, 5*time.Second)}
	defer client.CloseIdleConnections()
	for {
		n, err := p.receiver.poll(ctx, client, w)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		s.Last, s.seen = p.receiver.clock.now(), true
		s.Ok, s.Series, s.Error = err == nil, n, ""
		if err != nil {
			s.Error = err.Error()
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// poll reads a page once.
func (r *Receiver) poll(ctx context.Context, client *http.Client, w Poll) (int, error) {
	fail := func(err error) (int, error) {
		r.counters.pollErrors.Add(1)
		return 0, fmt.Errorf("cannot read %s: %w", shown(w.URL), err)
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL, nil)
	if err != nil {
		return fail(err)
	}
	q.Header.Set("Accept", "text/plain;version=0.0.4")
	if w.Token != "" {
		q.Header.Set("Authorization", "Bearer "+w.Token)
	}
	a, err := client.Do(q)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err // the URL in it may hold a password
		}
		return fail(err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("the server answers %s", a.Status))
	}
	page, err := io.ReadAll(io.LimitReader(a.Body, mostPage+1))
	if err != nil {
		return fail(err)
	}
	if len(page) > mostPage {
		return fail(fmt.Errorf("the page has more than %d bytes", mostPage))
	}
	received := r.clock.now()
	n, err := r.takePage(received, q.URL.Host, page)
	if err != nil {
		r.counters.pollErrors.Add(1)
		return n, err
	}
	r.counters.polls.Add(1)
	return n, nil
}

// takePage takes a metrics page of a host.
func (r *Receiver) takePage(received time.Duration, host string, page []byte) (int, error) {
	h := r.hub
	h.lock()
	defer h.mu.Unlock()
	n, err := h.series.Exposition(received, host, bytes.NewReader(page))
	if n > 0 {
		h.lastData, h.dataSeen = received, true
	}
	return n, err
}
