package emit

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// The ring against a slice, in one goroutine.
func TestRingIsABoundedQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRing(rapid.IntRange(1, 20).Draw(t, "size"))
		var want []string
		n := 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				n++
				body := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, inlineBody, inlineBody + 1, 5000}).Draw(t, "length")) + fmt.Sprint(n)
				buffer := []byte(body)
				_, ok := r.push(&Record{Index: n, Body: buffer})
				if ok != (len(want) < len(r.cells)) {
					t.Fatalf("push says %v with %d of %d in it", ok, len(want), len(r.cells))
				}
				if ok {
					want = append(want, body)
				}
				for i := range buffer { // the producer uses its buffer again
					buffer[i] = '!'
				}
			},
			"pop": func(t *rapid.T) {
				got := r.peek()
				if (got != nil) != (len(want) > 0) {
					t.Fatalf("peek gives %v with %d in it", got, len(want))
				}
				if got == nil {
					return
				}
				if string(got.Body) != want[0] {
					t.Fatalf("got %.20q…, want %.20q…", got.Body, want[0])
				}
				r.release()
				want = want[1:]
			},
			"": func(t *rapid.T) {
				if r.len() != len(want) {
					t.Fatalf("len %d, want %d", r.len(), len(want))
				}
			},
		})
	})
}

// Many producers, one consumer: what was pushed comes out once, each
// producer's in its order and whole.
func TestRingWithManyProducers(t *testing.T) {
	const producers, each = 8, 5000
	r := newRing(64)
	var all sync.WaitGroup
	pushed := make([]int, producers)
	for p := range producers {
		all.Go(func() {
			for i := range each {
				if _, ok := r.push(&Record{Request: fmt.Sprint(p), Index: i, Body: fmt.Append(nil, p, "/", i)}); ok {
					pushed[p]++
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	last, got := make([]int, producers), make([]int, producers)
	for p := range last {
		last[p] = -1
	}
	for over := false; ; {
		record := r.peek()
		if record == nil {
			if over {
				break
			}
			select {
			case <-done:
				over = true // and what came in before it
			default:
			}
			continue
		}
		var p int
		_, _ = fmt.Sscan(record.Request, &p)
		if want := fmt.Sprint(p, "/", record.Index); string(record.Body) != want {
			t.Fatalf("body %q of record %s", record.Body, want)
		}
		if record.Index <= last[p] {
			t.Fatalf("producer %d: %d after %d", p, record.Index, last[p])
		}
		last[p] = record.Index
		got[p]++
		r.release()
	}
	for p := range producers {
		if got[p] != pushed[p] {
			t.Errorf("producer %d: %d came out and %d went in", p, got[p], pushed[p])
		}
	}
}
