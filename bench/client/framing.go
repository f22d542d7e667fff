package client

import (
	"bytes"
	"errors"
	"fmt"
)

// framing finds the end of a body, in whatever pieces it comes (RFC 9112, section 6).
type framing struct {
	state framingState
	left  int64  // bytes to come of the body or of the chunk
	line  []byte // the unfinished line: a chunk's size, or a trailer
	extra int    // bytes of trailers so far
}

type framingState uint8

const (
	bodyEOF     framingState = iota // to the end of the connection
	bodyLength                      // left bytes
	bodySize                        // the line with a chunk's size
	bodyChunk                       // left bytes of a chunk
	bodyCRLF                        // the line end after a chunk
	bodyTrailer                     // the lines after the last chunk
	bodyDone
)

// maxChunkLine bounds a chunk-size line with its extensions, maxTrailer all trailers.
const (
	maxChunkLine = 4 << 10
	maxTrailer   = 64 << 10
)

func newFraming(h head) framing {
	switch {
	case h.chunked:
		return framing{state: bodySize}
	case h.length == 0:
		return framing{state: bodyDone}
	case h.length > 0:
		return framing{state: bodyLength, left: h.length}
	}
	return framing{state: bodyEOF}
}

func (f *framing) done() bool { return f.state == bodyDone }

// ends tells whether the end of the connection is a proper end of the body.
func (f *framing) ends() bool { return f.state == bodyEOF || f.state == bodyDone }

// next returns the first piece of the body in b, which may be empty, and what is left of b. It is
// called until b is used up or the body done.
func (f *framing) next(b []byte) (data, rest []byte, err error) {
	switch f.state {
	case bodyEOF:
		return b, nil, nil
	case bodyLength, bodyChunk:
		n := min(int64(len(b)), f.left)
		f.left -= n
		if f.left == 0 {
			if f.state == bodyLength {
				f.state = bodyDone
			} else {
				f.state = bodyCRLF
			}
		}
		return b[:n], b[n:], nil
	case bodyDone:
		return nil, b, nil
	}
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		f.line = append(f.line, b...)
		if len(f.line) > maxChunkLine {
			return nil, nil, errors.New("a chunk's size line does not end")
		}
		return nil, nil, nil
	}
	line := b[:i]
	if len(f.line) > 0 {
		f.line = append(f.line, line...)
		line = f.line
	}
	if len(line) > maxChunkLine {
		return nil, nil, errors.New("a chunk's size line does not end")
	}
	err = f.take(bytes.TrimSuffix(line, []byte("\r")))
	f.line = f.line[:0]
	return nil, b[i+1:], err
}

// take takes a line that is not part of the body.
func (f *framing) take(line []byte) error {
	switch f.state {
	case bodySize:
		size, err := chunkSize(line)
		if err != nil {
			return err
		}
		f.left, f.state = size, bodyChunk
		if size == 0 {
			f.state = bodyTrailer
		}
	case bodyCRLF:
		if len(line) > 0 {
			return fmt.Errorf("a chunk is longer than its size says: %s follows", quote(line))
		}
		f.state = bodySize
	case bodyTrailer:
		if f.extra += len(line) + 2; f.extra > maxTrailer {
			return errors.New("its trailers do not end")
		}
		if len(line) == 0 {
			f.state = bodyDone
		}
	}
	return nil
}

// chunkSize reads the hexadecimal size at the beginning of a line; extensions are left out.
func chunkSize(line []byte) (int64, error) {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	digits = bytes.TrimRight(digits, " \t")
	if len(digits) == 0 || len(digits) > 15 {
		return 0, fmt.Errorf("a chunk's size is %s", quote(line))
	}
	var n int64
	for _, c := range digits {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, fmt.Errorf("a chunk's size is %s", quote(line))
		}
		n = n<<4 | int64(c)
	}
	return n, nil
}
