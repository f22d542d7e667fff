package client

import (
	"strings"

	"velo/bench"
)

const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// A thinkSplitter moves inline thoughts from the content to the reasoning channel. The tags go with
// them: the model generated them, at a time. A chunk that ends in what could be the beginning of a
// tag is held back, with its stamps, until the next ones decide it.
type thinkSplitter struct {
	inside bool
	held   []bench.Chunk
}

// split takes a content chunk and calls emit for those that are decided, in order. A chunk with a
// change of channel inside becomes one for each stretch; its exact tokens stay with the first.
func (t *thinkSplitter) split(c bench.Chunk, emit func(bench.Chunk)) {
	if len(t.held) == 0 && strings.IndexByte(c.Text, '<') < 0 {
		c.Channel = t.channel()
		emit(c)
		return
	}
	t.held = append(t.held, c)
	t.settle(emit, false)
}

// flush decides what is still held: it was no tag.
func (t *thinkSplitter) flush(emit func(bench.Chunk)) {
	if len(t.held) > 0 {
		t.settle(emit, true)
	}
}

func (t *thinkSplitter) channel() bench.Channel {
	if t.inside {
		return bench.Reasoning
	}
	return bench.Content
}

// stretch is a piece of text up to end that belongs to one channel.
type stretch struct {
	end     int
	channel bench.Channel
}

func (t *thinkSplitter) settle(emit func(bench.Chunk), last bool) {
	var b strings.Builder
	for _, c := range t.held {
		b.WriteString(c.Text)
	}
	text := b.String()
	before := t.inside
	var stretches []stretch
	at := 0
	for {
		i, tag := nextTag(text[at:])
		if tag == "" {
			break
		}
		stretches = append(stretches, stretch{at + i, t.channel()}, stretch{at + i + len(tag), bench.Reasoning})
		t.inside = tag == thinkOpen
		at += i + len(tag)
	}
	stretches = append(stretches, stretch{len(text), t.channel()})
	if !last && partTag(text[at:]) > 0 {
		// Decided is what lies in chunks wholly before the tail; the rest is looked at again.
		tail := len(text) - partTag(text[at:])
		start, n := 0, 0
		for n < len(t.held) && start+len(t.held[n].Text) <= tail {
			start += len(t.held[n].Text)
			n++
		}
		held := t.held[n:]
		if start < at { // a tag reaches into the chunk that is held: all of it waits
			t.inside = before
			return
		}
		emitStretches(t.held[:n], stretches, emit)
		t.held = append(t.held[:0], held...)
		return
	}
	emitStretches(t.held, stretches, emit)
	t.held = t.held[:0]
}

// emitStretches cuts chunks at the ends of stretches.
func emitStretches(chunks []bench.Chunk, stretches []stretch, emit func(bench.Chunk)) {
	at := 0
	for _, c := range chunks {
		text, end := c.Text, at+len(c.Text)
		for at < end {
			for stretches[0].end <= at {
				stretches = stretches[1:]
			}
			// Neighbours of one channel are one piece.
			channel, stop := stretches[0].channel, stretches[0].end
			for i := 1; i < len(stretches) && stop < end && stretches[i].channel == channel; i++ {
				stop = stretches[i].end
			}
			n := min(stop, end) - at
			c.Channel, c.Text = channel, text[:n]
			emit(c)
			text, at = text[n:], at+n
			if c.Exact > 0 {
				c.Exact = 0
			}
		}
	}
}

// nextTag finds the first tag of either kind.
func nextTag(s string) (int, string) {
	for at := 0; ; at++ {
		i := strings.IndexByte(s[at:], '<')
		if i < 0 {
			return 0, ""
		}
		at += i
		for _, tag := range []string{thinkOpen, thinkClose} {
			if strings.HasPrefix(s[at:], tag) {
				return at, tag
			}
		}
	}
}

// partTag is the length of the longest end of s that begins a tag without completing it.
func partTag(s string) int {
	i := strings.LastIndexByte(s, '<')
	if i < 0 {
		return 0
	}
	for _, tag := range []string{thinkOpen, thinkClose} {
		if len(s)-i < len(tag) && strings.HasPrefix(tag, s[i:]) {
			return len(s) - i
		}
	}
	return 0
}

// withoutTags takes the tags out of a text of thoughts.
var withoutTags = strings.NewReplacer(thinkOpen, "", thinkClose, "")
