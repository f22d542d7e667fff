package emit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// overHTTP posts to /v1/logs, /v1/metrics and /v1/traces.
type overHTTP struct {
	client      *http.Client
	url         [signals]string
	contentType string
	header      map[string]string
	timing      timing
}

func newHTTP(p endpoint, o Options, t timing) *overHTTP {
	h := &overHTTP{contentType: "application/json", header: o.Headers, timing: t}
	if o.Protobuf {
		h.contentType = "application/x-protobuf"
	}
	for s := range signals {
		h.url[s] = p.url(s)
	}
	h.client = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: t.connect}).DialContext,
			TLSClientConfig:     o.TLS,
			TLSHandshakeTimeout: t.connect,
			// As the original does, so that a receiver that forgets its
			// connections costs one request and not every other. TLS is kept:
			// a handshake ten times a second takes time from decoding.
			DisableKeepAlives: !p.secure,
			MaxIdleConns:      1,
			IdleConnTimeout:   time.Minute,
		},
		// A redirected POST would arrive as a GET.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return h
}

func (h *overHTTP) close() { h.client.CloseIdleConnections() }

func errConnect(t time.Duration) error { return fmt.Errorf("no connection within %v", t) }
func errAnswer(t time.Duration) error  { return fmt.Errorf("no answer within %v", t) }

func (h *overHTTP) post(ctx context.Context, s signal, body []byte) answer {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The connection has its own limits; from when it is there, the exchange
	// has its own.
	var exchange *time.Timer
	defer func() {
		if exchange != nil {
			exchange.Stop()
		}
	}()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if exchange == nil {
			exchange = time.AfterFunc(h.timing.exchange, func() { cancel(errAnswer(h.timing.exchange)) })
		}
	}})
	lent := &lent{bytes: body}
	defer lent.end()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url[s], lent.reader())
	if err != nil {
		return answer{err: err}
	}
	request.ContentLength = int64(len(body))
	// A kept connection may turn out to be closed before anything was sent.
	request.GetBody = func() (io.ReadCloser, error) { return lent.reader(), nil }
	request.Header.Set("Content-Type", h.contentType)
	request.Header.Set("User-Agent", "velo")
	for name, value := range h.header {
		request.Header.Set(name, value)
	}
	response, err := h.client.Do(request)
	if err != nil {
		return answer{err: h.why(ctx, err)}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return answer{err: h.why(ctx, err)}
	}
	if response.StatusCode/100 != 2 {
		a := answer{err: errors.New("it answers " + response.Status)}
		switch response.StatusCode {
		case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			a.pause = retryAfter(response.Header.Get("Retry-After"), time.Now())
			if a.pause == 0 && response.StatusCode == http.StatusTooManyRequests {
				a.pause = usualPause
			}
		}
		return a
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind == "application/x-protobuf" {
		return partialProto(text)
	}
	return partialJSON(text)
}

// lent is a body that is used again after the request: net/http may still be
// reading it when Do has returned.
type lent struct {
	mu    sync.Mutex
	bytes []byte // nil once the request is over
}

func (l *lent) end() {
	l.mu.Lock()
	l.bytes = nil
	l.mu.Unlock()
}

func (l *lent) reader() io.ReadCloser { return &lentReader{lent: l} }

type lentReader struct {
	*lent
	at int
}

func (r *lentReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at >= len(r.bytes) {
		return 0, io.EOF
	}
	n := copy(p, r.bytes[r.at:])
	r.at += n
	return n, nil
}

func (r *lentReader) Close() error { return nil }

// why is the cause of a failed request without the method and address that
// net/http puts in front.
func (h *overHTTP) why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	var inner interface {
		error
		Unwrap() error
		Timeout() bool
	}
	if errors.As(err, &inner) && inner.Unwrap() != nil { // *url.Error
		err = inner.Unwrap()
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" && dial.Timeout() {
		return errConnect(h.timing.connect)
	}
	return err
}

// retryAfter reads the header of that name: seconds or a date. 0 if it is not
// there or makes no sense.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	var wait time.Duration
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		wait = time.Duration(min(n, int64(mostPause/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return max(0, min(wait, mostPause))
}

// partialJSON reads an Export…ServiceResponse. Receivers answer all sorts of
// things with 200; what is not a partial success is a success.
func partialJSON(text []byte) answer {
	type partial struct {
		Logs    json.RawMessage `json:"rejectedLogRecords"`
		Points  json.RawMessage `json:"rejectedDataPoints"`
		Spans   json.RawMessage `json:"rejectedSpans"`
		Message string          `json:"errorMessage"`
	}
	var response struct {
		Partial partial `json:"partialSuccess"`
	}
	if json.Unmarshal(text, &response) != nil {
		return answer{}
	}
	p := response.Partial
	a := answer{message: p.Message}
	for _, raw := range []json.RawMessage{p.Logs, p.Points, p.Spans} { // a number, or a string as OTLP/JSON has it
		if n, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64); err == nil && n > 0 {
			a.rejected += uint64(n)
		}
	}
	return a
}

// partialProto does the same with protobuf; the three responses have the same
// layout: partial_success = 1 {rejected = 1, error_message = 2}.
func partialProto(text []byte) answer {
	var a answer
	inner := field(text, 1)
	for len(inner) > 0 {
		number, kind, n := protowire.ConsumeTag(inner)
		if n < 0 {
			return answer{}
		}
		inner = inner[n:]
		switch {
		case number == 1 && kind == protowire.VarintType:
			v, n := protowire.ConsumeVarint(inner)
			if n < 0 {
				return answer{}
			}
			if int64(v) > 0 {
				a.rejected = v
			}
			inner = inner[n:]
		case number == 2 && kind == protowire.BytesType:
			v, n := protowire.ConsumeBytes(inner)
			if n < 0 {
				return answer{}
			}
			a.message = string(v)
			inner = inner[n:]
		default:
			n := protowire.ConsumeFieldValue(number, kind, inner)
			if n < 0 {
				return answer{}
			}
			inner = inner[n:]
		}
	}
	return a
}

// field is the last message of that number in text, nil if there is none.
func field(text []byte, wanted protowire.Number) []byte {
	var found []byte
	for len(text) > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return nil
		}
		size := protowire.ConsumeFieldValue(number, kind, text[n:])
		if size < 0 {
			return nil
		}
		if number == wanted && kind == protowire.BytesType {
			found, _ = protowire.ConsumeBytes(text[n:])
		}
		text = text[n+size:]
	}
	return found
}
