package weights

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// aligned is memory that a direct read takes.
func aligned(n int) []byte {
	b := make([]byte, n+ReadAlign)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % ReadAlign)
	return b[skip : skip+n : skip+n]
}

// mapped is a file of random bytes as the loader has it.
func mapped(t testing.TB, n int) (*mapping, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weights.bin")
	data := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := mapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.close() })
	return m, path
}

func newReader(t testing.TB, inFlight int) *Reader {
	r := NewReader(inFlight)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestReader: any part of a file comes as it is, several at once, and what lies after it in the
// buffer may change but nothing outside.
func TestReader(t *testing.T) {
	m, _ := mapped(t, readChunk+12345)
	r := newReader(t, 5)
	rapid.Check(t, func(t *rapid.T) {
		type part struct {
			at, n int
			whole []byte
			read  *Read
		}
		var parts []part
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			at := rapid.OneOf(rapid.IntRange(0, len(m.data)), rapid.SampledFrom([]int{0, 1, 4095, 4096, readChunk, readChunk - 1, len(m.data) - 1})).Draw(t, "at")
			n := rapid.OneOf(rapid.IntRange(0, 9000), rapid.IntRange(0, 9000), rapid.IntRange(0, len(m.data))).Draw(t, "n")
			n = min(n, len(m.data)-at)
			p := part{at: at, n: n, whole: aligned(ReadSpace(n) + 2*ReadAlign)}
			for i := range p.whole {
				p.whole[i] = 0xa5
			}
			p.read = r.Start(Place{m.file, int64(at)}, n, p.whole[ReadAlign:ReadAlign+ReadSpace(n)])
			parts = append(parts, p)
		}
		for _, p := range parts {
			got, err := p.read.Wait()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, m.data[p.at:p.at+p.n]) {
				t.Fatalf("%d bytes from %d on are others", p.n, p.at)
			}
			for _, edge := range [][]byte{p.whole[:ReadAlign], p.whole[len(p.whole)-ReadAlign:]} {
				if !bytes.Equal(edge, bytes.Repeat([]byte{0xa5}, ReadAlign)) {
					t.Fatalf("reading %d bytes from %d on wrote outside the buffer", p.n, p.at)
				}
			}
		}
	})
	if all, cached := r.Bytes(); all == 0 || cached > all {
		t.Errorf("%d bytes were read, %d of them from the cache", all, cached)
	}
	if s := r.Refused(); s != "" && (!strings.Contains(s, m.file.Path) || strings.Contains(s, "\n")) {
		t.Errorf("not a sentence about the file: %q", s)
	}
}

// scripted is a file that answers as a test wants.
type scripted struct {
	data   []byte
	direct bool
	most   int   // bytes a call
	cached int   // bytes that are in the page cache
	refuse error // of every call
}

func (s *scripted) readCached(p []byte, offset int64) int {
	if offset >= int64(s.cached) {
		return 0
	}
	return copy(p, s.data[offset:s.cached])
}

func (s *scripted) Close() error { return nil }

func (s *scripted) ReadAt(p []byte, offset int64) (int, error) {
	switch {
	case s.refuse != nil:
		return 0, s.refuse
	case s.direct && (offset%ReadAlign != 0 || len(p)%ReadAlign != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(p)))%ReadAlign != 0):
		return 0, syscall.EINVAL
	case offset >= int64(len(s.data)):
		return 0, io.EOF
	}
	return copy(p[:min(len(p), s.most)], s.data[offset:]), nil
}

// TestReaderOddities: short reads, ends that are no multiple of anything, a file system without direct
// reads that says so on opening or on reading, and one that fails.
func TestReaderOddities(t *testing.T) {
	m, _ := mapped(t, readChunk+777)
	broken := errors.New("the disk is on fire")
	for name, c := range map[string]struct {
		direct, ordinary scripted
		openRefuses      error
		refused          bool
		fails            string
		cached           int64
	}{
		"whole":                {direct: scripted{most: 1 << 30}},
		"half in the cache":    {direct: scripted{most: 1 << 30}, ordinary: scripted{cached: readChunk + 100}, cached: readChunk},
		"all in the cache":     {direct: scripted{refuse: broken}, ordinary: scripted{cached: readChunk + 777}, cached: readChunk + 777},
		"a block at a time":    {direct: scripted{most: 4096}},
		"no multiple":          {direct: scripted{most: 10000}},
		"ordinary, odd bytes":  {openRefuses: syscall.EINVAL, ordinary: scripted{most: 3001}, refused: true},
		"refused on reading":   {direct: scripted{refuse: syscall.EINVAL}, ordinary: scripted{most: 1 << 30}, refused: true},
		"refused, then broken": {direct: scripted{refuse: syscall.EINVAL}, ordinary: scripted{refuse: broken}, refused: true, fails: "on fire"},
		"broken":               {direct: scripted{refuse: broken}, fails: "on fire"},
		"cannot be opened":     {openRefuses: broken, fails: "on fire"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t, 3)
			r.open = func(f *File, direct bool) (source, error) {
				s := c.ordinary
				if direct {
					if c.openRefuses != nil {
						return nil, c.openRefuses
					}
					s = c.direct
				}
				s.data, s.direct = m.data, direct
				return &s, nil
			}
			for _, at := range []int{0, 5, 4096, readChunk - 3} {
				got, err := r.Start(Place{m.file, int64(at)}, len(m.data)-at, aligned(ReadSpace(len(m.data)-at))).Wait()
				if _, cached := r.Bytes(); at == 0 && cached != c.cached {
					t.Errorf("%d bytes came from the cache instead of %d", cached, c.cached)
				}
				switch {
				case c.fails != "":
					if err == nil || !strings.HasPrefix(err.Error(), "cannot read ") || !strings.Contains(err.Error(), c.fails) || !strings.Contains(err.Error(), m.file.Path) {
						t.Errorf("from %d: %v", at, err)
					}
				case err != nil:
					t.Errorf("from %d: %v", at, err)
				case !bytes.Equal(got, m.data[at:]):
					t.Errorf("from %d: other bytes", at)
				}
			}
			if (r.Refused() != "") != c.refused {
				t.Errorf("refused: %q", r.Refused())
			}
		})
	}
}

