package client

import (
	"fmt"
	"net/url"
	"strconv"

	"velo/bench"
)

// hop readies the exchange for the place that the server sent it to.
func (x *exchange) hop(n int) *failure {
	to, status := x.redirect, x.head.status
	x.release()
	refuse := func(why string) *failure {
		return &failure{bench.Failed, "http-" + strconv.Itoa(status), fmt.Sprintf("the server sends requests on to %q, %s: correct the base URL", redact(to), why)}
	}
	if n >= 5 {
		return refuse("and so on without end")
	}
	base, err := url.Parse(x.target.url.Scheme + "://" + x.target.authority + x.address)
	if err != nil {
		return refuse("which cannot be read")
	}
	u, err := base.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return refuse("which is no address")
	}
	next := &endpoint{url: u, tls: u.Scheme == "https"}
	if err := next.resolve(); err != nil {
		return refuse("which is no address")
	}
	if !x.c.measuresItself() && u.Scheme != x.c.base.url.Scheme {
		return refuse("which needs another protocol")
	}
	x.target, x.address = next, u.RequestURI()
	x.begun, x.first, x.head, x.raw, x.over, x.rest, x.redirect, x.grace = false, mark{}, nil, nil, false, false, "", 0
	x.werr = nil
	return nil
}
