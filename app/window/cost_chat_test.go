//go:build !windows

package window

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/ui/console"
)

// streamed is a chat whose turns stream at 100 tokens a second, a token a chunk, without a server: what
// is due is given to the measures when the window asks. With more than one second a second it streams
// as fast as it is looked at.
type streamed struct {
	console.Chats // what the window never asks here is nil
	changed       func()
	pace          time.Duration // of the stream, each second
	length        int           // tokens of a turn
	most          int           // turns; then the last one has ended

	mu       sync.Mutex
	from     time.Time
	turns    []console.ChatTurn
	live     *measure.Live
	follower *measure.Follower
	text     strings.Builder
	tokens   int
	over     bool
	total    int // tokens of all turns
}

const (
	tokenGap  = 10 * time.Millisecond
	firstWait = 200 * time.Millisecond
)

// passage is what a turn writes again and again: sentences, a list, a program, a formula, a table.
const passage = `The harbour of the old town lies below a hill. Ships come in with the tide and leave with it, and whoever waits on the quay sees first the masts, then the bows, then the crews.

- The first boat carries salt, and is the slowest of the three.
- The second one carries letters.
- The third has nobody on board.

` + "```go\nfunc tide(hours float64) float64 {\n\tconst period = 12.42\n\treturn 1.8 * math.Sin(2*math.Pi*hours/period)\n}\n```" + `

$$ h(t) = a \sin\left(\frac{2 \pi t}{T}\right) + b $$

| boat | load | speed |
|---|---|---|
| Anna | salt | 4 kn |
| Berta | letters | 7 kn |

`

func newStreamed(pace time.Duration, length, most int) *streamed {
	s := &streamed{pace: pace, length: length, most: most, from: time.Now()}
	s.begin()
	return s
}

func (s *streamed) begin() {
	s.turns = append(s.turns, console.ChatTurn{ID: fmt.Sprint("turn", len(s.turns)), Asked: time.Now(), Prompt: "Tell of the harbour, with a program that reckons its tides.", Versions: []string{""}})
	s.live, s.tokens, s.over, s.from = measure.NewLive(measure.Options{}), 0, false, time.Now()
	s.text = strings.Builder{}
	s.follower = s.live.Follow(0)
	s.live.Append(&bench.Header{Schema: bench.SchemaVersion, ID: "streamed"})
	s.live.Append(&bench.Request{Number: 0})
}

// elapsed is how long the turn has streamed, by its own clock.
func (s *streamed) elapsed() time.Duration {
	return time.Duration(time.Since(s.from).Seconds() * float64(s.pace))
}

// advance gives the measures what is due.
func (s *streamed) advance() {
	if s.over {
		return
	}
	due := min(int((s.elapsed()-firstWait)/tokenGap), s.length)
	for ; s.tokens < due; s.tokens++ {
		at := firstWait + time.Duration(s.tokens)*tokenGap + time.Duration(s.tokens*7%13)*time.Millisecond/4
		from := s.tokens * 4 % len(passage)
		text := passage[from:min(from+4, len(passage))]
		s.text.WriteString(text)
		s.total++
		s.live.Append(bench.Chunks{{User: at, Kernel: bench.Unset, Usage: int32(s.tokens + 1), Exact: -1, Text: text}})
	}
	if s.tokens < s.length {
		return
	}
	end := firstWait + time.Duration(s.length)*tokenGap
	s.live.Append(&bench.End{Status: bench.OK, By: bench.EndDone, End: end, Close: end, Stamp: bench.UserStamp,
		Usage: &bench.Usage{Prompt: 30, Completion: s.length, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}})
	t := &s.turns[len(s.turns)-1]
	t.Answer, t.Status, t.Source = s.text.String(), bench.OK, measure.Server
	s.over = true
	if len(s.turns) < s.most {
		s.begin()
	}
	go s.changed()
}

func (s *streamed) Live() console.ChatLive {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	f := s.follower.Now()
	now := s.elapsed()
	return console.ChatLive{Active: !s.over, ChatID: "chat", TurnID: s.turns[len(s.turns)-1].ID, Phase: "answering", Answer: s.text.String(),
		Elapsed: now, Snapshot: s.live.Snapshot(now), AnswerTokens: f.Answer, Source: f.Source,
		GapP50: f.GapP50, GapP90: f.GapP90, GapMax: f.GapMax, TTFT: f.TTFT, TTFO: f.TTFO}
}

func (s *streamed) List(string) ([]console.Chat, error) {
	return []console.Chat{{ID: "chat", Title: "The harbour", Model: "model"}}, nil
}

func (s *streamed) Chat(string) (console.Conversation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return console.Conversation{Chat: console.Chat{ID: "chat", Title: "The harbour", Model: "model"}, Turns: append([]console.ChatTurn(nil), s.turns...)}, nil
}

func (s *streamed) Statistics(string, string) (console.ChatStatistics, error) {
	return console.ChatStatistics{}, nil
}
func (s *streamed) Fills() []int { return nil }
