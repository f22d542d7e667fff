package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"
	"unicode/utf8"
)

// written is a writer that can be held up.
type written struct {
	gate sync.Mutex // held: Write waits
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.gate.Lock()
	defer w.gate.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text.String()
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func flushed(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := l.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

var noon = time.Date(2026, 11, 30, 21, 15, 4, 123456789, time.FixedZone("", 3600))

func TestLineFormat(t *testing.T) {
	var typedNil *url
	for want, write := range map[string]func(*slog.Logger){
		`INFO the engine is ready url=http://127.0.0.1:8000 lanes=8`: func(l *slog.Logger) {
			l.Info("the engine is ready", "url", "http://127.0.0.1:8000", "lanes", 8)
		},
		`WARN two\nlines\x00 and a tab\t text="a \"b\"\nc" empty="" eq="a=b" path="c:\\d"`: func(l *slog.Logger) {
			l.Warn("two\nlines\x00 and a tab\t", "text", "a \"b\"\nc", "empty", "", "eq", "a=b", "path", `c:\d`)
		},
		`ERROR Grüße \xff err="cannot read" took=1.5s on=true x=0.25 nil=<nil>`: func(l *slog.Logger) {
			l.Error("Grüße \xff", "err", errors.New("cannot read"), "took", 1500*time.Millisecond, "on", true, "x", 0.25, "nil", nil)
		},
		`INFO grouped a=1 g.b=2 g.h.c=3 g.h.d=4`: func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("h").Info("grouped", "c", 3, "d", 4)
		},
		`INFO inline g.a=1 g.b.c=2 d=3`: func(l *slog.Logger) {
			l.Info("inline", slog.Group("g", "a", 1, slog.Group("b", "c", 2)), slog.Group("", "d", 3), slog.Group("none"))
		},
		`DEBUG-2 level at=2026-11-30T20:15:04.123456789Z "a key"=1`: func(l *slog.Logger) {
			l.Log(context.Background(), slog.LevelDebug-2, "level", "at", noon, "a key", 1)
		},
		`INFO nils u="!panic: runtime error: invalid memory address or nil pointer dereference"`: func(l *slog.Logger) { l.Info("nils", "u", typedNil) },
	} {
		var w written
		l := NewLog(&w)
		l.now = func() time.Time { return noon }
		write(slog.New(atNoon{l.Handler(slog.Level(-10))}))
		flushed(t, l)
		want = "2026-11-30T20:15:04.123Z " + want
		if got := w.lines(); len(got) != 1 || got[0] != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

type url struct{ text string }

func (u *url) String() string { return u.text }

// atNoon makes every record's time the same.
type atNoon struct{ slog.Handler }

func (h atNoon) Handle(ctx context.Context, r slog.Record) error {
	r.Time = noon
	return h.Handler.Handle(ctx, r)
}
func (h atNoon) WithAttrs(a []slog.Attr) slog.Handler { return atNoon{h.Handler.WithAttrs(a)} }
func (h atNoon) WithGroup(n string) slog.Handler      { return atNoon{h.Handler.WithGroup(n)} }

func TestLevelIsHeld(t *testing.T) {
	var w written
	l := NewLog(&w)
	level := new(slog.LevelVar)
	s := slog.New(l.Handler(level))
	s.Debug("no")
	level.Set(slog.LevelDebug)
	s.Debug("yes")
	flushed(t, l)
	if got := w.lines(); len(got) != 1 || !strings.HasSuffix(got[0], "DEBUG yes") {
		t.Errorf("%q", got)
	}
}

// The standard library's own test of handlers, but for the one that wants a
// line without a time.
func TestHandlerIsOneOfSlogs(t *testing.T) {
	var w *written
	var l *Log
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		if strings.HasSuffix(t.Name(), "/zero-time") {
			t.Skip("every line here has a time")
		}
		w = &written{}
		l = NewLog(w)
		return l.Handler(slog.LevelInfo)
	}, func(t *testing.T) map[string]any {
		flushed(t, l)
		fields := strings.Fields(w.lines()[0])
		all := map[string]any{"time": fields[0], "level": fields[1], "msg": fields[2]}
		for _, f := range fields[3:] {
			key, value, _ := strings.Cut(f, "=")
			at := all
			path := strings.Split(key, ".")
			for _, group := range path[:len(path)-1] {
				if at[group] == nil {
					at[group] = map[string]any{}
				}
				at = at[group].(map[string]any)
			}
			at[path[len(path)-1]] = value
		}
		return all
	})
}

// Whatever is logged is one line of text.
func FuzzOneEventIsOneLine(f *testing.F) {
	f.Add("message", "key", "value")
	f.Add("a\nb\r\u2028", "", "\x00\xff=\"")
	f.Add(strings.Repeat("é", logLine), "k", "v")
	f.Fuzz(func(t *testing.T, message, key, value string) {
		line := appendLine(nil, noon, slog.LevelInfo, message, []slog.Attr{slog.String(key, value)})
		body, end := line[:len(line)-1], line[len(line)-1]
		if end != '\n' || bytes.ContainsAny(body, "\n\r\x00\u2028\u0085") || !utf8.Valid(line) || len(line) > logLine+20 {
			t.Errorf("%q", line)
		}
	})
}

// A reader that hangs holds up nobody; when it reads again it gets everything
// that was not dropped, in order, and one line about the rest.
func TestStalledReader(t *testing.T) {
	const lines, logged = 100, 1000
	var w written
	w.gate.Lock()
	l := newLog(&w, lines)
	s := slog.New(l.Handler(slog.LevelInfo))
	for i := range logged {
		s.Info("line", "n", i) // blocks the test if it waits
	}
	dropped := l.Dropped()
	// The queue's, and one that the writer may hold.
	if dropped != logged-lines && dropped != logged-lines-1 {
		t.Errorf("%d of %d lines dropped with room for %d", dropped, logged, lines)
	}
	short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := l.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a flush with a stalled reader ends with %v", err)
	}
	w.gate.Unlock()
	flushed(t, l)
	s.Info("after")
	flushed(t, l)
	got := w.lines()
	summaries, last, kept := 0, -1, 0
	for _, line := range got {
		var n int
		switch {
		case strings.Contains(line, "log lines were dropped"):
			summaries++
			if !strings.Contains(line, fmt.Sprintf(" WARN %d log lines", dropped)) {
				t.Errorf("%q, want %d", line, dropped)
			}
		case strings.HasSuffix(line, "INFO after"):
		default:
			if _, err := fmt.Sscanf(line[strings.Index(line, "n="):], "n=%d", &n); err != nil || n <= last {
				t.Fatalf("%q after line %d", line, last)
			}
			last = n
			kept++
		}
	}
	if summaries != 1 || !strings.HasSuffix(got[len(got)-1], "INFO after") {
		t.Errorf("%d summaries, last line %q", summaries, got[len(got)-1])
	}
	if uint64(kept)+dropped != logged {
		t.Errorf("%d lines written and %d dropped of %d", kept, dropped, logged)
	}
}

