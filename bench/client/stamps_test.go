package client

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"velo/bench"
)

// write is a piece that a server wrote, and when.
type write struct {
	text   string
	wait   bool  // for the client to have its chunk
	before int64 // real time
}

// TestStampsBelongToReads compares the stamps of chunks with what the server wrote when: each has the
// stamps of the read that completed its event, whatever HTTP and events were cut into.
func TestStampsBelongToReads(t *testing.T) {
	two := content("b") + content("c")
	pieces := []*write{
		{text: streamHead[:20]},
		{text: streamHead[20:]},
		{text: chunkOf(roleEvent)},
		{text: chunkOf(content("a")), wait: true},
		{text: chunkOf(two), wait: true},                                      // two events in a read
		{text: chunkOf(content("d"))[:30]},                                    // an event over two reads, within a chunk
		{text: chunkOf(content("d"))[30:], wait: true},                        //
		{text: chunkOf(strings.TrimSuffix(content("e"), "\n"))},               // its empty line in a chunk of its own
		{text: chunkOf("\n"), wait: true},                                     //
		{text: chunkOf(content("f")) + chunkOf(content("g")[:9]), wait: true}, // and the beginning of the next
		{text: chunkOf(content("g")[9:]), wait: true},
		{text: framed(finishEvent, doneEvent)},
	}
	// Which piece completes which chunk.
	completes := map[string]int{"a": 3, "b": 4, "c": 4, "d": 6, "e": 8, "f": 9, "g": 10}

	came := make(chan struct{}, 100)
	var mu sync.Mutex // of the pieces
	url := serve(t, func(c net.Conn, _ request) bool {
		for _, p := range pieces {
			time.Sleep(2 * time.Millisecond) // so that pieces are read one by one, as a rule
			for len(came) > 0 {
				<-came
			}
			mu.Lock()
			p.before = time.Now().UnixNano()
			mu.Unlock()
			_, err := io.WriteString(c, p.text)
			if err != nil {
				return false
			}
			if p.wait {
				<-came
			}
		}
		return true
	})
	for _, kind := range []string{"auto", "user"} {
		c := newClient(t, url, func(o *Options) { o.Stamps = kind })
		l, r := &log{came: came}, &bench.Request{Number: 3}
		began := c.o.Clock.Now()
		res := chat(t, c).Do(t.Context(), r, l)
		l.came = nil
		check(t, l, r, res, began, c.o.Clock.Now())
		offset, _ := c.Offset()
		mu.Lock()
		kernel := runtime.GOOS == "linux" && kind == "auto"
		want := bench.UserStamp
		if kernel {
			want = bench.KernelStamp
		}
		if res.End.Stamp != want || res.Answer != "abcdefg" || res.End.Multi != 1 || res.End.Status != bench.OK {
			t.Fatalf("%s: got %+v, answer %q", kind, res.End, res.Answer)
		}
		const slack = int64(stepBound) // of the offset
		for _, ch := range l.chunks() {
			n := completes[ch.Text]
			user := int64(ch.User + offset)
			if user < pieces[n].before-slack || user > pieces[n+1].before+slack {
				t.Errorf("%s: user stamp of %q lies outside its write: %d, %+v", kind, ch.Text, user, pieces[n])
			}
			if (ch.Kernel == bench.Unset) == kernel {
				t.Errorf("%s: kernel stamp of %q is %v", kind, ch.Text, ch.Kernel)
			}
			if k := int64(ch.Kernel + offset); kernel && (k < pieces[n].before-slack || k > user+slack) {
				t.Errorf("kernel stamp of %q lies outside its write and read: %d, %+v", ch.Text, k, pieces[n])
			}
		}
		chunks := l.chunks()
		if chunks[1].Read != chunks[2].Read || chunks[0].Read == chunks[1].Read || res.End.Reads > len(pieces) {
			t.Errorf("reads are %+v", chunks)
		}
		if first := int64(l.conn().FirstByte + offset); first < pieces[0].before-slack || first > pieces[4].before+slack {
			t.Errorf("first byte at %d, written %+v", first, pieces[0])
		}
		mu.Unlock()
	}
}

