package client

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// transcripts are streams, and the events that each holds as "name|data".
var transcripts = []struct {
	name     string
	stream   string
	want     []string
	comments int
}{
	{"ordinary", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}, 0},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}, 0},
	{"CR", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}, 0},
	{"mixed ends", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\n", []string{"|a", "|b", "|c", "|d"}, 0},
	{"no space", "data:a\n\ndata:{\"x\":1}\n\n", []string{"|a", "|{\"x\":1}"}, 0},
	{"one space only", "data:  a \n\n", []string{"| a "}, 0},
	{"multi-line data", "data: a\ndata: b\ndata:\ndata: c\n\n", []string{"|a\nb\n\nc"}, 0},
	{"comments", ": hi\n:\ndata: a\n: PROCESSING\n\n:x\n\n", []string{"|a"}, 4},
	{"names", "event: error\ndata: a\n\ndata: b\n\nevent:x\n\ndata: c\n\n", []string{"error|a", "|b", "|c"}, 0},
	{"other fields", "id: 5\nretry: 7\nwhatever\ndata: a\nDATA: no\n data: no\n\n", []string{"|a"}, 0},
	{"empty data", "data\n\ndata:\n\n", []string{"|", "|"}, 0},
	{"no data", "event: x\n\n\n\nid: 4\n\n", nil, 0},
	{"BOM", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"|a"}, 0},
	{"part of a BOM", "\xef\xbbdata: a\n\ndata: b\n\n", []string{"|b"}, 0},
	{"nothing but part of a BOM", "\xef\xbb", nil, 0},
	{"no empty line at the end", "data: a\n\ndata: b\n", []string{"|a", "|b"}, 0},
	{"no line end at the end", "data: a\n\ndata: b", []string{"|a", "|b"}, 0},
	{"colon in data", "data: a:b: c\n\n", []string{"|a:b: c"}, 0},
	{"separators are text", "data: a\u2028b\u0085c\vd\fe\n\n", []string{"|a\u2028b\u0085c\vd\fe"}, 0},
	{"split UTF-8 is bytes", "data: h\xc3\xa9\xf0\x9f\x98\x80\n\n", []string{"|h\xc3\xa9\xf0\x9f\x98\x80"}, 0},
	{"NUL", "data: a\x00b\n\n", []string{"|a\x00b"}, 0},
	{"empty", "", nil, 0},
	{"space", "\n\r\n\r\n", nil, 0},
}

// parse feeds pieces and returns the events and the number of comments.
func parse(t testing.TB, pieces ...[]byte) ([]string, int) {
	t.Helper()
	var p Parser
	var got []string
	emit := func(e Event) { got = append(got, string(e.Name)+"|"+string(e.Data)) }
	for _, b := range pieces {
		b = bytes.Clone(b)
		if err := p.Feed(b, emit); err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = '#' // the parser must not look at it again
		}
	}
	if err := p.Close(emit); err != nil {
		t.Fatal(err)
	}
	return got, p.Comments
}

func TestTranscriptsSplitEverywhere(t *testing.T) {
	for _, c := range transcripts {
		t.Run(c.name, func(t *testing.T) {
			b := []byte(c.stream)
			expect := func(got []string, comments int, how string) {
				t.Helper()
				if fmt.Sprint(got) != fmt.Sprint(c.want) || comments != c.comments {
					t.Fatalf("%s: got %q and %d comments, want %q and %d", how, got, comments, c.want, c.comments)
				}
			}
			got, comments := parse(t, b)
			expect(got, comments, "whole")
			for i := range len(b) + 1 {
				got, comments = parse(t, b[:i], b[i:])
				expect(got, comments, fmt.Sprint("split at ", i))
				for j := i; j <= len(b); j++ {
					got, comments = parse(t, b[:i], b[i:j], b[j:])
					expect(got, comments, fmt.Sprint("split at ", i, " and ", j))
				}
			}
			single := make([][]byte, len(b))
			for i := range b {
				single[i] = b[i : i+1]
			}
			got, comments = parse(t, single...)
			expect(got, comments, "byte by byte")
		})
	}
}

func TestLongLines(t *testing.T) {
	for _, size := range []int{1 << 20, MaxLine - len("data: ")} {
		line := "data: " + strings.Repeat("x", size) + "\n\n"
		var pieces [][]byte
		for b := []byte(line); len(b) > 0; {
			n := min(len(b), 64<<10)
			pieces, b = append(pieces, b[:n]), b[n:]
		}
		got, _ := parse(t, pieces...)
		if len(got) != 1 || len(got[0]) != size+1 {
			t.Errorf("a line of %d bytes did not come through", size)
		}
	}
	emit := func(Event) {}
	for _, stream := range []string{
		"data: " + strings.Repeat("x", MaxLine),                      // a line
		strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17), // an event of many
	} {
		var p Parser
		err := p.Feed([]byte(stream), emit)
		if err == nil || !strings.Contains(err.Error(), "longer than 16 MB") {
			t.Errorf("got %v", err)
		}
	}
}

// FuzzParser requires that a stream gives the same events however it is split.
func FuzzParser(f *testing.F) {
	for _, c := range transcripts {
		f.Add([]byte(c.stream), uint(3), uint(7))
	}
	f.Fuzz(func(t *testing.T, b []byte, i, j uint) {
		want, comments := parse(t, b)
		n := uint(len(b)) + 1
		i, j = i%n, j%n
		if i > j {
			i, j = j, i
		}
		got, c := parse(t, b[:i], b[i:j], b[j:])
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) || c != comments {
			t.Errorf("%q split at %d and %d: %q, %d comments; whole: %q, %d", b, i, j, got, c, want, comments)
		}
	})
}
