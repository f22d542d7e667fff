package otlp

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"velo/bench/otlp/decode"
)

// Raw is one record as it came, for the viewer.
type Raw struct {
	Number   uint64        // 1, 2, … since the receiver was made
	Signal   string        // "log", "metric" or "span"
	Received time.Duration // receiver's time
	Time     int64         // the emitter's, nanoseconds since 1970; 0 = not given
	Service  string
	Name     string // of the event, metric or span
	Severity string
	Body     string // at most 1,000 bytes of it
	// Attributes are lines of name=value, at most 2,000 bytes; line ends inside of them are spaces.
	Attributes string
}

// Bounds of what is kept of a record.
const (
	rawBody       = 1000
	rawAttributes = 2000
	rawRecords    = 2000
)

// rawRing keeps the latest records. Their texts are in memory that the next record in the same place uses
// again: in a flood most are never looked at.
type rawRing struct {
	ring   []rawRecord
	next   int
	number uint64
}

// rawRecord is a record that is kept. Its texts follow each other in text.
type rawRecord struct {
	signal, service                    string // of constants and of the hub
	number                             uint64
	received                           time.Duration
	time                               int64
	text                               []byte
	severityEnd, nameEnd, attributeEnd int
}

// place makes the place of the next record, and returns it.
func (r *rawRing) place() *rawRecord {
	r.number++
	var x *rawRecord
	if len(r.ring) < cap(r.ring) {
		r.ring = append(r.ring, rawRecord{})
		x = &r.ring[len(r.ring)-1]
	} else {
		x = &r.ring[r.next]
		r.next = (r.next + 1) % len(r.ring)
	}
	text := x.text[:0]
	if cap(text) > 4*(rawBody+rawAttributes) {
		text = nil
	}
	*x = rawRecord{number: r.number, text: text}
	return x
}

func (r *rawRing) resize(n int) {
	if n <= 0 {
		n = rawRecords
	}
	n = min(n, 100_000)
	if n == cap(r.ring) {
		return
	}
	kept := r.ordered()
	r.ring, r.next = append(make([]rawRecord, 0, n), kept[max(0, len(kept)-n):]...), 0
}

func (r *rawRing) clear() {
	clear(r.ring)
	r.ring, r.next = r.ring[:0], 0
}

func (r *rawRing) ordered() []rawRecord {
	return append(append(make([]rawRecord, 0, len(r.ring)), r.ring[r.next:]...), r.ring[:r.next]...)
}

// begin takes severity and name, attributes and body are to follow in this order.
func (x *rawRecord) begin(severity, name string) {
	x.text = appendStart(x.text, severity, mostName, "")
	x.severityEnd = len(x.text)
	x.text = appendStart(x.text, name, mostName, "")
	x.nameEnd = len(x.text)
}

// attributes takes them one a line.
func (x *rawRecord) attributes(a decode.Attributes) {
	b, began := x.text, len(x.text)
	for i := range a {
		if len(b)-began > rawAttributes {
			break
		}
		if i > 0 {
			b = append(b, '\n')
		}
		from := len(b)
		b = append(b, a[i].Key[:min(len(a[i].Key), rawAttributes)]...)
		b = append(b, '=')
		v := a[i].Value.String()
		b = append(b, v[:min(len(v), rawAttributes)]...)
		for j := from; j < len(b); j++ {
			if b[j] == '\n' || b[j] == '\r' {
				b[j] = ' '
			}
		}
	}
	if len(b)-began > rawAttributes || !utf8.Valid(b[began:]) {
		b = appendStart(b[:began], string(b[began:]), rawAttributes, "…")
	}
	x.text, x.attributeEnd = b, len(b)
}

// appendStart appends the first n bytes of a text as valid UTF-8, and more where something was cut.
func appendStart(b []byte, s string, n int, more string) []byte {
	if len(s) <= n {
		more = ""
		if utf8.ValidString(s) {
			return append(b, s...)
		}
	}
	return append(append(b, decode.Short(s, n)...), more...)
}

func (r *rawRing) log(received time.Duration, service string, l *decode.Log) {
	x := r.place()
	x.signal, x.received, x.time, x.service = "log", received, int64(l.Time), service
	severity, name := l.SeverityText, l.Event
	if severity == "" && l.Severity != 0 {
		severity = strconv.Itoa(int(l.Severity))
	}
	if name == "" {
		name = l.Attributes.Text("event", "event.name")
	}
	x.begin(severity, name)
	x.attributes(l.Attributes)
	x.text = appendStart(x.text, l.Body.String(), rawBody, "…")
}

func (r *rawRing) point(received time.Duration, service string, p *decode.Point) {
	x := r.place()
	x.signal, x.received, x.time, x.service = "metric", received, int64(p.Time), service
	x.begin("", p.Name)
	x.attributes(p.Attributes)
	switch p.Kind {
	case decode.Gauge, decode.Sum:
		x.text = appendStart(append(strconv.AppendFloat(x.text, p.Value, 'g', -1, 64), ' '), p.Unit, mostName, "")
	default:
		x.text = appendStart(x.text, fmt.Sprintf("%s: count %d, sum %g %s", p.Kind, p.Count, p.Sum, p.Unit), mostName, "")
	}
}

func (r *rawRing) span(received time.Duration, service string, s *decode.Span) {
	x := r.place()
	x.signal, x.received, x.time, x.service = "span", received, int64(s.Start), service
	x.begin("", s.Name)
	x.attributes(s.Attributes)
	x.text = fmt.Appendf(x.text, "%.6f s", float64(s.End-s.Start)/1e9)
}

// has tells whether one of a record's texts contains the filter.
func (x *rawRecord) has(filter string) bool {
	f := []byte(filter)
	return strings.Contains(x.service, filter) || x.signal == filter || bytes.Contains(x.text[x.severityEnd:x.nameEnd], f) ||
		bytes.Contains(x.text[x.nameEnd:x.attributeEnd], f) || bytes.Contains(x.text[x.attributeEnd:], f)
}

// find returns the latest records that contain the filter, the latest first.
func (r *rawRing) find(filter string, limit int) []Raw {
	if limit <= 0 {
		return nil
	}
	var out []Raw
	n := len(r.ring)
	for i := 1; i <= n && len(out) < limit; i++ {
		x := &r.ring[(r.next-i+2*n)%n]
		if filter != "" && !x.has(filter) {
			continue
		}
		text := string(x.text)
		out = append(out, Raw{Number: x.number, Signal: x.signal, Received: x.received, Time: x.time, Service: x.service,
			Severity: text[:x.severityEnd], Name: text[x.severityEnd:x.nameEnd],
			Attributes: text[x.nameEnd:x.attributeEnd], Body: text[x.attributeEnd:]})
	}
	return out
}
