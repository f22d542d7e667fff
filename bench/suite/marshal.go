package suite

import (
	"bytes"
	"encoding/json"
	"sort"
)

// Marshal writes the suite as a file: members in a fixed order, zero values left out, unknown members
// last and sorted. The same suite gives the same bytes, and Parse gives it back.
func (s *Suite) Marshal() []byte {
	var o object
	o.put("id", s.ID, true)
	o.put("title", s.Title, true)
	o.put("description", s.Description, s.Description != "")
	o.put("temperature", s.Temperature, s.Temperature != nil)
	o.put("maxTokens", s.MaxTokens, s.MaxTokens != nil)
	o.put("regimesFromSections", true, s.RegimesFromSections)
	o.put("prebuilt", true, s.Prebuilt)
	o.put("favorite", true, s.Favorite)
	o.put("created_at", s.CreatedAt, s.CreatedAt != "")
	o.put("warmup", s.Warmup, s.Warmup != nil)
	o.put("repeat", s.Repeat, s.Repeat != 0)
	o.put("failure", s.Failure, s.Failure != "")
	o.put("prefix", s.Prefix, s.Prefix != "")
	steps := make([]json.RawMessage, len(s.Steps))
	for i := range s.Steps {
		steps[i] = s.Steps[i].marshal()
	}
	o.put("steps", steps, true)
	o.extra(s.Extra)
	var out bytes.Buffer
	if err := json.Indent(&out, o.close(), "", "  "); err != nil {
		panic("suite: " + err.Error()) // every part of it came out of an encoder
	}
	out.WriteByte('\n')
	return out.Bytes()
}

func (s *Step) marshal() json.RawMessage {
	var o object
	o.put("type", s.Type, true)
	o.put("title", s.Title, s.Title != "")
	o.put("text", s.Text, s.Text != "")
	o.put("k", s.K, s.K != 0)
	o.put("depth", s.Depth, s.Depth != 0)
	o.put("pp", s.PP, s.PP != 0)
	o.put("tg", s.TG, s.TG != 0)
	o.put("exactTg", true, s.ExactTG)
	o.put("requests", s.Requests, s.Requests != 0)
	o.put("image", s.Image, s.Image != "")
	o.put("prompt", s.Prompt, s.Prompt != "")
	o.put("reasoningEffort", s.Reasoning, s.Reasoning != "")
	o.put("reset", true, s.Reset)
	o.extra(s.Extra)
	return o.close()
}

// object is a JSON object that is being written.
type object struct{ buf bytes.Buffer }

func (o *object) put(name string, value any, present bool) {
	if !present {
		return
	}
	if o.buf.Len() == 0 {
		o.buf.WriteByte('{')
	} else {
		o.buf.WriteByte(',')
	}
	o.encode(name)
	o.buf.WriteByte(':')
	o.encode(value)
}

// encode leaves <, > and & as they are: prompts hold them, and people read the files.
func (o *object) encode(value any) {
	enc := json.NewEncoder(&o.buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic("suite: " + err.Error()) // numbers are finite, raw members came out of a decoder
	}
	o.buf.Truncate(o.buf.Len() - 1) // the encoder's newline
}

func (o *object) extra(extra map[string]json.RawMessage) {
	names := make([]string, 0, len(extra))
	for name := range extra {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		o.put(name, extra[name], true)
	}
}

func (o *object) close() json.RawMessage {
	if o.buf.Len() == 0 {
		o.buf.WriteByte('{')
	}
	o.buf.WriteByte('}')
	return o.buf.Bytes()
}