func TestWriteTakesLines(t *testing.T) {
	var w written
	l := NewLog(&w)
	long := strings.Repeat("x", 3*logLine)
	n, err := io.WriteString(l, "one\ntwo\r\n"+long+"\nno end")
	if err != nil || n != len(long)+9+7 {
		t.Errorf("%d, %v", n, err)
	}
	flushed(t, l)
	got := w.lines()
	if len(got) != 4 || got[0] != "one" || got[1] != "two" || got[3] != "no end" || len(got[2]) > logLine+20 || !strings.HasSuffix(got[2], "(cut)") {
		t.Errorf("%.60q", got)
	}
}

// The ways out, in a process of their own.
func TestMain(m *testing.M) {
	if way := os.Getenv("VELO_HOST_TEST"); way != "" {
		inChild(way)
		return
	}
	os.Exit(m.Run())
}

// childWays are what else a child can be asked for, by the first word.
var childWays = map[string]func(rest string){}

func inChild(way string) {
	if name, rest, found := strings.Cut(way, " "); found && childWays[name] != nil {
		childWays[name](rest)
		return
	}
	l := NewLog(os.Stderr)
	s := slog.New(l.Handler(slog.LevelInfo))
	for i := range 2000 {
		s.Info("line", "n", i)
	}
	switch way {
	case "exit":
		l.Exit(3)
	case "panic":
		defer l.Guard(70)
		var none map[string]int
		none["x"] = 1
	case "panic elsewhere":
		go func() {
			defer l.Guard(70)
			panic(errors.New("of a goroutine"))
		}()
		select {}
	}
}

func child(t *testing.T, way string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), "VELO_HOST_TEST="+way)
	return c
}

func TestEveryExitWritesTheLog(t *testing.T) {
	for way, want := range map[string]struct {
		code int
		last string
	}{
		"exit":            {3, "INFO line n=1999"},
		"panic":           {70, "ERROR panic: assignment to entry in nil map stack="},
		"panic elsewhere": {70, "ERROR panic: of a goroutine stack="},
	} {
		t.Run(way, func(t *testing.T) {
			c := child(t, way)
			var text bytes.Buffer
			c.Stderr = &text
			err := c.Run()
			var end *exec.ExitError
			if !errors.As(err, &end) || end.ExitCode() != want.code {
				t.Errorf("ended with %v, want code %d", err, want.code)
			}
			lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, want.last) {
				t.Errorf("last line %.200q, want %q", last, want.last)
			}
			if n := strings.Count(text.String(), "INFO line n="); n != 2000 {
				t.Errorf("%d of 2000 lines", n)
			}
		})
	}
}

// A pipe that nobody reads does not keep the process.
func TestExitWithAStalledReader(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c := child(t, "exit") // 2000 lines are more than a pipe holds
	c.Stderr = write
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		var end *exec.ExitError
		if !errors.As(err, &end) || end.ExitCode() != 3 {
			t.Errorf("ended with %v, want code 3", err)
		}
	case <-time.After(30 * time.Second):
		_ = c.Process.Kill()
		t.Fatal("it hangs")
	}
}

func BenchmarkLog(b *testing.B) {
	for name, w := range map[string]io.Writer{"good": io.Discard, "stalled": stalled{}} {
		b.Run(name, func(b *testing.B) {
			s := slog.New(NewLog(w).Handler(slog.LevelInfo))
			b.ReportAllocs()
			for b.Loop() {
				s.Info("request finished", "id", "chatcmpl-1", "tokens", 128)
			}
		})
	}
}

type stalled struct{}

func (stalled) Write([]byte) (int, error) { select {} }
