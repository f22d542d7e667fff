package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
)

// object writes a JSON object key by key, one a line, and keeps the first error.
type object struct {
	w    *bufio.Writer
	some bool
	err  error
}

func (o *object) begin() { o.raw("{") }
func (o *object) end()   { o.raw("\n}\n") }

func (o *object) close() error {
	if o.err != nil {
		return o.err
	}
	return o.w.Flush()
}

func (o *object) raw(s string) {
	if o.err == nil {
		_, o.err = o.w.WriteString(s)
	}
}

// key writes the comma of the entry before and a key.
func (o *object) key(k string) {
	if o.some {
		o.raw(",")
	}
	o.some = true
	b, _ := json.Marshal(k) // a string always marshals
	o.raw("\n" + string(b) + ": ")
}

func (o *object) put(k string, v any) {
	o.key(k)
	o.value(v)
}

// value writes a value. A json.RawMessage is taken to be JSON and goes out as it is.
func (o *object) value(v any) {
	if raw, ok := v.(json.RawMessage); ok {
		if o.err == nil {
			_, o.err = o.w.Write(raw)
		}
		return
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		v = nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		if o.err == nil {
			o.err = fmt.Errorf("cannot write %T as JSON: %w", v, err)
		}
		return
	}
	if o.err == nil {
		_, o.err = o.w.Write(b)
	}
}

// list writes an array, one element a line.
func (o *object) list(k string, n int, element func(i int) any) {
	o.key(k)
	o.raw("[")
	for i := range n {
		if i > 0 {
			o.raw(",")
		}
		o.raw("\n ")
		o.value(element(i))
	}
	if n > 0 {
		o.raw("\n")
	}
	o.raw("]")
}
