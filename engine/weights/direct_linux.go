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

// readCached asks first: an attempt to read what is not there would make the system fetch it. Where
// it cannot be asked (before Linux 6.5, or a file of another user) nothing counts as cached.
func (o once) readCached(p []byte, offset int64) int {
	var there unix.Cachestat_t
	whole := unix.CachestatRange{Off: uint64(offset), Len: uint64(len(p))}
	page := os.Getpagesize()
	pages := (int(offset%int64(page)) + len(p) + page - 1) / page
	if err := unix.Cachestat(uint(o.f.Fd()), &whole, &there, 0); err != nil || there.Cache < uint64(pages) {
		return 0
	}
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
