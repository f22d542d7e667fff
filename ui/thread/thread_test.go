package thread

import "testing"

func TestWorkComesBackThroughDo(t *testing.T) {
	queue := make(chan func(), 1)
	th := New(func(f func()) { queue <- f })
	done := false
	th.Work(func() func() { return func() { done = true } })
	th.Wait()
	if done {
		t.Fatal("it ran on the goroutine of the work")
	}
	(<-queue)()
	if !done {
		t.Fatal("it did not run")
	}
	th.Work(func() func() { return nil })
	th.Wait()
	if len(queue) != 0 {
		t.Error("nothing was queued as something")
	}
}

func TestNothingRunsAfterClose(t *testing.T) {
	queue := make(chan func(), 4)
	th := New(func(f func()) { queue <- f })
	ran := 0
	th.Do(func() { ran++ }) // queued before, run after
	th.Close()
	th.Do(func() { ran++ })
	th.Work(func() func() { ran++; return nil })
	th.Wait()
	(<-queue)()
	if ran != 0 || len(queue) != 0 {
		t.Errorf("%d ran after the end, %d are queued", ran, len(queue))
	}
}
