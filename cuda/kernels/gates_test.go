package kernels

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestGatesRan: docs/gpu-gates.json tells of a run on a device with the very PTX that is here, in
// which all held.
func TestGatesRan(t *testing.T) {
	data, err := os.ReadFile("../../docs/gpu-gates.json")
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Date    string
		Gates   []struct{ Name, Holds, Result, Note string }
		Modules map[string]string
	}
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	if record.Date == "" || len(record.Gates) < 13 {
		t.Errorf("a run of %d gates on %q is no whole one", len(record.Gates), record.Date)
	}
	for _, g := range record.Gates {
		if strings.Contains(g.Holds, " times only: ") {
			t.Errorf("%s was cut short: %s", g.Name, g.Holds)
		}
		if g.Result != "passed" && g.Result != "unavailable" {
			t.Errorf("%s: %s: %s", g.Name, g.Result, g.Note)
		}
	}
	here := Hashes()
	for name, hash := range here {
		if record.Modules[name] != hash {
			t.Errorf("%s is not the one that the gates ran with (run scripts/gates on a machine with a GPU)", name)
		}
	}
	for name := range record.Modules {
		if here[name] == "" {
			t.Errorf("the gates ran with %s, which is gone", name)
		}
	}
}
