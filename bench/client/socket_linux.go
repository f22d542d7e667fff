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

// recvmsg is the system call with its memory, used by one goroutine at a time.
type recvmsg struct {
	msg unix.Msghdr
	iov unix.Iovec
	oob [12]uint64 // three timespecs and a header: 64 bytes
}

// receive reads once, without waiting. It returns the kernel's stamp in nanoseconds of real time, 0 if
// there is none.
func (r *recvmsg) receive(fd int, p []byte) (n int, kernel int64, errno syscall.Errno) {
	oob := (*[96]byte)(unsafe.Pointer(&r.oob))
	for {
		r.iov.Base = &p[0]
		r.iov.SetLen(len(p))
		r.msg = unix.Msghdr{Iov: &r.iov, Control: &oob[0]}
		r.msg.SetIovlen(1)
		r.msg.SetControllen(len(oob))
		// This never blocks, so the scheduler need not know of the call.
		k, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.msg)), unix.MSG_DONTWAIT)
		r.iov.Base = nil
		switch errno {
		case 0:
			return int(k), kernelStamp(oob[:r.msg.Controllen]), 0
		case unix.EINTR:
			continue
		}
		return 0, 0, errno
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

// receiver reads a socket with recvmsg.
type receiver struct {
	raw  syscall.RawConn
	read func(fd uintptr) bool
	p    []byte
	n    int
	err  error
	call recvmsg
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
	s.read = func(fd uintptr) bool {
		n, stamp, errno := s.call.receive(int(fd), s.p)
		if errno == unix.EAGAIN {
			return false
		}
		s.user, s.n, s.err = s.clock.Now(), n, nil
		switch {
		case errno != 0:
			s.err = os.NewSyscallError("recvmsg", errno)
		case n == 0:
			s.err = io.EOF
		default:
			s.reads++
			s.kernel = stamp
		}
		return true
	}
}

// Read reads to p, as net.Conn says, and stamps.
func (s *socket) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if s.raw == nil {
		return s.TCPConn.Read(p)
	}
	s.p = p
	err := s.raw.Read(s.read)
	s.p = nil
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

// stale tells whether something can be read: bytes, or the end.
func (s *socket) stale() bool {
	stale := s.raw == nil
	if !stale {
		err := s.raw.Control(func(fd uintptr) { stale = readable(int(fd)) })
		stale = stale || err != nil
	}
	return stale
}

func readable(fd int) bool {
	var b [1]byte
	_, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err != unix.EAGAIN
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
	var call recvmsg
	for range 100 {
		_ = unix.Sendto(fd, []byte{0}, 0, self)
		if _, kernel, errno := call.receive(fd, make([]byte, 1)); errno == 0 && kernel != 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
})
