package otlp

import (
	"bytes"
	"compress/gzip"
	"crypto/subtle"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"velo/bench/otlp/decode"
)

// Times that a sender has for its part of a request.
const (
	headTime = 10 * time.Second
	bodyTime = 30 * time.Second
	idleTime = 2 * time.Minute
)

// httpServer makes the server of one HTTP listener.
func (r *Receiver) httpServer() *http.Server {
	return &http.Server{Handler: http.HandlerFunc(r.serveHTTP), ReadHeaderTimeout: headTime, ReadTimeout: bodyTime, WriteTimeout: bodyTime + idleTime,
		IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10, ErrorLog: quiet}
}

func (r *Receiver) serveHTTP(w http.ResponseWriter, q *http.Request) {
	format, f := formatOf(q.Header.Get("Content-Type"))
	s, known := signalOf(q.URL.Path)
	switch {
	case !known:
		f = &refusal{kind: notFound, message: "there are /v1/logs, /v1/metrics and /v1/traces"}
	case q.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		f = &refusal{kind: method, message: "only POST is taken"}
	case !r.authorized(q.Header.Get("Authorization")):
		w.Header().Set("WWW-Authenticate", "Bearer")
		f = &refusal{kind: unauthorized, message: "the bearer token is missing or wrong"}
	}
	var done result
	if f == nil {
		done, f = r.takeHTTP(q, s, format)
	}
	if f != nil {
		r.counters.count(f)
		r.refuse(w, q, format, f)
		return
	}
	reply(w, format, http.StatusOK, successBody(s, format, done))
}

func signalOf(path string) (signal, bool) {
	for s, p := range paths {
		if path == p {
			return signal(s), true
		}
	}
	return 0, false
}

// formatOf is the encoding that a content type names.
func formatOf(contentType string) (decode.Format, *refusal) {
	switch t, _, err := mime.ParseMediaType(contentType); {
	case err == nil && t == "application/x-protobuf":
		return decode.Protobuf, nil
	case err == nil && t == "application/json":
		return decode.JSON, nil
	}
	return decode.JSON, &refusal{kind: unsupported, message: "the content type must be application/x-protobuf or application/json"}
}

// authorized compares the token in constant time.
func (r *Receiver) authorized(header string) bool {
	token := r.token.Load()
	if token == nil || *token == "" {
		return true
	}
	scheme, given, _ := strings.Cut(header, " ")
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare([]byte(strings.TrimSpace(given)), []byte(*token)) == 1
}

// takeHTTP reads a request's body and takes it.
func (r *Receiver) takeHTTP(q *http.Request, s signal, format decode.Format) (result, *refusal) {
	encoding := strings.ToLower(strings.TrimSpace(q.Header.Get("Content-Encoding")))
	if encoding != "" && encoding != "identity" && encoding != "gzip" {
		return result{}, &refusal{kind: unsupported, message: "the content encoding must be gzip or identity"}
	}
	l := r.admission.current()
	if q.ContentLength > l.Body {
		return result{}, tooLargeFor(l)
	}
	if f := r.admission.enter(); f != nil {
		return result{}, f
	}
	a := allowance{admission: r.admission, most: l.Body}
	defer func() { r.admission.leave(a.held) }()
	body, err := a.read(q.Body, q.ContentLength)
	received := r.clock.now() // all of it is there
	if f := a.refusal(err, l); f != nil {
		return result{}, f
	}
	if encoding == "gzip" {
		if body, err = a.unzip(body); err != nil {
			if f := a.refusal(err, l); f.kind != interrupted {
				return result{}, f
			}
			return result{}, &refusal{kind: malformed, message: "the body is no gzip: " + err.Error()}
		}
	}
	return r.ingest(q.Context(), s, format, textOf(body), received)
}

func tooLargeFor(l Limits) *refusal {
	return &refusal{kind: tooLarge, message: "the body has more than " + strconv.FormatInt(l.Body, 10) + " bytes, decompressed or not"}
}

// allowance reads within bounds: those of one body, and those of all bodies together.
type allowance struct {
	admission *admission
	most      int64
	held      int64
}

var (
	errTooLarge = errors.New("too large")
	errNoRoom   = errors.New("no room")
)

func (a *allowance) refusal(err error, l Limits) *refusal {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errTooLarge):
		return tooLargeFor(l)
	case errors.Is(err, errNoRoom):
		return &refusal{kind: full, message: "too many bytes at a time", after: time.Second}
	}
	return &refusal{kind: interrupted, message: "the body did not come in full: " + err.Error()}
}

// read reads all of a body whose length is said to be n (−1 = not said), and accounts for its memory
// before it takes it: never for more than came, but for 64 KiB.
func (a *allowance) read(from io.Reader, n int64) ([]byte, error) {
	const step = 64 << 10
	first := int64(step)
	if n >= 0 {
		first = min(n+1, step) // one more to see the end
	}
	if !a.take(first) {
		return nil, errNoRoom
	}
	b := make([]byte, 0, first)
	for {
		if len(b) == cap(b) {
			grow := min(int64(cap(b)), a.most+1-int64(cap(b))) // never more than what is too large
			if n > int64(cap(b)) {
				grow = min(grow, n+1-int64(cap(b)))
			}
			if !a.take(grow) {
				return nil, errNoRoom
			}
			b = append(make([]byte, 0, int64(cap(b))+grow), b...)
		}
		k, err := from.Read(b[len(b):min(int64(cap(b)), a.most+1)])
		b = b[:len(b)+k]
		if int64(len(b)) > a.most {
			return nil, errTooLarge
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (a *allowance) take(n int64) bool {
	if !a.admission.hold(n) {
		return false
	}
	a.held += n
	return true
}

func (a *allowance) unzip(body []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return a.read(z, -1)
}

func reply(w http.ResponseWriter, format decode.Format, status int, body []byte) {
	if format == decode.JSON {
		w.Header().Set("Content-Type", "application/json")
	} else {
		w.Header().Set("Content-Type", "application/x-protobuf")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// penalty is how long a sender that is over the bounds waits for the answer, so that one that does not
// heed it cannot keep a core busy with refusals.
const penalty = 50 * time.Millisecond

func (r *Receiver) refuse(w http.ResponseWriter, q *http.Request, format decode.Format, f *refusal) {
	status := map[kind]int{malformed: http.StatusBadRequest, tooLarge: http.StatusRequestEntityTooLarge, unsupported: http.StatusUnsupportedMediaType,
		unauthorized: http.StatusUnauthorized, method: http.StatusMethodNotAllowed, notFound: http.StatusNotFound,
		limited: http.StatusTooManyRequests, busy: http.StatusServiceUnavailable, full: http.StatusServiceUnavailable, interrupted: http.StatusBadRequest}[f.kind]
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(f.after.Seconds()))))
		t := time.NewTimer(penalty)
		select {
		case <-t.C:
		case <-q.Context().Done():
		}
		t.Stop()
	}
	if f.kind == tooLarge || f.kind == interrupted {
		w.Header().Set("Connection", "close")
	}
	reply(w, format, status, failureBody(format, f))
}
