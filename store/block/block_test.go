package block_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
	"velo/store/block"
	"velo/store/internal/sample"
)

// session puts events together as they are stored.
func session(events ...bench.Event) *bench.Session {
	s := &bench.Session{}
	for _, e := range events {
		s.Append(block.Stored(e))
	}
	return s
}

func decode(t rapid.TB, s *bench.Session, body []byte) {
	t.Helper()
	if err := block.Decode(body, func(e bench.Event) error { s.Append(e); return nil }); err != nil {
		t.Fatalf("cannot decode: %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, events := sample.Draw(t, "0000")
		events = append([]bench.Event{h}, events...)
		got := &bench.Session{}
		var b block.Batch
		for i, e := range events {
			if err := b.Add(e); err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 || i == len(events)-1 {
				body, err := b.Encode(nil, block.Effort(rapid.IntRange(0, 1).Draw(t, "effort")))
				if err != nil {
					t.Fatal(err)
				}
				decode(t, got, body)
				b.Reset()
			}
		}
		if want := session(events...); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// Rounding must keep which of two moments came first, and lose less than a microsecond.
func TestStoredKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const year = int64(365 * 24 * time.Hour)
		a := time.Duration(rapid.Int64Range(-year, year).Draw(t, "a"))
		b := a + time.Duration(rapid.Int64Range(0, 3000).Draw(t, "later"))
		first := block.Stored(&bench.End{End: a, Close: b}).(*bench.End)
		chunk := block.Stored(bench.Chunks{{User: b, Kernel: a}}).(bench.Chunks)[0]
		if first.End > first.Close || chunk.Kernel > chunk.User || chunk.User != first.Close || chunk.Kernel != first.End {
			t.Fatalf("order lost: %v, %v became %v, %v and %v, %v", a, b, first.End, first.Close, chunk.Kernel, chunk.User)
		}
		if d := a - first.End; d < 0 || d >= block.Resolution {
			t.Fatalf("%d became %d", a, first.End)
		}
	})
}

func TestStoredLeavesTheEventAlone(t *testing.T) {
	c := bench.Chunks{{User: 1234, Kernel: bench.Unset}}
	s := block.Stored(c).(bench.Chunks)
	if c[0].User != 1234 || s[0].User != 1000 || s[0].Kernel != bench.Unset {
		t.Fatalf("got %v, and the original is %v", s, c)
	}
}

