package decode

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"velo/bench/otlp/scan"
)

// object walks an object: take returns false for a member that it does not know.
func object(p *scan.Scanner, take func(key string) bool) {
	for n, ok := 0, p.Object(); ok; {
		var key string
		if key, ok = p.Key(&n); ok && !take(key) {
			p.Skip()
		}
	}
}

// array walks an array.
func array(p *scan.Scanner, item func()) {
	for n, ok := 0, p.Array(); ok; {
		if ok = p.Item(&n); ok {
			item()
		}
	}
}

// jsonScopes walks request → resource → scope. What holds records is read at once where its head has
// come before it, as encoders write it, and after the head otherwise.
func jsonScopes(r *reader, body string, resources, scopes, records [2]string, item func(p *scan.Scanner, o *Origin) error) error {
	p := scan.New(body)
	var stop error
	object(&p, func(key string) bool {
		if key != resources[0] && key != resources[1] {
			return false
		}
		array(&p, func() {
			if stop = r.jsonResource(&p, scopes, records, item); stop != nil {
				p.Fail("stopped")
			}
		})
		return true
	})
	if stop != nil {
		return stop
	}
	return p.End()
}

func (r *reader) jsonResource(p *scan.Scanner, scopes, records [2]string, item func(*scan.Scanner, *Origin) error) (stop error) {
	var attributes Attributes
	var later []string
	headed := false
	r.values = 0
	walk := func(p *scan.Scanner) {
		array(p, func() {
			if stop = r.jsonScope(p, attributes, records, item); stop != nil {
				p.Fail("stopped")
			}
		})
	}
	object(p, func(key string) bool {
		switch {
		case key == "resource":
			headed = true
			object(p, func(key string) bool {
				if key != "attributes" {
					return false
				}
				attributes = r.jsonAttributes(p, attributes[:0], 0)
				return true
			})
		case key == scopes[0] || key == scopes[1]:
			if headed {
				walk(p)
			} else {
				later = append(later, p.Raw())
			}
		default:
			return false
		}
		return true
	})
	for _, raw := range later {
		if stop != nil || p.Err() != nil {
			break
		}
		q := scan.New(raw)
		walk(&q)
		if stop == nil {
			stop = q.Err()
		}
	}
	return stop
}

func (r *reader) jsonScope(p *scan.Scanner, resource Attributes, records [2]string, item func(*scan.Scanner, *Origin) error) (stop error) {
	o := &Origin{Resource: resource}
	var later []string
	headed := false
	r.values = 0
	walk := func(p *scan.Scanner) {
		array(p, func() {
			if stop = item(p, o); stop != nil {
				p.Fail("stopped")
			}
		})
	}
	object(p, func(key string) bool {
		switch {
		case key == "scope":
			headed = true
			object(p, func(key string) bool {
				switch key {
				case "name":
					o.ScopeName = p.Text()
				case "version":
					o.ScopeVersion = p.Text()
				case "attributes":
					o.Scope = r.jsonAttributes(p, o.Scope[:0], 0)
				default:
					return false
				}
				return true
			})
		case key == records[0] || key == records[1]:
			if headed {
				walk(p)
			} else {
				later = append(later, p.Raw())
			}
		default:
			return false
		}
		return true
	})
	for _, raw := range later {
		if stop != nil || p.Err() != nil {
			break
		}
		q := scan.New(raw)
		walk(&q)
		if stop == nil {
			stop = q.Err()
		}
	}
	return stop
}

// jsonAttributes reads attributes: an array of {"key", "value"}, or a plain object.
func (r *reader) jsonAttributes(p *scan.Scanner, into Attributes, depth int) Attributes {
	add := func(a Attribute) {
		if err := r.more(1); err != nil {
			p.Fail(err.Error())
			return
		}
		into = append(into, a)
	}
	if p.Next() == '{' {
		object(p, func(key string) bool {
			add(Attribute{key, r.jsonPlain(p, depth)})
			return true
		})
		return into
	}
	array(p, func() {
		var a Attribute
		object(p, func(key string) bool {
			switch key {
			case "key":
				a.Key = p.Text()
			case "value":
				a.Value = r.jsonValue(p, depth)
			default:
				return false
			}
			return true
		})
		add(a)
	})
	return into
}