// TestMissingStamp: one chunk without a kernel stamp, and the whole request falls back.
func TestMissingStamp(t *testing.T) {
	c := newClient(t, serve(t, says("")))
	k := chat(t, c)
	run := func(kernel ...int64) *bench.End {
		x := &exchange{c: c, call: k, ctx: t.Context(), r: &bench.Request{}, sink: &log{}, target: c.base}
		x.feed, x.keep = func(e Event) { x.event(e) }, func(ch bench.Chunk) { x.chunk(ch) }
		_, steps := c.watch.begin()
		x.offset = 0
		now := c.o.Clock.Now()
		for i, n := range kernel {
			text := chunkOf(content("x"))
			if i == 0 {
				text = streamHead + text
			}
			x.queue = newQueue()
			x.conn = &conn{queue: x.queue} // so that it reads HTTP itself
			if f := x.consume([]byte(text), mark{read: int32(i), kernel: n, user: now}); f != nil {
				t.Fatal(f)
			}
		}
		x.conn, x.queue = nil, nil
		return x.conclude(nil, steps).End
	}
	now := int64(c.o.Clock.Now())
	if e := run(now, now, now); e.Stamp != bench.KernelStamp {
		t.Errorf("got %+v", e)
	}
	if e := run(now, 0, now); e.Stamp != bench.UserStamp {
		t.Errorf("a stamp is missing: got %+v", e)
	}
	if e := run(now, now+int64(time.Second), now); e.Stamp != bench.UserStamp {
		t.Errorf("a stamp lies after its read: got %+v", e)
	}
}

// TestClockStep sets the wall clock during a request.
func TestClockStep(t *testing.T) {
	for _, c := range []struct {
		name string
		set  time.Duration
		half time.Duration // of the samples' brackets
		step bool
	}{
		{"not set", 0, 100, false},
		{"slewed", 40 * time.Microsecond, 100, false},
		{"set", 60 * time.Microsecond, 100, true},
		{"set back", -time.Hour, 100, true},
		{"not known well enough", 60 * time.Microsecond, 20 * time.Microsecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var set atomic.Int64
			cl := newClient(t, serve(t, func(k net.Conn, r request) bool {
				set.Store(int64(c.set))
				return says(streamHead+framed(content("x"), doneEvent))(k, r)
			}))
			cl.watch.sample = func() offsetSample {
				s := sampleOffset(cl.o.Clock)
				return offsetSample{s.at, time.Duration(cl.o.Clock.Anchor().UnixNano()) + time.Duration(set.Load()), c.half}
			}
			k := chat(t, cl) // sent without check: the kernel's clock was not really set
			res := k.Do(t.Context(), &bench.Request{}, &log{})
			if res.End.ClockStep != c.step || c.step && res.End.Stamp != bench.UserStamp || !c.step && runtime.GOOS == "linux" && res.End.Stamp != bench.KernelStamp {
				t.Errorf("got %+v", res.End)
			}
			res = k.Do(t.Context(), &bench.Request{}, &log{})
			if res.End.ClockStep {
				t.Errorf("the next request: got %+v", res.End)
			}
		})
	}
}

// TestWatch: a step between two requests is no step of either, and one that a sample saw in the middle
// of a long request is not forgotten.
func TestWatch(t *testing.T) {
	clock := bench.StartClock()
	w := newWatch(clock)
	w.every = 5 * time.Millisecond
	steps := make(chan time.Duration, 1)
	steps <- 0
	w.sample = func() offsetSample {
		o := <-steps
		steps <- o
		return offsetSample{clock.Now() + 1, o, 10}
	}
	set := func(o time.Duration) { <-steps; steps <- o }
	_, long := w.begin()
	set(time.Millisecond)
	for w.stepsSeen() == 0 {
		time.Sleep(time.Millisecond)
	}
	set(0) // back: both ends of the long request look the same
	w.look()
	offset, short := w.begin()
	if offset != 0 {
		t.Errorf("the offset is %v", offset)
	}
	if w.end(short) {
		t.Error("a request after the steps has one")
	}
	if !w.end(long) {
		t.Error("the step there and back was lost")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil || w.active != 0 {
		t.Error("it goes on watching")
	}
}

func (w *watch) stepsSeen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps
}

