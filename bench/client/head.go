package client

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// head is the beginning of an answer: what matters of its status line and fields.
type head struct {
	status      int
	old         bool // HTTP/1.0
	contentType string
	encoding    string
	server      string
	location    string
	retryAfter  string
	challenge   string // WWW-Authenticate
	length      int64  // of the body; -1 = not said
	chunked     bool
	close       bool // the connection ends with this answer
	keep        bool // an HTTP/1.0 server says that it does not
}

// maxHead bounds the beginning of an answer.
const maxHead = 1 << 20

// errHeadPart says that the beginning of an answer is not complete yet.
var errHeadPart = errors.New("more to come")

// parseHead takes an answer's beginning apart and returns its length. It is strict where a lenient
// reading could mistake where the body ends (RFC 9112, sections 5 and 6), and lenient elsewhere.
func parseHead(b []byte) (h head, n int, err error) {
	h.length = -1
	line, rest, ok := cutLine(b)
	if !ok {
		if bad := notHTTP(b); bad != nil {
			return h, 0, bad
		}
		return h, 0, part(b)
	}
	if h.status, h.old, err = parseStatus(line); err != nil {
		return h, 0, err
	}
	for {
		if line, rest, ok = cutLine(rest); !ok {
			return h, 0, part(b)
		}
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return h, 0, fmt.Errorf("a header field goes on in a second line: %s", quote(line))
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return h, 0, fmt.Errorf("a header line is none: %s", quote(line))
		}
		if err := h.set(name, string(bytes.Trim(value, " \t"))); err != nil {
			return h, 0, err
		}
	}
	if h.chunked {
		h.length = -1 // RFC 9112, 6.3: the coding wins
	}
	if h.status == 204 || h.status == 304 || h.status/100 == 1 {
		h.length, h.chunked = 0, false
	}
	// Chunks in HTTP/1.0 are a fault (RFC 9112, 6.1), of small Python servers above all: they are read,
	// and the connection is not used again.
	if h.old && (!h.keep || h.chunked) {
		h.close = true
	}
	return h, len(b) - len(rest), nil
}

func part(b []byte) error {
	if len(b) > maxHead {
		return fmt.Errorf("its header is larger than %d KB", maxHead>>10)
	}
	return errHeadPart
}

// cutLine cuts a line off, with LF or CRLF at its end.
func cutLine(b []byte) (line, rest []byte, ok bool) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, b, false
	}
	return bytes.TrimSuffix(b[:i], []byte("\r")), b[i+1:], true
}

// notHTTP recognises at the first bytes what cannot become an HTTP/1 answer.
func notHTTP(b []byte) error {
	const proto = "HTTP/1."
	if n := min(len(b), len(proto)); string(b[:n]) == proto[:n] {
		return nil
	}
	if b[0] == 0x15 || b[0] == 0x16 { // TLS alert, handshake
		return errSpeaksTLS
	}
	return fmt.Errorf("it begins with %s", quote(b))
}

func parseStatus(line []byte) (status int, old bool, err error) {
	if len(line) == 0 {
		return 0, false, errors.New("it begins with an empty line")
	}
	if err := notHTTP(line); err != nil {
		return 0, false, err
	}
	s := string(line)
	if len(s) < len("HTTP/1.1 200") || s[7] != '0' && s[7] != '1' || s[8] != ' ' || len(s) > 12 && s[12] != ' ' {
		return 0, false, fmt.Errorf("its status line is %s", quote(line))
	}
	for _, c := range s[9:12] {
		if c < '0' || c > '9' {
			return 0, false, fmt.Errorf("its status line is %s", quote(line))
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 {
		return 0, false, fmt.Errorf("its status line is %s", quote(line))
	}
	return status, s[7] == '0', nil
}

// set takes one field.
func (h *head) set(name []byte, value string) error {
	switch strings.ToLower(string(name)) {
	case "content-type":
		h.contentType = value
	case "content-encoding":
		if !strings.EqualFold(value, "identity") {
			h.encoding = strings.ToLower(value)
		}
	case "server":
		h.server = value
	case "location":
		h.location = value
	case "retry-after":
		h.retryAfter = value
	case "www-authenticate":
		h.challenge = value
	case "connection":
		for _, option := range strings.Split(value, ",") {
			option = strings.TrimSpace(option)
			h.close = h.close || strings.EqualFold(option, "close")
			h.keep = h.keep || strings.EqualFold(option, "keep-alive")
		}
	case "transfer-encoding":
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return fmt.Errorf("its transfer encoding is %q; only \"chunked\" is understood", value)
		}
		h.chunked = true
	case "content-length":
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil || h.length >= 0 && h.length != int64(n) {
			return fmt.Errorf("its content length is %q", value)
		}
		h.length = int64(n)
	}
	return nil
}

// quote shows the beginning of some bytes within a sentence.
func quote(b []byte) string {
	if len(b) > 40 {
		return strconv.Quote(string(b[:40])) + "…"
	}
	return strconv.Quote(string(b))
}
