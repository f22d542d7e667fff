package emit

import (
	"fmt"
	"net/url"
	"strings"
)

// HeadersVariable is the environment variable of OpenTelemetry's for headers that are sent with each request,
// such as a receiver's token: "name=value,name=value", percent-encoded. A command line can be read by all users
// of a machine, an environment cannot.
const HeadersVariable = "OTEL_EXPORTER_OTLP_HEADERS"

// ParseHeaders reads headers as HeadersVariable has them; nil where there are none. What is wrong is told
// without the values, which may be secret.
func ParseHeaders(text string) (map[string]string, error) {
	var m map[string]string
	for i, pair := range strings.Split(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		bad := func(why string) (map[string]string, error) {
			return nil, fmt.Errorf("cannot use %s: entry %d %s; write NAME=VALUE,NAME=VALUE with %%2C for a comma and %%20 for a space", HeadersVariable, i+1, why)
		}
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return bad("has no =")
		}
		name, err := url.PathUnescape(strings.TrimSpace(name))
		if err != nil || name == "" {
			return bad("has no name")
		}
		if value, err = url.PathUnescape(strings.TrimSpace(value)); err != nil {
			return bad("is not percent-encoded")
		}
		if m == nil {
			m = map[string]string{}
		}
		m[name] = value
	}
	return m, nil
}

// FormatHeader writes a header as HeadersVariable has it.
func FormatHeader(name, value string) string {
	return url.PathEscape(name) + "=" + strings.NewReplacer(",", "%2C", "=", "%3D", ";", "%3B").Replace(url.PathEscape(value))
}

// withEnvironment are the headers that are given, and those of the environment that are not.
func withEnvironment(given map[string]string, text string) (map[string]string, error) {
	m, err := ParseHeaders(text)
	if err != nil || len(m) == 0 {
		return given, err
	}
	for name := range m {
		for g := range given {
			if strings.EqualFold(name, g) {
				delete(m, name)
			}
		}
	}
	for name, value := range given {
		m[name] = value
	}
	return m, nil
}
