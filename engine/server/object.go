package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"
)

// object is a JSON object as a client sent it: its members in their order, not yet decoded. Every
// getter takes null for absence and refuses another type with a sentence.
type object struct {
	where  string // "" for the request itself, else a prefix of names such as "messages[3]."
	code   Code   // of errors
	keys   []string
	values map[string]json.RawMessage
	used   map[string]bool
	// release gives back what reading the request took, once nothing of it is needed any more.
	release func()
}

// checkJSON refuses what is no JSON text that can be worked with safely.
func checkJSON(data []byte) *Error {
	if len(bytes.TrimSpace(data)) == 0 {
		return fail(InvalidBody, "", "cannot read the request: it has no body; send a JSON object")
	}
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			r, n := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return fail(InvalidBody, "", "cannot read the request: byte %d is not UTF-8; encode the JSON as UTF-8", at)
	}
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fail(InvalidBody, "", "cannot read the request: at byte %d more than %d brackets are open; nest it less deeply", i, maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if !json.Valid(data) {
		var v json.RawMessage
		err := json.Unmarshal(data, &v)
		var s *json.SyntaxError
		if errors.As(err, &s) {
			return fail(InvalidBody, "", "cannot read the request: it is no JSON at byte %d: %v", s.Offset, err)
		}
		return fail(InvalidBody, "", "cannot read the request: it is no JSON")
	}
	return nil
}

// newObject reads an object from JSON that checkJSON has passed.
func newObject(data []byte, code Code, where, name string) (*object, *Error) {
	if kind(data) != "an object" {
		return nil, fail(code, name, "cannot read %s: it must be an object, not %s", called(name), kind(data))
	}
	o := &object{where: where, code: code, values: map[string]json.RawMessage{}, used: map[string]bool{}}
	dec := json.NewDecoder(bytes.NewReader(data))
	_, _ = dec.Token() // {
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, fail(code, name, "cannot read %s: %v", called(name), err)
		}
		key, _ := t.(string)
		if _, twice := o.values[key]; twice {
			return nil, fail(code, where+key, "cannot read %s: it has %q twice; send it once", called(name), key)
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, fail(code, where+key, "cannot read %s: %v", called(name), err)
		}
		if o.keys = append(o.keys, key); len(o.keys) > maxMembers {
			return nil, fail(code, name, "cannot read %s: it has more than %d members", called(name), maxMembers)
		}
		o.values[key] = v
	}
	return o, nil
}

func called(name string) string {
	if name == "" {
		return "the request"
	}
	return name
}

// kind names the type of a JSON value with its article.
func kind(v []byte) string {
	v = bytes.TrimLeft(v, " \t\r\n")
	if len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// raw returns a member as it stands; nil where it is absent or null.
func (o *object) raw(key string) json.RawMessage {
	o.used[key] = true
	if v, ok := o.values[key]; ok && kind(v) != "null" {
		return v
	}
	return nil
}

func (o *object) wrong(key, want string) *Error {
	return fail(o.code, o.where+key, "cannot read %s%s: it must be %s, not %s", o.where, key, want, kind(o.values[key]))
}

func (o *object) text(key string) (s string, ok bool, e *Error) {
	v := o.raw(key)
	if v == nil {
		return "", false, nil
	}
	if json.Unmarshal(v, &s) != nil {
		return "", false, o.wrong(key, "a string")
	}
	return s, true, nil
}

func (o *object) flag(key string, absent bool) (bool, *Error) {
	v := o.raw(key)
	if v == nil {
		return absent, nil
	}
	var b bool
	if json.Unmarshal(v, &b) != nil {
		return absent, o.wrong(key, "true or false")
	}
	return b, nil
}

func (o *object) number(key string) (f float64, ok bool, e *Error) {
	v := o.raw(key)
	if v == nil {
		return 0, false, nil
	}
	if kind(v) != "a number" {
		return 0, false, o.wrong(key, "a number")
	}
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(v)), 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, false, fail(o.code, o.where+key, "cannot read %s%s: %.40s is beyond any number that is computed with", o.where, key, v)
	}
	return f, true, nil
}

// integer reads a whole number, 3.0 included.
func (o *object) integer(key string) (n int64, ok bool, e *Error) {
	v := o.raw(key)
	if v == nil {
		return 0, false, nil
	}
	n, err := wholeNumber(v)
	if err != nil {
		return 0, false, fail(o.code, o.where+key, "cannot read %s%s: it must be a whole number, not %s", o.where, key, err)
	}
	return n, true, nil
}

func wholeNumber(v json.RawMessage) (int64, error) {
	if kind(v) != "a number" {
		return 0, errors.New(kind(v))
	}
	s := string(bytes.TrimSpace(v))
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, fmt.Errorf("%.40s", s)
	}
	return int64(f), nil
}

// child reads a member that is an object; nil where it is absent.
func (o *object) child(key string) (*object, *Error) {
	v := o.raw(key)
	if v == nil {
		return nil, nil
	}
	return newObject(v, o.code, o.where+key+".", o.where+key)
}

// list reads a member that is an array; nil where it is absent.
func (o *object) list(key string, most int) ([]json.RawMessage, *Error) {
	v := o.raw(key)
	if v == nil {
		return nil, nil
	}
	if kind(v) != "an array" {
		return nil, o.wrong(key, "an array")
	}
	items, over := elements(v, most)
	if over {
		return nil, fail(o.code, o.where+key, "cannot take %s%s: it has more than %d elements", o.where, key, most)
	}
	return items, nil
}

// elements cuts an array into its elements without decoding them. It stops when there are more than
// most, so that an array of millions costs no more than its bytes.
func elements(v []byte, most int) (items []json.RawMessage, over bool) {
	items = []json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(v))
	_, _ = dec.Token() // [
	for dec.More() {
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return items, !errors.Is(err, io.EOF)
		}
		if items = append(items, item); len(items) > most {
			return items, true
		}
	}
	return items, false
}

// unused are the members that nothing asked for.
func (o *object) unused() []string {
	var names []string
	for _, k := range o.keys {
		if !o.used[k] {
			names = append(names, k)
		}
	}
	return names
}
