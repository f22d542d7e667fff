package client

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// read takes an answer apart in pieces: its head, its body, and whether the body came to its end.
func read(pieces ...[]byte) (h head, body []byte, ended bool, err error) {
	var raw []byte
	var f framing
	begun := false
	for _, b := range pieces {
		if !begun {
			raw = append(raw, b...)
			var n int
			h, n, err = parseHead(raw)
			if errors.Is(err, errHeadPart) {
				continue
			}
			if err != nil {
				return h, nil, false, err
			}
			begun, f, b = true, newFraming(h), raw[n:]
		}
		for len(b) > 0 && !f.done() {
			var data []byte
			if data, b, err = f.next(b); err != nil {
				return h, body, false, err
			}
			body = append(body, data...)
		}
	}
	if !begun {
		return h, nil, false, errHeadPart
	}
	return h, body, f.ends(), nil
}

var answers = []struct {
	name, answer string
	body         string
	ended        bool
	err          string
}{
	{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true, ""},
	{"length cut", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", "hello", false, ""},
	{"length and more", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", "he", true, ""},
	{"nothing", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true, ""},
	{"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhe", "he", true, ""},
	{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=\"y\"\r\nllo\r\n0\r\n\r\n", "hello", true, ""},
	{"chunk sizes", "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n00a \r\n0123456789\r\nB\r\n0123456789a\r\n0\r\n\r\n", "01234567890123456789a", true, ""},
	{"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", "x", true, ""},
	{"chunks cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "hel", false, ""},
	{"no last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", "he", false, ""},
	{"chunked wins", "HTTP/1.1 200 OK\r\nContent-Length: 90\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n", "he", true, ""},
	{"to the end", "HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\nhello", "hello", true, ""},
	{"old", "HTTP/1.0 200 OK\r\n\r\nhello", "hello", true, ""},
	{"old with chunks", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n0\r\n\r\n", "he", true, ""},
	{"LF", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhe", "he", true, ""},
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhe", "he", true, ""},
	{"no content", "HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", "", true, ""},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhe", "", false, "content length"},
	{"bad length", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nhe", "", false, "content length"},
	{"huge length", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhe", "", false, "content length"},
	{"other coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "", false, "transfer encoding"},
	{"bad size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "", false, "chunk's size"},
	{"no size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n;a\r\n", "", false, "chunk's size"},
	{"huge size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "", false, "chunk's size"},
	{"chunk too long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n", "he", false, "longer than its size"},
	{"endless size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 5000), "", false, "does not end"},
	{"endless trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", 20000), "", false, "trailers do not end"},
	{"endless header", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", maxHead), "", false, "larger than 1024 KB"},
	{"folded", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "", false, "second line"},
	{"no colon", "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "", false, "header line"},
	{"space in name", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n", "", false, "header line"},
	{"no HTTP", "SSH-2.0-OpenSSH_9.2\r\n", "", false, "begins with"},
	{"HTTP/2", "HTTP/2 200 OK\r\n\r\n", "", false, "begins with"},
	{"bad status", "HTTP/1.1 2x0 OK\r\n\r\n", "", false, "status line"},
	{"long status", "HTTP/1.1 2000 OK\r\n\r\n", "", false, "status line"},
	{"TLS alert", "\x15\x03\x01\x00\x02\x02\x46", "", false, "TLS"},
}

func TestAnswersSplitEverywhere(t *testing.T) {
	for _, c := range answers {
		t.Run(c.name, func(t *testing.T) {
			b := []byte(c.answer)
			try := func(how string, pieces ...[]byte) {
				t.Helper()
				_, body, ended, err := read(pieces...)
				if c.err != "" {
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Fatalf("%s: got error %v, want one with %q", how, err, c.err)
					}
					return
				}
				if err != nil || string(body) != c.body || ended != c.ended {
					t.Fatalf("%s: got %q, ended %v, %v; want %q, %v", how, body, ended, err, c.body, c.ended)
				}
			}
			try("whole", b)
			for i := 1; i < min(len(b), 300); i++ {
				try(fmt.Sprint("split at ", i), b[:i], b[i:])
			}
		})
	}
}

// FuzzAnswer requires that an answer reads the same in pieces, and as net/http reads it.
func FuzzAnswer(f *testing.F) {
	for _, c := range answers {
		f.Add([]byte(c.answer), uint(20))
	}
	f.Fuzz(func(t *testing.T, b []byte, i uint) {
		h, body, ended, err := read(b)
		i %= uint(len(b)) + 1
		h2, body2, ended2, err2 := read(b[:i], b[i:])
		if (err == nil) != (err2 == nil) || err == nil && (h != h2 || !bytes.Equal(body, body2) || ended != ended2) {
			t.Fatalf("split at %d: %+v %q %v %v, whole: %+v %q %v %v", i, h2, body2, ended2, err2, h, body, ended, err)
		}
		if err != nil || !ended || h.old && h.chunked {
			return
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
		if err != nil {
			return // stricter than we are, about what does not matter here
		}
		theirs, err := io.ReadAll(resp.Body)
		if err != nil {
			return
		}
		if resp.StatusCode != h.status || h.status/100 != 1 && !bytes.Equal(theirs, body) {
			t.Errorf("%q: status %d, body %q; net/http: %d, %q", b, h.status, body, resp.StatusCode, theirs)
		}
	})
}
