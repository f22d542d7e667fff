package ui

import (
	"sync/atomic"
	"testing"
	"time"

	"velo/ui/thread"
)

// TestTickerQueuesOnce shows that a busy UI thread does not pile up work: while one drawing waits
// nothing more is prepared, and a wake that came meanwhile is not lost.
func TestTickerQueuesOnce(t *testing.T) {
	queue := make(chan func(), 100)
	prepared := 0
	k := newTicker(thread.New(func(f func()) { queue <- f }), func(string) (func(), time.Duration) {
		prepared++
		return func() {}, 0
	})
	for range 50 {
		k.round()
	}
	if prepared != 1 || len(queue) != 1 {
		t.Fatalf("%d drawings were prepared and %d wait, want one", prepared, len(queue))
	}
	(<-queue)()
	select {
	case <-k.wakes:
	default:
		t.Error("what was missed while the UI thread was busy is not made up for")
	}
	k.round()
	if prepared != 2 {
		t.Errorf("%d drawings after the queue was empty again, want 2", prepared)
	}
}

func TestTickerRests(t *testing.T) {
	var prepared atomic.Int32
	next := make(chan time.Duration, 1)
	k := newTicker(thread.New(func(f func()) { f() }), func(string) (func(), time.Duration) {
		prepared.Add(1)
		return func() {}, <-next
	})
	k.start()
	defer k.stop()
	k.wake()
	next <- time.Millisecond // once more by the clock
	next <- 0                // then not before a wake
	for prepared.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(20 * time.Millisecond)
	if n := prepared.Load(); n != 2 {
		t.Errorf("%d rounds although nothing goes on", n)
	}
}

// TestHiddenPagesDrawNothing shows that neither the plots nor the tiles of the run page are touched
// while another page is in view.
func TestHiddenPagesDrawNothing(t *testing.T) {
	f := newFake().full().running(16, 0.5)
	g := newStage(t, f, 1280, 776)
	g.shell.Show(RunPage)
	g.draw()
	before := g.shell.run.Drawings()
	if before == 0 {
		t.Fatal("the run page draws nothing at all")
	}
	g.shell.Show(SuitesPage)
	for range 5 {
		g.tick()
	}
	if n := g.shell.run.Drawings(); n != before {
		t.Errorf("%d drawings of a page that is not in view", n-before)
	}
	f.mu.Lock()
	f.state.Spec.Quiet = false
	f.mu.Unlock()
	if _, next := g.shell.prepare(SuitesPage); next != time.Second {
		t.Errorf("the clock goes every %v while the run page is hidden", next)
	}
	if _, next := g.shell.prepare(RunPage); next != 250*time.Millisecond {
		t.Errorf("the clock goes every %v on the run page", next)
	}
	f.mu.Lock()
	f.state.Spec.Quiet = true
	f.mu.Unlock()
	if _, next := g.shell.prepare(RunPage); next < time.Second {
		t.Errorf("the clock goes every %v in quiet mode", next)
	}
	f.mu.Lock()
	f.state.Active = false
	f.mu.Unlock()
	if _, next := g.shell.prepare(RunPage); next != 0 {
		t.Errorf("the clock goes every %v although nothing runs", next)
	}
}

// TestWidgetsAreTouchedOnTheUIThreadOnly lets the real clock and the changes of the console run on
// their own goroutines while this one, as the UI thread, works on the widgets; the race detector
// finds whoever touches one from elsewhere.
func TestWidgetsAreTouchedOnTheUIThreadOnly(t *testing.T) {
	f := newFake().full().running(4, 0.5)
	f.state.Spec.Quiet = false
	g := newStage(t, f, 1280, 776)
	g.shell.Begin()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 40 {
			f.mu.Lock()
			f.state.Snapshot.Tokens += 100
			f.state.Active = i%10 != 9
			f.mu.Unlock()
			for _, what := range []string{"run", "sessions", "suites", "endpoints", "open"} {
				f.change(what)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	for i := 0; ; i++ {
		select {
		case fn := <-g.queue:
			fn()
			if i%20 == 0 {
				g.shell.Show(g.shell.pages[i/20%4].id)
				g.window.Canvas().Capture()
			}
			continue
		case <-done:
		}
		break
	}
	g.shell.ticker.stop()
	g.pump()
}
