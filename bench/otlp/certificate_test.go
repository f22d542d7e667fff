package otlp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issued is a certificate for 127.0.0.1 with its key, both in PEM.
type issued struct {
	chain, key []byte
	serial     int64
}

func issue(t *testing.T, serial int64, from, until time.Time) issued {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	x := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: from, NotAfter: until, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &private.PublicKey, private)
	check(t, err)
	secret, err := x509.MarshalECPrivateKey(private)
	check(t, err)
	return issued{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), serial}
}

// serial is the serial number of the certificate that a listener shows.
func serial(t *testing.T, address string) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // which one it is, not whether it is trusted
	check(t, err)
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// TestCertificateIsReadAnew goes through what becomes of the files of a certificate while it is in use.
func TestCertificateIsReadAnew(t *testing.T) {
	dir := t.TempDir()
	chain, key := filepath.Join(dir, "chain.pem"), filepath.Join(dir, "key.pem")
	now := time.Now()
	day := 24 * time.Hour
	old, renewed, third := issue(t, 1, now.Add(-day), now.Add(12*day)), issue(t, 2, now.Add(-day), now.Add(90*day)), issue(t, 3, now.Add(day), now.Add(40*day))
	early := issue(t, 4, now.Add(-day), now.Add(5*day)) // ends before what it stands behind
	write := func(name string, data []byte) {
		t.Helper()
		check(t, os.WriteFile(name, data, 0o600))
	}
	write(chain, old.chain)
	write(key, old.key)
	c, err := openCertificate(chain, key, func() time.Time { return now })
	check(t, err)
	shows := func() int64 {
		p, err := c.config.GetCertificate(nil)
		check(t, err)
		return p.Leaf.SerialNumber.Int64()
	}
	for _, step := range []struct {
		name    string
		change  func()
		serial  int64
		problem string // part of it; "" = none
		left    time.Duration
	}{
		{"as it was opened", func() {}, 1, "", 12 * day},
		{"only the chain was renewed so far", func() { write(chain, renewed.chain) }, 1, "do not go together", 12 * day},
		{"the key too", func() { write(key, renewed.key) }, 2, "", 90 * day},
		{"half of a file", func() { write(chain, third.chain[:len(third.chain)/2]) }, 2, "not written in full", 90 * day},
		{"an empty file", func() { write(chain, nil) }, 2, "has nothing in PEM", 90 * day},
		{"not PEM", func() { write(chain, []byte("hello")) }, 2, "has nothing in PEM", 90 * day},
		{"not a certificate", func() { write(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})) }, 2, "is no certificate", 90 * day},
		{"no file", func() { check(t, os.Remove(chain)) }, 2, "chain.pem", 90 * day},
		{"it is back", func() { write(chain, renewed.chain) }, 2, "", 90 * day},
		{"the chain ends within its second block", func() { write(chain, append(append([]byte(nil), renewed.chain...), third.chain[:40]...)) }, 2, "not written in full", 90 * day},
		{"the chain is whole, and what it stands on ends sooner", func() { write(chain, append(append([]byte(nil), renewed.chain...), early.chain...)) }, 2, "", 5 * day},
		{"another in its place", func() {
			write(chain+".new", third.chain)
			write(key+".new", third.key)
			check(t, os.Rename(chain+".new", chain))
			check(t, os.Rename(key+".new", key))
		}, 3, "", 40 * day},
	} {
		step.change()
		now = now.Add(lookEvery)
		if got := shows(); got != step.serial {
			t.Errorf("%s: certificate %d is shown, want %d", step.name, got, step.serial)
		}
		s := c.State()
		if s.Problem == "" != (step.problem == "") || !strings.Contains(s.Problem, step.problem) {
			t.Errorf("%s: the problem is %q, want %q", step.name, s.Problem, step.problem)
		}
		if s.Left != s.Expires.Sub(now) || s.Left < step.left-time.Minute || s.Left > step.left {
			t.Errorf("%s: %v are left, want about %v", step.name, s.Left, step.left)
		}
	}
	if s := c.State(); !s.Early || strings.Join(s.Names, " ") != "localhost 127.0.0.1" || s.File != chain {
		t.Errorf("the state is %+v", s)
	}

	// It is looked at once a second at most, and a file that was written to within one tick of the clock is read again.
	write(chain, renewed.chain)
	write(key, renewed.key)
	now = now.Add(lookEvery / 2)
	if got := shows(); got != 3 {
		t.Errorf("the files were read after half a second: %d is shown", got)
	}
	now = now.Add(lookEvery)
	if got := shows(); got != 2 {
		t.Errorf("%d is shown after a second and a half", got)
	}
	tick := now.Add(lookEvery)
	stamp := func() {
		for _, name := range []string{chain, key} {
			check(t, os.Chtimes(name, tick, tick))
		}
	}
	stamp()
	now = tick
	if got := shows(); got != 2 {
		t.Errorf("%d is shown after the time of the files changed", got)
	}
	for n := int64(5); ; n++ {
		x := issue(t, n, now.Add(-day), now.Add(90*day))
		if len(x.chain) != len(renewed.chain) || len(x.key) != len(renewed.key) {
			continue // it is to be of the same size
		}
		write(chain, x.chain)
		write(key, x.key)
		stamp()
		now = now.Add(lookEvery)
		if got := shows(); got != n {
			t.Errorf("what was written within the same tick is not seen: %d is shown, want %d", got, n)
		}
		return
	}
}

func TestCertificateThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	a, b := issue(t, 1, now, now.Add(time.Hour)), issue(t, 2, now, now.Add(time.Hour))
	file := func(name string, data []byte) string {
		name = filepath.Join(dir, name)
		check(t, os.WriteFile(name, data, 0o600))
		return name
	}
	chain, key := file("chain", a.chain), file("key", a.key)
	for name, c := range map[string][3]string{
		"no file":     {filepath.Join(dir, "none"), key, "none"},
		"another key": {chain, file("other", b.key), "do not go together"},
		"no key":      {chain, chain, "do not go together"},
		"cut off":     {file("cut", a.chain[:100]), key, "not written in full"},
	} {
		if _, err := OpenCertificate(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if _, err := OpenCertificate(chain, key); err != nil {
		t.Error(err)
	}
}

// TestRenewedCertificateIsShownByOpenListeners: both kinds of listeners take it up and stay open.
func TestRenewedCertificateIsShownByOpenListeners(t *testing.T) {
	dir := t.TempDir()
	chain, key := filepath.Join(dir, "chain.pem"), filepath.Join(dir, "key.pem")
	now := time.Now()
	put := func(x issued) {
		check(t, os.WriteFile(chain, x.chain, 0o600))
		check(t, os.WriteFile(key, x.key, 0o600))
	}
	put(issue(t, 1, now.Add(-time.Hour), now.Add(time.Hour)))
	c := loopback()
	var err error
	c.Certificate, err = OpenCertificate(chain, key)
	check(t, err)
	r := started(t, c)
	since := r.State().Listeners
	for _, l := range since {
		if got := serial(t, l.Address); got != 1 || !l.TLS {
			t.Errorf("%s shows certificate %d", l.Protocol, got)
		}
	}
	put(issue(t, 2, now.Add(-time.Hour), now.Add(2*time.Hour)))
	waitFor(t, "the renewed certificate", func() bool { return r.State().Certificate.Left > 90*time.Minute })
	for i, l := range r.State().Listeners {
		if got := serial(t, l.Address); got != 2 || l.Since != since[i].Since {
			t.Errorf("%s shows certificate %d, and listens since %v, before since %v", l.Protocol, got, l.Since, since[i].Since)
		}
	}
	check(t, os.WriteFile(key, []byte("-----BEGIN EC PRIVATE KEY-----\nabc"), 0o600))
	waitFor(t, "the problem", func() bool { return strings.Contains(r.State().Certificate.Problem, "not written in full") })
	for _, l := range r.State().Listeners {
		if got := serial(t, l.Address); got != 2 {
			t.Errorf("with a broken file %s shows certificate %d", l.Protocol, got)
		}
	}
}
