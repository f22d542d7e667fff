package otlp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serveText is a web server whose every page is what of returns.
func serveText(t *testing.T, of func() (int, string)) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, text := of()
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// started2 is a receiver that need not listen.
func started2(t *testing.T, c Config) *Receiver {
	t.Helper()
	r := New(Options{})
	t.Cleanup(r.Close)
	check(t, r.Configure(c))
	return r
}
