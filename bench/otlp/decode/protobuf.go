package decode

import "fmt"

// errStop ends a walk that the visitor does not want to go on.
var errStop = fmt.Errorf("stopped")

func finished(n int, err error) (int, error) {
	if err == errStop {
		err = nil
	}
	return n, err
}

// Logs calls visit for each log record of an ExportLogsServiceRequest, until it returns false. visit
// may be nil: then the body is only checked. It returns the number of records seen; an error means
// that the body is malformed, and that what was visited is what stood before the fault.
func Logs(body string, f Format, visit func(*Origin, *Log) bool) (int, error) {
	var r reader
	if f == JSON {
		return finished(r.jsonLogs(body, visit))
	}
	err := r.scopes(body, func(o *Origin, w *wire) error {
		return r.protoLog(w.bytes(), o, visit)
	})
	return finished(r.count, err)
}

// Metrics calls visit for each data point of an ExportMetricsServiceRequest; see Logs.
func Metrics(body string, f Format, visit func(*Origin, *Point) bool) (int, error) {
	var r reader
	if f == JSON {
		return finished(r.jsonMetrics(body, visit))
	}
	err := r.scopes(body, func(o *Origin, w *wire) error {
		return r.protoMetric(w.bytes(), o, visit)
	})
	return finished(r.count, err)
}

// Traces calls visit for each span of an ExportTraceServiceRequest; see Logs.
func Traces(body string, f Format, visit func(*Origin, *Span) bool) (int, error) {
	var r reader
	if f == JSON {
		return finished(r.jsonTraces(body, visit))
	}
	err := r.scopes(body, func(o *Origin, w *wire) error {
		return r.protoSpan(w.bytes(), o, visit)
	})
	return finished(r.count, err)
}

// scopes walks request → resource → scope, which look alike for the three signals, and calls item for
// each log record, metric or span. The resource may stand behind its scopes, and the scope behind its
// records: each message is walked for these first.
func (r *reader) scopes(body string, item func(o *Origin, w *wire) error) error {
	return each(body, func(w *wire, tag uint64) bool {
		if tag != 1<<3|bytes {
			return false
		}
		if err := r.resource(w.bytes(), item); err != nil {
			w.fail(err)
		}
		return true
	})
}

func (r *reader) resource(message string, item func(o *Origin, w *wire) error) error {
	var attributes Attributes
	r.values = 0
	err := each(message, func(w *wire, tag uint64) bool {
		if tag != 1<<3|bytes {
			return false
		}
		if err := each(w.bytes(), func(w *wire, tag uint64) bool {
			if tag != 1<<3|bytes {
				return false
			}
			r.into(&attributes, w)
			return true
		}); err != nil {
			w.fail(err)
		}
		return true
	})
	if err != nil {
		return err
	}
	return each(message, func(w *wire, tag uint64) bool {
		if tag != 2<<3|bytes {
			return false
		}
		if err := r.scope(w.bytes(), attributes, item); err != nil {
			w.fail(err)
		}
		return true
	})
}

func (r *reader) scope(message string, resource Attributes, item func(o *Origin, w *wire) error) error {
	o := &Origin{Resource: resource}
	r.values = 0
	err := each(message, func(w *wire, tag uint64) bool {
		if tag != 1<<3|bytes {
			return false
		}
		if err := each(w.bytes(), func(w *wire, tag uint64) bool {
			switch tag {
			case 1<<3 | bytes:
				o.ScopeName = w.bytes()
			case 2<<3 | bytes:
				o.ScopeVersion = w.bytes()
			case 3<<3 | bytes:
				r.into(&o.Scope, w)
			default:
				return false
			}
			return true
		}); err != nil {
			w.fail(err)
		}
		return true
	})
	if err != nil {
		return err
	}
	return each(message, func(w *wire, tag uint64) bool {
		if tag != 2<<3|bytes {
			return false
		}
		if err := item(o, w); err != nil {
			w.fail(err)
		}
		return true
	})
}

