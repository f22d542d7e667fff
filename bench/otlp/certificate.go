package otlp

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Certificate is what listeners speak TLS with: the chain in one PEM file and its key in another. The files are
// looked at when a sender connects and while listeners are open, once a second at most, and read anew when one of
// them changed. What cannot be used, half written perhaps, leaves the former certificate in place and is told.
type Certificate struct {
	chain, key string
	now        func() time.Time
	config     *tls.Config

	looking sync.Mutex // one looks at a time, and nobody waits for who does: a disk may hang
	looked  time.Time
	read    [2]os.FileInfo
	fresh   bool // a file was written to just before it was read: the same time and size may hold something else by now

	mu      sync.Mutex
	pair    *tls.Certificate
	names   []string
	valid   [2]time.Time // from, until: of the whole chain
	problem string
}

// CertificateState is the certificate in use.
type CertificateState struct {
	File    string
	Names   []string      // that it is for: hosts and addresses
	Begins  time.Time     // of the last certificate of the chain that does
	Expires time.Time     // of the first certificate of the chain that does
	Left    time.Duration // until then; negative once it is over
	Early   bool          // it is not valid yet
	Problem string        // why newer files are not used; "" = these are the newest
}

// Times of looking at the files of a certificate.
const (
	lookEvery = time.Second
	settled   = 2 * time.Second // no file system counts more coarsely
)

// OpenCertificate reads a certificate chain and its key, both in PEM. Its error names the file and says what is
// wrong with it.
func OpenCertificate(chain, key string) (*Certificate, error) {
	return openCertificate(chain, key, time.Now)
}

func openCertificate(chain, key string, now func() time.Time) (*Certificate, error) {
	c := &Certificate{chain: chain, key: key, now: now}
	c.config = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c.Look()
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.pair, nil
		}}
	c.Look()
	if c.pair == nil {
		return nil, errors.New(c.problem)
	}
	return c, nil
}

// Files tells whether it is of these files.
func (c *Certificate) Files(chain, key string) bool { return c.chain == chain && c.key == key }

// State is the certificate in use, as of the last look at its files.
func (c *Certificate) State() CertificateState {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	return CertificateState{File: c.chain, Names: c.names, Begins: c.valid[0], Expires: c.valid[1], Left: c.valid[1].Sub(now), Early: now.Before(c.valid[0]), Problem: c.problem}
}

// Look looks at the files if it was not done within the last second, and reads them if they changed. It may take as
// long as a disk.
func (c *Certificate) Look() {
	if !c.looking.TryLock() {
		return
	}
	defer c.looking.Unlock()
	now := c.now()
	if since := now.Sub(c.looked); !c.looked.IsZero() && since >= 0 && since < lookEvery {
		return
	}
	c.looked = now
	var found [2]os.FileInfo // before they are read: what is written meanwhile is seen at the next look
	fresh := false
	for i, name := range []string{c.chain, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			c.read = [2]os.FileInfo{}
			c.take(nil, err)
			return
		}
		found[i] = info
		age := now.Sub(info.ModTime())
		fresh = fresh || age > -settled && age < settled
	}
	if !c.fresh && same(found[0], c.read[0]) && same(found[1], c.read[1]) {
		return
	}
	c.read, c.fresh = found, fresh
	c.take(readPair(c.chain, c.key))
}

// take makes a pair the one in use; with an error the former stays.
func (c *Certificate) take(pair *tls.Certificate, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.problem = err.Error()
		return
	}
	c.pair, c.problem = pair, ""
	c.names = slices.Clone(pair.Leaf.DNSNames)
	for _, ip := range pair.Leaf.IPAddresses {
		c.names = append(c.names, ip.String())
	}
	c.valid = [2]time.Time{pair.Leaf.NotBefore, pair.Leaf.NotAfter}
	for _, der := range pair.Certificate {
		if x, err := x509.ParseCertificate(der); err == nil {
			if x.NotBefore.After(c.valid[0]) {
				c.valid[0] = x.NotBefore
			}
			if x.NotAfter.Before(c.valid[1]) {
				c.valid[1] = x.NotAfter
			}
		}
	}
}

func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// readPair reads a chain and its key. A file that ends within a block is refused, which tls.X509KeyPair would not
// do as long as the first one is whole.
func readPair(chain, key string) (*tls.Certificate, error) {
	var texts [2][]byte
	for i, name := range []string{chain, key} {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		rest, blocks := text, 0
		for b, r := pem.Decode(rest); b != nil; b, r = pem.Decode(rest) {
			if b.Type == "CERTIFICATE" {
				if _, err := x509.ParseCertificate(b.Bytes); err != nil {
					return nil, fmt.Errorf("%s: block %d is no certificate: %w", name, blocks+1, err)
				}
			}
			rest, blocks = r, blocks+1
		}
		switch {
		case bytes.Contains(rest, []byte("-----BEGIN")):
			return nil, fmt.Errorf("%s ends within a block: it is not written in full", name)
		case blocks == 0:
			return nil, fmt.Errorf("%s has nothing in PEM", name)
		}
		texts[i] = text
	}
	pair, err := tls.X509KeyPair(texts[0], texts[1])
	if err != nil {
		return nil, fmt.Errorf("%s and %s do not go together: %w", chain, key, err)
	}
	return &pair, nil
}
