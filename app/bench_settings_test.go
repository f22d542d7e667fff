package app

import (
	"strings"
	"testing"

	"velo/bench/sim"
	"velo/store"
	"velo/store/handoff"
)

// TestBenchUsesWhatIsSetInTheWindow: parameters and reasoning of the endpoint's model are sent, and told; from the
// store itself, and from a window that holds it.
func TestBenchUsesWhatIsSetInTheWindow(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VELO_DATA", dir)
	server, err := sim.Start(sim.Options{Scenario: scenario(t, "fast")})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	url, file := server.URL(), suiteFile(t, short)
	st, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := st.PutEndpoint(store.Endpoint{Name: "Mine", URL: strings.TrimSuffix(url, "/v1") + "/v1", Preset: "vllm"})
	if err != nil {
		t.Fatal(err)
	}
	set := func(m *store.Model) { m.Parameters, m.Reasoning = []byte(`{"temperature":0.25}`), "off" }
	if err := st.ChangeModel(e.ID, "velo-sim", set); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	sent := func(more ...string) (parameters, name, said string, notes []string) {
		code, text, errs := velo(t.Context(), append([]string{"bench", file, "--endpoint", url, "--model", "velo-sim"}, more...)...)
		if code != exitOK {
			t.Fatalf("exit code %d\n%s\n%s", code, text, errs)
		}
		st, err := store.Open(dir, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		if _, err := st.ImportInbox(); err != nil {
			t.Fatal(err)
		}
		list, err := st.Sessions()
		if err != nil || len(list) == 0 {
			t.Fatal(err)
		}
		s, err := st.Session(list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range s.Notes {
			notes = append(notes, n.Text)
		}
		return string(s.Exchanges[len(s.Exchanges)-1].Request.Parameters), s.Header.Endpoint.Name, errs, notes
	}
	const words = "As the settings have it for velo-sim: temperature 0.25, reasoning off."
	parameters, name, said, notes := sent()
	if !strings.Contains(parameters, `"temperature":0.25`) || !strings.Contains(parameters, "enable_thinking") || name != "Mine" ||
		!strings.Contains(said, words) || !strings.Contains(strings.Join(notes, "\n"), words) {
		t.Errorf("sent %s to %q, said %q, notes %q", parameters, name, said, notes)
	}
	parameters, name, said, _ = sent("--settings=false")
	if strings.Contains(parameters, "0.25") || strings.Contains(parameters, "enable_thinking") || name == "Mine" || strings.Contains(said, "settings") {
		t.Errorf("without the settings: sent %s to %q, said %q", parameters, name, said)
	}

	if st, err = store.Open(dir, store.Options{}); err != nil {
		t.Fatal(err)
	}
	c := newConsole(st, dir)
	l, err := handoff.Listen(dir, func(m handoff.Message) handoff.Reply {
		if m.Endpoint != "" {
			return c.tellSettings(m.Endpoint, m.Model)
		}
		return c.takeSession(m.Session)
	})
	if err != nil {
		t.Fatal(err)
	}
	code, text, errs := velo(t.Context(), "bench", file, "--endpoint", url, "--model", "velo-sim")
	if code != exitOK || !strings.Contains(errs, words) {
		t.Errorf("beside a window: exit code %d, %s%s", code, text, errs)
	}
	_ = l.Close()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
