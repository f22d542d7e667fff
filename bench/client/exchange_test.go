package client

import (
	"runtime"
	"testing"

	"velo/bench"
)

func TestStream(t *testing.T) {
	url := serve(t, says(streamHead+framed(roleEvent, content("Hel"), content("lo"), finishEvent, usageEvent, doneEvent)))
	c := newClient(t, url)
	for i := range 3 {
		res, l, _ := do(t, t.Context(), c)
		e := res.End
		if e.Status != bench.OK || e.By != bench.EndDone || e.Finish != "stop" || res.Answer != "Hello" {
			t.Fatalf("got %+v, answer %q", e, res.Answer)
		}
		if len(l.chunks()) != 2 || e.Events != 5 || e.Silent != 3 || e.Usage == nil || e.Usage.Completion != 2 || e.Usage.Cached != -1 {
			t.Errorf("got %d chunks, %+v, usage %+v", len(l.chunks()), e, e.Usage)
		}
		if k := l.conn(); k.Reused != (i > 0) || k.Status != 200 || k.Server != "scripted" || (k.Connect == bench.Unset) != (i > 0) {
			t.Errorf("connection %d is %+v", i, k)
		}
		if runtime.GOOS == "linux" && e.Stamp != bench.KernelStamp {
			t.Errorf("stamps are %s", e.Stamp)
		}
	}
}
