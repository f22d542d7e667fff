package runner

import (
	"fmt"

	"velo/bench/client"
)

// conversation is what a worker and the model said to one another since the last reset.
type conversation struct {
	messages []client.Message
	turns    int
	salted   bool // the first message begins with a salt
}

// extended returns the messages of a request that says one thing more. The history is as it was sent,
// unless salt is given: then its first message begins with that in place of its own, so that the
// conversation is a different one of the same shape.
func (c *conversation) extended(message client.Message, salt string) []client.Message {
	all := make([]client.Message, 0, len(c.messages)+1)
	all = append(all, c.messages...)
	if salt != "" && len(all) > 0 && c.salted {
		all[0].Content = salt + all[0].Content[saltLength:]
	}
	return append(all, message)
}

// answered adds a turn that has ended well.
func (c *conversation) answered(message client.Message, answer string, salted bool) {
	if len(c.messages) == 0 {
		c.salted = salted
	}
	c.messages = append(c.messages, message, client.Message{Role: "assistant", Content: answer})
	c.turns++
}

// excerpt is a text as the record keeps it: whole, or its two ends where it is a fill, whose middle is
// prose that nobody will read.
func excerpt(text string, fill bool) string {
	const end = 160 // bytes kept at either side
	if !fill || len(text) <= 3*end {
		return text
	}
	head, tail := end, len(text)-end
	for head > 0 && !boundary(text, head) {
		head--
	}
	for tail < len(text) && !boundary(text, tail) {
		tail++
	}
	return fmt.Sprintf("%s … [%d bytes left out] … %s", text[:head], tail-head, text[tail:])
}

// boundary tells whether a character begins at byte i.
func boundary(text string, i int) bool { return text[i]&0xc0 != 0x80 }
