package client

import (
	"net/http"
	"strings"
	"testing"
)

func TestBaseURL(t *testing.T) {
	for _, c := range []struct{ in, base, health, host string }{
		{"http://host:8000", "http://host:8000/v1", "http://host:8000/health", "host:8000"},
		{"http://host:8000/", "http://host:8000/v1", "http://host:8000/health", "host:8000"},
		{" http://host:8000/v1 ", "http://host:8000/v1", "http://host:8000/health", "host:8000"},
		{"http://host:8000/v1/", "http://host:8000/v1", "http://host:8000/health", "host:8000"},
		{"http://host:8000/v1/chat/completions", "http://host:8000/v1", "http://host:8000/health", "host:8000"},
		{"http://host:8000/v1/models/", "http://host:8000/v1", "http://host:8000/health", "host:8000"},
		{"HTTPS://api.example.com", "https://api.example.com/v1", "https://api.example.com/health", "api.example.com"},
		{"https://example.com/api", "https://example.com/api/v1", "https://example.com/api/health", "example.com"},
		{"https://example.com/proxy/v1", "https://example.com/proxy/v1", "https://example.com/proxy/health", "example.com"},
		{"https://example.com/v1beta/openai/", "https://example.com/v1beta/openai", "https://example.com/health", "example.com"},
		{"https://example.com/api/paas/v4", "https://example.com/api/paas/v4", "https://example.com/api/paas/health", "example.com"},
		{"https://user:secret@example.com/v1?key=secret", "https://example.com/v1", "https://example.com/health?key=secret", "example.com"},
		{"localhost:8000", "http://localhost:8000/v1", "http://localhost:8000/health", "localhost:8000"},
		{"localhost", "http://localhost/v1", "http://localhost/health", "localhost"},
		{"127.0.0.1", "http://127.0.0.1/v1", "http://127.0.0.1/health", "127.0.0.1"},
		{"gpu-box:8080/v1", "http://gpu-box:8080/v1", "http://gpu-box:8080/health", "gpu-box:8080"},
		{"[::1]:8000", "http://[::1]:8000/v1", "http://[::1]:8000/health", "[::1]:8000"},
		{"http://[fe80::1%25eth0]:80/v1", "http://[fe80::1%25eth0]:80/v1", "http://[fe80::1%25eth0]:80/health", "[fe80::1]:80"},
		{"http://bücher.example/v1", "http://bücher.example/v1", "http://bücher.example/health", "xn--bcher-kva.example"},
		{"http://my_host:80", "http://my_host:80/v1", "http://my_host:80/health", "my_host:80"},
		{"http://host/a%2Fb/v1#x", "http://host/a%2Fb/v1", "http://host/a%2Fb/health", "host"},
	} {
		e, err := parseBase(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if e.String() != c.base || e.beside("/health") != c.health || e.hostHeader != c.host {
			t.Errorf("%s: got %s, %s, %s", c.in, e, e.beside("/health"), e.hostHeader)
		}
		if again, err := parseBase(e.String()); err != nil || again.String() != e.String() {
			t.Errorf("%s: %s reads as %v, %v", c.in, e, again, err)
		}
	}
}

func TestBadBaseURL(t *testing.T) {
	for in, says := range map[string]string{
		"":                           "write one like http://127.0.0.1:8000/v1",
		"   ":                        "cannot use an empty base URL",
		"api.example.com":            "it has no scheme; write https://api.example.com or http://api.example.com",
		"api.example.com/v1":         "write https://api.example.com/v1 or",
		"ftp://host/v1":              `"ftp://" is not a scheme for this; write http:// or https://`,
		"http:/host:8000":            "its scheme is written wrong; write http://host:8000",
		"https:/host":                "write https://host",
		"http//host":                 "its scheme is written wrong; write http://host",
		"://host":                    "missing protocol scheme",
		"http://":                    "it names no host",
		"http:///v1":                 "it names no host",
		"http://host:99999/v1":       "99999 is not a port; ports go from 1 to 65535",
		"http://host:0":              "0 is not a port",
		"http://host:port/v1":        "invalid port",
		"fe80::1":                    "an IPv6 address stands in brackets; write http://[fe80::1]/v1",
		"http://ho st/v1":            "invalid character",
		"http://host/%zz":            "invalid URL escape",
		"http://user:secret@:80/":    "it names no host",
		"x://user:secret@host/?k=se": `"x://" is not a scheme`,
	} {
		_, err := New(Options{BaseURL: in})
		if err == nil || !strings.HasPrefix(err.Error(), "cannot use ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v", in, err)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "k=se") {
			t.Errorf("%q: the error tells a secret: %v", in, err)
		}
	}
}

func FuzzBaseURL(f *testing.F) {
	for _, s := range []string{"http://host:8000/v1", "localhost:8000", "[::1]:80", "https://u:p@h/?q#f", "http//x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := parseBase(s)
		if err != nil {
			return
		}
		for _, address := range []string{e.at("/models"), e.beside("/health")} {
			if _, err := http.NewRequest("GET", address, nil); err != nil {
				t.Errorf("%q gives %q: %v", s, address, err)
			}
		}
		if strings.ContainsAny(e.path+e.query+e.hostHeader, " \r\n\t") {
			t.Errorf("%q would break a request: %q %q %q", s, e.path, e.query, e.hostHeader)
		}
		again, err := parseBase(e.String())
		if err != nil || again.String() != e.String() {
			t.Errorf("%q: %q reads as %v, %v", s, e, again, err)
		}
	})
}

func TestBadOptions(t *testing.T) {
	for says, o := range map[string]Options{
		"the API key: it has a line break":              {Key: "a\nb"},
		"\"Bad Name\": that is not a header name":       {Header: http.Header{"Bad Name": {"x"}}},
		"the header X-A: its value has a line break":    {Header: http.Header{"X-A": {"x\r\nY: z"}}},
		"the header Content-Length: each request sets":  {Header: http.Header{"content-length": {"5"}}},
		"cannot use stamps \"sundial\": write \"auto\"": {Stamps: "sundial"},
	} {
		o.BaseURL = "http://host:1"
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}
