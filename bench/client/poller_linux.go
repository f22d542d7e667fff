package client

import (
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"velo/bench"
)

// A poller receives for many plain connections on one thread: it waits for any of them, reads each
// that has something once, stamps, queues, and waits again. A goroutine for each would be scheduled
// among the goroutines that parse, and a burst on many streams would be read and parsed in turns, the
// last stream waiting for all that work; two segments that wait together get one stamp. One thread
// that reads everything before anything is parsed keeps them apart, for less than half the system
// calls.
type poller struct {
	epoll int

	mu    sync.Mutex
	lines map[int32]*fdLine // by file descriptor; only the poller removes, and closes
}

// thePollers are started with the first plain connection and live as long as the process.
var thePollers = sync.OnceValues(func() ([]*poller, error) {
	list := make([]*poller, max(1, min(4, runtime.NumCPU()/8)))
	for i := range list {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return nil, os.NewSyscallError("epoll_create1", err)
		}
		list[i] = &poller{epoll: fd, lines: map[int32]*fdLine{}}
		go list[i].run()
	}
	return list, nil
})

var nextPoller atomic.Uint32

// pollers is how many threads receive for all lines that are not alone.
func pollers() int { return max(1, min(4, runtime.NumCPU()/8)) }

// run is the thread.
func (p *poller) run() {
	runtime.LockOSThread()
	hurry()
	var (
		call   recvmsg
		events [256]unix.EpollEvent
		ready  [256]*fdLine
		buffer = make([]byte, 64<<10)
	)
	for {
		n, err := unix.EpollWait(p.epoll, events[:], -1)
		if err != nil {
			continue // a signal; nothing else can happen to a valid call
		}
		p.mu.Lock()
		for i := range n {
			ready[i] = p.lines[events[i].Fd]
		}
		p.mu.Unlock()
		for i := range n {
			l := ready[i]
			if l == nil {
				continue
			}
			if events[i].Events&unix.EPOLLOUT != 0 {
				l.canWrite()
			}
			if l.closed.Load() {
				p.end(l, net.ErrClosed, l.clock.Now())
				continue
			}
			if events[i].Events&^unix.EPOLLOUT == 0 {
				continue
			}
			got, kernel, errno := call.receive(l.fd, buffer)
			user := l.clock.Now()
			switch {
			case got > 0:
				l.reads++
				if l.queue.push(buffer[:got], l.reads, kernel, user) {
					l.pause()
				}
			case errno == unix.EAGAIN:
			case errno != 0:
				p.end(l, os.NewSyscallError("recvmsg", errno), user)
			default:
				p.end(l, io.EOF, user)
			}
			ready[i] = nil
		}
	}
}

// hurry asks the scheduler to give this thread its turn soon: with a short slice its deadline comes
// early. Linux 6.12 and newer grant that to everybody; elsewhere nothing changes.
func hurry() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return
	}
	attr.Runtime = uint64(100 * time.Microsecond)
	_ = unix.SchedSetAttr(0, attr, 0)
}

// end takes a line out and closes it.
func (p *poller) end(l *fdLine, err error, at time.Duration) {
	p.mu.Lock()
	delete(p.lines, int32(l.fd))
	p.mu.Unlock()
	l.mu.Lock()
	fd := l.fd
	l.fd = -1
	l.mu.Unlock()
	_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	_ = unix.Close(fd)
	l.queue.fail(err, at)
	l.canWrite()
}

// An fdLine is a plain connection that a poller receives from.
type fdLine struct {
	poller   *poller
	queue    *queue
	clock    bench.Clock
	writable chan struct{} // one token: writing may go on, or the line is at its end
	reads    int32         // of the poller alone

	closed atomic.Bool // by us

	mu     sync.Mutex
	fd     int  // -1 = closed; the poller alone changes it
	out    bool // somebody waits to write
	paused bool // nothing is received
}

// newLine makes a line of a plain connection. The connection is taken away from the runtime's own
// poller, which would be woken for each segment as well.
func newLine(c *net.TCPConn, clock bench.Clock, kernel bool, q *queue) (line, error) {
	defer c.Close()
	list, err := thePollers()
	if err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var failed error
	if err := raw.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, os.NewSyscallError("fcntl", failed)
	}
	if kernel {
		// A kernel that cannot do this leaves the stamps out, and every one is then a user stamp.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stamping)
	}
	p := list[int(nextPoller.Add(1))%len(list)]
	l := &fdLine{poller: p, queue: q, clock: clock, writable: make(chan struct{}, 1), fd: fd}
	p.mu.Lock()
	p.lines[int32(fd)] = l
	p.mu.Unlock()
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
		p.mu.Lock()
		delete(p.lines, int32(fd))
		p.mu.Unlock()
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return l, nil
}

func (l *fdLine) alone() bool { return false }

// want tells the poller what to wait for. The lock is held.
func (l *fdLine) want() {
	if l.fd < 0 {
		return
	}
	e := unix.EpollEvent{Fd: int32(l.fd)}
	if !l.paused {
		e.Events |= unix.EPOLLIN
	}
	if l.out {
		e.Events |= unix.EPOLLOUT
	}
	_ = unix.EpollCtl(l.poller.epoll, unix.EPOLL_CTL_MOD, l.fd, &e)
}

// pause stops receiving until the queue has been emptied; a poller cannot wait for one stream.
func (l *fdLine) pause() {
	l.mu.Lock()
	l.paused = true
	l.want()
	l.mu.Unlock()
	l.queue.onRoom(func() {
		l.mu.Lock()
		l.paused = false
		l.want()
		l.mu.Unlock()
	})
}

// canWrite lets a writer go on.
func (l *fdLine) canWrite() {
	l.mu.Lock()
	if l.out {
		l.out = false
		l.want()
	}
	l.mu.Unlock()
	select {
	case l.writable <- struct{}{}:
	default:
	}
}

// close shuts the connection down; the poller notices and closes it.
func (l *fdLine) close() {
	l.queue.leave()
	if l.closed.Swap(true) {
		return
	}
	l.mu.Lock()
	if l.fd >= 0 {
		_ = unix.Shutdown(l.fd, unix.SHUT_RDWR)
	}
	l.mu.Unlock()
}

func (l *fdLine) stale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fd < 0 || readable(l.fd)
}

// write writes what the system takes without waiting, and asks to be told when it takes more.
func (l *fdLine) write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fd < 0 {
		return 0, net.ErrClosed
	}
	n := 0
	for n < len(b) {
		k, err := unix.SendmsgN(l.fd, b[n:], nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch err {
		case nil:
			n += k
		case unix.EINTR:
		case unix.EAGAIN:
			l.out = true
			l.want()
			return n, nil
		default:
			return n, os.NewSyscallError("sendmsg", err)
		}
	}
	return n, nil
}

// together is up to how many bytes header and body are put into one piece.
const together = 64 << 10

func (l *fdLine) send(header, body []byte) {
	if len(body) <= together {
		header, body = append(header, body...), nil
	}
	n, err := l.write(header)
	if err != nil || n == len(header) && body == nil {
		l.queue.written(l.clock.Now(), err)
		return
	}
	go func() {
		for _, b := range [][]byte{header[n:], body} {
			for len(b) > 0 {
				n, err := l.write(b)
				if err != nil {
					l.queue.written(0, err)
					return
				}
				if b = b[n:]; len(b) > 0 {
					<-l.writable
				}
			}
		}
		l.queue.written(l.clock.Now(), nil)
	}()
}
