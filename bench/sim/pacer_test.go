package sim

import (
	"bytes"
	"cmp"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"
)

// Whatever order streams come in, the pacer takes the earliest first.
func TestPacerOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var p pacer
	var dues []int64
	for range 2000 {
		if len(p.heap) > 0 && rng.IntN(3) == 0 {
			slices.Sort(dues)
			if got := p.pop().due; got != dues[0] {
				t.Fatalf("took %d, the earliest is %d", got, dues[0])
			}
			dues = dues[1:]
			continue
		}
		due := rng.Int64N(500)
		p.push(entry{due: due})
		dues = append(dues, due)
	}
	var rest []int64
	for len(p.heap) > 0 {
		rest = append(rest, p.pop().due)
	}
	slices.Sort(dues)
	if !slices.Equal(rest, dues) {
		t.Error("the rest does not come in order")
	}
}

// A pacer that sleeps for a late stream wakes for an earlier one, and steps
// each when it is due and not before.
func TestPacerWakes(t *testing.T) {
	began := time.Now()
	p, err := newPacer(func() int64 { return int64(time.Since(began)) })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { p.run(); close(ended) }()
	at := func(d time.Duration) *stream {
		a, b := tcpPair(t)
		go io.Copy(io.Discard, b)
		s := &stream{server: &Server{open: map[*stream]struct{}{}}, conn: a, pacer: p, start: began, finished: make(chan struct{}),
			script: &script{wire: []byte("x"), sends: []send{{due: d, end: 1, chunks: 1}}, chunks: []chunk{{kind: KindContent, due: d}}}}
		p.add(int64(d), s)
		return s
	}
	late := at(time.Hour)
	time.Sleep(5 * time.Millisecond) // the pacer sleeps for an hour now
	soon := at(20 * time.Millisecond)
	<-soon.finished
	if got := soon.stamps[0]; got.monoBefore < int64(20*time.Millisecond) {
		t.Errorf("written %v after the request, due at 20 ms", time.Duration(got.monoBefore))
	}
	late.mu.Lock()
	if late.ended || len(late.stamps) != 0 {
		t.Error("the late stream was stepped")
	}
	late.mu.Unlock()
	p.stop()
	<-ended
	p.stop()
	p.add(0, late) // after the end: nothing
}

// tcpPair is a connection of the server, and the other end of it.
func tcpPair(t *testing.T) (*conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	k, err := newConn(1, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); other.Close() })
	return k, other
}

// The schedule is absolute: a write that comes late does not move the next one.
func TestScheduleIsAbsolute(t *testing.T) {
	c, other := tcpPair(t)
	go io.Copy(io.Discard, other)
	const epoch = int64(5 * time.Second)
	s := &stream{server: &Server{open: map[*stream]struct{}{}}, conn: c, epoch: epoch, start: time.Now(), finished: make(chan struct{}),
		script: &script{wire: []byte("abc"), chunks: make([]chunk, 3), sends: []send{
			{due: 1 * time.Millisecond, end: 1, chunks: 1}, {due: 2 * time.Millisecond, end: 2, chunks: 1}, {due: 3 * time.Millisecond, end: 3, chunks: 1}}}}
	for i, want := range []time.Duration{2 * time.Millisecond, 3 * time.Millisecond} {
		time.Sleep(10 * time.Millisecond) // late for all of them
		if due, more := s.step(); !more || due != epoch+int64(want) {
			t.Errorf("after write %d: due %d, %v; want %d", i, due, more, epoch+int64(want))
		}
	}
	if _, more := s.step(); more || !s.ended {
		t.Error("the stream does not end with its last write")
	}
}

// slowWriter is a disk that takes its time.
type slowWriter struct{ bytes.Buffer }

func (s *slowWriter) Write(b []byte) (int, error) {
	time.Sleep(100 * time.Millisecond)
	return s.Buffer.Write(b)
}

// Close returns when the log is written, however slow the disk, and no stream
// has waited for it.
func TestLogSlow(t *testing.T) {
	var log slowWriter
	server, err := Start(Options{Scenario: quick(3), Log: &log, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, server)
	for range 20 {
		c.post("/v1/chat/completions", chat(""))
	}
	truth := server.Truth()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	writes, err := ReadLog(&log.Buffer)
	if err != nil || len(writes) != len(truth) {
		t.Errorf("%d of %d writes in the log, %v", len(writes), len(truth), err)
	}
	if !slices.IsSortedFunc(writes, func(a, b Write) int { return cmp.Compare(a.Stream, b.Stream) }) {
		t.Error("streams are not in the order of their ends")
	}
}
