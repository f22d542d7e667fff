package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/otlp"
	"velo/bench/otlp/stream"
	"velo/ui/console"
)

// theTelemetry is the receiver of the window: how it is configured, and what it records.
type theTelemetry struct {
	console  *theConsole
	receiver *otlp.Receiver

	saving sync.Mutex // settings take effect in the order in which they are kept

	mu         sync.Mutex
	settings   console.TelemetrySettings
	token      string
	pages      map[string]string // tokens of metrics pages, by the pages' IDs
	tls        *otlp.Certificate // nil = plain text
	measuring  int               // runs that go on
	recordings map[string]*otlp.Recording
	written    map[string]int64 // bytes on disk of those
	recorded   []console.TelemetryRecorded
	kept       sync.WaitGroup        // of recordings that are being kept
	disk       console.TelemetryDisk // without recordings that go on
	closed     bool
	end        chan struct{}
}

var _ console.Telemetry = (*theTelemetry)(nil)

// Where the receiver's settings are in the store, and its token among the secrets.
const (
	telemetrySettingsName   = "telemetry"
	telemetrySettingsSchema = 2
	telemetryTokenID        = "telemetry"
	telemetryPageID         = "telemetry page " // and the page's ID
)

// keptTelemetry is the settings as they are stored.
type keptTelemetry struct {
	console.TelemetrySettings
	Polls []string `json:",omitempty"` // of schema 1: metrics pages without token and interval
}

// shareWhileMeasuring is what of one core records may take while a run goes on: more would be taken
// from who reads the tokens.
const shareWhileMeasuring = 0.25

// mostRecorded is how many recordings that have ended are listed.
const mostRecorded = 20

func defaultTelemetry() console.TelemetrySettings {
	return console.TelemetrySettings{
		GRPC: 4317, HTTP: []int{4318, 9381},
		Keep: 15 * time.Minute, KeepBytes: 256 << 20,
		Back: time.Minute, For: 10 * time.Minute, Tokens: 1_000_000, Bytes: 256 << 20,
	}
}

func newTelemetry(c *theConsole) *theTelemetry {
	t := &theTelemetry{console: c, receiver: otlp.New(otlp.Options{}), settings: defaultTelemetry(), pages: map[string]string{},
		recordings: map[string]*otlp.Recording{}, written: map[string]int64{}, end: make(chan struct{})}
	kept := keptTelemetry{TelemetrySettings: t.settings}
	kept.HTTP = nil // a list that is read is not to be written over the default one
	found, err := c.store.Settings(telemetrySettingsName, telemetrySettingsSchema, &kept)
	switch {
	case err != nil:
		c.notice("The settings of the receiver of telemetry could not be read, it is off: " + err.Error())
	case found:
		t.settings = kept.TelemetrySettings
		for _, u := range kept.Polls {
			t.settings.Pages = append(t.settings.Pages, console.TelemetryPage{ID: rand.Text(), URL: u, Every: otlp.PollEvery})
		}
	}
	if t.settings.HasToken {
		if t.token, err = c.secrets.Get(telemetryTokenID); err != nil || t.token == "" {
			// Without its token it would take records from anybody.
			t.settings.On = false
			c.notice("The receiver of telemetry is off: its token could not be read from the " + c.secrets.Where() + ". Enter it again on the Telemetry page.")
		}
	}
	for _, p := range t.settings.Pages {
		if !p.HasToken {
			continue
		}
		key, err := c.secrets.Get(telemetryPageID + p.ID)
		if err != nil || key == "" {
			c.notice("The token of the metrics page " + p.URL + " could not be read from the " + c.secrets.Where() + ". Enter it again on the Telemetry page.")
		}
		t.pages[p.ID] = key
	}
	if t.tls, err = receiverTLS(t.settings, nil); err != nil && t.settings.On {
		t.settings.On = false // in plain text it would take what is to be secret
		c.notice("The receiver of telemetry is off: " + err.Error() + ". Its settings are on the Telemetry page.")
	}
	if err := t.receiver.Configure(t.config()); err != nil {
		c.notice("The receiver of telemetry is off: " + err.Error())
	}
	return t
}

// config is what the receiver is to do. t.mu is held, or t not yet shared.
func (t *theTelemetry) config() otlp.Config {
	s := t.settings
	c := otlp.Config{Enabled: s.On, Token: t.token, Certificate: t.tls, Streams: stream.Options{Keep: s.Keep, Bytes: s.KeepBytes}}
	at := func(port int) string { return net.JoinHostPort(s.Host, strconv.Itoa(port)) }
	if s.GRPC > 0 {
		c.GRPC = []string{at(s.GRPC)}
	}
	for _, p := range s.HTTP {
		c.HTTP = append(c.HTTP, at(p))
	}
	for _, p := range s.Pages {
		c.Poll = append(c.Poll, otlp.Poll{URL: p.URL, Every: p.Every, Token: t.pages[p.ID]})
	}
	if t.measuring > 0 {
		c.Limits.Core = shareWhileMeasuring
	}
	return c
}

