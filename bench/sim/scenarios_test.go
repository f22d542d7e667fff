package sim

import (
	"strings"
	"testing"
	"time"
)

// Each built-in scenario, streamed over a socket, does what it says, and its
// log is consistent with what arrived.
func TestScenarios(t *testing.T) {
	for _, s := range Scenarios() {
		check, ok := checks[s.Name]
		if !ok {
			t.Errorf("scenario %q has no check", s.Name)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("scenario %q: %v", s.Name, err)
		}
		if check == nil {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			server := start(t, Scenario{})
			c := dial(t, server)
			v := &seen{s: &s, answer: c.post("/v1/chat/completions", chat(wantUsage), "X-Sim-Scenario: "+s.Name)}
			v.truth = server.Truth()
			if v.header["content-encoding"] == "" && !strings.HasPrefix(v.header["content-type"], "text/html") {
				v.told = tell(t, v.body)
			}
			consistent(t, v)
			if v.end == "complete" && v.header["connection"] != "close" {
				next := c.post("/v1/chat/completions", chat(wantUsage), "X-Sim-Scenario: "+s.Name)
				v.next = &next
				if next.end != v.end || next.status != v.status {
					t.Errorf("second request on the connection: %d, %s", next.status, next.end)
				}
			}
			check(t, v)
		})
	}
	for name := range checks {
		if _, ok := builtin(name); !ok {
			t.Errorf("check for %q, which is no scenario", name)
		}
	}
}

// consistent holds the log against what any schedule and any socket must obey.
func consistent(t *testing.T, v *seen) {
	t.Helper()
	var last Write
	body := 0
	for i, w := range v.truth {
		if w.Stream != 1 || w.Chunk != i-1 || w.Kind == "" || w.Scenario != v.s.Name {
			t.Errorf("write %d is %+v", i, w)
		}
		if w.Due < last.Due || w.MonoBefore < w.Due {
			t.Errorf("write %d: due %d after %d, written at %d", i, w.Due, last.Due, w.MonoBefore)
		}
		if w.After < w.Before || w.Before < last.Before || w.MonoAfter < w.MonoBefore {
			t.Errorf("write %d: before %d, after %d, the one before it %d", i, w.Before, w.After, last.Before)
		}
		if i > 0 && w.Before < last.After && w.Before != last.Before {
			t.Errorf("write %d starts before the one before it ends", i)
		}
		if i > 0 {
			body += w.Bytes
		}
		if w.Kind == KindEnd {
			break // no byte of the body
		}
		at, ok := v.bodyArrived(body)
		if !ok {
			t.Errorf("write %d (%s): its last byte, %d, never came", i, w.Kind, body)
		} else if at.UnixNano() < w.Before {
			t.Errorf("write %d began %v after its last byte arrived", i, time.Duration(w.Before-at.UnixNano()))
		}
		last = w
	}
}
