package livepanel

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"pgregory.net/rapid"

	"velo/bench"
	"velo/bench/measure"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

type stage struct {
	panel  *Panel
	window fyne.Window
	said   []string
	copied string
	dir    string
	wrote  []string
	scope  []bool
}

func newStage(t *testing.T) *stage {
	t.Helper()
	test.NewTempApp(t)
	fyne.CurrentApp().Settings().SetTheme(&look.Theme{Mode: look.AlwaysDark})
	g := &stage{dir: t.TempDir()}
	g.panel = New(Params{Thread: thread.New(func(f func()) { f() }), Copy: func(s string) { g.copied = s },
		Say: func(_ look.Tone, s string) { g.said = append(g.said, s) },
		Save: func(write func(string) (string, error)) {
			file, err := write(g.dir)
			if err != nil {
				t.Error(err)
			}
			g.wrote = append(g.wrote, file)
		},
		Redraw: func() {}, Scope: func(chat bool) { g.scope = append(g.scope, chat) }})
	g.window = test.NewWindow(g.panel.View)
	g.window.SetPadded(false)
	g.window.Resize(fyne.NewSize(360, 690))
	t.Cleanup(g.window.Close)
	return g
}

// draw prepares and shows, twice: the first painting tells the drawings their size.
func (g *stage) draw(s console.ChatLive, mine bool) {
	for range 2 {
		g.panel.Prepare(s, mine, look.Now())()
		g.window.Canvas().Capture()
	}
	g.panel.Prepare(s, mine, look.Now())()
}

// exchange is a request of n chunks, a third of them reasoning, with a gap of 20 ms.
func session(turns, n int) *bench.Session {
	s := &bench.Session{Header: bench.Header{ID: "s", Anchor: time.Unix(1, 0)}}
	at := time.Duration(0)
	for k := range turns {
		x := &bench.Exchange{Request: &bench.Request{Number: k, Start: at, Planned: at, Step: k}}
		t := at + 200*time.Millisecond
		for i := range n {
			c := bench.Chunk{Request: k, Text: "word ", User: t, Kernel: bench.Unset, Read: int32(i)}
			if i < n/3 {
				c.Channel = bench.Reasoning
			}
			x.Chunks = append(x.Chunks, c)
			t += 20 * time.Millisecond
		}
		x.End = &bench.End{Request: k, End: t, Close: t, Status: bench.OK, Usage: &bench.Usage{Completion: n, Prompt: 99}}
		s.Exchanges = append(s.Exchanges, x)
		at = t + time.Second
	}
	return s
}

func ended(turns, n int) Ended {
	run := measure.Compute(session(turns, n), measure.Options{})
	e := Ended{Chat: turns > 1, Title: "What is a rate?", Statistics: console.ChatStatistics{Run: run, Requests: run.Requests}}
	end := time.Duration(0)
	for i := range run.Requests {
		r := &run.Requests[i]
		e.Statistics.Starts = append(e.Statistics.Starts, end)
		e.Statistics.Gaps = append(e.Statistics.Gaps, r.ICL...)
		for _, p := range r.Rolling.Samples {
			p.At += end - r.Start
			e.Statistics.Rolling = append(e.Statistics.Rolling, p)
		}
		end += r.Arrivals[len(r.Arrivals)-1].At - r.Start
		e.Texts = append(e.Texts, Texts{strings.Repeat("word ", n/3), strings.Repeat("word ", n-n/3)})
	}
	return e
}

func running(answer string, at float64) console.ChatLive {
	s := console.ChatLive{Active: true, ChatID: "c", TurnID: "t", Phase: "answering", Answer: answer, Reasoning: "I think so.",
		Elapsed: time.Duration(at * float64(time.Second)), AnswerTokens: len(answer) / 4, ReasoningTokens: 3, Source: measure.Estimate,
		GapP50: 0.02, GapP90: 0.031, GapMax: 0.2, TTFT: 0.203, TTFO: 0.5}
	s.Snapshot = measure.Snapshot{At: s.Elapsed + time.Minute, Rate: 47.25, Median: 48, Min: 2, Max: 55}
	for k := 0.5; k < at; k += 0.1 {
		s.Snapshot.Sum = append(s.Snapshot.Sum, measure.RollingSample{At: time.Minute + time.Duration(k*1e9), Rate: 48})
	}
	return s
}

