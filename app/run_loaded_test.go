package app

import (
	"testing"
	"time"

	"velo/engine/ops"
)

func TestLoadedText(t *testing.T) {
	for want, l := range map[string]ops.Loaded{
		"":                   {},
		"4.00 GB, 2.00 GB/s": {Read: 4e9},
		"4.00 GB, 2.00 GB/s, from the page cache":                 {Read: 4e9, Cached: 4e9},
		"4.00 GB, 2.00 GB/s, 25 % from the page cache; it cannot": {Read: 4e9, Cached: 1e9, Refused: "it cannot"},
	} {
		if got := loadedText(l, 2*time.Second); got != want {
			t.Errorf("%+v: %q instead of %q", l, got, want)
		}
	}
	if rateText(", ", 0) != "" || rateText(", ", 1.234e9) != ", 1.23 GB/s" {
		t.Errorf("%q, %q", rateText(", ", 0), rateText(", ", 1.234e9))
	}
}
