package app

import (
	"context"
	"encoding/json"
	"testing"
)

// TestCalibrateInAFlood: telemetry comes while the stamps are compared, and what came is told.
func TestCalibrateInAFlood(t *testing.T) {
	code, out, errs := velo(context.Background(), "calibrate", "--streams", "1", "--duration", "1s", "--flood", "3000", "--json")
	var c calibration
	if err := json.Unmarshal([]byte(out), &c); code != 0 || err != nil {
		t.Fatalf("code %d, %v: %s%s", code, err, out, errs)
	}
	if c.Flood < 100 || c.Kernel.Chunks+c.User.Chunks == 0 || c.Missing != 0 {
		t.Errorf("%+v", c)
	}
	if code, _, _ := velo(context.Background(), "calibrate", "--flood", "-1"); code != exitUsage {
		t.Errorf("a flood of less than nothing is answered with %d", code)
	}
}
