package app

import (
	"strings"
	"testing"
)

// What too few chunks cannot support is a dash and no verdict, never 0 µs and good.
func TestCalibrationNeedsChunks(t *testing.T) {
	errs := make([]float64, 0, 1000)
	for i := range 1000 {
		errs = append(errs, float64(i)*1e-6)
	}
	for _, c := range []struct {
		n         int
		p99, p999 bool
		verdict   string
	}{
		{1000, true, true, "1 stream × 100 tok/s: good: kernel stamps are within 989 µs of the truth (p99)."},
		{300, true, false, "good"},
		{99, false, false, "not known: 99 chunks are too few"},
		{0, false, false, "not known"},
	} {
		e := summarize(errs[:c.n], errs[:min(c.n, 1)])
		if e.P99.Ok() != c.p99 || e.P999.Ok() != c.p999 || e.TTFT.Ok() {
			t.Errorf("of %d chunks: p99 %v, p99.9 %v, TTFT of one stream %v", c.n, e.P99, e.P999, e.TTFT)
		}
		if v := (calibration{Streams: 1, Rate: 100, Kernel: e, Used: "kernel"}).verdict(); !strings.Contains(v, c.verdict) {
			t.Errorf("of %d chunks: %s", c.n, v)
		}
	}
}
