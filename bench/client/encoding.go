package client

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"iter"
)

// A decoder undoes a Content-Encoding that came although none was asked for. The decompressors of the
// standard library pull; a coroutine between lets the bytes of each read be pushed, so that what they
// decode to still belongs to that read.
type decoder struct {
	resume func() (struct{}, bool)
	stop   func()
	in     []byte
	out    []byte
	ended  bool // no more input will come
	err    error
}

// newDecoder returns nil and an error for an encoding it does not know.
func newDecoder(encoding string) (*decoder, error) {
	var open func(r *bufio.Reader) (io.Reader, error)
	switch encoding {
	case "gzip", "x-gzip":
		open = func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case "deflate":
		open = openDeflate
	default:
		return nil, fmt.Errorf("the server compresses its answer with %q although none was asked for; turn compression off there, or in the proxy before it", encoding)
	}
	d := &decoder{}
	d.resume, d.stop = iter.Pull(func(yield func(struct{}) bool) {
		source := readerFunc(func(p []byte) (int, error) {
			for len(d.in) == 0 {
				if d.ended || !yield(struct{}{}) {
					return 0, io.EOF
				}
			}
			n := copy(p, d.in)
			d.in = d.in[n:]
			return n, nil
		})
		r, err := open(bufio.NewReaderSize(source, 4<<10))
		p := make([]byte, 4<<10)
		for err == nil {
			var n int
			n, err = r.Read(p)
			d.out = append(d.out, p[:n]...)
		}
		if !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			d.err = err
		}
	})
	return d, nil
}

// openDeflate takes both readings of "deflate" that servers have: with zlib's header and without.
func openDeflate(r *bufio.Reader) (io.Reader, error) {
	b, err := r.Peek(2)
	if err != nil {
		return nil, err
	}
	if b[0]&0x0f == 8 && (uint(b[0])<<8|uint(b[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// feed decodes some more; the result is valid until the next call.
func (d *decoder) feed(b []byte) ([]byte, error) {
	d.in, d.out = b, d.out[:0]
	d.resume()
	return d.out, d.err
}

// end decodes what the decompressor still held.
func (d *decoder) end() ([]byte, error) {
	d.ended, d.out = true, d.out[:0]
	d.resume()
	d.stop()
	return bytes.Clone(d.out), d.err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
