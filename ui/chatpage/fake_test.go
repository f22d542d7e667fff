package chatpage

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"velo/bench"
	"velo/bench/measure"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

// fake are chats in memory. What runs is told by the test through live.
type fake struct {
	mu     sync.Mutex
	chats  []*console.Conversation
	live   console.ChatLive
	sent   []console.ChatMessage
	shown  []string
	texts  []string
	params []console.ChatParameters
	fail   error
	stops  int
}

var _ console.Chats = (*fake)(nil)

func (f *fake) find(id string) *console.Conversation {
	for _, c := range f.chats {
		if c.ID == id {
			return c
		}
	}
	return nil
}

func (f *fake) List(words string) ([]console.Chat, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []console.Chat
	for _, c := range f.chats {
		if strings.Contains(strings.ToLower(c.Title), strings.ToLower(words)) {
			l := c.Chat
			l.Turns = len(c.Turns)
			out = append(out, l)
		}
	}
	return out, f.fail
}

func (f *fake) NewChat(endpoint, model string) (console.Conversation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &console.Conversation{Chat: console.Chat{ID: fmt.Sprint("c", len(f.chats)+1), Title: "New chat", Model: model, Endpoint: "Local", Began: now, Changed: now}, EndpointID: endpoint}
	f.chats = append([]*console.Conversation{c}, f.chats...)
	return *c, f.fail
}

func (f *fake) Chat(id string) (console.Conversation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.find(id)
	if c == nil {
		return console.Conversation{}, errors.New("cannot read the chat: there is none of this ID")
	}
	out := *c
	out.Turns = append([]console.ChatTurn(nil), c.Turns...)
	return out, f.fail
}

func (f *fake) RenameChat(id, title string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.find(id).Title = title
	return f.fail
}

func (f *fake) DeleteChat(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, c := range f.chats {
		if c.ID == id {
			f.chats = append(f.chats[:i:i], f.chats[i+1:]...)
			break
		}
	}
	return f.fail
}

func (f *fake) SetChatModel(id, endpoint, model string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.find(id)
	c.EndpointID, c.Model = endpoint, model
	return f.fail
}

func (f *fake) SetChatParameters(id string, p console.ChatParameters) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.params = append(f.params, p)
	f.find(id).Parameters = p
	return f.fail
}

func (f *fake) ShowTurn(chat, turn string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = append(f.shown, turn)
	return f.fail
}

func (f *fake) Send(id string, m console.ChatMessage) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	f.sent = append(f.sent, m)
	c := f.find(id)
	t := console.ChatTurn{ID: fmt.Sprintf("t%d", len(c.Turns)+1), Prompt: m.Text, Images: m.Images, Fill: m.Fill, Tool: m.Tool, Results: m.Results, Asked: now}
	c.Turns = append(c.Turns, t)
	none := measure.Missing
	f.live = console.ChatLive{Active: true, ChatID: id, TurnID: t.ID, Phase: "waiting", GapP50: none, GapP90: none, GapMax: none, TTFT: none, TTFO: none,
		Snapshot: measure.Snapshot{Rate: none, Median: none, Min: none, Max: none, TTFT: none, MaxGap: none}}
	return nil
}

func (f *fake) StopChat() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stops++
}

func (f *fake) Live() console.ChatLive {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live
}

func (f *fake) Statistics(chat, turn string) (console.ChatStatistics, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 1
	if turn == "" {
		n = len(f.find(chat).Turns)
	}
	return statisticsOf(n), f.fail
}

func (f *fake) Text(chat, turn, format string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts = append(f.texts, turn+" "+format)
	return "text of " + turn + " as " + format, f.fail
}

func (f *fake) Fills() []int { return []int{1024, 4096, 32768, 524288} }

// finish ends the turn that runs.
func (f *fake) finish(change func(*console.ChatTurn)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.find(f.live.ChatID)
	t := &c.Turns[len(c.Turns)-1]
	t.Status, t.Finish = bench.OK, "stop"
	t.Answer, t.Reasoning = f.live.Answer, f.live.Reasoning
	r := requestOf(1)
	t.Measured, t.Source = &r, measure.Server
	if change != nil {
		change(t)
	}
	f.live.Active = false
}

var now = time.Date(2026, 11, 30, 14, 3, 0, 0, time.Local)

func requestOf(n int) measure.Request {
	r := measure.Request{Number: n - 1, Status: bench.OK, N: 512 + 10*n, N1: 1, Answer: 300, Thought: 212 + 10*n, Source: measure.Server, Prompt: 1234, Cached: measure.Missing,
		TTFT: measure.Num(0.2 + 0.03*float64(n)), TTFO: 1.25, E2E: 12.4, Rate: 42.1, TTST: 0.02, ITL: 0.02, TPOT: 0.02, MaxGap: 0.31, Acceptance: 0.71}
	for i := range 400 {
		c := bench.Content
		if i < 150 {
			c = bench.Reasoning
		}
		at := time.Duration(200+i*28) * time.Millisecond
		if i > 250 {
			at += 900 * time.Millisecond
		}
		r.Arrivals = append(r.Arrivals, measure.Arrival{At: at, Tokens: 1 + i%2, Channel: c})
	}
	return r
}