// jsonValue reads an AnyValue: an object with one member that names the type. Anything but an object
// is taken as the value itself.
func (r *reader) jsonValue(p *scan.Scanner, depth int) (v Value) {
	if depth > mostNesting {
		p.Fail(errNesting.Error())
		return v
	}
	if p.Next() != '{' {
		return r.jsonPlain(p, depth)
	}
	object(p, func(key string) bool {
		switch key {
		case "stringValue", "string_value":
			v = Value{Kind: String, text: p.Text()}
		case "boolValue", "bool_value":
			v = Value{Kind: Bool}
			if p.Bool() {
				v.bits = 1
			}
		case "intValue", "int_value":
			v = Value{Kind: Int, bits: uint64(p.Int())}
		case "doubleValue", "double_value":
			v = Value{Kind: Double, bits: math.Float64bits(p.Float())}
		case "bytesValue", "bytes_value":
			v = Value{Kind: Bytes, text: base64Text(p)}
		case "arrayValue", "array_value":
			v = Value{Kind: List, nest: &nest{}}
			object(p, func(key string) bool {
				if key != "values" {
					return false
				}
				array(p, func() {
					x := r.jsonValue(p, depth+1)
					if err := r.more(1); err != nil {
						p.Fail(err.Error())
					}
					v.nest.list = append(v.nest.list, x)
				})
				return true
			})
		case "kvlistValue", "kvlist_value":
			v = Value{Kind: Map, nest: &nest{}}
			object(p, func(key string) bool {
				if key != "values" && key != "fields" {
					return false
				}
				v.nest.attr = r.jsonAttributes(p, nil, depth+1)
				return true
			})
		default:
			return false
		}
		return true
	})
	return v
}

// jsonPlain reads a value that is written as JSON itself has it.
func (r *reader) jsonPlain(p *scan.Scanner, depth int) (v Value) {
	if depth > mostNesting {
		p.Fail(errNesting.Error())
		return v
	}
	switch p.Next() {
	case '"':
		return Value{Kind: String, text: p.String()}
	case 't', 'f':
		v.Kind = Bool
		if p.Bool() {
			v.bits = 1
		}
	case '0':
		t := p.Raw()
		q := scan.New(t)
		if !strings.ContainsAny(t, ".eE") {
			if n := q.Int(); q.Err() == nil {
				return Value{Kind: Int, bits: uint64(n)}
			}
			q = scan.New(t)
		}
		return Value{Kind: Double, bits: math.Float64bits(q.Float())}
	case '[':
		v = Value{Kind: List, nest: &nest{}}
		array(p, func() {
			x := r.jsonPlain(p, depth+1)
			if err := r.more(1); err != nil {
				p.Fail(err.Error())
			}
			v.nest.list = append(v.nest.list, x)
		})
	case '{':
		v = Value{Kind: Map, nest: &nest{}}
		v.nest.attr = r.jsonAttributes(p, nil, depth+1)
	default:
		p.Skip()
	}
	return v
}

func base64Text(p *scan.Scanner) string {
	t := p.Text()
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := e.DecodeString(t); err == nil {
			return string(b)
		}
	}
	p.Fail("a value of bytes is not base64")
	return ""
}

// jsonID reads a trace or span id: hexadecimal, in either case, or empty.
func jsonID(p *scan.Scanner, id []byte) {
	t := p.Text()
	if t == "" {
		clear(id)
		return
	}
	if len(t) != 2*len(id) {
		p.Fail(fmt.Sprintf("an id has %d characters instead of %d", len(t), 2*len(id)))
		return
	}
	if _, err := hex.Decode(id, []byte(t)); err != nil {
		p.Fail("an id is not hexadecimal")
	}
}

// jsonEnum reads an enum: a whole number, or its name.
func jsonEnum(p *scan.Scanner, names map[string]int64) int32 {
	if p.Next() == '"' {
		raw := p.Raw()
		q := scan.New(raw)
		if n, ok := names[q.String()]; ok {
			return int32(n)
		}
		q = scan.New(raw)
		n := q.Int()
		if q.Err() != nil {
			return 0 // a name that is not known is a value that is not known
		}
		return int32(n)
	}
	return int32(p.Int())
}

