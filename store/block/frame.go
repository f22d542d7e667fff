package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// FrameHeader is the length of what stands before a body: its length and its checksum, both
// unsigned 32-bit little-endian. The checksum is CRC-32C (Castagnoli) of the body.
const FrameHeader = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What may be wrong with a frame.
var (
	ErrTorn    = errors.New("the data ends in the middle of a block")
	ErrDamaged = errors.New("the data is damaged")
)

// AppendFrame appends a body with its header to dst.
func AppendFrame(dst, body []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(body)))
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(body, castagnoli))
	return append(dst, body...)
}

// OpenFrame returns the body of a frame that fills data exactly.
func OpenFrame(data []byte) ([]byte, error) {
	if len(data) < FrameHeader {
		return nil, ErrTorn
	}
	body := data[FrameHeader:]
	if n := binary.LittleEndian.Uint32(data); int64(n) != int64(len(body)) {
		return nil, fmt.Errorf("%w: a block of %d bytes says it has %d", ErrDamaged, len(body), n)
	}
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[4:]) {
		return nil, fmt.Errorf("%w: the checksum of a block does not match", ErrDamaged)
	}
	return body, nil
}

// ReadFrame reads the next frame and returns its body: io.EOF at the end of the data, ErrTorn
// where the data ends within a frame (or only zeros follow, as after a power cut), ErrDamaged where
// a checksum does not match. It never allocates more than what is really there, rounded up.
func ReadFrame(r io.Reader) ([]byte, error) {
	var h [FrameHeader]byte
	if n, err := io.ReadFull(r, h[:]); err != nil {
		if n == 0 && err == io.EOF {
			return nil, io.EOF
		}
		return nil, torn(err)
	}
	n := int64(binary.LittleEndian.Uint32(h[:]))
	if h == [FrameHeader]byte{} {
		return nil, onlyZeros(r)
	}
	if n == 0 || n > MaxBody {
		return nil, fmt.Errorf("%w: a block says it has %d bytes", ErrDamaged, n)
	}
	body, err := readAtMost(r, n)
	if err != nil {
		return nil, err
	}
	if int64(len(body)) < n {
		return nil, ErrTorn
	}
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(h[4:]) {
		return nil, fmt.Errorf("%w: the checksum of a block does not match", ErrDamaged)
	}
	return body, nil
}

// readAtMost reads n bytes, or what there is, in steps: a length that lies costs nothing.
func readAtMost(r io.Reader, n int64) ([]byte, error) {
	const step = 1 << 20
	body := make([]byte, 0, min(n, step))
	for int64(len(body)) < n {
		at := len(body)
		want := int(min(n-int64(at), step))
		body = append(body, make([]byte, want)...)
		got, err := io.ReadFull(r, body[at:])
		body = body[:at+got]
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return body, nil
}

// onlyZeros tells a file that was made longer but never written from a damaged one.
func onlyZeros(r io.Reader) error {
	var buf [4096]byte
	for {
		n, err := r.Read(buf[:])
		for _, b := range buf[:n] {
			if b != 0 {
				return fmt.Errorf("%w: a block has no length", ErrDamaged)
			}
		}
		if err == io.EOF {
			return ErrTorn
		}
		if err != nil {
			return err
		}
	}
}

func torn(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return ErrTorn
	}
	return err
}
