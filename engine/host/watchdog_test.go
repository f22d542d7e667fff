package host

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdog(t *testing.T) {
	type reading struct {
		until time.Duration // since the beginning
		bytes int64
		err   error
	}
	for name, c := range map[string]struct {
		readings []reading
		barks    time.Duration // 0 = never
		least    int64
	}{
		"enough": {[]reading{{time.Hour, 100, nil}}, 0, 100},
		"low":    {[]reading{{time.Second, 100, nil}, {time.Hour, 99, nil}}, 1400 * time.Millisecond, 99},
		"a short dip": {[]reading{{time.Second, 200, nil}, {1390 * time.Millisecond, 50, nil}, {time.Hour, 100, nil}},
			0, 50},
		"two short dips": {[]reading{{300 * time.Millisecond, 50, nil}, {350 * time.Millisecond, 150, nil},
			{650 * time.Millisecond, 60, nil}, {time.Hour, 150, nil}}, 0, 50},
		"unreadable for a while": {[]reading{{100 * time.Millisecond, 50, nil}, {300 * time.Millisecond, 0, errors.New("no")},
			{time.Hour, 50, nil}}, 400 * time.Millisecond, 50},
		"unreadable": {[]reading{{time.Hour, 0, errors.New("no")}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				read := func() (int64, error) {
					for _, r := range c.readings {
						if time.Since(start) < r.until {
							return r.bytes, r.err
						}
					}
					return 1 << 40, nil
				}
				var barks []time.Duration
				w := watch(100, func(n int64) {
					barks = append(barks, time.Since(start))
					if n >= 100 {
						t.Errorf("barks at %d bytes", n)
					}
				}, read)
				time.Sleep(30 * time.Minute)
				w.Stop()
				w.Stop()
				if c.barks == 0 && len(barks) > 0 || c.barks > 0 && (len(barks) != 1 || barks[0] != c.barks) {
					t.Errorf("barks at %v, want %v once", barks, c.barks)
				}
				if w.Least() != c.least {
					t.Errorf("least %d, want %d", w.Least(), c.least)
				}
			})
		})
	}
	var none *Watchdog
	none.Stop()
	if none.Least() != 0 {
		t.Error("nil")
	}
}

// Against the machine: no limit can be that large.
func TestWatchdogBarksOnTheRealMachine(t *testing.T) {
	barked := make(chan int64, 2)
	w := Watch(1<<62, func(n int64) { barked <- n })
	defer w.Stop()
	select {
	case n := <-barked:
		if n <= 0 {
			t.Errorf("%d bytes available", n)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it never barks")
	}
}
