package client

import (
	"bytes"
	"fmt"
)

// MaxLine is how long a line of a stream, and the data of one event, may be.
const MaxLine = 16 << 20

// An Event is one server-sent event that has data. Its bytes are valid until emit returns.
type Event struct {
	Name []byte // of the event field; empty = message
	Data []byte // data lines, joined with LF
}

// A Parser cuts a stream of bytes into server-sent events as WHATWG's HTML standard says (section
// "Server-sent events"), in whatever pieces the bytes come. It differs in one point: an event that the
// end of the stream cuts off before its empty line is delivered, since it did arrive. Its zero value
// is ready.
type Parser struct {
	Comments int // lines that begin with a colon

	bom      int    // bytes of a byte order mark matched; begun says when that is over
	begun    bool   //
	lf       bool   // the last line ended in CR: an LF now belongs to it
	line     []byte // an unfinished line
	has      bool   // the event has data
	borrowed []byte // its only data line, in somebody else's memory
	data     []byte // its data lines otherwise
	name     []byte
}

const byteOrderMark = "\xef\xbb\xbf"

// Feed takes the next bytes and calls emit for each event that they complete. It fails when a line or
// an event is longer than MaxLine; the stream cannot be read on then.
func (p *Parser) Feed(b []byte, emit func(Event)) error {
	if !p.begun {
		b = p.begin(b)
	}
	for len(b) > 0 {
		if p.lf {
			p.lf = false
			if b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		i := lineEnd(b)
		n := i
		if i < 0 {
			n = len(b)
		}
		if len(p.line)+n > MaxLine {
			return fmt.Errorf("a line of the stream is longer than %d MB", MaxLine>>20)
		}
		if i < 0 {
			p.own()
			p.line = append(p.line, b...)
			return nil
		}
		line := b[:i]
		if len(p.line) > 0 {
			p.line = append(p.line, line...)
			line = p.line
		}
		p.lf = b[i] == '\r'
		b = b[i+1:]
		if err := p.take(line, emit); err != nil {
			return err
		}
		if cap(p.line) > 256<<10 && p.borrowed == nil {
			p.line = nil
		}
		p.line = p.line[:0]
	}
	p.own()
	return nil
}

// Close says that the stream has ended, and delivers an event that it cut off.
func (p *Parser) Close(emit func(Event)) error {
	if !p.begun && p.bom > 0 { // an incomplete byte order mark is text
		p.begun = true
		p.line = append(p.line, byteOrderMark[:p.bom]...)
	}
	if len(p.line) > 0 {
		p.own()
		line := p.line
		p.line = nil
		if err := p.take(line, emit); err != nil {
			return err
		}
	}
	p.dispatch(emit)
	return nil
}

// begin leaves out a byte order mark at the very beginning.
func (p *Parser) begin(b []byte) []byte {
	for len(b) > 0 {
		if b[0] != byteOrderMark[p.bom] {
			p.begun = true
			p.line = append(p.line, byteOrderMark[:p.bom]...) // it was none
			return b
		}
		p.bom++
		b = b[1:]
		if p.bom == len(byteOrderMark) {
			p.begun = true
			return b
		}
	}
	return b
}

// lineEnd finds the first CR or LF.
func lineEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if j := bytes.IndexByte(b[:i], '\r'); j >= 0 {
		return j
	}
	return i
}

// take takes a whole line.
func (p *Parser) take(line []byte, emit func(Event)) error {
	if len(line) == 0 {
		p.dispatch(emit)
		return nil
	}
	if line[0] == ':' {
		p.Comments++
		return nil
	}
	name, value := line, []byte(nil)
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		name, value = line[:i], line[i+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(name) {
	case "data":
		if !p.has {
			p.has, p.borrowed = true, value
			if value == nil {
				p.borrowed = []byte{}
			}
			return nil
		}
		p.own()
		if len(p.data)+1+len(value) > MaxLine {
			return fmt.Errorf("an event of the stream is longer than %d MB", MaxLine>>20)
		}
		p.data = append(append(p.data, '\n'), value...)
	case "event":
		p.name = append(p.name[:0], value...)
	}
	return nil
}

// own copies a borrowed data line whose memory is about to be used for something else.
func (p *Parser) own() {
	if p.borrowed != nil {
		p.data = append(p.data[:0], p.borrowed...)
		p.borrowed = nil
	}
}

// dispatch delivers the event, if there is one, and begins the next.
func (p *Parser) dispatch(emit func(Event)) {
	if p.has {
		e := Event{Name: p.name, Data: p.data}
		if p.borrowed != nil {
			e.Data = p.borrowed
		}
		emit(e)
	}
	if cap(p.data) > 256<<10 {
		p.data = nil
	}
	p.has, p.borrowed, p.data, p.name = false, nil, p.data[:0], p.name[:0]
}
