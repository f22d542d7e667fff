package sim

import (
	"net/http"
	"strconv"
	"time"
)

// script is a reply ready to be sent: every byte, and when each write is due.
type script struct {
	scenario string
	wire     []byte
	sends    []send
	chunks   []chunk
	end      ending
}

// send is one write.
type send struct {
	due    time.Duration // since the request was read
	end    int           // offset in wire behind it; equal to the one before: nothing to write
	chunks int           // chunks whose last byte it carries
}

// chunk is what the log will say of one event.
type chunk struct {
	kind   string
	choice int
	tokens int
	bytes  int           // of the event, without transfer framing
	due    time.Duration // by the schedule; buffering and splitting send it later
}

// put appends bytes that are one write.
func (p *script) put(due time.Duration, chunks int, data string) {
	p.wire = append(p.wire, data...)
	p.sends = append(p.sends, send{due: due, end: len(p.wire), chunks: chunks})
}

// putHeaders appends the response headers, all at once or line by line.
func (p *script) putHeaders(s *Scenario, due time.Duration, lines []string) {
	first := len(p.wire)
	for i, line := range lines {
		switch {
		case s.HeaderTrickle:
			p.put(due*time.Duration(i)/time.Duration(len(lines)-1), 0, line)
		case i == len(lines)-1:
			p.put(due, 0, line)
		default:
			p.wire = append(p.wire, line...)
		}
	}
	p.sends[len(p.sends)-1].chunks = 1
	p.chunks = append(p.chunks, chunk{kind: KindHeaders, bytes: len(p.wire) - first, due: due})
}

// headerLines are the status line and the headers of a reply, each with its
// CRLF, and the empty line behind them.
func headerLines(status int, id string, headers []string) []string {
	lines := []string{
		"HTTP/1.1 " + strconv.Itoa(status) + " " + statusText(status) + "\r\n",
		"Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n",
		"Server: velo-sim\r\n",
		"X-Request-Id: " + id + "\r\n",
	}
	for _, h := range headers {
		lines = append(lines, h+"\r\n")
	}
	return append(lines, "\r\n")
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Status " + strconv.Itoa(status)
}

// document is a reply that is not a stream.
type document struct {
	status  int
	headers []string // beyond the usual ones
	kind    string
	tokens  int
	due     time.Duration
	body    []byte
	half    bool // send half of the body, though its length is announced whole
	end     ending
}

// documentScript frames a document.
func documentScript(s *Scenario, id string, d document) *script {
	p := &script{scenario: s.Name, end: d.end}
	body := d.body
	if s.Gzip {
		body = compress(body)
		d.headers = append(d.headers, "Content-Encoding: gzip")
	}
	d.headers = append(d.headers, "Content-Length: "+strconv.Itoa(len(body)))
	if d.end == endClose {
		d.headers = append(d.headers, "Connection: close")
	}
	if d.half {
		body = body[:len(body)/2]
	}
	d.due = max(d.due, time.Duration(s.HeaderDelay))
	if s.HeaderTrickle {
		p.putHeaders(s, time.Duration(s.HeaderDelay), headerLines(d.status, id, d.headers))
		p.put(d.due, 1, string(body))
	} else {
		p.putHeaders(s, d.due, headerLines(d.status, id, d.headers))
		// Headers and body go out together, as net/http and uvicorn do it.
		p.wire = append(p.wire, body...)
		p.sends[0] = send{due: d.due, end: len(p.wire), chunks: 2}
	}
	p.chunks = append(p.chunks, chunk{kind: d.kind, tokens: d.tokens, bytes: len(body), due: d.due})
	return p
}