func TestOffset(t *testing.T) {
	c := newClient(t, "http://127.0.0.1:1")
	offset, half := c.Offset()
	since := offset - time.Duration(c.o.Clock.Anchor().UnixNano())
	if half < 0 || since.Abs() > half+time.Minute {
		t.Errorf("the offset is %v from the anchor, ± %v", since, half)
	}
}

// TestBacklog: a parser that is far behind makes the reader wait, and nothing is lost.
func TestBacklog(t *testing.T) {
	q := newQueue()
	piece := make([]byte, 1<<20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 100 {
			if full := q.push(piece, int32(i), 0, 0); full {
				q.waitForRoom()
			}
		}
		q.fail(io.EOF, 0)
	}()
	var b batch
	total, reads := 0, 0
	for {
		n := q.take(&b)
		if len(b.bytes) > backlog+len(piece) {
			t.Fatalf("%d bytes waited", len(b.bytes))
		}
		total, reads = total+len(b.bytes), reads+len(b.marks)
		if n.err != nil {
			break
		}
		<-q.wake
	}
	<-done
	if total != 100<<20 || reads != 100 {
		t.Errorf("%d bytes came in %d reads", total, reads)
	}
	// And one that nobody takes from any more lets the reader go.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	go func() {
		for range 100 {
			q.push(piece, 0, 0, 0)
			q.waitForRoom()
		}
		cancel()
	}()
	time.Sleep(10 * time.Millisecond)
	q.leave()
	if <-ctx.Done(); ctx.Err() != context.Canceled {
		t.Error("the reader hangs")
	}
}

// TestSlowSink: a sink that stops for a while neither loses anything nor makes memory grow beyond the
// backlog, while other streams go on.
func TestSlowSink(t *testing.T) {
	const blocks, each = 60, 32
	text := strings.Repeat("x", 32<<10)
	block := chunkOf(strings.Repeat(content(text), each)) // 1 MB
	var written atomic.Int64
	url := serve(t, func(c net.Conn, r request) bool {
		_, err := io.WriteString(c, streamHead)
		for i := 0; i < blocks && err == nil; i++ {
			_, err = io.WriteString(c, block)
			written.Add(1)
		}
		if err == nil {
			_, err = io.WriteString(c, framed(doneEvent))
		}
		return err == nil
	})
	c := newClient(t, url)
	slow := &log{came: make(chan struct{})}
	end := make(chan Result)
	go func() { end <- chat(t, c).Do(t.Context(), &bench.Request{}, slow) }()
	for range 3 {
		<-slow.came
	}
	for before := int64(-1); written.Load() != before || before < backlog>>20; time.Sleep(300 * time.Millisecond) {
		before = written.Load() // until the stream stands
	}
	if n := written.Load(); n >= blocks {
		t.Errorf("all of %d MB were taken", n)
	}
	other := newClient(t, serve(t, says(streamHead+framed(content("x"), doneEvent))))
	if res, _, _ := do(t, t.Context(), other); res.End.Status != bench.OK {
		t.Errorf("the other stream: %+v", res.End)
	}
	go func() {
		for range slow.came {
		}
	}()
	res := <-end
	close(slow.came)
	if res.End.Status != bench.OK || res.End.Events != blocks*each || len(res.Answer) != blocks*each*len(text) {
		t.Errorf("got %+v, %d bytes", res.End, len(res.Answer))
	}
}
