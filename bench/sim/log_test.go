package sim

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// The log in the file and the truth in memory are the same.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	server, err := Start(Options{Scenario: Scenario{Name: `odd "name"`, Tokens: 9, TokensPerChunk: 2, Choices: 2}, Log: &log, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	for i := range 20 {
		c := dial(t, server)
		working.Go(func() {
			for range 5 {
				c.post("/v1/chat/completions", chat(""), fmt.Sprintf("X-Session-Id: caf\u00e9 %d", i))
			}
		})
	}
	working.Wait()
	truth := server.Truth()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	writes, err := ReadLog(&log)
	if err != nil {
		t.Fatal(err)
	}
	byStream := map[int64][]Write{}
	for _, w := range writes {
		byStream[w.Stream] = append(byStream[w.Stream], w)
	}
	var ordered []Write
	for i := int64(1); i <= 100; i++ {
		ordered = append(ordered, byStream[i]...)
	}
	if !reflect.DeepEqual(ordered, truth) || len(truth) != 100*(1+2+2*5+2+1+1) {
		t.Errorf("%d lines in the log, %d writes in memory", len(ordered), len(truth))
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestLogFails(t *testing.T) {
	server, err := Start(Options{Scenario: quick(2), Log: brokenWriter{}})
	if err != nil {
		t.Fatal(err)
	}
	if o := tell(t, dial(t, server).post("/v1/chat/completions", chat("")).body); !o.done {
		t.Error("a full disk must not stop a stream")
	}
	if err := server.Close(); err == nil || !strings.Contains(err.Error(), "cannot write the log: no space left") {
		t.Errorf("Close: %v", err)
	}
}

func TestReadLogRefuses(t *testing.T) {
	good := string((&Write{Stream: 1, Kind: KindContent, Chunk: 3}).append(nil))
	for text, want := range map[string]string{
		good + "{":                        "line 2",
		good + "\n\n" + good + "x\n":      "line 5",
		`{"stream":1}`:                    "line 1: stream and kind are missing",
		`{"stream":1,"kind":"x","q":2}`:   "unknown field",
		good[:len(good)-1] + good:         "more than one JSON value",
		strings.Repeat("x", maxLogLine+1): "too long",
	} {
		writes, err := ReadLog(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "cannot read log") {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
		if strings.HasPrefix(text, good) && len(writes) == 0 {
			t.Errorf("%.60q: the good line is lost", text)
		}
	}
	if writes, err := ReadLog(strings.NewReader("\r\n" + good + "  \n")); err != nil || len(writes) != 1 || writes[0].Chunk != 3 {
		t.Errorf("%v, %v", writes, err)
	}
}

func FuzzReadLog(f *testing.F) {
	full := Write{Stream: 7, Conn: 2, Session: "s\"\n", ID: "é", Scenario: "x", Chunk: -1, Kind: KindUsage, Choice: 3, Tokens: 4, Bytes: 5,
		Parts: 6, Request: math.MaxInt64, Due: -8, Before: 9, After: 10, MonoBefore: 11, MonoAfter: 12}
	f.Add(string(full.append(nil)))
	f.Add("{}\n{")
	f.Fuzz(func(t *testing.T, text string) {
		writes, err := ReadLog(strings.NewReader(text))
		if err != nil {
			return
		}
		var again []byte
		for i := range writes {
			again = writes[i].append(again)
		}
		back, err := ReadLog(bytes.NewReader(again))
		if err != nil || !reflect.DeepEqual(back, writes) {
			t.Fatalf("%q reads back as %+v, %v", again, back, err)
		}
	})
}

// The truth is bounded: the oldest streams go.
func TestTruthBound(t *testing.T) {
	s := &Server{keep: true, open: map[*stream]struct{}{}}
	for i := range 40 {
		o := &stream{server: s, number: int64(i + 1), conn: &conn{}, script: &script{chunks: make([]chunk, keepLimit/16)}, stamps: make([]stamp, keepLimit/16)}
		s.retire(o)
	}
	if s.keptSize != keepLimit || len(s.kept) != 16 || s.kept[0].number != 25 {
		t.Errorf("%d chunks of %d streams, the first is %d", s.keptSize, len(s.kept), s.kept[0].number)
	}
}
