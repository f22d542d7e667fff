package weights

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
)

const (
	// ReadAlign is what offsets, lengths and memory of a direct read are multiples of.
	ReadAlign = 4096
	// readChunk is what one read asks for.
	readChunk = 4 << 20
)

// ReadSpace is how large a buffer must be to read n bytes from anywhere: what is read begins and
// ends at multiples of [ReadAlign].
func ReadSpace(n int) int { return (n+ReadAlign-1)/ReadAlign*ReadAlign + ReadAlign }

// Reader reads parts of files with several reads in flight: what is in the page cache from there, all
// else with direct I/O, which copies from the disk to the caller's memory and leaves the cache alone.
// Where the file system refuses that, files are read as usual, and Refused says so. It is used by one
// goroutine.
type Reader struct {
	jobs    chan chunk
	workers sync.WaitGroup
	open    func(f *File, direct bool) (source, error) // for tests
	files   map[*File]*handle

	bytes, cached atomic.Int64
	refused       atomic.Pointer[string]
}

// source is a file to read from. A call may give less than it was asked for.
type source interface {
	io.ReaderAt
	io.Closer
	// readCached reads what is in the page cache and does not wait for anything else.
	readCached(p []byte, offset int64) (n int)
}

// handle is an open file.
type handle struct {
	file     *File
	ordinary source
	direct   source // nil if it was refused on opening
	refused  atomic.Bool
}

// Read is a part of a file on its way to memory.
type Read struct {
	file *File
	data []byte
	left sync.WaitGroup
	err  atomic.Pointer[error]
}

// chunk is one read of a Read: n bytes from offset on, of which need must be there.
type chunk struct {
	of     *Read
	from   *handle
	to     []byte // rounded up
	offset int64
	need   int
}

// NewReader makes a reader that has up to inFlight reads on their way at once.
func NewReader(inFlight int) *Reader {
	r := &Reader{jobs: make(chan chunk, 64), files: map[*File]*handle{}, open: openSource}
	for range max(1, inFlight) {
		r.workers.Go(func() {
			for c := range r.jobs {
				if c.of.err.Load() == nil {
					if err := r.read(&c); err != nil {
						c.of.err.CompareAndSwap(nil, &err)
					}
				}
				c.of.left.Done()
			}
		})
	}
	return r
}

func openSource(f *File, direct bool) (source, error) {
	h, err := f.open(direct)
	if err != nil {
		return nil, err
	}
	return once{h}, nil
}

// Bytes is how much was read so far, and how much of it from the page cache.
func (r *Reader) Bytes() (all, cached int64) { return r.bytes.Load(), r.cached.Load() }

// Refused says why files are not read directly, "" while they are.
func (r *Reader) Refused() string {
	if s := r.refused.Load(); s != nil {
		return *s
	}
	return ""
}

// Close ends the reader. All that was begun must have been waited for.
func (r *Reader) Close() error {
	close(r.jobs)
	r.workers.Wait()
	var first error
	for _, h := range r.files {
		for _, s := range []source{h.direct, h.ordinary} {
			if s == nil {
				continue
			}
			if err := s.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	r.files = nil
	return first
}

// Start begins to read n bytes from place into buffer, which has ReadSpace(n) bytes from an address
// that is a multiple of [ReadAlign], and is not to be touched until Wait.
func (r *Reader) Start(place Place, n int, buffer []byte) *Read {
	read := &Read{file: place.File}
	first := place.Offset / ReadAlign * ReadAlign
	skip := int(place.Offset - first)
	read.data = buffer[skip : skip+n : skip+n]
	h := r.files[place.File]
	if h == nil {
		var err error
		if h, err = r.handle(place.File); err != nil {
			err = fmt.Errorf("cannot read %s: %w", place.File.Path, plain(err))
			read.err.Store(&err)
			return read
		}
		r.files[place.File] = h
	}
	for at := 0; at < skip+n; at += readChunk {
		need := min(readChunk, skip+n-at)
		size := (need + ReadAlign - 1) / ReadAlign * ReadAlign
		read.left.Add(1)
		r.jobs <- chunk{read, h, buffer[at : at+size], first + int64(at), need}
	}
	return read
}

// Wait waits for the bytes and gives them, a part of the buffer.
func (q *Read) Wait() ([]byte, error) {
	q.left.Wait()
	if err := q.err.Load(); err != nil {
		return nil, *err
	}
	return q.data, nil
}

// handle opens a file.
func (r *Reader) handle(f *File) (*handle, error) {
	h := &handle{file: f}
	var err error
	if h.ordinary, err = r.open(f, false); err != nil {
		return nil, err
	}
	if h.direct, err = r.open(f, true); err != nil {
		h.direct = nil
		if !refusesDirect(err) {
			_ = h.ordinary.Close()
			return nil, err
		}
		r.refuse(h, err)
	}
	return h, nil
}

// refuse turns a file to ordinary reads, since direct ones gave an error.
func (r *Reader) refuse(h *handle, why error) {
	s := fmt.Sprintf("the file system of %s has no direct reads (%v)", h.file.Path, plain(why))
	r.refused.CompareAndSwap(nil, &s)
	h.refused.Store(true)
}

// read fills a chunk.
func (r *Reader) read(c *chunk) error {
	if c.from.ordinary.readCached(c.to[:c.need], c.offset) == c.need {
		r.bytes.Add(int64(c.need))
		r.cached.Add(int64(c.need))
		return nil
	}
	for got := 0; got < c.need; {
		direct := !c.from.refused.Load()
		from := c.from.ordinary
		if direct {
			from = c.from.direct
		}
		n, err := from.ReadAt(c.to[got:], c.offset+int64(got))
		if err == io.EOF {
			err = nil
		}
		if err != nil && direct && refusesDirect(err) {
			r.refuse(c.from, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot read %s from byte %d: %w", c.of.file.Path, c.offset+int64(got), plain(err))
		}
		next := got + n
		if direct && next < c.need {
			next = next / ReadAlign * ReadAlign // a direct read begins at such an offset alone
		}
		if next <= got {
			return fmt.Errorf("cannot read %s: it ends at byte %d and had %d when it was opened; it was shortened meanwhile, so copy it anew",
				c.of.file.Path, c.offset+int64(got+n), c.of.file.info.Size())
		}
		got = next
	}
	r.bytes.Add(int64(c.need))
	return nil
}