// Requests of a block come in an order that a Sink is promised.
func TestDecodeOrder(t *testing.T) {
	var b block.Batch
	for _, e := range []bench.Event{
		bench.Chunks{{Request: 1, Text: "late"}},
		&bench.Request{Number: 2}, bench.Chunks{{Request: 2, Text: "x"}}, &bench.Counts{Request: 2, Tokenizer: "t", Tokens: []int32{1}}, &bench.End{Request: 2},
		&bench.Request{Number: 3}, bench.Chunks{{Request: 3, Text: "y"}},
		&bench.End{Request: 1}, &bench.Note{Text: "n"},
	} {
		if err := b.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	body, err := b.Encode(nil, block.Quick)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	err = block.Decode(body, func(e bench.Event) error {
		switch e := e.(type) {
		case bench.Chunks:
			order = append(order, "chunks "+e[0].Text)
		default:
			order = append(order, strings.TrimPrefix(reflect.TypeOf(e).String(), "*bench."))
		}
		return nil
	})
	want := "Request|chunks x|Counts|End|Request|chunks late|End|Note|chunks y"
	if got := strings.Join(order, "|"); err != nil || got != want {
		t.Fatalf("got %s, %v; want %s", got, err, want)
	}
}

func TestSameBatchSameBytes(t *testing.T) {
	for _, effort := range []block.Effort{block.Quick, block.Best} {
		shape := sample.Load(40_000, true)
		first := full(t, shape, effort)
		shape.Seed++ // leaves other things in the compressor's memory
		full(t, shape, effort)
		shape.Seed--
		if !reflect.DeepEqual(first, full(t, shape, effort)) {
			t.Fatalf("effort %d: the same events became other bytes", effort)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	nan := 0.0
	nan /= nan
	for _, c := range []struct {
		name, want string
		e          bench.Event
	}{
		{"not a number", "cannot store an event of type *bench.End", &bench.End{Timings: &bench.Timings{PromptMS: nan}}},
		{"large text", "has 40000000 bytes", bench.Chunks{{Text: strings.Repeat("x", 40_000_000)}}},
		{"large note", "has 40000", &bench.Note{Text: strings.Repeat("x", 40_000_000)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b block.Batch
			if err := b.Add(c.e); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v", err)
			}
			if !b.Empty() {
				t.Fatal("the refused event is in the batch")
			}
			if err := b.Add(&bench.Note{Text: "after"}); err != nil {
				t.Fatal(err)
			}
			body, err := b.Encode(nil, block.Quick)
			if err != nil {
				t.Fatal(err)
			}
			var s bench.Session
			decode(t, &s, body)
			if len(s.Notes) != 1 {
				t.Fatalf("got %d notes", len(s.Notes))
			}
		})
	}
}

func TestSplit(t *testing.T) {
	var b block.Batch
	var want bench.Session
	add := func(e bench.Event) {
		want.Append(e)
		if err := b.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	add(&bench.Request{Number: 0})
	long := strings.Repeat("long text ", 1<<20)
	for i := range 4 {
		add(bench.Chunks{{Read: int32(i), Text: long, Usage: -1, Exact: -1}})
	}
	few := make(bench.Chunks, block.MaxChunks)
	add(few)
	for range 4 {
		add(&bench.Note{Text: long})
	}
	parts := b.Split()
	if len(parts) < 4 {
		t.Fatalf("got %d parts", len(parts))
	}
	var got bench.Session
	for _, p := range parts {
		body, err := p.Encode(nil, block.Quick)
		if err != nil {
			t.Fatal(err)
		}
		decode(t, &got, body)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatal("the parts together are not the whole")
	}
}

func TestFrames(t *testing.T) {
	var data []byte
	bodies := []string{"a", strings.Repeat("b", 100_000), "c"}
	for _, b := range bodies {
		data = block.AppendFrame(data, []byte(b))
	}
	first := len(bodies[0]) + block.FrameHeader
	read := func(data []byte) (n int, err error) {
		r := bytes.NewReader(data)
		for {
			var body []byte
			if body, err = block.ReadFrame(r); err != nil {
				return n, err
			}
			if string(body) != bodies[n] {
				t.Fatalf("frame %d differs", n)
			}
			n++
		}
	}
	if n, err := read(data); n != 3 || err != io.EOF {
		t.Fatalf("got %d frames, %v", n, err)
	}
	for cut := range first + 20 {
		n, err := read(data[:cut])
		want := block.ErrTorn
		if cut == 0 || cut == first {
			want = io.EOF
		}
		if !errors.Is(err, want) || n != min(cut/first, 1) {
			t.Fatalf("cut at %d: got %d frames, %v", cut, n, err)
		}
	}
	if n, err := read(append(data[:first:first], make([]byte, 5000)...)); n != 1 || !errors.Is(err, block.ErrTorn) {
		t.Fatalf("zeros at the end: got %d frames, %v", n, err)
	}
	for at := range first {
		bad := bytes.Clone(data)
		bad[at] ^= 0x40
		if _, err := read(bad); !errors.Is(err, block.ErrDamaged) && !errors.Is(err, block.ErrTorn) {
			t.Fatalf("byte %d changed: got %v", at, err)
		}
		if at != 3 { // a length that reaches beyond the end looks like an end that is missing
			if _, err := block.OpenFrame(bad[:first]); !errors.Is(err, block.ErrDamaged) {
				t.Fatalf("byte %d changed: got %v", at, err)
			}
		}
	}
}

// A block that says more than it holds is refused before memory is taken for it.
func TestDecodeBounds(t *testing.T) {
	for name, body := range map[string][]byte{
		"empty":           {},
		"no block":        {'X', block.Version},
		"newer":           {block.KindEvents, block.Version + 1},
		"no counts":       {block.KindEvents, block.Version},
		"many chunks":     {block.KindEvents, block.Version, 0, 0xff, 0xff, 0x7f, 0},
		"long column":     {block.KindEvents, block.Version, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0},
		"chunks, no data": append([]byte{block.KindEvents, block.Version, 0, 0x80, 0x80, 0x08, 0}, make([]byte, 27)...),
	} {
		t.Run(name, func(t *testing.T) {
			used := testing.AllocsPerRun(1, func() {
				if err := block.Decode(body, func(bench.Event) error { return nil }); err == nil {
					t.Fatal("no error")
				}
			})
			if used > 200 {
				t.Fatalf("%v allocations", used)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	var b block.Batch
	for i := range 40 {
		c := bench.Chunk{Request: i % 3, Read: int32(i), User: time.Duration(i*i) * 1e6, Usage: int32(i), Exact: -1, Text: "some text"}
		c.Kernel = c.User - time.Duration(i)*1000
		if err := b.Add(bench.Chunks{c}); err != nil {
			f.Fatal(err)
		}
	}
	body, err := b.Encode(nil, block.Quick)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	b.Reset()
	for _, e := range []bench.Event{
		&bench.Request{}, bench.Chunks{{User: bench.Unset, Kernel: 5000, Usage: 3, Exact: -1, Channel: bench.Tool, Text: "x"}}, &bench.End{},
	} {
		if err := b.Add(e); err != nil {
			f.Fatal(err)
		}
	}
	if body, err = b.Encode(nil, block.Quick); err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(t *testing.T, data []byte) {
		copied := func(data []byte) ([]byte, error) {
			var b block.Batch
			if err := block.Decode(data, b.Add); err != nil {
				return nil, err
			}
			return b.Encode(nil, block.Quick)
		}
		// What can be read can be written, and reads the same.
		first, err := copied(data)
		if err != nil {
			return
		}
		if second, err := copied(first); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("read and written again, a block changed (%v)", err)
		}
	})
}
