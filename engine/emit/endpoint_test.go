package emit

import (
	"strings"
	"testing"
)

func TestEndpoint(t *testing.T) {
	for _, c := range []struct{ text, want, logs string }{
		{"http://localhost", "http://localhost:4318", "http://localhost:4318/v1/logs"},
		{"HTTP://localhost:9381/", "http://localhost:9381", "http://localhost:9381/v1/logs"},
		{"https://otel.example.org/collect/", "https://otel.example.org:4318/collect", "https://otel.example.org:4318/collect/v1/logs"},
		{"https://otel.example.org:443", "https://otel.example.org:443", "https://otel.example.org:443/v1/logs"},
		{"http://[::1]:4318", "http://[::1]:4318", "http://[::1]:4318/v1/logs"},
		{"http://[fe80::1%25eth0]", "http://[fe80::1%25eth0]:4318", ""},
		{"grpc://10.0.0.2", "grpc://10.0.0.2:4317", ""},
		{"grpcs://otel:55", "grpcs://otel:55", ""},
	} {
		p, err := parseEndpoint(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if p.String() != c.want {
			t.Errorf("%s: %s, want %s", c.text, p, c.want)
		}
		if c.logs != "" && p.url(logs) != c.logs {
			t.Errorf("%s: %s, want %s", c.text, p.url(logs), c.logs)
		}
	}
}

func TestEndpointRefusesWithASentence(t *testing.T) {
	for text, why := range map[string]string{
		"":                          "empty",
		"localhost:4318":            "write http://localhost:4318",
		"127.0.0.1:4318":            "scheme",
		"ftp://host":                `"ftp" is not a way`,
		"http://":                   "no host",
		"http://:4318":              "no host",
		"http://host:":              "no port after the colon",
		"http://host:0":             "port 0",
		"http://host:65536":         "port 65536",
		"http://host:http":          "invalid port",
		"http://ho st":              "invalid",
		"http://[::1":               "missing ']'",
		"http://::1":                "in brackets",
		"http://host/v1/logs":       "leave out /v1/logs",
		"http://host/a/v1/traces/":  "leave out /v1/traces",
		"http://host?x=1":           "query",
		"http://host#x":             "fragment",
		"http://user:secret@host":   "header",
		"grpc://host/v1":            "gRPC has no path",
		"http://host\nX-Evil: true": "invalid",
	} {
		_, err := New(Options{Endpoint: text})
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		if !strings.Contains(err.Error(), why) || !strings.HasPrefix(err.Error(), "cannot send telemetry to ") {
			t.Errorf("%q: %v; want %q in it", text, err, why)
		}
		if strings.Contains(err.Error(), "secret") && why == "header" {
			t.Errorf("%v: tells the password", err)
		}
	}
}

func TestOptionsRefusedWithASentence(t *testing.T) {
	for why, o := range map[string]Options{
		"batch size of -1":       {BatchSize: -1},
		"ring of 99999999":       {Ring: 99999999},
		"batch interval of 1µs":  {Interval: 1000},
		"metrics interval of 2h": {MetricsInterval: 2 * 3600e9},
		"nothing to gather":      {Metrics: true},
		"not a valid header":     {Headers: map[string]string{"a b": "c"}},
		"cannot be chosen":       {Headers: map[string]string{"content-type": "text/plain"}},
	} {
		o.Endpoint = "http://localhost"
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v; want %q in it", err, why)
		} else if same := o.Check(); same == nil || same.Error() != err.Error() {
			t.Errorf("Check says %v and New %v", same, err)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"http://h:1/a", "grpc://[::1]:4317", "https://u@h?x#y", "://", "http://%41"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseEndpoint(text)
		if err != nil {
			return
		}
		again, err := parseEndpoint(p.String())
		if err != nil {
			t.Fatalf("%q is read as %q, which is refused: %v", text, p, err)
		}
		if again != p {
			t.Fatalf("%q is read as %#v and then as %#v", text, p, again)
		}
	})
}
