package report

import (
	"os"
	"testing"
)

func TestZZ(t *testing.T) {
	for _, g := range goldenSessions {
		r := New(g.session(), testOptions)
		for _, f := range []string{"pdf", "html", "md", "json", "csv", "csv-summary", "benchstat", "vllm"} {
			w, _ := os.Create("/tmp/vrep/" + g.name + "." + f)
			if err := Write(w, r, f); err != nil {
				t.Error(err)
			}
			w.Close()
		}
	}
}
