package ui

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"velo/ui/console"
)

// TestTheLatestSettingsLast: many changes in a row, written by as many goroutines that take as long as they
// like, leave the last one in the store.
func TestTheLatestSettingsLast(t *testing.T) {
	for range 50 {
		var k settingsKeeper
		var stored int
		var wg sync.WaitGroup
		for i := 1; i <= 20; i++ {
			k.change(console.Settings{TextSize: i})
			wg.Go(func() {
				k.keep(func(s console.Settings) {
					time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
					stored = s.TextSize // one at a time: the race detector would tell
				})
			})
		}
		wg.Wait()
		if stored != 20 {
			t.Fatalf("of 20 changes the one that lasts is %d", stored)
		}
	}
}
