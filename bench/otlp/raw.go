package otlp

import (
	"fmt"
	"strconv"
	"strings"
	"time"

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

// rawRing keeps the latest records.
type rawRing struct {
	ring    []Raw
	next    int
	number  uint64
	scratch []byte
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
	r.ring, r.next = append(make([]Raw, 0, n), kept[max(0, len(kept)-n):]...), 0
}

func (r *rawRing) clear() {
	clear(r.ring)
	r.ring, r.next = r.ring[:0], 0
}

func (r *rawRing) ordered() []Raw {
	return append(append(make([]Raw, 0, len(r.ring)), r.ring[r.next:]...), r.ring[:r.next]...)
}

func (r *rawRing) push(x Raw, a decode.Attributes) {
	b := r.scratch[:0]
	for i := range a {
		if len(b) > rawAttributes {
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
	x.Attributes = start(string(b), rawAttributes)
	r.scratch = b
	r.number++
	x.Number = r.number
	if len(r.ring) < cap(r.ring) {
		r.ring = append(r.ring, x)
		return
	}
	r.ring[r.next] = x
	r.next = (r.next + 1) % len(r.ring)
}

// start is the first n bytes of a text, in memory of its own.
func start(s string, n int) string {
	if len(s) <= n {
		return decode.Short(s, n)
	}
	return decode.Short(s, n) + "…"
}

func (r *rawRing) log(received time.Duration, service string, l *decode.Log) {
	x := Raw{Signal: "log", Received: received, Time: int64(l.Time), Service: service, Severity: decode.Short(l.SeverityText, mostName), Body: start(l.Body.String(), rawBody)}
	if x.Severity == "" && l.Severity != 0 {
		x.Severity = strconv.Itoa(int(l.Severity))
	}
	if x.Name = decode.Short(l.Event, mostName); x.Name == "" {
		x.Name = decode.Short(l.Attributes.Text("event", "event.name"), mostName)
	}
	r.push(x, l.Attributes)
}

func (r *rawRing) point(received time.Duration, service string, p *decode.Point) {
	x := Raw{Signal: "metric", Received: received, Time: int64(p.Time), Service: service, Name: decode.Short(p.Name, mostName)}
	switch p.Kind {
	case decode.Gauge, decode.Sum:
		x.Body = decode.Short(strconv.FormatFloat(p.Value, 'g', -1, 64)+" "+p.Unit, mostName)
	default:
		x.Body = decode.Short(fmt.Sprintf("%s: count %d, sum %g %s", p.Kind, p.Count, p.Sum, p.Unit), mostName)
	}
	r.push(x, p.Attributes)
}

func (r *rawRing) span(received time.Duration, service string, s *decode.Span) {
	r.push(Raw{Signal: "span", Received: received, Time: int64(s.Start), Service: service, Name: decode.Short(s.Name, mostName),
		Body: fmt.Sprintf("%.6f s", float64(s.End-s.Start)/1e9)}, s.Attributes)
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
		if filter == "" || strings.Contains(x.Name, filter) || strings.Contains(x.Service, filter) || strings.Contains(x.Body, filter) ||
			strings.Contains(x.Attributes, filter) || x.Signal == filter {
			out = append(out, *x)
		}
	}
	return out
}
