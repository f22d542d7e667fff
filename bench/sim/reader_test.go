package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// answer is what came back over a bare socket for one request: nothing of
// net/http stands between the bytes and the test.
type answer struct {
	status  int
	header  map[string]string // lower-case names
	lines   []string          // the header lines as they came
	body    []byte            // without transfer framing
	arrived []arrival         // of all bytes, framing included
	marks   []mark            // where the bytes of the body lay among these
	end     string            // complete, eof, reset, cut (eof inside a frame) or timeout
}

// mark says that the first body bytes of the body ended at byte wire of the
// answer; they lie together back to the mark before.
type mark struct{ body, wire int }

// bodyArrived is when byte n (from 1) of the body came; 0 is the headers.
func (a *answer) bodyArrived(n int) (at time.Time, ok bool) {
	for _, m := range a.marks {
		if m.body >= n {
			wire := m.wire - (m.body - n)
			for _, r := range a.arrived {
				if r.bytes >= wire {
					return r.at, true
				}
			}
		}
	}
	return at, false
}

// arrival is one read: how many bytes the socket had given after it, and when.
type arrival struct {
	bytes int
	at    time.Time
}

// stamped notes the reads under a bufio.Reader.
type stamped struct {
	net.Conn
	total int
	list  []arrival
}

func (s *stamped) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.total += n
	if n > 0 {
		s.list = append(s.list, arrival{s.total, time.Now()})
	}
	return n, err
}

// client is a connection that asks.
type client struct {
	t    testing.TB
	conn *stamped
	in   *bufio.Reader
}

func dial(t testing.TB, s *Server) *client {
	t.Helper()
	c, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	st := &stamped{Conn: c}
	return &client{t: t, conn: st, in: bufio.NewReaderSize(st, 1<<16)}
}

// send writes a request; headers are "Name: value".
func (c *client) send(method, path, body string, headers ...string) {
	c.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n", method, path, len(body))
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	b.WriteString("\r\n" + body)
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		c.t.Fatal(err)
	}
}

// post asks and reads the answer.
func (c *client) post(path, body string, headers ...string) answer {
	c.t.Helper()
	c.send("POST", path, body, headers...)
	return c.read()
}

// patience is how long a read waits for the next byte before it calls the
// stream hanging.
const patience = 10 * time.Second

// read takes one answer off the connection.
func (c *client) read() (a answer) {
	c.t.Helper()
	first, before := len(c.conn.list), c.conn.total
	defer func() {
		for _, r := range c.conn.list[first:] {
			a.arrived = append(a.arrived, arrival{r.bytes - before, r.at})
		}
	}()
	a.header = map[string]string{}
	fail := func(err error, inside bool) answer {
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			a.end = "timeout"
		case errors.Is(err, syscall.ECONNRESET):
			a.end = "reset"
		case inside:
			a.end = "cut"
		default:
			a.end = "eof"
		}
		return a
	}
	line := func() (string, error) {
		c.conn.SetReadDeadline(time.Now().Add(patience))
		return c.in.ReadString('\n')
	}
	for {
		text, err := line()
		if err != nil {
			return fail(err, len(a.lines) > 0)
		}
		if !strings.HasSuffix(text, "\r\n") {
			c.t.Fatalf("header line %q does not end in CRLF", text)
		}
		text = strings.TrimSuffix(text, "\r\n")
		if text == "" {
			break
		}
		a.lines = append(a.lines, text)
		if len(a.lines) == 1 {
			if _, err := fmt.Sscanf(text, "HTTP/1.1 %d", &a.status); err != nil {
				c.t.Fatalf("status line %q: %v", text, err)
			}
			continue
		}
		name, value, ok := strings.Cut(text, ": ")
		if !ok {
			c.t.Fatalf("header line %q has no colon", text)
		}
		a.header[strings.ToLower(name)] = value
	}
	if a.status == 100 {
		a.end = "complete"
		return a
	}
	note := func() {
		a.marks = append(a.marks, mark{len(a.body), c.conn.total - c.in.Buffered() - before})
	}
	note()
	take := func(n int) error {
		for n > 0 {
			c.conn.SetReadDeadline(time.Now().Add(patience))
			piece := make([]byte, min(n, 1<<16))
			m, err := c.in.Read(piece)
			a.body = append(a.body, piece[:m]...)
			note()
			n -= m
			if err != nil {
				return err
			}
		}
		return nil
	}
	if a.header["transfer-encoding"] == "chunked" {
		for {
			text, err := line()
			if err != nil {
				return fail(err, len(text) > 0)
			}
			size, err := strconv.ParseInt(strings.TrimSuffix(text, "\r\n"), 16, 64)
			if err != nil {
				c.t.Fatalf("chunk size %q: %v", text, err)
			}
			if err := take(int(size)); err != nil {
				return fail(err, true)
			}
			if text, err := line(); err != nil || text != "\r\n" {
				c.t.Fatalf("after a chunk of %d bytes: %q, %v", size, text, err)
			}
			if size == 0 {
				a.end = "complete"
				return a
			}
		}
	}
	if text, ok := a.header["content-length"]; ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			c.t.Fatal(err)
		}
		if err := take(n); err != nil {
			return fail(err, true)
		}
		a.end = "complete"
		return a
	}
	return fail(take(1<<30), false)
}

