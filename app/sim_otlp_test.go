package app

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"velo/bench/otlp"
	"velo/bench/sim"
)

// TestSimSendsTelemetry runs velo sim --otlp against a receiver: both count the same.
func TestSimSendsTelemetry(t *testing.T) {
	r := otlp.New(otlp.Options{})
	defer r.Close()
	if err := r.Configure(otlp.Config{Enabled: true, HTTP: []string{"127.0.0.1:0"}}); err != nil {
		t.Fatal(err)
	}
	url := "http://" + r.State().Listeners[0].Address
	code, out, errs := velo(context.Background(), "sim", "--otlp", url, "--otlp-rate", "5000", "--otlp-records", "1000", "--otlp-malformed", "1", "--otlp-encoding", "protobuf")
	var n sim.EmitCounts
	if code != exitOK || json.Unmarshal([]byte(out), &n) != nil || n.Records != 1000 {
		t.Fatalf("code %d, %q, %q", code, out, errs)
	}
	if c := r.State().Counters; c.Logs != n.Sent || c.Malformed != n.Malformed || n.Malformed == 0 {
		t.Errorf("the receiver counted %+v, the emitter %+v", c, n)
	}
	for _, args := range [][]string{{"--otlp", "nowhere"}, {"--otlp", url, "--otlp-rate", "20000"}, {"--otlp", url, "--otlp-drop", "2"}, {"--otlp", url, "--otlp-encoding", "xml"}} {
		if code, _, errs := velo(context.Background(), append([]string{"sim"}, args...)...); code != exitUsage || !strings.Contains(errs, "cannot") {
			t.Errorf("%v: code %d, %q", args, code, errs)
		}
	}
	r.Close()
	if code, _, errs := velo(context.Background(), "sim", "--otlp", url, "--otlp-records", "10"); code != exitFailed || !strings.Contains(errs, "cannot send to "+url) {
		t.Errorf("nobody there: code %d, %q", code, errs)
	}
}
