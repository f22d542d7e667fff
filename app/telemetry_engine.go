package app

import (
	"slices"

	"velo/bench/otlp"
	"velo/engine/emit"
	"velo/ui/console"
)

// The engine of the window tells the receiver of the window of itself, unless its settings send it
// elsewhere.

// address is where an engine on this machine reaches the receiver; empty where it does not listen.
func (t *theTelemetry) address(s *otlp.State) string {
	for _, protocol := range []string{"HTTP", "gRPC"} {
		for _, l := range s.Listeners {
			if l.Protocol == protocol && l.Address != "" {
				return l.URL()
			}
		}
	}
	return ""
}

// told is an engine's config as it is started: with the receiver as its telemetry where it has no other.
func (t *theTelemetry) told(c console.EngineConfig) console.EngineConfig {
	if c.Telemetry == "" {
		s := t.State()
		c.Telemetry = t.address(&s)
	}
	return c
}

// shows is what an engine that is told of the receiver gets in its environment: the receiver's token, which every
// user of the machine could read on a command line, and the certificate that it is to trust. Set even where there
// is none: a header in the window's own environment is not meant.
func (t *theTelemetry) shows(c console.EngineConfig) []string {
	if c.Telemetry != "" || t.told(c).Telemetry == "" {
		return nil // it sends elsewhere
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	header := ""
	if t.token != "" {
		header = emit.FormatHeader("Authorization", "Bearer "+t.token)
	}
	return []string{emit.HeadersVariable + "=" + header, emit.CertificateVariable + "=" + t.settings.Certificate}
}

// deaf says why the engine that runs is not heard here.
func (t *theTelemetry) deaf(s *otlp.State) string {
	e := t.console.engine
	if e == nil || !s.Wanted || !e.Status().Running() {
		return ""
	}
	e.mu.Lock()
	sends, shows := e.tells, e.shows
	e.mu.Unlock()
	switch {
	case sends == "":
		return "Velo's engine was started while nothing listened here. Restart it, and its streams come."
	case !hears(s, sends) && e.elsewhere() == "":
		return "Velo's engine sends to " + sends + ", where nothing listens any more. Restart it, and its streams come."
	case e.elsewhere() == "" && !slices.Equal(shows, t.shows(console.EngineConfig{})):
		return "The token or the certificate was changed after Velo's engine was started. Restart it, and its streams come."
	}
	return ""
}

// hears tells whether one of the listeners is at this address.
func hears(s *otlp.State, address string) bool {
	for _, l := range s.Listeners {
		if l.Address != "" && address == l.URL() {
			return true
		}
	}
	return false
}
