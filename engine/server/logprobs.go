package server

import (
	"slices"
	"strconv"
	"strings"

	"velo/engine/sample"
	"velo/engine/sched"
)

// logprobs collects the log-probabilities of tokens until they are sent: as the chat API has them,
// or, for plain completions, as the older API does.
type logprobs struct {
	server *Server
	want   int // sample.NoLogProbs for none
	plain  bool

	items                      []byte // chat: elements of content
	tokens, values, top, where []byte // plain: elements of the four arrays
	offset                     int    // plain: characters before the next token
}

// add takes a token. The one that ends an answer has no text and is left out.
func (l *logprobs) add(t sched.Token, end []int32) {
	if l.want == sample.NoLogProbs || slices.Contains(end, t.ID) {
		return
	}
	if l.plain {
		l.addPlain(t)
		return
	}
	if len(l.items) > 0 {
		l.items = append(l.items, ',')
	}
	l.items = l.appendToken(l.items, t.ID, t.LogProb)
	l.items = append(l.items[:len(l.items)-1], `,"top_logprobs":[`...)
	for i, p := range t.Top {
		if i > 0 {
			l.items = append(l.items, ',')
		}
		l.items = l.appendToken(l.items, p.Token, p.LogProb)
	}
	l.items = append(l.items, "]}"...)
}

// appendToken writes a token with its bytes, which need not be whole characters.
func (l *logprobs) appendToken(b []byte, id int32, logprob float32) []byte {
	text := l.server.o.Engine.Tokenizer.Token(id)
	b = append(b, `{"token":`...)
	b = appendQuoted(b, string(text))
	b = append(b, `,"logprob":`...)
	b = appendLogProb(b, logprob)
	b = append(b, `,"bytes":[`...)
	for i, c := range text {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(c), 10)
	}
	return append(b, "]}"...)
}

// appendLogProb writes as many digits as it has. -9999 stands for a probability of zero, as in
// OpenAI's API, since JSON has no infinities.
func appendLogProb(b []byte, v float32) []byte {
	if v != v || v < -9999 {
		v = -9999
	}
	return strconv.AppendFloat(b, float64(v), 'f', -1, 32)
}

func (l *logprobs) addPlain(t sched.Token) {
	text := string(l.server.o.Engine.Tokenizer.Token(t.ID))
	if len(l.tokens) > 0 {
		l.tokens, l.values = append(l.tokens, ','), append(l.values, ',')
		l.top, l.where = append(l.top, ','), append(l.where, ',')
	}
	l.tokens = appendQuoted(l.tokens, text)
	l.values = appendLogProb(l.values, t.LogProb)
	l.where = strconv.AppendInt(l.where, int64(l.offset), 10)
	l.offset += len([]rune(text))
	l.top = append(l.top, '{')
	var seen []string
	for _, p := range t.Top {
		s := string(l.server.o.Engine.Tokenizer.Token(p.Token))
		if slices.Contains(seen, strings.ToValidUTF8(s, "\uFFFD")) {
			continue // parts of characters look alike; the likelier one came first
		}
		if len(seen) > 0 {
			l.top = append(l.top, ',')
		}
		seen = append(seen, strings.ToValidUTF8(s, "\uFFFD"))
		l.top = appendQuoted(l.top, s)
		l.top = append(l.top, ':')
		l.top = appendLogProb(l.top, p.LogProb)
	}
	l.top = append(l.top, '}')
}

// take appends what was collected, and empties it; null where nothing was.
func (l *logprobs) take(b []byte) []byte {
	switch {
	case l.want == sample.NoLogProbs:
		return append(b, "null"...)
	case l.plain:
		b = append(append(b, `{"tokens":[`...), l.tokens...)
		b = append(append(b, `],"token_logprobs":[`...), l.values...)
		b = append(append(b, `],"top_logprobs":[`...), l.top...)
		b = append(append(b, `],"text_offset":[`...), l.where...)
		b = append(b, "]}"...)
		l.tokens, l.values, l.top, l.where = l.tokens[:0], l.values[:0], l.top[:0], l.where[:0]
		return b
	case len(l.items) == 0:
		return append(b, "null"...)
	}
	b = append(append(b, `{"content":[`...), l.items...)
	l.items = l.items[:0]
	return append(b, `],"refusal":null}`...)
}

// empty tells that nothing waits to be sent.
func (l *logprobs) empty() bool { return len(l.items) == 0 && len(l.tokens) == 0 }
