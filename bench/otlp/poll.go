package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Polled is a metrics page that is read, and how that goes.
type Polled struct {
	URL    string // without user and password
	Every  time.Duration
	Tried  bool // it was read once, or that failed; before, nothing below is valid
	Last   time.Duration
	Ok     bool // the last attempt succeeded
	Series int  // on the page
	Error  string
}

// mostPage bounds a metrics page.
const mostPage = 16 << 20

// Times between two readings of a page, and how long one may take.
const (
	leastPoll = 200 * time.Millisecond
	mostPoll  = time.Minute
	pollWait  = 10 * time.Second
)

// pollers read the metrics pages of engines that do not push.
type pollers struct {
	receiver *Receiver

	mu    sync.Mutex
	pages []*polledPage
}

// polledPage is a page that is read until stop is called.
type polledPage struct {
	Poll
	state Polled
	stop  context.CancelFunc
}

// set says which pages are wanted. What is read already goes on.
func (p *pollers) set(c *Config) {
	want := c.Poll
	if !c.Enabled {
		want = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.pages
	p.pages = nil
	for _, w := range want {
		if w.Every <= 0 {
			w.Every = PollEvery
		}
		i := slices.IndexFunc(old, func(x *polledPage) bool { return x.Poll == w })
		if i >= 0 {
			p.pages = append(p.pages, old[i])
			old = slices.Delete(slices.Clone(old), i, i+1)
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		x := &polledPage{Poll: w, state: Polled{URL: shown(w.URL), Every: w.Every}, stop: stop}
		p.pages = append(p.pages, x)
		go p.run(ctx, x)
	}
	for _, x := range old {
		x.stop()
	}
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

func (p *pollers) run(ctx context.Context, x *polledPage) {
	t := time.NewTicker(x.Every)
	defer t.Stop()
	client := &http.Client{Timeout: pollWait}
	defer client.CloseIdleConnections()
	for {
		n, err := p.receiver.poll(ctx, client, x.Poll)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		x.state.Last, x.state.Tried = p.receiver.clock.now(), true
		x.state.Ok, x.state.Series, x.state.Error = err == nil, n, ""
		if err != nil {
			x.state.Error = err.Error()
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// refused says in words why a server does not give a page.
func refused(a *http.Response, token bool) error {
	switch a.StatusCode {
	case http.StatusUnauthorized:
		if token {
			return fmt.Errorf("the server does not take the token (%s): enter the right one", a.Status)
		}
		return fmt.Errorf("the server asks for a token (%s): enter it beside the address", a.Status)
	case http.StatusForbidden:
		if token {
			return fmt.Errorf("the server knows the token and does not let it read this page (%s): enter one that may", a.Status)
		}
		return fmt.Errorf("the server does not let everybody read this page (%s): enter a token beside the address", a.Status)
	}
	return fmt.Errorf("the server answers %s", a.Status)
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
		return fail(refused(a, w.Token != ""))
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
