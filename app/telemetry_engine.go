package app

import (
	"net"
	"strings"

	"velo/bench/otlp"
	"velo/ui/console"
)

// The engine of the window tells the receiver of the window of itself, unless its settings send it
// elsewhere.

// address is where an engine on this machine reaches the receiver; empty where it does not listen, or asks
// for a token: on a command line every user of the machine could read it.
func (t *theTelemetry) address(s *otlp.State) string {
	t.mu.Lock()
	token := t.settings.HasToken
	t.mu.Unlock()
	if token {
		return ""
	}
	for _, protocol := range []string{"HTTP", "gRPC"} {
		for _, l := range s.Listeners {
			if l.Protocol == protocol && l.Address != "" {
				return map[string]string{"HTTP": "http://", "gRPC": "grpc://"}[protocol] + local(l.Address)
			}
		}
	}
	return ""
}

// local is a listener's address as a client on this machine dials it.
func local(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// told is an engine's config as it is started: with the receiver as its telemetry where it has no other.
func (t *theTelemetry) told(c console.EngineConfig) console.EngineConfig {
	if c.Telemetry == "" {
		s := t.State()
		c.Telemetry = t.address(&s)
	}
	return c
}

// deaf says why the engine that runs is not heard here.
func (t *theTelemetry) deaf(s *otlp.State) string {
	e := t.console.engine
	if e == nil || !s.Wanted || !e.Status().Running() {
		return ""
	}
	e.mu.Lock()
	sends := e.tells
	e.mu.Unlock()
	switch {
	case sends == "":
		t.mu.Lock()
		token := t.settings.HasToken
		t.mu.Unlock()
		if token {
			return "Velo's engine is not heard here: the receiver asks for a token, and a command line is no place for one. Start the engine in a terminal with --otel-header."
		}
		return "Velo's engine was started while nothing listened here. Restart it, and its streams come."
	case !hears(s, sends) && e.elsewhere() == "":
		return "Velo's engine sends to " + sends + ", where nothing listens any more. Restart it, and its streams come."
	}
	return ""
}

// hears tells whether one of the listeners is at this address.
func hears(s *otlp.State, address string) bool {
	for _, l := range s.Listeners {
		if l.Address != "" && strings.HasSuffix(address, "://"+local(l.Address)) {
			return true
		}
	}
	return false
}