func id16(s string) (id [16]byte, err error) {
	if len(s) != 0 && len(s) != len(id) {
		return id, fmt.Errorf("a trace id has %d bytes instead of 16", len(s))
	}
	copy(id[:], s)
	return id, nil
}

func id8(s string) (id [8]byte, err error) {
	if len(s) != 0 && len(s) != len(id) {
		return id, fmt.Errorf("a span id has %d bytes instead of 8", len(s))
	}
	copy(id[:], s)
	return id, nil
}

func (r *reader) protoLog(message string, o *Origin, visit func(*Origin, *Log) bool) error {
	r.resetLog()
	l := &r.log
	w := wire{b: message}
	for {
		tag, ok := w.next()
		if !ok {
			break
		}
		var err error
		switch tag {
		case 1<<3 | fixed64:
			l.Time = w.fixed64()
		case 2<<3 | varint:
			l.Severity = int32(w.varint())
		case 3<<3 | bytes:
			l.SeverityText = w.bytes()
		case 5<<3 | bytes:
			l.Body, err = r.value(w.bytes(), 0)
		case 6<<3 | bytes:
			r.into(&l.Attributes, &w)
		case 8<<3 | fixed32:
			l.Flags = w.fixed32()
		case 9<<3 | bytes:
			l.TraceID, err = id16(w.bytes())
		case 10<<3 | bytes:
			l.SpanID, err = id8(w.bytes())
		case 11<<3 | fixed64:
			l.Observed = w.fixed64()
		case 12<<3 | bytes:
			l.Event = w.bytes()
		default:
			w.skip(tag)
		}
		if err != nil {
			w.fail(err)
		}
	}
	if w.err != nil {
		return w.err
	}
	return r.seenLog(o, visit)
}

func (r *reader) seenLog(o *Origin, visit func(*Origin, *Log) bool) error {
	r.count++
	if visit != nil && !visit(o, &r.log) {
		return errStop
	}
	return nil
}

func (r *reader) protoSpan(message string, o *Origin, visit func(*Origin, *Span) bool) error {
	r.resetSpan()
	s := &r.span
	w := wire{b: message}
	for {
		tag, ok := w.next()
		if !ok {
			break
		}
		var err error
		switch tag {
		case 1<<3 | bytes:
			s.TraceID, err = id16(w.bytes())
		case 2<<3 | bytes:
			s.SpanID, err = id8(w.bytes())
		case 4<<3 | bytes:
			s.Parent, err = id8(w.bytes())
		case 5<<3 | bytes:
			s.Name = w.bytes()
		case 6<<3 | varint:
			s.Kind = int32(w.varint())
		case 7<<3 | fixed64:
			s.Start = w.fixed64()
		case 8<<3 | fixed64:
			s.End = w.fixed64()
		case 9<<3 | bytes:
			r.into(&s.Attributes, &w)
		case 11<<3 | bytes:
			err = r.protoSpanEvent(w.bytes())
		case 15<<3 | bytes:
			err = each(w.bytes(), func(w *wire, tag uint64) bool {
				switch tag {
				case 2<<3 | bytes:
					s.StatusDetail = w.bytes()
				case 3<<3 | varint:
					s.Status = int32(w.varint())
				default:
					return false
				}
				return true
			})
		default:
			w.skip(tag)
		}
		if err != nil {
			w.fail(err)
		}
	}
	if w.err != nil {
		return w.err
	}
	return r.seenSpan(o, visit)
}

func (r *reader) protoSpanEvent(message string) error {
	if err := r.more(1); err != nil {
		return err
	}
	var e SpanEvent
	err := each(message, func(w *wire, tag uint64) bool {
		switch tag {
		case 1<<3 | fixed64:
			e.Time = w.fixed64()
		case 2<<3 | bytes:
			e.Name = w.bytes()
		case 3<<3 | bytes:
			r.into(&e.Attributes, w)
		default:
			return false
		}
		return true
	})
	r.span.Events = append(r.span.Events, e)
	return err
}

func (r *reader) seenSpan(o *Origin, visit func(*Origin, *Span) bool) error {
	r.count++
	if visit != nil && !visit(o, &r.span) {
		return errStop
	}
	return nil
}
