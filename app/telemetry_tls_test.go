package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"velo/bench/otlp"
	"velo/bench/sim"
	"velo/engine/emit"
	"velo/ui/console"
)

// TestReceiverSpeaksTLS: with a certificate in its settings the receiver takes HTTPS and gRPC over TLS and nothing
// in plain text, and never falls back to that.
func TestReceiverSpeaksTLS(t *testing.T) {
	files, dir := t.TempDir(), t.TempDir()
	cert, key, _ := certificate(t, files)
	c := openedAt(t, dir)
	url := receive(t, c)
	s := c.Telemetry().Settings()
	for name, bad := range map[string]func(*console.TelemetrySettings){
		"no key":       func(s *console.TelemetrySettings) { s.Certificate = cert },
		"no such file": func(s *console.TelemetrySettings) { s.Certificate, s.Key = cert+"x", key },
		"another key":  func(s *console.TelemetrySettings) { s.Certificate, s.Key = cert, cert },
	} {
		x := s
		bad(&x)
		if err := c.Telemetry().SaveSettings(x, nil); err == nil || !strings.HasPrefix(err.Error(), "cannot receive over TLS") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	s.GRPC = c.Telemetry().FreePort(s.HTTP[0] + 1)
	s.Certificate, s.Key = cert, key
	if err := c.Telemetry().SaveSettings(s, nil); err != nil {
		t.Fatal(err)
	}
	wait(t, "listeners with TLS", func() bool { return c.Telemetry().State().Listening() })
	since := c.Telemetry().State().Listeners
	for _, l := range since {
		if want := map[string]string{"HTTP": "https://", "gRPC": "grpcs://"}[l.Protocol] + l.Address; !l.TLS || l.URL() != want {
			t.Errorf("%s is told as %+v, %s", l.Protocol, l, l.URL())
		}
	}
	if r, err := http.Post(url+"/v1/logs", "application/json", strings.NewReader("{}")); err == nil && r.StatusCode == 200 {
		t.Error("plain text is taken")
	}
	t.Setenv(emit.CertificateVariable, cert)
	want := uint64(0)
	for _, l := range since { // as velo sim --otlp does it
		code, out, errs := velo(context.Background(), "sim", "--otlp", l.URL(), "--otlp-rate", "5000", "--otlp-records", "100")
		var n sim.EmitCounts
		if code != exitOK || json.Unmarshal([]byte(out), &n) != nil || n.Failed != 0 {
			t.Fatalf("to %s: code %d, %q, %q", l.URL(), code, out, errs)
		}
		want += n.Sent
	}
	if got := c.Telemetry().State().Counters.Logs; got != want {
		t.Errorf("%d records came of %d", got, want)
	}

	// Velo's own engine is told of it, and whom to trust.
	if got := c.telemetry.told(console.EngineConfig{}).Telemetry; got != "https://"+strings.TrimPrefix(url, "http://") {
		t.Errorf("the engine is to send to %q", got)
	}
	if got := strings.Join(c.telemetry.shows(console.EngineConfig{}), " "); !strings.Contains(got, emit.CertificateVariable+"="+cert) {
		t.Errorf("the engine's environment is %s", got)
	}

	// What has nothing to do with it leaves the connections alone.
	s = c.Telemetry().Settings()
	s.Tokens = 4321
	if err := c.Telemetry().SaveSettings(s, nil); err != nil {
		t.Fatal(err)
	}
	if now := c.Telemetry().State().Listeners; now[0].Since != since[0].Since {
		t.Errorf("listeners were opened anew: %+v", now)
	}

	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openedAt(t, dir)
	wait(t, "listeners with TLS after a new start", func() bool { s := c.Telemetry().State(); return s.Listening() && s.Listeners[0].TLS })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	c = openedAt(t, dir)
	defer c.Close()
	if s := c.Telemetry().State(); s.Wanted || len(s.Listeners) != 0 {
		t.Errorf("without its key it listens all the same: %+v", s)
	}
	if n := strings.Join(c.Status().Notices, "\n"); !strings.Contains(n, "cannot receive over TLS") {
		t.Errorf("it is not told: %q", n)
	}
	s = c.Telemetry().Settings() // it can be turned off, and not on
	if err := c.Telemetry().SaveSettings(s, nil); err != nil {
		t.Error(err)
	}
	if s.On = true; c.Telemetry().SaveSettings(s, nil) == nil {
		t.Error("it was turned on without its key")
	}
	if s.Certificate, s.Key = "", ""; c.Telemetry().SaveSettings(s, nil) != nil || c.Telemetry().Snapshot(otlp.Query{}).State.Listeners[0].TLS {
		t.Error("it does not go back to plain text")
	}
}

// TestReceiverTakesUpARenewedCertificate without its settings being applied, and other settings can be applied while
// its files are broken.
func TestReceiverTakesUpARenewedCertificate(t *testing.T) {
	files := t.TempDir()
	cert, key, _ := certificate(t, files)
	c, url := receiving(t)
	s := c.Telemetry().Settings()
	s.Certificate, s.Key = cert, key
	if err := c.Telemetry().SaveSettings(s, nil); err != nil {
		t.Fatal(err)
	}
	wait(t, "TLS", func() bool { return c.Telemetry().State().Listening() })
	was := c.Telemetry().State()
	send := func(trusted *x509.CertPool) error {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
		r, err := client.Post("https"+strings.TrimPrefix(url, "http")+"/v1/logs", "application/json", strings.NewReader("{}"))
		if err == nil {
			_ = r.Body.Close()
		}
		return err
	}
	_, _, renewed := certificate(t, files)
	wait(t, "the renewed certificate", func() bool { return send(renewed) == nil })
	if err := os.WriteFile(cert, []byte("-----BEGIN CERTIFICATE-----\nMII"), 0o600); err != nil {
		t.Fatal(err)
	}
	wait(t, "the problem", func() bool { return c.Telemetry().State().Certificate.Problem != "" })
	s = c.Telemetry().Settings()
	s.Tokens = 4321
	if err := c.Telemetry().SaveSettings(s, nil); err != nil {
		t.Errorf("other settings are refused while the files are broken: %v", err)
	}
	if err := send(renewed); err != nil {
		t.Errorf("with a broken file: %v", err)
	}
	if now := c.Telemetry().State(); now.Listeners[0].Since != was.Listeners[0].Since {
		t.Error("the listener was opened anew")
	}
}
