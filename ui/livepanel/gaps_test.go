package livepanel

import (
	"image/color"
	"math"
	"strings"
	"testing"
	"time"

	"velo/bench/measure"
	"velo/bench/regime"
	"velo/bench/regime/share"
	"velo/ui/console"
	"velo/ui/look"
)

// bars counts the columns of a histogram on screen that have a bar.
func (g *stage) bars(i int) int {
	v := g.panel.histograms[i]
	v.Turn() // what is on screen becomes what may be drawn on
	img, _ := v.Back()
	v.Turn()
	n := 0
	for x := range img.Rect.Dx() {
		for y := range img.Rect.Dy() {
			if img.RGBAAt(x, y) == (color.RGBA(look.Now().Accent)) {
				n++
				break
			}
		}
	}
	return n
}

// The gaps so far are drawn while a turn streams; where the whole chat is shown, those before it too.
func TestGapsWhileItStreams(t *testing.T) {
	g := newStage(t)
	s := running("Some words of an answer", 3)
	g.draw(s, true)
	if n := g.bars(1); n != 0 {
		t.Errorf("without a gap there are bars in %d columns", n)
	}
	s = running("Some words of an answer", 4)
	s.Gaps, s.GapCounts = []float64{0.019, 0.02, 0.021, 0.05}, []float64{10, 40, 30, 1}
	g.draw(s, true)
	if n := g.bars(1); n == 0 {
		t.Errorf("with gaps there are bars in %d columns", n)
	}
}

func TestGapsOfTheWholeChat(t *testing.T) {
	one := gapsOf{[]float64{0.02, 0.04}, []float64{3, 1}, 0.02, 0.034}
	all := one.with([]float64{0.01, 0.01, 0.01, 0.01, 0.01})
	if all.p50 != 0.01 || math.Abs(float64(all.p90)-0.024) > 1e-9 || len(all.values) != 7 || all.counts[0] != 3 || all.counts[6] != 1 {
		t.Errorf("%+v", all)
	}
	if len(one.values) != 2 || one.p50 != 0.02 {
		t.Errorf("the turn's own gaps were changed: %+v", one)
	}
	if same := one.with(nil); len(same.values) != 2 {
		t.Errorf("%+v", same)
	}
	once := gapsOf{values: []float64{1}, p50: 1, p90: 1}.with([]float64{3})
	if once.p50 != 2 {
		t.Errorf("%+v", once)
	}
}

// The bands of an ended turn are those of its arrivals, to the chunk.
func TestBandsOfArrivals(t *testing.T) {
	x := session(1, 90).Exchanges[0]
	texts := []string{"Prose. ", "More.\n\n", "```go\n", "x := 1\n", "```\n"}
	x.Chunks = x.Chunks[:len(texts)]
	for i := range texts {
		x.Chunks[i].Text, x.Chunks[i].Channel = texts[i], 0
	}
	r := measure.Of(x, measure.Options{})
	e := Ended{Statistics: console.ChatStatistics{Requests: []measure.Request{r}, Starts: make([]time.Duration, 1), Kinds: [][]regime.Regime{share.Of(x, &r)}}}
	b := e.bandsAt(0)
	if len(b) != 2 || b[0].regime != "prose" || b[1].regime != "code" {
		t.Fatalf("%+v", b)
	}
	if math.Abs(b[0].to-0.22) > 1e-9 || math.Abs(b[1].from-0.22) > 1e-9 || math.Abs(b[1].to-0.28) > 1e-9 {
		t.Errorf("%+v", b)
	}
	e.Statistics.Kinds[0] = nil // its texts are not kept
	e.Texts = []Texts{{"", strings.Join(texts, "")}}
	if b := e.bandsAt(0); len(b) != 2 {
		t.Errorf("from the turn's text: %+v", b)
	}
}

func TestRatesByKindAreCopied(t *testing.T) {
	g := newStage(t)
	e := ended(1, 120)
	e.Statistics.Shares = []share.Share{{Regime: regime.Code, Tokens: 80, Rate: 61.25, Source: measure.Server}}
	g.panel.Show(e)
	g.draw(console.ChatLive{}, false)
	g.panel.CopyFigures()
	if !strings.Contains(g.copied, "Rate, code\t61.25 tok/s") {
		t.Errorf("copied %q", g.copied)
	}
	if s, ok := g.panel.sheetOf(); !ok || s.rows[len(s.rows)-1][0] != "Rate, code" || s.rows[len(s.rows)-1][2] != "80 tokens" {
		t.Errorf("the sheet has not: %+v", s.rows)
	}
}
