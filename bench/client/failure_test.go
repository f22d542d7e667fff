package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"velo/bench"
)

// certificate makes one that signs itself.
func certificate(t testing.TB, until time.Time, hosts ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// serveTLS is serve over TLS.
func serveTLS(t testing.TB, cert tls.Certificate, answer script) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}}), answer)
	return "https://" + l.Addr().String()
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t, time.Now().Add(time.Hour), "127.0.0.1")
	url := serveTLS(t, cert, says(streamHead+framed(roleEvent, content("Hel"), content("lo"), finishEvent, doneEvent)))
	c := newClient(t, url, func(o *Options) { o.RootCAs = pool })
	for i := range 2 {
		res, l, _ := do(t, t.Context(), c)
		if k := l.conn(); res.Answer != "Hello" || k.Reused != (i > 0) || (k.TLS == bench.Unset) != (i > 0) {
			t.Errorf("got %+v, %+v", res.End, k)
		}
		for _, ch := range l.chunks() {
			if (ch.Kernel != bench.Unset) != (res.End.Stamp == bench.KernelStamp) {
				t.Errorf("stamps are %s: %+v", res.End.Stamp, ch)
			}
		}
	}
}

// TestUnreachable: each way of getting no connection is one sentence that says what to do. The same
// trouble is told in the same words when models are asked for.
func TestUnreachable(t *testing.T) {
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	closed.Close()
	hour := time.Now().Add(time.Hour)
	good, _ := certificate(t, hour, "127.0.0.1")
	other, otherPool := certificate(t, hour, "example.org")
	old, oldPool := certificate(t, time.Now().Add(-24*time.Hour), "127.0.0.1")
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	slammed := serve(t, func(c net.Conn, _ request) bool {
		_ = c.(*net.TCPConn).SetLinger(0)
		return false
	})
	for _, c := range []struct {
		name, url   string
		class, says string
		change      func(*Options)
		lookup      error
	}{
		{"refused", "http://" + closed.Addr().String(), "connect", "nothing listens there; start the server", nil, nil},
		{"no such name", "http://nowhere.example:80", "dns", `cannot find the host "nowhere.example": no such name; check the spelling`, nil, &net.DNSError{Err: "no such host", IsNotFound: true}},
		{"no name server", "http://nowhere.example:80", "dns", "the name server does not answer", nil, &net.DNSError{Err: "timeout", IsTimeout: true}},
		{"name server fails", "http://nowhere.example:80", "dns", "server misbehaving; check the network", nil, &net.DNSError{Err: "server misbehaving"}},
		{"unknown authority", serveTLS(t, good, says("")), "tls", "an authority that this machine does not know has signed it", nil, nil},
		{"another name", serveTLS(t, other, says("")), "tls", "it is for another name", func(o *Options) { o.RootCAs = otherPool }, nil},
		{"expired", serveTLS(t, old, says("")), "tls", "has expired", func(o *Options) { o.RootCAs = oldPool }, nil},
		{"TLS to plain HTTP", strings.Replace(plain.URL, "http:", "https:", 1), "tls", "write http:// instead of https://", nil, nil},
		{"plain HTTP to TLS", strings.Replace(secure.URL, "https:", "http:", 1), "tls", "write https:// in the base URL", nil, nil},
		{"plain HTTP to TLS, alert", serve(t, saysAndCloses("\x15\x03\x01\x00\x02\x02\x46")), "tls", "write https:// in the base URL", nil, nil},
		{"closed at once", serve(t, saysAndCloses("")), "closed", "closed the connection before it answered", nil, nil},
		{"reset at once", slammed, "closed", "cut the connection before it answered", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.change == nil {
				c.change = func(*Options) {}
			}
			cl := newClient(t, c.url, c.change)
			if c.lookup != nil {
				cl.dialer.lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, c.lookup }
			}
			res, _, _ := do(t, t.Context(), cl)
			e := res.End
			if e.Status != bench.Failed || e.By != bench.EndError || e.Class != c.class || !strings.Contains(e.Error, c.says) {
				t.Errorf("got %s, class %q: %s", e.Status, e.Class, e.Error)
			}
			_, err := cl.Models(t.Context())
			if c.name == "closed at once" || c.name == "reset at once" {
				if err == nil || !strings.Contains(err.Error(), "before it answered") {
					t.Errorf("models: got %v", err)
				}
			} else if err == nil || !strings.HasPrefix(err.Error(), "cannot list models: cannot ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("models: got %v", err)
			}
		})
	}
}

// TestUnreachableErrors: errors that a test cannot provoke over a socket.
func TestUnreachableErrors(t *testing.T) {
	c := newClient(t, "http://host.example:8000")
	for _, k := range []struct {
		err  error
		says string
	}{
		{syscall.EMFILE, "too many files are open"},
		{syscall.EHOSTUNREACH, "there is no way to that network"},
		{syscall.EADDRNOTAVAIL, "no local port is free"},
		{fmt.Errorf("x: %w", fmt.Errorf("strange")), "host.example:8000: strange; check the base URL"},
	} {
		err := &dialError{"connect", &net.OpError{Op: "dial", Err: k.err}}
		if f := c.unreachable(c.base, err); f.class != "connect" || !strings.Contains(f.text, k.says) {
			t.Errorf("%v: got %+v", k.err, f)
		}
	}
}

