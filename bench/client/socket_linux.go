package client

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stamping asks for the time at which the network stack received a packet, in software.
const stamping = unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE

// scratch is what sockets read into. A reader holds one only during the system call, so that ten
// thousand quiet connections need no buffers.
var scratch = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// receiver reads with recvmsg, which also brings the kernel's stamp.
type receiver struct {
	raw   syscall.RawConn
	queue *queue

	into func(fd uintptr) bool // reads to p
	take func(fd uintptr) bool // reads to the queue
	p    []byte
	n    int
	err  error

	msg unix.Msghdr
	iov unix.Iovec
	oob [96]byte // three timespecs and a header: 64 bytes
}

func (s *socket) prepare(kernel bool) {
	var err error
	if s.raw, err = s.SyscallConn(); err != nil {
		s.raw = nil // closed already; Read will say so
		return
	}
	if kernel {
		// A kernel that cannot do this leaves the stamps out, and every one is then a user stamp.
		_ = s.raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stamping)
		})
	}
	s.into = func(fd uintptr) bool { return s.receive(fd, s.p) }
	s.take = func(fd uintptr) bool {
		b := scratch.Get().(*[64 << 10]byte)
		ready := s.receive(fd, b[:])
		if ready && s.n > 0 {
			s.queue.push(b[:s.n], s.reads, s.kernel, s.user)
		}
		scratch.Put(b)
		return ready
	}
}

// receive does one recvmsg and stamps it. It is false when there is nothing to read yet.
func (s *socket) receive(fd uintptr, p []byte) bool {
	s.iov.Base = &p[0]
	s.iov.SetLen(len(p))
	for {
		s.msg = unix.Msghdr{Iov: &s.iov, Control: &s.oob[0]}
		s.msg.SetIovlen(1)
		s.msg.SetControllen(len(s.oob))
		// The socket does not block, so the scheduler need not know of the call.
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&s.msg)), 0)
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			s.iov.Base = nil
			return false
		default:
			s.user, s.n, s.err = s.clock.Now(), 0, os.NewSyscallError("recvmsg", errno)
			s.iov.Base = nil
			return true
		}
		s.user, s.n, s.err = s.clock.Now(), int(n), nil
		s.iov.Base = nil
		if n == 0 {
			s.err = io.EOF
			return true
		}
		s.reads++
		s.kernel = kernelStamp(s.oob[:s.msg.Controllen])
		return true
	}
}

// kernelStamp finds the stamp in control messages: nanoseconds of real time, 0 if there is none.
func kernelStamp(oob []byte) int64 {
	for len(oob) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
		data, size := unix.CmsgLen(0), int(h.Len)
		if size < data || size > len(oob) {
			return 0
		}
		var ts unix.Timespec
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING && size-data >= int(unsafe.Sizeof(ts)) {
			ts = *(*unix.Timespec)(unsafe.Pointer(&oob[data]))
			return ts.Nano()
		}
		next := unix.CmsgSpace(size - data)
		if next > len(oob) {
			return 0
		}
		oob = oob[next:]
	}
	return 0
}

// Read reads to p, as net.Conn says.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if s.raw == nil {
		return s.TCPConn.Read(p)
	}
	s.p = p
	err := s.raw.Read(s.into)
	s.p = nil
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

// follow reads to the queue until the connection ends; it returns why.
func (s *socket) follow(q *queue) error {
	s.queue = q
	if s.raw == nil {
		return os.ErrClosed
	}
	for {
		if err := s.raw.Read(s.take); err != nil {
			s.user = s.clock.Now()
			return err
		}
		if s.err != nil {
			return s.err
		}
	}
}

// stale tells whether an idle connection has been closed by the other side, or sent something.
func (s *socket) stale() bool {
	stale := s.raw == nil
	if !stale {
		err := s.raw.Control(func(fd uintptr) {
			var b [1]byte
			_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			stale = err != unix.EAGAIN
		})
		stale = stale || err != nil
	}
	return stale
}

// switchOn makes the kernel stamp packets. It does so only while some socket wants it, and begins a
// moment after the first one asked, too late for a first answer. A socket of ours therefore asks for as
// long as the process lives, and sends itself datagrams until one has a stamp; where that never happens
// there are none, which every request then finds out for itself.
var switchOn = sync.OnceFunc(func() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stamping) != nil {
		_ = unix.Close(fd)
		return
	}
	if unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) != nil {
		return
	}
	self, err := unix.Getsockname(fd)
	if err != nil {
		return
	}
	for range 100 {
		_ = unix.Sendto(fd, []byte{0}, 0, self)
		var b [1]byte
		oob := make([]byte, 96)
		_, n, _, _, err := unix.Recvmsg(fd, b[:], oob, 0)
		if err == nil && kernelStamp(oob[:n]) != 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
})