// TestReaderNoticesChange: a file that is shorter, another one, or gone is an error and no fault.
func TestReaderNoticesChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		open   bool // the file is open already
		says   string
	}{
		"shortened while it is read": {func(p string) error { return os.Truncate(p, readChunk+5000) }, true, "shortened"},
		"cut to a block":             {func(p string) error { return os.Truncate(p, readChunk) }, true, "shortened"},
		"emptied":                    {func(p string) error { return os.Truncate(p, 0) }, true, "shortened"},
		"shortened before":           {func(p string) error { return os.Truncate(p, 100) }, false, "100 bytes"},
		"gone":                       {os.Remove, false, "no such file"},
		"replaced": {func(p string) error {
			if err := os.WriteFile(p+"2", make([]byte, 3*readChunk), 0o600); err != nil {
				return err
			}
			return os.Rename(p+"2", p)
		}, false, "replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			m, path := mapped(t, 3*readChunk)
			r := newReader(t, 2)
			if c.open {
				if _, err := r.Start(Place{m.file, 0}, 10, aligned(ReadSpace(10))).Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.change(path); err != nil {
				t.Fatal(err)
			}
			n := 3*readChunk - 17
			_, err := r.Start(Place{m.file, 17}, n, aligned(ReadSpace(n))).Wait()
			if err == nil || !strings.HasPrefix(err.Error(), "cannot read "+path) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPlaces: what a model tells of a tensor's place is where its bytes lie, and it tells nothing of
// bytes that were changed.
func TestPlaces(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "model", "testdata", "*", "config.json"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("no models: %v", err)
	}
	r := newReader(t, 4)
	for _, f := range folders {
		m, err := Open(filepath.Dir(f))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range m.Names() {
			x, _ := m.Tensor(name)
			if x.DataAt.File == nil {
				t.Errorf("%s of %s lies nowhere", name, f)
				continue
			}
			got, err := r.Start(x.DataAt, len(x.Data), aligned(ReadSpace(len(x.Data)))).Wait()
			if err != nil || !bytes.Equal(got, x.Data) {
				t.Errorf("%s of %s lies elsewhere (%v)", name, f, err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	m := &Model{}
	if p := m.place([]byte{1}); p != (Place{}) {
		t.Errorf("bytes of no file lie at %v", p)
	}
}

// BenchmarkReader reads a file as a loader does, past the page cache; the mapping is what it
// replaces. $VELO_READ names a file to read instead of one of 256 MiB.
func BenchmarkReader(b *testing.B) {
	path := os.Getenv("VELO_READ")
	if path == "" {
		_, path = mapped(b, 256<<20)
	}
	m, err := mapFile(path)
	if err != nil {
		b.Fatal(err)
	}
	defer m.close()
	const slab = 16 << 20
	for _, n := range []int{1, 4, 8, 16} {
		b.Run("in-flight-"+string(rune('0'+n/10))+string(rune('0'+n%10)), func(b *testing.B) {
			r := newReader(b, n)
			buffers := [4][]byte{}
			for i := range buffers {
				buffers[i] = aligned(ReadSpace(slab))
			}
			b.SetBytes(int64(len(m.data)))
			for b.Loop() {
				var reads [len(buffers)]*Read
				for at, i := 0, 0; at < len(m.data); at, i = at+slab, (i+1)%len(buffers) {
					if reads[i] != nil {
						if _, err := reads[i].Wait(); err != nil {
							b.Fatal(err)
						}
					}
					reads[i] = r.Start(Place{m.file, int64(at)}, min(slab, len(m.data)-at), buffers[i])
				}
				for _, q := range reads {
					if q != nil {
						if _, err := q.Wait(); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
		})
	}
}
