package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"velo/bench"
	"velo/store/block"
	"velo/store/internal/sample"
)

// exported is the file of a session of some requests.
func exported(tb testing.TB, id string, change func(*bench.Session)) []byte {
	tb.Helper()
	s := &bench.Session{}
	s.Append(sample.Header(id))
	small(true).Events(s.Append)
	if change != nil {
		change(s)
	}
	var b bytes.Buffer
	if err := writeSession(&b, s); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// frames puts together a file of blocks that hold these events, without a trailer.
func frames(tb testing.TB, blocks ...[]bench.Event) []byte {
	tb.Helper()
	data := fileBeginning()
	for _, events := range blocks {
		var b block.Batch
		for _, e := range events {
			if err := b.Add(e); err != nil {
				tb.Fatal(err)
			}
		}
		body, err := b.Encode(nil, block.Quick)
		if err != nil {
			tb.Fatal(err)
		}
		data = block.AppendFrame(data, body)
	}
	return data
}

func isEmpty(t *testing.T, s *Store) {
	t.Helper()
	list, err := s.Sessions()
	if err != nil || len(list) != 0 {
		t.Fatalf("%v, %v", list, err)
	}
	err = s.view(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketBlocks, bucketLive} {
			if k, _ := tx.Bucket(name).Cursor().First(); k != nil {
				t.Errorf("bucket %s still holds %s", name, k)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportTwice(t *testing.T) {
	s := open(t, t.TempDir())
	data := exported(t, "session-0001", nil)
	first, err := s.Import(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Rename(first.ID, "mine"); err != nil {
		t.Fatal(err)
	}
	again, err := s.Import(bytes.NewReader(data))
	if err != nil || again.Title != "mine" {
		t.Fatalf("%+v, %v", again, err)
	}
	if list, err := s.Sessions(); err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	// The new title leaves with the session, and is no other session.
	var export bytes.Buffer
	if err := s.Export(first.ID, &export); err != nil {
		t.Fatal(err)
	}
	if again, err = s.Import(&export); err != nil || again.ID != first.ID {
		t.Fatalf("%+v, %v", again, err)
	}
	// Other events under the same identity are.
	other := exported(t, "session-0001", func(s *bench.Session) { s.Exchanges[3].Chunks[5].Text += "x" })
	if _, err := s.Import(bytes.NewReader(other)); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "mine") {
		t.Fatalf("got %v", err)
	}
}

// Every file that is not what it should be is refused with a reason, and leaves nothing behind.
func TestImportRefuses(t *testing.T) {
	good := exported(t, "session-0001", nil)
	h := sample.Header("session-0001")
	later := *h
	later.Schema++
	path := *h
	path.ID = "../../../x"
	other := *h
	other.ID = "session-0002"
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "no session file"},
		{"text", []byte("hello, this is a text"), "no session file"},
		{"other kind", append([]byte("\x89PNG\r\n\x1a\n"), good[8:]...), "no session file"},
		{"beginning", good[:5], "ends after 5 bytes"},
		{"head alone", good[:fileHead], "before its header"},
		{"later version", change(len(fileMagic), 2), "newer Velo"},
		{"damaged block", change(fileHead+500, good[fileHead+500]^1), "damaged at byte 12"},
		{"damaged trailer", change(len(good)-1, good[len(good)-1]^1), "checksum"},
		{"something more", append(bytes.Clone(good), 0), "follows its end"},
		{"no header", frames(t, []bench.Event{&bench.Note{}}), "no header"},
		{"later events", frames(t, []bench.Event{&later}), "newer Velo"},
		{"a path for a name", frames(t, []bench.Event{&path}), "identity"},
		{"two headers", frames(t, []bench.Event{h}, []bench.Event{&other}), "two headers"},
		{"request far away", frames(t, []bench.Event{h, &bench.Request{Number: 1 << 22}}), "request 4194304"},
		{"request below zero", frames(t, []bench.Event{h, &bench.Request{Number: -1}}), "request -1"},
		{"trailer of another", append(frames(t, []bench.Event{h}), block.AppendFrame(nil, trailer(0, 1, sha256.New()))...), "is not so"},
		{"trailer alone", append(fileBeginning(), block.AppendFrame(nil, trailer(0, 0, sha256.New()))...), "before its header"},
		{"no events", append(fileBeginning(), block.AppendFrame(nil, []byte("Enonsense"))...), "damaged at byte 12"},
		{"long frame", append(fileBeginning(), 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4), "damaged at byte 12"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			_, err := s.Import(bytes.NewReader(c.data))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "cannot import the session: ") {
				t.Fatalf("got %v", err)
			}
			isEmpty(t, s)
			file := filepath.Join(t.TempDir(), "x"+Extension)
			if err := os.WriteFile(file, c.data, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadFile(file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// A file that ends anywhere gives what it holds up to there, or a reason.
func TestCutOffFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x"+Extension)
	r, err := Create(path, sample.Header("session-0001"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	small(true).Events(func(e bench.Event) {
		if r.Append(e); n%200 == 0 {
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		n++
	})
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cutFile, before := filepath.Join(dir, "cut"+Extension), 0
	for cut := 0; cut <= len(data); cut += 97 {
		for _, tail := range [][]byte{nil, make([]byte, 4096)} { // as a file system leaves it after a power cut
			if err := os.WriteFile(cutFile, append(bytes.Clone(data[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := ReadFile(cutFile)
			if err != nil {
				if before > 0 && tail == nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				continue // a frame that ends in zeros has another checksum
			}
			events := 0
			for _, x := range s.Exchanges {
				events += len(x.Chunks)
			}
			if events < before {
				t.Fatalf("cut at %d: %d chunks, %d before", cut, events, before)
			}
			before = events
		}
	}
	if before < 1500 {
		t.Fatalf("only %d chunks were read", before)
	}
}

// A small file can claim to be huge: what it costs is bounded by a block, not by the claim.
func TestImportBoundsMemory(t *testing.T) {
	defer func(before int) { maxText = before }(maxText)
	maxText = 300 << 20
	h := sample.Header("session-0001")
	var zeros block.Batch
	if err := zeros.Add(bench.Chunks{{Text: strings.Repeat("\x00", 16<<20)}}); err != nil {
		t.Fatal(err)
	}
	body, err := zeros.Encode(nil, block.Quick)
	if err != nil {
		t.Fatal(err)
	}
	data := frames(t, []bench.Event{h, &bench.Request{}})
	for range 20 { // 320 MB of text in some KB
		data = block.AppendFrame(data, body)
	}
	if len(data) > 1<<20 {
		t.Fatalf("the file has %d bytes", len(data))
	}
	s := open(t, t.TempDir())
	var peak uint64
	done := make(chan error)
	go func() {
		_, err := s.Import(bytes.NewReader(data))
		done <- err
	}()
	for err = errors.New("running"); ; {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		select {
		case err = <-done:
		default:
			time.Sleep(5 * time.Millisecond)
			continue
		}
		break
	}
	if err == nil || !strings.Contains(err.Error(), "the most that can be opened") {
		t.Fatalf("got %v", err)
	}
	if t.Logf("it took %d MB", peak>>20); peak > uint64(maxText) {
		t.Fatal("it took as much memory as the file claims to hold")
	}
	isEmpty(t, s)
}

func FuzzImport(f *testing.F) {
	h := sample.Header("session-0001")
	f.Add(frames(f, []bench.Event{h, &bench.Request{}, bench.Chunks{{Text: "x"}}, &bench.End{}}, []bench.Event{&bench.Finish{State: bench.Done}}))
	f.Add(append(fileBeginning(), "nonsense and more"...))
	s, err := Open(f.TempDir(), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	s.db.NoSync, s.db.NoGrowSync = true, true
	s.backups.mu.Lock()
	s.backups.stopped = true // thousands of sessions, none worth a backup
	s.backups.mu.Unlock()
	f.Fuzz(func(t *testing.T, data []byte) {
		sum, err := s.Import(bytes.NewReader(reframe(data)))
		if err != nil {
			return
		}
		if _, err := s.Session(sum.ID); err != nil {
			t.Fatalf("what was imported cannot be read: %v", err)
		}
		var b bytes.Buffer
		if err := s.Export(sum.ID, &b); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(sum.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Import(bytes.NewReader(b.Bytes())); err != nil {
			t.Fatalf("what was exported cannot be imported: %v", err)
		}
		if err := s.Delete(sum.ID); err != nil {
			t.Fatal(err)
		}
	})
}

// reframe gives the frames of a file the right checksums, so that the fuzzer gets past them.
func reframe(data []byte) []byte {
	if len(data) < fileHead {
		return data
	}
	out := bytes.Clone(data[:fileHead])
	for rest := data[fileHead:]; ; {
		if len(rest) < block.FrameHeader {
			return append(out, rest...)
		}
		n := int64(binary.LittleEndian.Uint32(rest))
		rest = rest[block.FrameHeader:]
		n = min(n, int64(len(rest)))
		out = block.AppendFrame(out, rest[:n])
		rest = rest[n:]
	}
}