// Settings implements console.Telemetry.
func (t *theTelemetry) Settings() console.TelemetrySettings {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.settings
	s.HTTP, s.Pages = slices.Clone(s.HTTP), slices.Clone(s.Pages)
	return s
}

// checkReceiver refuses what cannot be meant, before anything is kept.
func checkReceiver(s console.TelemetrySettings) error {
	ports := slices.Clone(s.HTTP)
	if s.GRPC != 0 {
		ports = append(ports, s.GRPC)
	}
	for _, p := range ports {
		if p < 1 || p > 65535 {
			return fmt.Errorf("cannot listen on port %d: ports are 1 to 65535", p)
		}
	}
	switch {
	case len(ports) == 0 && len(s.Pages) == 0:
		return errors.New("cannot receive anything: name a port for gRPC or for HTTP, or a metrics page")
	case s.Keep < time.Minute || s.Keep > 24*time.Hour:
		return errors.New("cannot keep streams so long: from 1 minute to 24 hours")
	case s.KeepBytes < 16<<20 || s.KeepBytes > 16<<30:
		return errors.New("cannot give streams so much memory: from 16 MiB to 16 GiB")
	case s.Back < 0 || s.Back > s.Keep:
		return errors.New("cannot record from so long before the press: streams are not kept so long")
	case s.For < time.Second || s.For > 24*time.Hour:
		return errors.New("cannot record for so long: from 1 second to 24 hours")
	case s.Tokens < 1 || s.Tokens > 100_000_000:
		return errors.New("cannot record so many tokens: from 1 to 100 million")
	case s.Bytes < 1<<20 || s.Bytes > 16<<30:
		return errors.New("cannot record so much: from 1 MiB to 16 GiB")
	case s.DeleteAfter != 0 && s.DeleteAfter < time.Hour || s.DeleteAfter > 100*365*24*time.Hour:
		return errors.New("cannot delete recordings after so long: from 1 hour to 100 years, or 0 for never")
	case s.DiskBytes != 0 && s.DiskBytes < 1<<20 || s.DiskBytes > 1<<50:
		return errors.New("cannot give recordings so much of the disk: from 1 MiB on, or 0 for no bound")
	}
	for _, p := range s.Pages {
		u, err := url.Parse(p.URL)
		switch {
		case err != nil:
			return fmt.Errorf("cannot read the metrics page %q: its address is none such as http://127.0.0.1:8000/metrics", p.URL)
		case u.User != nil:
			u.User = nil
			return fmt.Errorf("cannot keep a name and a password in the address %s: whoever reads the settings would have them; enter a token instead", u)
		case p.Every < leastPageEvery || p.Every > mostPageEvery:
			return fmt.Errorf("cannot read %s every %v: from %v to %v", p.URL, p.Every, leastPageEvery, mostPageEvery)
		}
	}
	return nil
}

// Times between two readings of a metrics page that can be chosen.
const (
	leastPageEvery = time.Second
	mostPageEvery  = time.Minute
)

// receiverTLS is the certificate of the settings, nil where they have none. One that is of the same files as before
// is the one before: it is read anew by itself, listeners stay open, and files that are broken just now are no reason
// to refuse other settings.
func receiverTLS(s console.TelemetrySettings, was *otlp.Certificate) (*otlp.Certificate, error) {
	switch {
	case s.Certificate == "" && s.Key == "":
		return nil, nil
	case s.Certificate == "" || s.Key == "":
		return nil, errors.New("cannot receive over TLS: name both the file of the certificate and that of its key")
	case was != nil && was.Files(s.Certificate, s.Key):
		return was, nil
	}
	c, err := otlp.OpenCertificate(s.Certificate, s.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot receive over TLS: %w", err)
	}
	return c, nil
}

