package server

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// tokenize serves /v1/tokenize: the ids of a prompt, or of a conversation as chat renders it.
func (s *Server) tokenize(w http.ResponseWriter, _ *http.Request, o *object) {
	defer o.release()
	ids, e := s.readTokenize(o)
	if e != nil {
		writeError(w, e)
		return
	}
	b := append([]byte(`{"tokens":`), idList(ids)...)
	b = append(b, `,"count":`...)
	b = strconv.AppendInt(b, int64(len(ids)), 10)
	b = append(b, `,"max_model_len":`...)
	b = strconv.AppendInt(b, int64(s.o.Engine.Context), 10)
	if strings, _ := o.flag("return_token_strs", false); strings {
		b = append(b, `,"token_strs":[`...)
		for i, id := range ids {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendQuoted(b, string(s.o.Engine.Tokenizer.Token(id)))
		}
		b = append(b, ']')
	}
	writeJSON(w, append(b, '}'))
}

func (s *Server) readTokenize(o *object) ([]int32, *Error) {
	cut, e := s.readTruncate(o)
	if e != nil {
		return nil, e
	}
	if o.raw("messages") != nil {
		p, e := s.readPrompt(o)
		if e != nil {
			return nil, e
		}
		return keepLast(s.encode(p.text), cut), nil
	}
	name := "prompt"
	if o.raw(name) == nil && o.raw("content") != nil {
		name = "content" // as llama.cpp calls it
	}
	text, ok, e := o.text(name)
	if e != nil {
		return nil, e
	}
	if !ok {
		return nil, fail(InvalidBody, "prompt", "cannot tokenize: the request has neither a prompt nor messages")
	}
	special, e := o.flag("add_special_tokens", true)
	if e != nil {
		return nil, e
	}
	t := s.o.Engine.Tokenizer
	ids := []int32{}
	if special {
		ids = append(ids, t.Before()...)
	}
	ids = t.AppendEncode(ids, text, true)
	if special {
		ids = append(ids, t.After()...)
	}
	return keepLast(ids, cut), nil
}

// detokenize serves /v1/detokenize.
func (s *Server) detokenize(w http.ResponseWriter, _ *http.Request, o *object) {
	defer o.release()
	raw := o.raw("tokens")
	if raw == nil {
		writeError(w, fail(InvalidBody, "tokens", "cannot detokenize: the request has no tokens; send an array of ids"))
		return
	}
	ids := []int32{}
	if !emptyArray(raw) {
		var e *Error
		if ids, e = s.readIDs(raw, "tokens"); e != nil {
			writeError(w, e)
			return
		}
	}
	skip, e := o.flag("skip_special_tokens", false)
	if e != nil {
		writeError(w, e)
		return
	}
	if skip {
		ids = slices.DeleteFunc(ids, s.o.Engine.Tokenizer.Special)
	}
	b := appendQuoted([]byte(`{"model":`), s.o.Model)
	b = appendQuoted(append(b, `,"prompt":`...), s.o.Engine.Tokenizer.Decode(ids))
	writeJSON(w, append(b, '}'))
}

func idList(ids []int32) []byte {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

// writeJSON answers with a document.
func writeJSON(w http.ResponseWriter, b []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(b, '\n'))
}

// models serves /v1/models: the one that there is.
func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	b := append([]byte(`{"object":"list","data":[`), s.record()...)
	writeJSON(w, append(b, "]}"...))
}

// model serves /v1/models/{id}.
func (s *Server) model(w http.ResponseWriter, id string) {
	if id != s.o.Model {
		writeError(w, fail(ModelNotFound, "model", "cannot find the model %.100q: this server has %q", id, s.o.Model))
		return
	}
	writeJSON(w, s.record())
}

func (s *Server) record() []byte {
	b, err := json.Marshal(struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
		MaxLen  int    `json:"max_model_len"`
	}{s.o.Model, "model", s.created.Unix(), "velo", s.o.Engine.Context})
	if err != nil {
		panic(err) // it has nothing that JSON does not
	}
	return b
}
