package client

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"velo/bench"
)

// TestThinkTagsSplitEverywhere cuts texts at every two places and requires the same text in each
// channel, every piece with the stamp of the chunk it came in, and tokens counted once.
func TestThinkTagsSplitEverywhere(t *testing.T) {
	for _, c := range []struct{ text, content, reasoning string }{
		{"<think>why</think>because", "because", "<think>why</think>"},
		{"a<think>b</think>c<think>d</think>e", "ace", "<think>b</think><think>d</think>"},
		{"<think>never closed", "", "<think>never closed"},
		{"a < b <thin> </thin <thinking>", "a < b <thin> </thin <thinking>", ""},
		{"<<think>x<</think>>", "<>", "<think>x<</think>"},
		{"late</think>yes", "lateyes", "</think>"},
		{"ends in <thi", "ends in <thi", ""},
		{"<think>ends in </thi", "", "<think>ends in </thi"},
		{"<think></think>", "", "<think></think>"},
		{"plain", "plain", ""},
	} {
		for i := range len(c.text) + 1 {
			for j := i; j <= len(c.text); j++ {
				var s thinkSplitter
				var channels [2]strings.Builder
				var order strings.Builder
				tokens, last := 0, time.Duration(-1)
				at := []int{0, i, j, len(c.text)}
				emit := func(ch bench.Chunk) {
					channels[min(ch.Channel, 1)].WriteString(ch.Text)
					piece := int(ch.User)
					if from := order.Len(); ch.User < last || from < at[piece] || from+len(ch.Text) > at[piece+1] || ch.Text == "" {
						t.Fatalf("%q cut at %d and %d: %q has the stamp of piece %d", c.text, i, j, ch.Text, piece)
					}
					last = ch.User
					order.WriteString(ch.Text)
					tokens += int(ch.Exact)
				}
				for piece := range 3 {
					if text := c.text[at[piece]:at[piece+1]]; text != "" {
						s.split(bench.Chunk{Text: text, Exact: int32(len(text)), User: time.Duration(piece)}, emit)
					}
				}
				s.flush(emit)
				got := fmt.Sprintf("%q %q %q %d", channels[0].String(), channels[1].String(), order.String(), tokens)
				if want := fmt.Sprintf("%q %q %q %d", c.content, c.reasoning, c.text, len(c.text)); got != want {
					t.Fatalf("cut at %d and %d: got %s, want %s", i, j, got, want)
				}
			}
		}
	}
}
