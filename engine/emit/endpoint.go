package emit

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// endpoint is where telemetry goes.
type endpoint struct {
	grpc   bool
	secure bool   // TLS
	host   string // host:port
	path   string // in front of /v1/logs, without a slash at its end; HTTP only
}

func (p endpoint) String() string {
	scheme := "http"
	if p.grpc {
		scheme = "grpc"
	}
	if p.secure {
		scheme += "s"
	}
	return scheme + "://" + strings.ReplaceAll(p.host, "%", "%25") + p.path // the zone of an IPv6 address
}

// url is where the records of a signal are posted.
func (p endpoint) url(s signal) string { return p.String() + s.path() }

// parseEndpoint reads http://host[:4318][/prefix], https://…, grpc://host[:4317]
// or grpcs://….
func parseEndpoint(text string) (endpoint, error) {
	bad := func(why string, args ...any) (endpoint, error) {
		return endpoint{}, fmt.Errorf("cannot send telemetry to %q: %s", text, fmt.Sprintf(why, args...))
	}
	if text == "" {
		return bad("the endpoint is empty; write http://HOST:4318 or grpc://HOST:4317")
	}
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return bad("it does not begin with a scheme; write http://%s, or https, grpc or grpcs", text)
	}
	var p endpoint
	port := "4318"
	switch strings.ToLower(scheme) {
	case "http":
	case "https":
		p.secure = true
	case "grpc":
		p.grpc, port = true, "4317"
	case "grpcs":
		p.grpc, p.secure, port = true, true, "4317"
	default:
		return bad("%q is not a way to send it; use http, https, grpc or grpcs", scheme)
	}
	// Parsed with a scheme that url knows nothing special about.
	u, err := url.Parse("otlp://" + rest)
	if err != nil {
		if e, ok := err.(*url.Error); ok {
			err = e.Err
		}
		return bad("%v", err)
	}
	if u.User != nil {
		text = scheme + "://…@" + u.Host // not the password into a log
		return bad("a name and password do not belong in the endpoint; send them as a header (Authorization)")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return bad("it must not have a query or a fragment (%q)", strings.TrimPrefix(rest, u.Host+u.EscapedPath()))
	}
	if u.Hostname() == "" {
		return bad("it has no host; write %s://HOST:%s", scheme, port)
	}
	if strings.ContainsAny(u.Hostname(), " \t") {
		return bad("the host has a space in it")
	}
	if strings.Count(u.Host, ":") > 1 && u.Host[0] != '[' {
		return bad("an IPv6 address goes in brackets: %s://[%s]", scheme, u.Host)
	}
	if strings.HasSuffix(u.Host, ":") {
		return bad("there is no port after the colon; leave the colon out for %s", port)
	}
	if u.Port() != "" {
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || n == 0 {
			return bad("port %s is not between 1 and 65535", u.Port())
		}
		port = u.Port()
	}
	p.host = net.JoinHostPort(u.Hostname(), port)
	p.path = strings.TrimRight(u.EscapedPath(), "/")
	if p.path != "" {
		if p.grpc {
			return bad("gRPC has no path; leave out %s", p.path)
		}
		for s := range signals {
			if strings.HasSuffix(p.path, signal(s).path()) {
				return bad("leave out %s, it is added for each kind of record", signal(s).path())
			}
		}
	}
	return p, nil
}
