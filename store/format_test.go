package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"velo/bench"
	"velo/store/block"
	"velo/store/internal/sample"
)

// A hand reads session files as somebody would who has only docs/store.md. It shares no code with
// the reader of the program.
type hand struct {
	chunks map[int]bench.Chunks
	kinds  map[string]int // lines by their key
	err    error
}

func (h *hand) fail(why string) {
	if h.err == nil {
		h.err = errors.New(why)
	}
}

func (h *hand) file(data []byte) {
	if len(data) < 12 || string(data[:8]) != "\x89VELO\r\n\x1a" || binary.LittleEndian.Uint16(data[8:]) != 1 || binary.LittleEndian.Uint16(data[10:]) != 0 {
		h.fail("the beginning is wrong")
		return
	}
	for at := 12; h.err == nil; {
		n := int(binary.LittleEndian.Uint32(data[at:]))
		body := data[at+8 : at+8+n]
		if crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) != binary.LittleEndian.Uint32(data[at+4:]) {
			h.fail("a checksum is wrong")
		}
		if body[0] == 'T' {
			h.trailer(body, sha256.Sum256(data[:at]))
			if at+8+n != len(data) {
				h.fail("something follows the trailer")
			}
			return
		}
		h.block(body)
		at += 8 + n
	}
}

func (h *hand) trailer(body []byte, sum [32]byte) {
	chunks, events := 0, 0
	for _, c := range h.chunks {
		chunks += len(c)
	}
	for _, n := range h.kinds {
		events += n
	}
	if body[1] != 1 || binary.LittleEndian.Uint64(body[2:]) != uint64(chunks) || binary.LittleEndian.Uint64(body[10:]) != uint64(events) || !bytes.Equal(body[18:], sum[:]) {
		h.fail("the trailer is wrong")
	}
}

func uvarint(b *[]byte) int64 {
	v, n := binary.Uvarint(*b)
	*b = (*b)[n:]
	return int64(v)
}

func varint(b *[]byte) int64 {
	v, n := binary.Varint(*b) // Go's own is zigzag too
	*b = (*b)[n:]
	return v
}

// number takes one from nine columns.
func number(c [][]byte) int64 {
	size := c[0][0]
	c[0] = c[0][1:]
	var v uint64
	for i := range int(size & 15) {
		v |= uint64(c[1+i][0]) << (8 * i)
		c[1+i] = c[1+i][1:]
	}
	if size&16 != 0 {
		return -int64(v)
	}
	return int64(v)
}

func (h *hand) block(body []byte) {
	if body[0] != 'E' || body[1] != 1 {
		h.fail("a block begins wrongly")
		return
	}
	rest := body[2:]
	events, _, groups := uvarint(&rest), uvarint(&rest), uvarint(&rest)
	unzip, err := zstd.NewReader(nil)
	if err != nil {
		h.fail(err.Error())
		return
	}
	defer unzip.Close()
	c := make([][]byte, 28) // numbered from 1
	for i := 1; i <= 27; i++ {
		raw := uvarint(&rest)
		if raw == 0 {
			continue
		}
		stored := uvarint(&rest)
		c[i], rest = rest[:stored:stored], rest[stored:]
		if stored != raw {
			if c[i], err = unzip.DecodeAll(c[i], nil); err != nil || int64(len(c[i])) != raw {
				h.fail("a column cannot be unpacked")
				return
			}
		}
	}
	for line := range bytes.Lines(c[1]) {
		var kinds map[string]json.RawMessage
		if err := json.Unmarshal(line, &kinds); err != nil || len(kinds) != 1 {
			h.fail("an event is wrong")
		}
		for kind := range kinds {
			h.kinds[kind]++
		}
		events--
	}
	var request, base int64
	for range groups {
		request += varint(&c[2])
		base = h.group(c, int(request), int(uvarint(&c[2])), base)
	}
	for i := 2; i <= 27; i++ {
		if len(c[i]) != 0 {
			h.fail("a column is too long")
		}
	}
	if events != 0 || len(rest) != 0 {
		h.fail("a block is too long")
	}
}

func (h *hand) group(c [][]byte, request, n int, base int64) int64 {
	var have [4][]bool
	for k := range have {
		for present := true; len(have[k]) < n; present = !present {
			for range uvarint(&c[3]) {
				have[k] = append(have[k], present)
			}
		}
	}
	var channels []bench.Channel
	for len(channels) < n {
		channel := bench.Channel(c[4][0])
		c[4] = c[4][1:]
		for range uvarint(&c[4]) {
			channels = append(channels, channel)
		}
	}
	both := true
	for i := range n {
		both = both && have[0][i] && have[1][i]
	}
	var read, usage, gap int64
	time0, first := base, true
	stamp := func() int64 {
		time0 += number(c[6:15])
		if first {
			base, first = time0, false
		}
		return time0
	}
	micro := func(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
	for i := range n {
		x := bench.Chunk{Request: request, User: bench.Unset, Kernel: bench.Unset, Channel: channels[i], Usage: -1, Exact: -1}
		step := varint(&c[5])
		read += step
		x.Read = int32(read)
		if both {
			kernel := stamp()
			g := number(c[15:24])
			if i > 0 && step == 0 {
				g += gap
			}
			gap = g
			x.Kernel, x.User = micro(kernel), micro(kernel+g)
		} else {
			var user int64
			if have[0][i] {
				user = stamp()
				x.User = micro(user)
			}
			if have[1][i] {
				x.Kernel = micro(user - number(c[15:24]))
			}
		}
		if have[2][i] {
			usage += varint(&c[24])
			x.Usage = int32(usage)
		}
		if have[3][i] {
			x.Exact = int32(varint(&c[25]))
		}
		size := uvarint(&c[26])
		x.Text, c[27] = string(c[27][:size]), c[27][size:]
		h.chunks[request] = append(h.chunks[request], x)
	}
	return base
}

// What docs/store.md says is what the program writes.
func TestFormatAsDescribed(t *testing.T) {
	check := func(t rapid.TB, s *bench.Session) {
		var file bytes.Buffer
		if err := writeSession(&file, s); err != nil {
			t.Fatal(err)
		}
		h := &hand{chunks: map[int]bench.Chunks{}, kinds: map[string]int{}}
		if h.file(file.Bytes()); h.err != nil {
			t.Fatal(h.err)
		}
		requests := 0
		for i, x := range s.Exchanges {
			requests++
			got := h.chunks[i]
			if len(got) != len(x.Chunks) {
				t.Fatalf("request %d has %d chunks, not %d", i, len(got), len(x.Chunks))
			}
			for k := range got {
				if got[k] != x.Chunks[k] {
					t.Fatalf("request %d, chunk %d:\ngot  %+v\nwant %+v", i, k, got[k], x.Chunks[k])
				}
			}
		}
		if h.kinds["header"] != 1 || h.kinds["request"] != requests || h.kinds["sample"] != len(s.Samples) || h.kinds["note"] != len(s.Notes) {
			t.Fatalf("got %v", h.kinds)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		header, events := sample.Draw(t, "session-0001")
		check(t, want(header, events))
	})
	long := want(sample.Header("session-0001"), nil)
	sample.Load(50_000, true).Events(func(e bench.Event) { long.Append(block.Stored(e)) })
	check(t, long)
}
