package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"velo/bench"
)

// A failure is why a request did not end well: a status, a class to count by, and one sentence for the
// user that says what to do.
type failure struct {
	status bench.Status
	class  string
	text   string
}

func (f *failure) Error() string { return f.text }

var (
	errConnectTimeout = errors.New("connect timeout")
	errSpeaksTLS      = errors.New("it speaks TLS")
)

func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// cancelled is the end of a request whose context ended.
func (c *Client) cancelled(cause error) *failure {
	switch {
	case errors.Is(cause, errConnectTimeout):
		return c.timedOut("connect", c.o.Timeout.Connect)
	case errors.Is(cause, context.DeadlineExceeded):
		return &failure{bench.TimedOut, "timeout-total", "the time set for the request is over"}
	}
	return &failure{status: bench.Stopped}
}

// timedOut is the end of a request that met one of the limits.
func (c *Client) timedOut(limit string, after time.Duration) *failure {
	f := &failure{status: bench.TimedOut, class: "timeout-" + limit}
	switch limit {
	case "connect":
		f.text = fmt.Sprintf("cannot connect to %s within %v: nothing answers there; check host and port of the base URL, a firewall between, or raise the connect timeout", c.base.url.Host, after)
	case "first-byte":
		f.text = fmt.Sprintf("no byte of the answer came within %v: the server is overloaded or hangs; look at its log, use fewer workers, or raise the first-byte timeout", after)
	case "idle":
		f.text = fmt.Sprintf("the stream was silent for %v: the server or a proxy hangs; look at its log, or raise the idle timeout", after)
	case "total":
		f.text = fmt.Sprintf("the answer was not complete after %v: ask for fewer tokens, or raise the total timeout", after)
	}
	return f
}

// unreachable is the end of a request that got no connection to e.
func (c *Client) unreachable(e *endpoint, err error) *failure {
	host, address := e.url.Hostname(), net.JoinHostPort(e.host, e.port)
	fail := func(class, text string, args ...any) *failure {
		return &failure{bench.Failed, class, fmt.Sprintf(text, args...)}
	}
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return fail("connect", "cannot connect to %s: too many files are open; raise the limit with \"ulimit -n\", or use fewer workers", address)
	}
	if text, ok := tlsTrouble(err, host); ok {
		return fail("tls", "%s", text)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		switch {
		case dns.IsNotFound:
			return fail("dns", "cannot find the host %q: no such name; check the spelling of the base URL", host)
		case dns.IsTimeout:
			return fail("dns", "cannot find the host %q: the name server does not answer; check the network", host)
		}
		return fail("dns", "cannot find the host %q: %s; check the network and the base URL", host, dns.Err)
	}
	var netErr net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(err.Error(), "actively refused"):
		return fail("connect", "cannot connect to %s: nothing listens there; start the server, or correct host and port of the base URL", address)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fail("connect", "cannot connect to %s: there is no way to that network; check the network and the base URL", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fail("connect", "cannot connect to %s: no local port is free; keep connections alive, or use fewer workers", address)
	case errors.As(err, &netErr) && netErr.Timeout():
		return fail("connect", "cannot connect to %s: nothing answers there; check host and port of the base URL, and a firewall between", address)
	}
	return fail("connect", "cannot connect to %s: %s; check the base URL and that the server runs", address, innermost(err))
}

// tlsTrouble says in words what went wrong with TLS, if it did.
func tlsTrouble(err error, host string) (string, bool) {
	var record tls.RecordHeaderError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var alert tls.AlertError
	var phase *dialError
	switch {
	case errors.As(err, &record):
		return fmt.Sprintf("cannot speak TLS with %s: the server there speaks plain HTTP; write http:// instead of https:// in the base URL", host), true
	case errors.As(err, &authority):
		return fmt.Sprintf("cannot trust the certificate of %s: an authority that this machine does not know has signed it; add that authority's certificate to the system", host), true
	case errors.As(err, &name):
		return fmt.Sprintf("cannot trust the certificate of %s: it is for another name; write the name that it is for in the base URL", host), true
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("cannot trust the certificate of %s: it has expired or is not valid yet; renew it, or set this machine's clock", host), true
	case errors.As(err, &alert):
		return fmt.Sprintf("cannot speak TLS with %s: it refuses (%s); check that the base URL names the right host", host, alert.Error()), true
	case errors.As(err, &phase) && phase.phase == "tls":
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
			return fmt.Sprintf("cannot speak TLS with %s: the server closed the connection; if it speaks plain HTTP, write http:// in the base URL", host), true
		}
		return fmt.Sprintf("cannot speak TLS with %s: %s; check the server's certificate and the base URL", host, innermost(err)), true
	}
	if strings.Contains(err.Error(), "TLS handshake timeout") {
		return fmt.Sprintf("cannot speak TLS with %s: it takes the connection but does not answer; if it speaks plain HTTP, write http:// in the base URL", host), true
	}
	if text := err.Error(); strings.Contains(text, "server gave HTTP response to HTTPS client") {
		return fmt.Sprintf("cannot speak TLS with %s: the server there speaks plain HTTP; write http:// instead of https:// in the base URL", host), true
	}
	return "", false
}

// innermost is the text of the error at the bottom: the ones around repeat the address.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

// hungUp is the end of a request to which no answer came before the connection ended.
func (c *Client) hungUp(err error, e *endpoint) *failure {
	if errors.Is(err, errSpeaksTLS) {
		return &failure{bench.Failed, "tls", fmt.Sprintf("cannot speak plain HTTP with %s: the server there speaks TLS; write https:// in the base URL", e.url.Host)}
	}
	how := "closed the connection"
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		how = "cut the connection"
	} else if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
		how = "was lost (" + innermost(err) + ")"
	}
	return &failure{bench.Failed, "closed", fmt.Sprintf("the server %s before it answered: look at its log; it may have crashed, or not speak HTTP", how)}
}