func (r *reader) jsonLogs(body string, visit func(*Origin, *Log) bool) (int, error) {
	err := jsonScopes(r, body, [2]string{"resourceLogs", "resource_logs"}, [2]string{"scopeLogs", "scope_logs"},
		[2]string{"logRecords", "log_records"}, func(p *scan.Scanner, o *Origin) error {
			r.resetLog()
			r.jsonLog(p)
			if p.Err() != nil {
				return nil
			}
			return r.seenLog(o, visit)
		})
	return r.count, err
}

func (r *reader) jsonLog(p *scan.Scanner) {
	l := &r.log
	object(p, func(key string) bool {
		switch key {
		case "timeUnixNano", "time_unix_nano":
			l.Time = p.Uint()
		case "observedTimeUnixNano", "observed_time_unix_nano":
			l.Observed = p.Uint()
		case "severityNumber", "severity_number":
			l.Severity = jsonEnum(p, nil)
		case "severityText", "severity_text":
			l.SeverityText = p.Text()
		case "body":
			if p.Next() != '{' {
				l.Body = r.jsonPlain(p, 0)
				break
			}
			start := p.Offset()
			if l.Body = r.jsonValue(p, 0); l.Body.Kind == Empty { // an object of its own, not a typed value
				if raw := p.Since(start); len(raw) > 2 {
					l.Body = Value{Kind: String, text: raw}
				}
			}
		case "attributes":
			l.Attributes = r.jsonAttributes(p, l.Attributes[:0], 0)
		case "flags":
			l.Flags = uint32(p.Uint())
		case "traceId", "trace_id":
			jsonID(p, l.TraceID[:])
		case "spanId", "span_id":
			jsonID(p, l.SpanID[:])
		case "eventName", "event_name":
			l.Event = p.Text()
		default:
			return false
		}
		return true
	})
}

var spanKinds = map[string]int64{"SPAN_KIND_INTERNAL": 1, "SPAN_KIND_SERVER": 2, "SPAN_KIND_CLIENT": 3, "SPAN_KIND_PRODUCER": 4, "SPAN_KIND_CONSUMER": 5}

var spanStatuses = map[string]int64{"STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}

func (r *reader) jsonTraces(body string, visit func(*Origin, *Span) bool) (int, error) {
	err := jsonScopes(r, body, [2]string{"resourceSpans", "resource_spans"}, [2]string{"scopeSpans", "scope_spans"},
		[2]string{"spans", "spans"}, func(p *scan.Scanner, o *Origin) error {
			r.resetSpan()
			r.jsonSpan(p)
			if p.Err() != nil {
				return nil
			}
			return r.seenSpan(o, visit)
		})
	return r.count, err
}

func (r *reader) jsonSpan(p *scan.Scanner) {
	s := &r.span
	object(p, func(key string) bool {
		switch key {
		case "traceId", "trace_id":
			jsonID(p, s.TraceID[:])
		case "spanId", "span_id":
			jsonID(p, s.SpanID[:])
		case "parentSpanId", "parent_span_id":
			jsonID(p, s.Parent[:])
		case "name":
			s.Name = p.Text()
		case "kind":
			s.Kind = jsonEnum(p, spanKinds)
		case "startTimeUnixNano", "start_time_unix_nano":
			s.Start = p.Uint()
		case "endTimeUnixNano", "end_time_unix_nano":
			s.End = p.Uint()
		case "attributes":
			s.Attributes = r.jsonAttributes(p, s.Attributes[:0], 0)
		case "events":
			array(p, func() {
				var e SpanEvent
				if err := r.more(1); err != nil {
					p.Fail(err.Error())
				}
				object(p, func(key string) bool {
					switch key {
					case "timeUnixNano", "time_unix_nano":
						e.Time = p.Uint()
					case "name":
						e.Name = p.Text()
					case "attributes":
						e.Attributes = r.jsonAttributes(p, nil, 0)
					default:
						return false
					}
					return true
				})
				s.Events = append(s.Events, e)
			})
		case "status":
			object(p, func(key string) bool {
				switch key {
				case "message":
					s.StatusDetail = p.Text()
				case "code":
					s.Status = jsonEnum(p, spanStatuses)
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
}
