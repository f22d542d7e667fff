package decode

import (
	"errors"
	"math"
)

// wire walks the fields of a protobuf message. A tag is number<<3 | wire type; a field that has another
// wire type than the schema says is an unknown one.
type wire struct {
	b   string
	err error
}

// The wire types.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
	group   = 3
	endOf   = 4
	fixed32 = 5
)

var (
	errShort   = errors.New("malformed protobuf: a field ends after the message")
	errVarint  = errors.New("malformed protobuf: a number has more than 64 bits")
	errTag     = errors.New("malformed protobuf: a field has no valid tag")
	errGroup   = errors.New("malformed protobuf: groups do not match")
	errNesting = errors.New("values lie in each other too deep")
)

// next is the next field's tag; false at the end or after an error.
func (w *wire) next() (tag uint64, ok bool) {
	if w.err != nil || w.b == "" {
		return 0, false
	}
	tag = w.varint()
	if n := tag >> 3; w.err == nil && (n == 0 || n > 1<<29-1 || tag&7 > fixed32 || tag&7 == endOf) {
		w.fail(errTag)
	}
	return tag, w.err == nil
}

func (w *wire) fail(err error) {
	if w.err == nil {
		w.err, w.b = err, ""
	}
}

func (w *wire) varint() uint64 {
	var v uint64
	for i := 0; i < len(w.b); i++ {
		c := w.b[i]
		if i == 9 && c > 1 {
			w.fail(errVarint)
			return 0
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			w.b = w.b[i+1:]
			return v
		}
	}
	w.fail(errShort)
	return 0
}

func (w *wire) fixed64() uint64 {
	if len(w.b) < 8 {
		w.fail(errShort)
		return 0
	}
	v := uint64(w.fixed(4)) | uint64(w.fixed(8))<<32
	w.b = w.b[8:]
	return v
}

// fixed is the 32-bit number whose last byte is before end.
func (w *wire) fixed(end int) uint32 {
	b := w.b[end-4 : end]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

func (w *wire) fixed32() uint32 {
	if len(w.b) < 4 {
		w.fail(errShort)
		return 0
	}
	v := w.fixed(4)
	w.b = w.b[4:]
	return v
}

func (w *wire) double() float64 { return math.Float64frombits(w.fixed64()) }

func (w *wire) bytes() string {
	n := w.varint()
	if w.err != nil || n > uint64(len(w.b)) {
		w.fail(errShort)
		return ""
	}
	s := w.b[:n]
	w.b = w.b[n:]
	return s
}

func (w *wire) zigzag() int32 {
	v := uint32(w.varint())
	return int32(v>>1) ^ -int32(v&1)
}

// skip takes an unknown field's value.
func (w *wire) skip(tag uint64) { w.skipAt(tag, 0) }

func (w *wire) skipAt(tag uint64, depth int) {
	switch tag & 7 {
	case varint:
		w.varint()
	case fixed64:
		w.fixed64()
	case bytes:
		w.bytes()
	case fixed32:
		w.fixed32()
	case group:
		if depth > mostNesting {
			w.fail(errNesting)
			return
		}
		for w.err == nil {
			t := w.varint()
			if w.err != nil {
				return
			}
			if t&7 == endOf {
				if t>>3 != tag>>3 {
					w.fail(errGroup)
				}
				return
			}
			if t>>3 == 0 || t>>3 > 1<<29-1 || t&7 > fixed32 {
				w.fail(errTag)
				return
			}
			w.skipAt(t, depth+1)
		}
	default:
		w.fail(errTag)
	}
}

// each walks the fields of a message: take returns false for a field that it does not know.
func each(message string, take func(w *wire, tag uint64) bool) error {
	w := wire{b: message}
	for {
		tag, ok := w.next()
		if !ok {
			return w.err
		}
		if !take(&w, tag) {
			w.skip(tag)
		}
	}
}

// attribute reads a KeyValue.
func (r *reader) attribute(message string, depth int) (a Attribute, err error) {
	if err = r.more(1); err != nil {
		return a, err
	}
	w := wire{b: message}
	for {
		tag, ok := w.next()
		if !ok {
			return a, w.err
		}
		switch tag {
		case 1<<3 | bytes:
			a.Key = w.bytes()
		case 2<<3 | bytes:
			if a.Value, err = r.value(w.bytes(), depth); err != nil {
				w.fail(err)
			}
		default:
			w.skip(tag)
		}
	}
}

// into appends the attribute of a message to a list, and passes its error on.
func (r *reader) into(list *Attributes, w *wire) {
	a, err := r.attribute(w.bytes(), 0)
	if err != nil {
		w.fail(err)
		return
	}
	*list = append(*list, a)
}

// value reads an AnyValue.
func (r *reader) value(message string, depth int) (v Value, err error) {
	if depth > mostNesting {
		return v, errNesting
	}
	w := wire{b: message}
	for {
		tag, ok := w.next()
		if !ok {
			return v, w.err
		}
		switch tag {
		case 1<<3 | bytes:
			v = Value{Kind: String, text: w.bytes()}
		case 2<<3 | varint:
			v = Value{Kind: Bool}
			if w.varint() != 0 {
				v.bits = 1
			}
		case 3<<3 | varint:
			v = Value{Kind: Int, bits: w.varint()}
		case 4<<3 | fixed64:
			v = Value{Kind: Double, bits: w.fixed64()}
		case 5<<3 | bytes, 6<<3 | bytes:
			kind := List
			if tag>>3 == 6 {
				kind = Map
			}
			if v.Kind != kind { // a message that comes in parts is put together
				v = Value{Kind: kind, nest: &nest{}}
			}
			r.nested(w.bytes(), v.nest, kind, depth+1, &w)
		case 7<<3 | bytes:
			v = Value{Kind: Bytes, text: w.bytes()}
		default:
			w.skip(tag)
		}
	}
}

// nested reads an ArrayValue or a KeyValueList.
func (r *reader) nested(message string, n *nest, kind Kind, depth int, outer *wire) {
	err := each(message, func(w *wire, tag uint64) bool {
		if tag != 1<<3|bytes {
			return false
		}
		if kind == Map {
			a, err := r.attribute(w.bytes(), depth)
			if err != nil {
				w.fail(err)
			}
			n.attr = append(n.attr, a)
			return true
		}
		v, err := r.value(w.bytes(), depth)
		if err == nil {
			err = r.more(1)
		}
		if err != nil {
			w.fail(err)
		}
		n.list = append(n.list, v)
		return true
	})
	if err != nil {
		outer.fail(err)
	}
}
