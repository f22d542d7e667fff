package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"velo/bench"
	"velo/store/block"
)

// A session file begins with fileMagic, its version and two bytes of zero, then come frames with
// blocks of events, the header first. A file that was finished ends with a trailer. Without one it
// is still being written, or was cut off, and holds everything up to its last whole frame.
const (
	fileMagic   = "\x89VELO\r\n\x1a" // not text, and shows what a transfer as text does to it
	fileVersion = 1
	fileHead    = len(fileMagic) + 4

	trailerSize = 2 + 8 + 8 + sha256.Size

	// Extension is that of a session file's name.
	Extension = ".velo"
)

func fileBeginning() []byte {
	b := append([]byte(fileMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint16(b[len(fileMagic):], fileVersion)
	return b
}

// trailer is the last frame's body: how many chunks and other events there are, and the SHA-256 of
// everything before the frame.
func trailer(chunks, events int, sum hash.Hash) []byte {
	b := []byte{block.KindTrailer, block.Version}
	b = binary.LittleEndian.AppendUint64(b, uint64(chunks))
	b = binary.LittleEndian.AppendUint64(b, uint64(events))
	return sum.Sum(b)
}

// readSession reads a session file and gives its events, checked, to emit. finished tells whether it
// has its trailer. It keeps one block in memory.
func readSession(r io.Reader, emit func(bench.Event) error) (finished bool, err error) {
	sum := sha256.New()
	in := bufio.NewReaderSize(r, 64<<10)
	head := make([]byte, fileHead)
	if n, err := io.ReadFull(in, head); err != nil || string(head[:len(fileMagic)]) != fileMagic {
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return false, err
		}
		if n > 0 && bytes.HasPrefix([]byte(fileMagic), head[:min(n, len(fileMagic))]) {
			return false, fmt.Errorf("%w: it ends after %d bytes", ErrDamaged, n)
		}
		return false, errors.New("it is no session file of Velo")
	}
	if v := binary.LittleEndian.Uint16(head[len(fileMagic):]); v != fileVersion {
		return false, fmt.Errorf("%w (file version %d, this one knows %d)", ErrNewer, v, fileVersion)
	}
	sum.Write(head)
	at := int64(fileHead)
	var c check
	for {
		body, err := block.ReadFrame(in)
		switch {
		case err == io.EOF || errors.Is(err, block.ErrTorn):
			if c.header == nil {
				return false, fmt.Errorf("%w: it ends before its header", ErrDamaged)
			}
			return false, nil
		case errors.Is(err, block.ErrDamaged):
			return false, fmt.Errorf("%w at byte %d: %w", ErrDamaged, at, err)
		case err != nil:
			return false, err
		}
		if body[0] == block.KindTrailer {
			if err := readTrailer(body, &c, sum, in); err != nil {
				return false, fmt.Errorf("%w at byte %d: %w", ErrDamaged, at, err)
			}
			return true, nil
		}
		sum.Write(block.AppendFrame(nil, body))
		var mine error // an error of check or emit, which says itself what is wrong
		err = block.Decode(body, func(e bench.Event) error {
			if mine = c.add(e); mine == nil {
				mine = emit(e)
			}
			return mine
		})
		if err != nil && mine == nil {
			err = fmt.Errorf("%w at byte %d: %w", ErrDamaged, at, err)
		}
		if err != nil {
			return false, err
		}
		at += int64(block.FrameHeader + len(body))
	}
}

// readTrailer compares the trailer with what was read, after which nothing may come.
func readTrailer(body []byte, c *check, sum hash.Hash, rest io.Reader) error {
	if c.header == nil {
		return errors.New("it ends before its header")
	}
	if !bytes.Equal(body, trailer(c.chunks, c.events, sum)) {
		return errors.New("what it says about its content is not so")
	}
	if n, err := io.ReadFull(rest, make([]byte, 1)); n != 0 {
		return errors.New("something follows its end")
	} else if err != io.EOF {
		return err
	}
	return nil
}

// writeSession writes a whole session as a finished file. The same session gives the same bytes,
// whatever way it came here: events are put in one order and cut into blocks by their number alone.
func writeSession(w io.Writer, s *bench.Session) error {
	sum := sha256.New()
	out := io.MultiWriter(w, sum)
	if _, err := out.Write(fileBeginning()); err != nil {
		return err
	}
	var b block.Batch
	var chunks, events int
	flush := func() error {
		c, e := b.Len()
		chunks, events = chunks+c, events+e
		frames, err := encode(&b, block.Best)
		if err != nil {
			return err
		}
		for _, f := range frames {
			if _, err := out.Write(f); err != nil {
				return err
			}
		}
		b.Reset()
		return nil
	}
	err := canonical(s, func(e bench.Event) error {
		if err := b.Add(e); err != nil {
			return err
		}
		if b.Full() {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		_, err = w.Write(block.AppendFrame(nil, trailer(chunks, events, sum)))
	}
	return err
}

// canonical gives a session's events in the one order that its file has: the header, steps, each
// request with its connection, chunks, counts and end, samples, notes, the finish.
func canonical(s *bench.Session, emit func(bench.Event) error) error {
	h := s.Header
	h.Endpoint.URL = withoutSecrets(h.Endpoint.URL)
	events := []bench.Event{&h}
	for _, st := range s.Steps {
		events = append(events, st)
	}
	for _, e := range events {
		if err := emit(e); err != nil {
			return err
		}
	}
	for _, x := range s.Exchanges {
		if x.Request == nil {
			continue
		}
		if err := emit(x.Request); err != nil {
			return err
		}
		if x.Conn != nil {
			if err := emit(x.Conn); err != nil {
				return err
			}
		}
		const piece = 1024 // so that a block is not cut late by much
		for c := x.Chunks; len(c) > 0; c = c[min(piece, len(c)):] {
			if err := emit(c[:min(piece, len(c))]); err != nil {
				return err
			}
		}
		if x.Counts != nil {
			if err := emit(x.Counts); err != nil {
				return err
			}
		}
		if x.End != nil {
			if err := emit(x.End); err != nil {
				return err
			}
		}
	}
	events = events[:0]
	for _, e := range s.Samples {
		events = append(events, e)
	}
	for _, e := range s.Notes {
		events = append(events, e)
	}
	if s.Finish != nil {
		events = append(events, s.Finish)
	}
	for _, e := range events {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile reads a session file. One that was cut off gives what it holds, and its session has no
// finish. ErrDamaged says where a file is damaged.
func ReadFile(path string) (*bench.Session, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the session file: %w", err)
	}
	defer f.Close()
	var s bench.Session
	if _, err := readSession(f, func(e bench.Event) error { s.Append(e); return nil }); err != nil {
		return nil, fmt.Errorf("cannot read the session file %s: %w", path, err)
	}
	return &s, nil
}

// Create begins a session in a file of its own, which must not be there yet: the way to measure
// while another process has the database. It is written while the session goes on, block after
// block; Close replaces it with a finished one. ReadFile and Import read either.
func Create(path string, h *bench.Header) (*Recorder, error) {
	h, err := headerFor(h)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of the session file %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot make the session file: %w", err)
	}
	abandon := func(err error) (*Recorder, error) {
		_ = f.Close()
		_ = os.Remove(path)
		return nil, fmt.Errorf("cannot write the session file %s: %w", path, err)
	}
	if err := lockNow(f); err != nil { // ImportInbox leaves a locked file alone
		return abandon(err)
	}
	if _, err := f.Write(fileBeginning()); err != nil {
		return abandon(err)
	}
	r, err := newRecorder(h, &sessionFile{path: path, f: f, end: int64(fileHead)})
	if err != nil {
		return abandon(err)
	}
	syncDir(filepath.Dir(path))
	return r, nil
}

// sessionFile writes one session into a file.
type sessionFile struct {
	path string
	f    *os.File
	end  int64 // of the last whole frame that lasts
}

func (o *sessionFile) commit(b *block.Batch, _ Summary) error {
	frames, err := encode(b, block.Quick)
	if err != nil {
		return err
	}
	at := o.end
	for _, f := range frames {
		if _, err = o.f.WriteAt(f, at); err != nil {
			break
		}
		at += int64(len(f))
	}
	if err == nil {
		err = o.f.Sync()
	}
	if err != nil {
		_ = o.f.Truncate(o.end) // what was written in part is written again
		return err
	}
	o.end = at
	b.Reset()
	return nil
}

// seal replaces the file by a finished one. If that fails, the file as recorded is still whole.
func (o *sessionFile) seal(b *block.Batch, sum Summary) error {
	if err := o.commit(b, sum); err != nil {
		return err
	}
	s, err := ReadFile(o.path)
	if err != nil {
		return err
	}
	tmp := o.path + ".tmp"
	if err := writeNew(tmp, s); err != nil {
		return err
	}
	_ = o.f.Close() // some systems do not replace a file that is open; it was synced
	if err := os.Rename(tmp, o.path); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	syncDir(filepath.Dir(o.path))
	return nil
}

func (o *sessionFile) release() { _ = o.f.Close() }

// writeNew writes a finished file and makes it last, or leaves none.
func writeNew(path string, s *bench.Session) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	err = writeSession(out, s)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}