func TestFiguresOfATurn(t *testing.T) {
	g := newStage(t)
	g.panel.Show(ended(1, 120))
	g.draw(console.ChatLive{}, false)
	for name, want := range map[string]string{"Decode rate": "50.0 tok/s ▪", "TTFT": "200 ms", "TTFO": "1.00 s", "E2E": "2.58 s",
		"Gap, median": "20.0 ms", "Gap, longest": "20.0 ms", "Output tokens": "120 ▪", "Prompt tokens": "99 ▪", "Acceptance": "—"} {
		if got := g.panel.Value(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for i, h := range g.panel.helps {
		if !strings.Contains(h.Text(), "Source") && !strings.Contains(h.Text(), "Not measured") {
			t.Errorf("the help of %s does not say its source: %q", g.panel.shown[i].name, h.Text())
		}
	}
	if m, _ := measure.MetricByID("ttft"); !strings.Contains(g.panel.helps[fTTFT].Text(), m.Definition) {
		t.Errorf("the help of TTFT does not say its definition: %q", g.panel.helps[fTTFT].Text())
	}
}

func TestFiguresWhileItStreams(t *testing.T) {
	g := newStage(t)
	g.draw(running("Some words of an answer", 3), true)
	for name, want := range map[string]string{"Decode rate now": "47.2 tok/s ~", "Elapsed": "3.0 s", "Gap, p90": "31.0 ms", "Range, tok/s": "2.00–55.0 ~"} {
		if got := g.panel.Value(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	g.draw(running("Some words of an answer", 3.1), true)
	if got := g.panel.Value("Elapsed"); got != "3.0 s" {
		t.Errorf("after a tenth of a second the figures changed: %q", got)
	}
	g.draw(running("Some words of an answer", 3.3), true)
	if got := g.panel.Value("Elapsed"); got != "3.3 s" {
		t.Errorf("after three tenths they did not: %q", got)
	}
	s := running("Some words of an answer", 3.4)
	s.Active = false
	g.panel.Show(ended(1, 120))
	g.draw(s, false)
	if got := g.panel.Value("Decode rate"); got != "50.0 tok/s ▪" {
		t.Errorf("after its end the decode rate is %q", got)
	}
}

func TestFiguresDoNotMove(t *testing.T) {
	g := newStage(t)
	where := func() []fyne.Position {
		var out []fyne.Position
		for _, h := range g.panel.helps {
			out = append(out, fyne.CurrentApp().Driver().AbsolutePositionForObject(h))
		}
		return out
	}
	g.draw(console.ChatLive{}, false)
	before := where()
	for i, at := range []float64{0.3, 9.9, 123, 7000} {
		s := running(strings.Repeat("word ", i*i*5000), at)
		s.Snapshot.Rate = measure.Num(math.Pow(10, float64(i)))
		g.draw(s, true)
		for k, p := range where() {
			if p != before[k] {
				t.Errorf("%s moved from %v to %v", g.panel.shown[k].name, before[k], p)
			}
		}
	}
}

func TestHelpOnFocusAndHover(t *testing.T) {
	g := newStage(t)
	g.panel.Show(ended(1, 120))
	g.draw(console.ChatLive{}, false)
	h := g.panel.helps[fTTFT]
	g.window.Canvas().Focus(h)
	if g.panel.layer.Shown() != h {
		t.Fatal("focus shows no help")
	}
	h.TypedShortcut(&fyne.ShortcutCopy{Clipboard: fyne.CurrentApp().Clipboard()})
	if got := fyne.CurrentApp().Clipboard().Content(); got != "TTFT\t0.2 s" {
		t.Errorf("copied %q", got)
	}
	g.window.Canvas().Unfocus()
	if g.panel.layer.Shown() != nil {
		t.Error("help stays without focus")
	}
	g.panel.helps[fRange].MouseIn(nil)
	if g.panel.layer.Shown() != g.panel.helps[fRange] {
		t.Error("the pointer shows no help")
	}
	g.panel.helps[fRange].MouseOut()
	if g.panel.layer.Shown() != nil {
		t.Error("help stays without the pointer")
	}
}

func TestExports(t *testing.T) {
	g := newStage(t)
	g.panel.SavePNG()
	if len(g.wrote) != 0 || len(g.said) != 1 || !strings.Contains(g.said[0], "no turn has ended") {
		t.Fatalf("wrote %q, said %q", g.wrote, g.said)
	}
	g.panel.Show(ended(3, 90))
	g.draw(console.ChatLive{}, false)
	g.panel.SavePNG()
	g.panel.SavePDF()
	if len(g.wrote) != 2 {
		t.Fatalf("wrote %q", g.wrote)
	}
	picture, err := os.ReadFile(g.wrote[0])
	if err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(bytes.NewReader(picture)); err != nil || img.Bounds().Dx() != 1600 {
		t.Errorf("the picture: %v", err)
	}
	page, err := os.ReadFile(g.wrote[1])
	if err != nil || !bytes.HasPrefix(page, []byte("%PDF-")) || bytes.Contains(page, []byte("/Subtype /Image")) {
		t.Errorf("the page is no PDF of vectors: %v", err)
	}
	if dir := os.Getenv("VELO_SCREENSHOTS"); dir != "" {
		_ = os.WriteFile(dir+"/panel.png", picture, 0o600)
		_ = os.WriteFile(dir+"/panel.pdf", page, 0o600)
	}
	g.panel.CopyFigures()
	if !strings.Contains(g.copied, "Output tokens\t270 tokens: 180 of the answer, 90 of the reasoning\n") || !strings.Contains(g.copied, "TTFT\t0.2 s\n") {
		t.Errorf("copied %q", g.copied)
	}
}

func TestBandsFollowTheText(t *testing.T) {
	r := measure.Of(session(1, 90).Exchanges[0], measure.Options{})
	b := bandsOf(&r, strings.Repeat("word ", 30), strings.Repeat("word ", 60), 10)
	if len(b) != 2 || b[0].regime != "reasoning" || b[1].regime != "prose" {
		t.Fatalf("bands %+v", b)
	}
	for i, want := range [][2]float64{{10.2, 10.78}, {10.8, 11.98}} {
		if math.Abs(b[i].from-want[0]) > 0.05 || math.Abs(b[i].to-want[1]) > 0.05 {
			t.Errorf("band %d is %+v, want %v", i, b[i], want)
		}
	}
}

// TestLiveBandsKeepTheirTime shows that bands lie in order within the time that was seen, whatever the
// text and however it comes.
func TestLiveBandsKeepTheirTime(t *testing.T) {
	piece := rapid.SampledFrom([]string{"Some words of prose follow here. ", "\n\n", "```go\nfunc f() int { return 1 }\n```\n", "- item\n", "x", "$$a=b$$\n\n"})
	rapid.Check(t, func(t *rapid.T) {
		var f follower
		reasoning, answer := "", ""
		at := 0.2
		n := rapid.IntRange(1, 30).Draw(t, "looks")
		for i := range n {
			at += rapid.Float64Range(0, 1).Draw(t, "later")
			if rapid.Bool().Draw(t, "thinks") && answer == "" {
				reasoning += piece.Draw(t, "piece")
			} else {
				answer += piece.Draw(t, "piece")
			}
			f.look(fmt.Sprint("turn ", i/20), reasoning, answer, at)
		}
		end := 0.0
		for _, b := range f.bands() {
			if b.from < end-1e-9 || b.to < b.from || b.to > at+1e-9 {
				t.Fatalf("bands %+v, now is %g", f.bands(), at)
			}
			end = b.to
		}
		if len(f.bands()) == 0 {
			t.Fatal("there is text and no band")
		}
	})
}

func TestDrawingsOfAnySize(t *testing.T) {
	points := []measure.RollingSample{{At: 0, Rate: 1}, {At: time.Second, Rate: math.Inf(1)}, {At: 2 * time.Second, Rate: math.NaN()}, {At: 100 * time.Hour, Rate: 3}}
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(0, 500).Draw(t, "w"), rapid.IntRange(0, 300).Draw(t, "h")
		img := blank(w, h)
		scale := rapid.SampledFrom([]float64{1, 1.5, 3}).Draw(t, "scale")
		values := rapid.SliceOf(rapid.Float64()).Draw(t, "values")
		values = append(values, math.NaN(), math.Inf(1))
		(&timeline{}).draw(img, scale, look.Dark, rates{points: points, bands: []band{{0, math.Inf(1), "prose"}, {3, 2, "code"}, {-5, 1, "other"}}, median: 1e300, now: "1"})
		(&histogram{}).draw(img, scale, look.Light, "Gaps", "ms", measure.HistogramOf(values, nil, 0, 3), 1e3, []marker{{math.NaN(), "p50"}, {1, "p90"}}, "none")
		(&bars{}).draw(img, scale, look.Light, "TTFT", "ms", values, 1e3, "none")
	})
}

func TestTimelineShrinksOnlyWhenReset(t *testing.T) {
	var l timeline
	img := blank(400, 160)
	long := rates{points: []measure.RollingSample{{At: 25 * time.Second, Rate: 180}}, median: measure.Missing}
	brief := rates{points: []measure.RollingSample{{At: time.Second, Rate: 4}}, median: measure.Missing}
	l.draw(img, 1, look.Dark, long)
	l.draw(img, 1, look.Dark, brief)
	if l.x != 30 || l.y.Top != 200 {
		t.Errorf("the axes end at %g s and %g tok/s, want 30 and 200", l.x, l.y.Top)
	}
	l.reset()
	l.draw(img, 1, look.Dark, brief)
	if l.x != 5 || l.y.Top != 4 {
		t.Errorf("after a reset they end at %g s and %g tok/s, want 5 and 4", l.x, l.y.Top)
	}
}

func blank(w, h int) *image.RGBA { return image.NewRGBA(image.Rect(0, 0, w, h)) }