// TestHTTPErrors: each HTTP status is one sentence that says what to do, with the server's own words.
func TestHTTPErrors(t *testing.T) {
	page := "<html><body>" + strings.Repeat("Not found ", 100) + "</body></html>"
	long := strings.Repeat("é ", 1000)
	for _, c := range []struct {
		name        string
		answer      string
		class, says string
		key         string
		wait        time.Duration
	}{
		{"401 without a key", whole(401, "application/json", `{"error":{"message":"no key"}}`), "http-401", "the server wants an API key: set the endpoint's key (HTTP 401: no key)", "", 0},
		{"401 with a key", whole(401, "application/json", `{"error":{"message":"wrong key sk-1"}}`), "http-401", "does not accept the API key: check the endpoint's key (HTTP 401: wrong key [key])", "sk-1", 0},
		{"403", whole(403, "application/json", `{"error":"no"}`), "http-403", "check what the endpoint's key may do (HTTP 403: no)", "", 0},
		{"404", whole(404, "application/json", `{"error":{"error":{"message":"no model x"}}}`), "http-404", "/v1/chat/completions: check the base URL and the model's name (HTTP 404: no model x)", "", 0},
		{"404 page", whole(404, "text/html; charset=utf-8", page), "http-404", "this is a web page, not an API: check the base URL (HTTP 404)", "", 0},
		{"404 page without a type", whole(404, "text/plain", "\n<!DOCTYPE HTML>"+page), "http-404", "this is a web page", "", 0},
		{"405", whole(405, "text/plain", "Method Not Allowed"), "http-405", "takes no requests of this kind", "", 0},
		{"400", whole(400, "application/json", `{"message":"bad min_tokens"}`), "http-400", "check model and parameters (HTTP 400: bad min_tokens)", "", 0},
		{"400 FastAPI", whole(422, "application/json", `{"detail":[{"loc":["body","x"],"msg":"field required"}]}`), "http-422", "(HTTP 422: field required (x))", "", 0},
		{"400 of a TLS server", whole(400, "text/plain", "Client sent an HTTP request to an HTTPS server.\n"), "tls", "write https:// in the base URL", "", 0},
		{"413", whole(413, "text/plain", ""), "http-413", "send a shorter prompt", "", 0},
		{"429", whole(429, "application/json", `{"error":{"message":"slow"}}`, "Retry-After: 2"), "http-429", "use fewer workers or wait 2s (HTTP 429: slow)", "", 2 * time.Second},
		{"429 without a time", whole(429, "application/json", `{}`), "http-429", "use fewer workers (HTTP 429)", "", 0},
		{"500", whole(500, "application/json", `{"object":"error","message":"CUDA"}`), "http-5xx", "look at its log (HTTP 500: CUDA)", "", 0},
		{"502", whole(502, "text/html", page), "http-5xx", "this is a web page", "", 0},
		{"502 in words", whole(502, "text/plain", "bad gateway"), "http-5xx", "a proxy got no answer from the server behind it", "", 0},
		{"503", whole(503, "application/json", `{"error":{"message":"Loading model"}}`, "Retry-After: 1.5"), "http-5xx", "wait until it has loaded the model, or use fewer workers (HTTP 503: Loading model)", "", 1500 * time.Millisecond},
		{"long words", whole(500, "text/plain", long), "http-5xx", "é…)", "", 0},
		{"words with line ends", whole(500, "text/plain", "a\r\n\tb\x00c"), "http-5xx", "(HTTP 500: a b c)", "", 0},
		{"words that are none", whole(500, "text/plain", "\xff\xfe"), "http-5xx", "(HTTP 500)", "", 0},
		{"cut", "HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf", "http-5xx", "(HTTP 500: half)", "", 0},
		{"418", whole(418, "application/json", `["tea"]`), "http-418", "(HTTP 418: tea)", "", 0},
		{"304", whole(304, "text/plain", ""), "http-304", "", "", 0},
		{"gzip", "HTTP/1.1 500 Oops\r\nContent-Encoding: gzip\r\n\r\n" + gzipped(`{"error":"zipped"}`), "http-5xx", "(HTTP 500: zipped)", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newClient(t, serve(t, saysAndCloses(c.answer)), func(o *Options) { o.Key = c.key })
			res, l, _ := do(t, t.Context(), cl)
			e := res.End
			if e.Status != bench.Failed || e.Class != c.class || !strings.Contains(e.Error, c.says) || e.RetryAfter != c.wait || l.conn().Status == 0 {
				t.Errorf("got %s, class %q, retry after %v: %s", e.Status, e.Class, e.RetryAfter, e.Error)
			}
			if len(e.Error) > 3*maxMessage || strings.ContainsAny(e.Error, "\r\n\x00") {
				t.Errorf("not a sentence: %q", e.Error)
			}
		})
	}
}

// TestErrorBodyHangs: the words of an error are waited for only so long.
func TestErrorBodyHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes two seconds")
	}
	url := serve(t, func(c net.Conn, _ request) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nhalf")
		_, _ = c.Read(make([]byte, 1))
		return false
	})
	if res, _, _ := do(t, t.Context(), newClient(t, url)); !strings.Contains(res.End.Error, "(HTTP 500: half)") {
		t.Errorf("got %+v", res.End)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "x": 0, "1e300": 0, "NaN": 0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

// A server that takes a connection and waits for plain HTTP lets a TLS handshake time out.
func TestSilentTLS(t *testing.T) {
	if text, ok := tlsTrouble(errors.New("net/http: TLS handshake timeout"), "host"); !ok || !strings.Contains(text, "write http://") {
		t.Errorf("got %q", text)
	}
}