// malformed is the end of a request whose answer is not what the protocol says.
func malformed(err error) *failure {
	return &failure{bench.Failed, "malformed", fmt.Sprintf("cannot read the server's answer: %v; check that the base URL names an OpenAI-compatible API", err)}
}

// webPage tells whether a body is a page for people.
func webPage(contentType string, body []byte) bool {
	start := strings.ToLower(strings.TrimLeftFunc(string(body[:min(len(body), 256)]), func(r rune) bool {
		return unicode.IsSpace(r) || r == '\ufeff'
	}))
	return strings.HasPrefix(strings.ToLower(contentType), "text/html") ||
		strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html")
}

const isWebPage = "this is a web page, not an API: check the base URL"

// refused is the end of a request that was answered with an HTTP status other than 2xx.
func (c *Client) refused(h *head, body []byte, address string) *failure {
	class := "http-" + strconv.Itoa(h.status)
	if h.status >= 500 {
		class = "http-5xx"
	}
	said := ""
	if message := c.message(body); message != "" && !webPage(h.contentType, body) {
		said = ": " + message
	}
	code := fmt.Sprintf("HTTP %d%s", h.status, said)
	plainToTLS := strings.Contains(string(body), "HTTP request to an HTTPS server") || strings.Contains(string(body), "plain HTTP request was sent to HTTPS port")
	var text string
	switch {
	case h.status == 400 && plainToTLS:
		class, text = "tls", "cannot speak plain HTTP with this server: it speaks TLS; write https:// in the base URL"
	case h.status == 401 && c.fields.Get("Authorization") == "":
		text = "the server wants an API key: set the endpoint's key (" + code + ")"
	case h.status == 401:
		text = "the server does not accept the API key: check the endpoint's key (" + code + ")"
	case h.status == 407:
		text = "the proxy wants a user and password: put them in HTTP_PROXY or HTTPS_PROXY (" + code + ")"
	case webPage(h.contentType, body):
		text = isWebPage + " (" + code + ")"
	case h.status/100 == 3:
		text = fmt.Sprintf("the server sends requests on to %s: write that in the base URL (%s)", redact(h.location), code)
	case h.status == 403:
		text = "the server forbids this: check what the endpoint's key may do (" + code + ")"
	case h.status == 404:
		text = fmt.Sprintf("the server knows nothing at %s: check the base URL and the model's name (%s)", redact(address), code)
	case h.status == 405:
		text = fmt.Sprintf("the server takes no requests of this kind at %s: check the base URL (%s)", redact(address), code)
	case h.status == 413:
		text = "the request is too large for the server: send a shorter prompt or smaller images, or raise its limit (" + code + ")"
	case h.status == 429:
		wait := ""
		if d := retryAfter(h.retryAfter, time.Now()); d > 0 {
			wait = fmt.Sprintf(" or wait %v", d.Round(time.Millisecond))
		}
		text = "the server gets too many requests: use fewer workers" + wait + " (" + code + ")"
	case h.status == 503:
		text = "the server is not ready or overloaded: wait until it has loaded the model, or use fewer workers (" + code + ")"
	case h.status == 502 || h.status == 504:
		text = "a proxy got no answer from the server behind it: check that the server runs (" + code + ")"
	case h.status >= 500:
		text = "the server failed: look at its log (" + code + ")"
	default:
		text = "the server does not accept the request: check model and parameters (" + code + ")"
	}
	return &failure{bench.Failed, class, text}
}

// retryAfter reads the field of that name: seconds, or a date. It is 0 if there is none.
func retryAfter(value string, now time.Time) time.Duration {
	if value == "" {
		return 0
	}
	if s, err := strconv.ParseFloat(value, 64); err == nil {
		if s > 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	if t, err := http.ParseTime(value); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

// maxMessage bounds what is shown of a server's words.
const maxMessage = 300

// message finds the words in an error body: JSON in any of the usual shapes, or plain text. The key
// never appears in it.
func (c *Client) message(body []byte) string {
	text := jsonMessage(body, 0)
	if text == "" && !json.Valid(body) && utf8.Valid(body) {
		text = string(body[:min(len(body), 4*maxMessage)])
	}
	if c.o.Key != "" {
		text = strings.ReplaceAll(text, c.o.Key, "[key]")
	}
	return oneLine(text)
}

// jsonMessage looks for the message in an error object, from the most usual place to the least.
func jsonMessage(raw []byte, depth int) string {
	if s := asString(raw); s != "" || depth > 4 {
		return s
	}
	if list := asList(raw); len(list) > 0 {
		return jsonMessage(list[0], depth+1)
	}
	o := asObject(raw)
	for _, name := range []string{"error", "message", "msg", "detail", "errors", "error_description", "title"} {
		if s := jsonMessage(o[name], depth+1); s != "" {
			return placed(s, o)
		}
	}
	return ""
}

// placed adds which member of the request a message is about, where the error says so beside it: param as
// OpenAI has it, loc as FastAPI has it.
func placed(message string, o object) string {
	place := asString(o["param"])
	var steps []string
	for _, raw := range asList(o["loc"]) {
		if s := asString(raw); s != "" && s != "body" {
			steps = append(steps, s)
		}
	}
	if place == "" {
		place = strings.Join(steps, ".")
	}
	if place == "" || strings.Contains(message, place) {
		return message
	}
	return fmt.Sprintf("%s (%s)", message, place)
}

// oneLine makes a message fit a sentence.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if utf8.RuneCountInString(s) > maxMessage {
		s = string([]rune(s)[:maxMessage-1]) + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
