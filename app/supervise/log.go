package supervise

import (
	"strings"
	"sync"
	"time"
)

// logLines is how many lines of the log are kept.
const logLines = 5000

// stamp is how a line of the log begins.
const stamp = "2006-01-02T15:04:05.000Z"

// Line is one line of the engine's log.
type Line struct {
	N     uint64    // counts from 0, of all that was ever written
	Time  time.Time // zero where the line has none
	Level string    // "DEBUG", "INFO", "WARN", "ERROR", or empty where the line has none
	Text  string    // what remains
}

// String is the line as it was written.
func (l Line) String() string {
	if l.Level == "" {
		return l.Text
	}
	return l.Time.UTC().Format(stamp) + " " + l.Level + " " + l.Text
}

// parseLine takes a line apart. One of another form, a stack trace, is all text.
func parseLine(text string) Line {
	at, rest, ok := strings.Cut(text, " ")
	level, rest, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 {
		return Line{Text: text}
	}
	t, err := time.Parse(stamp, at)
	if err != nil {
		return Line{Text: text}
	}
	switch level {
	case "DEBUG", "INFO", "WARN", "ERROR":
		return Line{Time: t, Level: level, Text: rest}
	}
	return Line{Text: text}
}

// Log is the last lines of the engine's log. It is safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	lines []Line // a ring; line n is at n modulo its length
	next  uint64 // number of the line that comes next
}

func newLog(keep int) *Log { return &Log{lines: make([]Line, keep)} }

func (l *Log) add(text string) {
	line := parseLine(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	line.N = l.next
	l.lines[l.next%uint64(len(l.lines))] = line
	l.next++
}

// Since returns the lines from number n on that are still kept, oldest first, and the number to ask
// with the next time.
func (l *Log) Since(n uint64) (lines []Line, next uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if keep := uint64(len(l.lines)); l.next > keep && n < l.next-keep {
		n = l.next - keep
	}
	for ; n < l.next; n++ {
		lines = append(lines, l.lines[n%uint64(len(l.lines))])
	}
	return lines, l.next
}

// texts returns the lines from number n on as they were written.
func (l *Log) texts(n uint64) []string {
	lines, _ := l.Since(n)
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = line.String()
	}
	return out
}