// event is one server-sent event as WHATWG reads it.
type sse struct {
	data     string
	name, id string
	comments int // comment lines in front of it
}

// events parses a body by the rules of the HTML standard.
func events(body []byte) (list []sse) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	text := strings.ReplaceAll(strings.ReplaceAll(string(body), "\r\n", "\n"), "\r", "\n")
	var e sse
	var data []string
	flush := func() {
		if data != nil {
			e.data = strings.Join(data, "\n")
			list = append(list, e)
			e, data = sse{}, nil
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			flush()
		case name == "":
			e.comments++
		case name == "data":
			data = append(data, value)
		case name == "event":
			e.name = value
		case name == "id":
			e.id = value
		}
	}
	flush() // the standard drops it; the test wants to see it
	return list
}

// message is a chunk of either endpoint.
type message struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Model   string `json:"model"`
	Choices []struct {
		Index int    `json:"index"`
		Text  string `json:"text"`
		Delta struct {
			Role             *string         `json:"role"`
			Content          json.RawMessage `json:"content"`
			ReasoningContent string          `json:"reasoning_content"`
			Reasoning        string          `json:"reasoning"`
			Thinking         string          `json:"thinking"`
			Refusal          string          `json:"refusal"`
			ToolCalls        []struct {
				Index    int    `json:"index"`
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		Logprobs     json.RawMessage `json:"logprobs"`
		FinishReason *string         `json:"finish_reason"`
		TokenIDs     []int64         `json:"token_ids"`
	} `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Timings map[string]float64
	Error   *struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   string `json:"param"`
		Code    string `json:"code"`
	} `json:"error"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Accepted   int `json:"accepted_prediction_tokens"`
	Rejected   int `json:"rejected_prediction_tokens"`
	InPrompt   struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Details struct {
		Reasoning int `json:"reasoning_tokens"`
		Accepted  int `json:"accepted_prediction_tokens"`
		Rejected  int `json:"rejected_prediction_tokens"`
	} `json:"completion_tokens_details"`
}

// told is all that a stream said.
type told struct {
	messages  []message
	content   string // choice 0
	others    map[int]string
	reasoning map[string]string // by field
	refusal   string
	tools     map[int]string
	names     map[int]string
	finish    string
	usages    []usage
	nulls     int // chunks with usage null
	done      bool
	malformed int
	roles     int
	empties   int // choices that carry neither text nor finish reason
	failure   string
}

// tell understands the events of a body.
func tell(t testing.TB, body []byte) (o told) {
	t.Helper()
	o.reasoning, o.tools, o.names, o.others = map[string]string{}, map[int]string{}, map[int]string{}, map[int]string{}
	for _, e := range events(body) {
		if strings.TrimSpace(e.data) == "[DONE]" {
			o.done = true
			continue
		}
		if o.done {
			t.Errorf("an event after [DONE]: %q", e.data)
		}
		var m message
		if err := json.Unmarshal([]byte(e.data), &m); err != nil {
			o.malformed++
			continue
		}
		o.messages = append(o.messages, m)
		if m.Error != nil {
			o.failure = m.Error.Message
		}
		switch string(m.Usage) {
		case "":
		case "null":
			o.nulls++
		default:
			var u usage
			if err := json.Unmarshal(m.Usage, &u); err != nil {
				t.Errorf("usage %s: %v", m.Usage, err)
			}
			o.usages = append(o.usages, u)
		}
		for _, c := range m.Choices {
			text := c.Text
			if len(c.Delta.Content) > 0 {
				var parts []struct{ Type, Text string }
				if json.Unmarshal(c.Delta.Content, &text) != nil {
					if err := json.Unmarshal(c.Delta.Content, &parts); err != nil {
						t.Errorf("content %s: %v", c.Delta.Content, err)
					}
					for _, p := range parts {
						text += p.Text
					}
				}
			}
			if c.Index == 0 {
				o.content += text
			} else {
				o.others[c.Index] += text
			}
			said := text
			for field, value := range map[string]string{"reasoning_content": c.Delta.ReasoningContent,
				"reasoning": c.Delta.Reasoning, "thinking": c.Delta.Thinking} {
				if value != "" {
					o.reasoning[field] += value
					said += value
				}
			}
			o.refusal += c.Delta.Refusal
			said += c.Delta.Refusal
			for _, call := range c.Delta.ToolCalls {
				o.names[call.Index] += call.Function.Name
				o.tools[call.Index] += call.Function.Arguments
				said += call.Function.Name + call.Function.Arguments
			}
			if c.Delta.Role != nil {
				o.roles++
			}
			if said == "" && c.FinishReason == nil {
				o.empties++
			}
			if c.FinishReason != nil {
				o.finish = *c.FinishReason
			}
		}
	}
	return o
}

// start serves a scenario for the length of a test.
func start(t testing.TB, s Scenario) *Server {
	t.Helper()
	server, err := Start(Options{Scenario: s, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// quick is a scenario without waits.
func quick(tokens int) Scenario { return Scenario{Name: "quick", Tokens: tokens} }

const prompt = "Tell me about the harbour, please."

// chat is the body of a streamed chat request with extra members.
func chat(members string) string {
	if members != "" {
		members = "," + members
	}
	return `{"model":"velo-sim","messages":[{"role":"user","content":"` + prompt + `"}],"stream":true` + members + `}`
}

const wantUsage = `"stream_options":{"include_usage":true}`