// pageTokens gives new pages their IDs and takes the tokens out of the list: all of them by ID, and those that were
// changed, empty ones to be removed.
func pageTokens(pages []console.TelemetryPage, was []console.TelemetryPage, had map[string]string) (all, changed map[string]string) {
	all, changed = map[string]string{}, map[string]string{}
	for _, p := range was {
		if p.HasToken && !slices.ContainsFunc(pages, func(x console.TelemetryPage) bool { return x.ID == p.ID }) {
			changed[p.ID] = ""
		}
	}
	for i := range pages {
		p := &pages[i]
		old := slices.IndexFunc(was, func(x console.TelemetryPage) bool { return x.ID == p.ID })
		if p.ID == "" || old < 0 {
			p.ID, p.HasToken = rand.Text(), false
		} else {
			p.HasToken = was[old].HasToken
		}
		if key, ok := had[p.ID]; ok && p.HasToken {
			all[p.ID] = key
		}
		if p.Token != nil {
			p.HasToken, all[p.ID], changed[p.ID] = *p.Token != "", *p.Token, *p.Token
			p.Token = nil
		}
	}
	return all, changed
}

// SaveSettings implements console.Telemetry.
func (t *theTelemetry) SaveSettings(s console.TelemetrySettings, token *string) error {
	if err := checkReceiver(s); err != nil {
		return err
	}
	s.HTTP, s.Pages = slices.Clone(s.HTTP), slices.Clone(s.Pages)
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	was, key, secret, had := t.settings, t.token, t.tls, t.pages
	t.mu.Unlock()
	files, err := receiverTLS(s, secret)
	if err != nil && (s.On || s.Certificate != was.Certificate || s.Key != was.Key) {
		return err // a receiver may be turned off whatever became of its files
	}
	s.HasToken = was.HasToken
	if token != nil {
		s.HasToken, key = *token != "", *token
	}
	if s.On && s.HasToken && key == "" {
		return errors.New("cannot turn the receiver on: its token could not be read; enter it again, or remove it")
	}
	pages, changed := pageTokens(s.Pages, was.Pages, had)
	t.mu.Lock()
	old := t.token
	t.settings, t.token, t.tls, t.pages = s, key, files, pages
	if err = t.receiver.Configure(t.config()); err != nil {
		t.settings, t.token, t.tls, t.pages = was, old, secret, had
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	defer t.console.changed(console.ChangedTelemetry)
	if token != nil {
		if err := t.console.secrets.Set(telemetryTokenID, *token); err != nil {
			return fmt.Errorf("cannot keep the receiver's token in the %s: %w", t.console.secrets.Where(), err)
		}
	}
	for id, key := range changed {
		if err := t.console.secrets.Set(telemetryPageID+id, key); err != nil {
			return fmt.Errorf("cannot keep the token of a metrics page in the %s: %w", t.console.secrets.Where(), err)
		}
	}
	if err := t.console.store.PutSettings(telemetrySettingsName, telemetrySettingsSchema, s); err != nil {
		return fmt.Errorf("cannot keep the settings of the receiver: %w", err)
	}
	t.retain()
	return nil
}

// FreePort implements console.Telemetry.
func (t *theTelemetry) FreePort(from int) int {
	s := t.Settings()
	host := s.Host
	if host == "" {
		host = "127.0.0.1"
	}
	for p := max(from, 1); p <= min(from+100, 65535); p++ {
		if p == s.GRPC || slices.Contains(s.HTTP, p) {
			continue
		}
		if l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p))); err == nil {
			_ = l.Close()
			return p
		}
	}
	return 0
}

// State implements console.Telemetry.
func (t *theTelemetry) State() otlp.State { return t.receiver.State() }

// Clear implements console.Telemetry.
func (t *theTelemetry) Clear(streams ...stream.Key) { t.receiver.Clear(streams...) }

// Snapshot implements console.Telemetry.
func (t *theTelemetry) Snapshot(q otlp.Query) console.TelemetrySnapshot {
	s := console.TelemetrySnapshot{Snapshot: t.receiver.Snapshot(q)}
	s.Sources = sourcesOf(&s.Snapshot)
	t.mu.Lock()
	s.Recorded = slices.Clone(t.recorded)
	t.mu.Unlock()
	s.Disk = t.Disk()
	slices.Reverse(s.Recorded)
	s.Deaf = t.deaf(&s.State)
	return s
}

// measured is what a run or a chat of this program measures: requests are joined with the streams that
// an engine tells of. clock is that of the client's session.
func (t *theTelemetry) measured(clock bench.Clock) bench.Sink { return t.receiver.Measured(clock) }

// runs tells that a run began (1) or ended (−1): while one goes on records get less of the machine.
func (t *theTelemetry) runs(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.measuring > 0
	t.measuring += n
	if now := t.measuring > 0; now != was && !t.closed {
		// What is configured already cannot be refused.
		_ = t.receiver.Configure(t.config())
	}
}

// close ends listeners and recordings, and returns when what was recorded is kept.
func (t *theTelemetry) close() {
	t.mu.Lock()
	if !t.closed {
		close(t.end)
	}
	t.closed = true
	t.mu.Unlock()
	t.receiver.Close()
	t.kept.Wait()
}
