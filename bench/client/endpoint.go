package client

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// endpoint is where requests go: a base URL, taken apart once.
type endpoint struct {
	url           *url.URL // as asked for, without user info
	tls           bool
	host, port    string // host as the resolver takes it
	origin        string // scheme://host:port, the key of the connection pool
	authority     string // host and port as written, fit for a URL
	hostHeader    string
	path          string // ends in a version, without a slash at the end
	query         string // with its "?", or empty
	authorization string // from user info
}

// routes are the ends of addresses that people paste instead of a base URL.
var routes = []string{"/chat/completions", "/completions", "/models", "/embeddings", "/responses"}

// version matches a path segment that names an API version.
var version = regexp.MustCompile(`(^|/)v[0-9]+[a-z0-9]*(/|$)`)

// parseBase reads a base URL. It takes "http://host:8000", with /v1, with a route behind it and with a
// slash at the end; a path without a version gets /v1. Without a scheme, host:port, localhost and IP
// addresses get http://; for any other name the scheme cannot be guessed.
func parseBase(s string) (*endpoint, error) {
	s = strings.TrimSpace(s)
	refuse := func(why string, args ...any) error {
		return fmt.Errorf("cannot use the base URL %q: %s", redact(s), fmt.Sprintf(why, args...))
	}
	if s == "" {
		return nil, fmt.Errorf("cannot use an empty base URL: write one like http://127.0.0.1:8000/v1")
	}
	if !strings.Contains(s, "://") {
		full, err := addScheme(s)
		if err != "" {
			return nil, refuse("%s", err)
		}
		s = full
	}
	u, err := url.Parse(s)
	if err != nil {
		if ue, ok := err.(*url.Error); ok {
			err = ue.Err
		}
		return nil, refuse("%v; write one like http://127.0.0.1:8000/v1", err)
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, refuse("%q is not a scheme for this; write http:// or https://", u.Scheme+"://")
	}
	if u.Hostname() == "" {
		return nil, refuse("it names no host; write one like %s://127.0.0.1:8000/v1", u.Scheme)
	}
	e := &endpoint{tls: u.Scheme == "https"}
	if u.User != nil {
		password, _ := u.User.Password()
		e.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
		u.User = nil
	}
	if u.RawQuery != "" {
		e.query = "?" + u.RawQuery
	}
	u.RawQuery, u.ForceQuery, u.Fragment = "", false, ""
	path := strings.TrimRight(u.EscapedPath(), "/")
	for _, r := range routes {
		path = strings.TrimSuffix(path, r)
	}
	path = strings.TrimRight(path, "/")
	if !version.MatchString(path) {
		path += "/v1"
	}
	u.RawPath = path
	if u.Path, err = url.PathUnescape(path); err != nil {
		return nil, refuse("its path cannot be read: %v", err)
	}
	e.url, e.path = u, path
	if err := e.resolve(); err != nil {
		return nil, refuse("%v", err)
	}
	return e, nil
}

// addScheme completes an address without a scheme, or says what to write.
func addScheme(s string) (full, why string) {
	if i := strings.Index(s, "//"); i >= 0 && i <= len("https:") { // "http:/host", "http//host"
		rest := strings.TrimLeft(s[i:], "/")
		return "", fmt.Sprintf("its scheme is written wrong; write http://%s or https://%s", rest, rest)
	}
	if rest, ok := strings.CutPrefix(s, "http:/"); ok {
		return "", "its scheme is written wrong; write http://" + rest
	}
	if rest, ok := strings.CutPrefix(s, "https:/"); ok {
		return "", "its scheme is written wrong; write https://" + rest
	}
	authority, _, _ := strings.Cut(s, "/")
	if strings.Count(authority, ":") > 1 && !strings.Contains(authority, "[") {
		return "", fmt.Sprintf("an IPv6 address stands in brackets; write http://[%s]/v1", authority)
	}
	host, _, err := net.SplitHostPort(authority)
	if err == nil {
		return "http://" + s, ""
	}
	host = strings.Trim(authority, "[]")
	if _, err := netip.ParseAddr(host); err == nil || strings.EqualFold(host, "localhost") {
		return "http://" + s, ""
	}
	return "", fmt.Sprintf("it has no scheme; write https://%s or http://%s", s, s)
}

// resolve fills what follows from the URL's host.
func (e *endpoint) resolve() error {
	host := e.url.Hostname()
	if _, err := netip.ParseAddr(host); err != nil {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			if strings.ContainsFunc(host, func(r rune) bool { return r > 127 || r <= ' ' }) {
				return fmt.Errorf("%q is not a host name", host)
			}
			ascii = host // names with underscores resolve in many a local network
		}
		host = ascii
	}
	e.host, e.port = host, e.url.Port()
	if e.port == "" {
		e.port = "80"
		if e.tls {
			e.port = "443"
		}
	} else if n, err := strconv.Atoi(e.port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%s is not a port; ports go from 1 to 65535", e.port)
	}
	e.authority = e.url.Host
	if i := strings.IndexByte(e.authority, '%'); i >= 0 { // an IPv6 zone
		e.authority = e.authority[:i] + "%25" + e.authority[i+1:]
	}
	e.hostHeader = host
	if strings.Contains(host, ":") {
		zone, _, _ := strings.Cut(host, "%")
		e.hostHeader = "[" + zone + "]"
	}
	if e.url.Port() != "" {
		e.hostHeader += ":" + e.port
	}
	e.origin = e.url.Scheme + "://" + net.JoinHostPort(host, e.port)
	return nil
}

// String is the base URL without user info and query.
func (e *endpoint) String() string { return e.url.Scheme + "://" + e.authority + e.path }

// at is the address of a route below the base, such as /models.
func (e *endpoint) at(route string) string { return e.String() + route + e.query }

// beside is the address of a route beside the version, such as /health.
func (e *endpoint) beside(route string) string {
	root := e.path
	if i := version.FindStringIndex(root); i != nil {
		root = strings.TrimRight(root[:i[0]], "/")
	}
	return e.url.Scheme + "://" + e.authority + root + route + e.query
}

// redact takes user info and query, where keys hide, out of an address that is shown.
func redact(s string) string {
	s, _, _ = strings.Cut(s, "?")
	start := 0
	if i := strings.Index(s, "://"); i >= 0 {
		start = i + len("://")
	}
	end := len(s)
	if i := strings.IndexByte(s[start:], '/'); i >= 0 {
		end = start + i
	}
	if i := strings.LastIndexByte(s[start:end], '@'); i >= 0 {
		s = s[:start] + s[start+i+1:]
	}
	return s
}