func statisticsOf(n int) console.ChatStatistics {
	s := bench.Session{Header: bench.Header{ID: "s"}}
	st := console.ChatStatistics{Run: measure.Compute(&s, measure.Options{})}
	end := time.Duration(0)
	for i := range n {
		r := requestOf(i + 1)
		st.Requests = append(st.Requests, r)
		st.Starts = append(st.Starts, end)
		for k := 3; k < 120; k++ {
			rate := 42 + 6*math.Sin(float64(k)/5) + float64(k%3)
			if k > 70 && k < 80 {
				rate = 8
			}
			st.Rolling = append(st.Rolling, measure.RollingSample{At: end + time.Duration(k)*100*time.Millisecond, Rate: rate})
		}
		for k := range 399 {
			st.Gaps = append(st.Gaps, 0.024+0.004*math.Sin(float64(k))+0.02*float64(k%17/16))
		}
		end += 12 * time.Second
	}
	run := st.Run
	run.Requests, run.Answer, run.Thought, run.Source, run.Acceptance = st.Requests, 300*n, 222*n, measure.Server, 0.71
	run.Prompt, run.Cached = measure.Num(1234*n), measure.Num(1024)
	run.Rolling = measure.RollingStats{Median: 42.3, Min: 8, Max: 50.1}
	return st
}

// stage is a window with the page alone.
type stage struct {
	t      testing.TB
	fake   *fake
	page   *Page
	window fyne.Window
	queue  chan func()
	thread *thread.Thread
	said   []string
	copied []string
	asked  []func()
	dir    string
}

func newStage(t testing.TB, f *fake, width, height float32) *stage {
	t.Helper()
	test.NewApp()
	fyne.CurrentApp().Settings().SetTheme(&look.Theme{Mode: look.AlwaysDark})
	g := &stage{t: t, fake: f, queue: make(chan func(), 4096), dir: t.TempDir()}
	g.thread = thread.New(func(f func()) { g.queue <- f })
	g.window = test.NewWindow(nil)
	g.window.SetPadded(false)
	g.page = New(Params{
		Chats: f, Thread: g.thread,
		Chosen:      func() (console.Endpoint, string) { return console.Endpoint{ID: "e1", Name: "Local"}, "qwen3-32b" },
		ChooseImage: func(then func(string)) {},
		Copy:        func(text string) { g.copied = append(g.copied, text) },
		Save: func(write func(string) (string, error)) {
			file, err := write(g.dir)
			g.said = append(g.said, fmt.Sprint(file, err))
		},
		Say:    func(_ look.Tone, text string) { g.said = append(g.said, text) },
		Ask:    func(_, _, _ string, then func()) { g.asked = append(g.asked, then) },
		Prompt: func(_, _, _, _ string, then func(string)) { then("another title") },
		Focus:  func(o fyne.Focusable) { g.window.Canvas().Focus(o) },
		Redraw: func() {}, Changed: func() {}, Now: func() time.Time { return now },
	})
	g.window.SetContent(g.page.View)
	g.window.Resize(fyne.NewSize(width, height))
	g.page.Shown()
	g.pump()
	t.Cleanup(func() { g.thread.Wait(); g.window.Close() })
	return g
}

// pump runs everything that waits for the UI thread, and what follows from it.
func (g *stage) pump() {
	for range 30 {
		g.thread.Wait()
		n := 0
		for more := true; more; {
			select {
			case f := <-g.queue:
				f()
				n++
			default:
				more = false
			}
		}
		if n == 0 {
			return
		}
	}
}

// draw does what the window's clock does.
func (g *stage) draw() {
	for range 2 {
		g.page.Prepare(g.fake.Live(), look.Now())()
		g.pump()
		g.window.Canvas().Capture()
		g.pump()
	}
	g.page.Prepare(g.fake.Live(), look.Now())()
	g.pump()
}

// seen are the texts of the transcript that are in view.
func (g *stage) seen() string {
	var b strings.Builder
	for _, v := range g.page.words.turns {
		for _, p := range v.parts {
			for i := range p.lines {
				b.WriteString(p.lines[i].text() + "\n")
			}
		}
	}
	return b.String()
}

// stream lets the turn that runs come as far as this.
func (f *fake) stream(reasoning, answer string, seconds float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &f.live
	l.Reasoning, l.Answer = reasoning, answer
	l.Phase = "reasoning"
	if answer != "" {
		l.Phase = "answering"
	}
	l.Elapsed = time.Duration(seconds * float64(time.Second))
	l.ReasoningTokens, l.AnswerTokens, l.Source = len(reasoning)/4, len(answer)/4, measure.Estimate
	l.TTFT, l.TTFO, l.GapP50, l.GapP90, l.GapMax = 0.203, 1.31, 0.0241, 0.031, 0.22
	l.Snapshot.At = l.Elapsed + 5*time.Second
	l.Snapshot.Rate, l.Snapshot.Median, l.Snapshot.Min, l.Snapshot.Max = 41.7, 42.2, 3.5, 49.9
	l.Snapshot.Sum = nil
	for at := 0.4; at < seconds; at += 0.1 {
		l.Snapshot.Sum = append(l.Snapshot.Sum, measure.RollingSample{At: 5*time.Second + time.Duration(at*float64(time.Second)), Rate: 42 + 5*math.Sin(at*3)})
	}
}
