package weights

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// directFlag opens a file for reads that go past the page cache.
const directFlag = syscall.O_DIRECT

// refusesDirect tells whether an error means that the file system has no direct reads.
func refusesDirect(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP)
}

// once is a file that is read once a call, however little comes: [os.File.ReadAt] would go on at an
// offset that a direct read cannot have.
type once struct{ f *os.File }

func (o once) ReadAt(p []byte, offset int64) (int, error) {
	for {
		n, err := syscall.Pread(int(o.f.Fd()), p, offset)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

func (o once) Close() error { return o.f.Close() }

func (o once) readCached(p []byte, offset int64) int {
	got := 0
	for got < len(p) {
		n, err := unix.Preadv2(int(o.f.Fd()), [][]byte{p[got:]}, offset+int64(got), unix.RWF_NOWAIT)
		if err != nil || n <= 0 {
			break
		}
		got += n
	}
	return got
}
