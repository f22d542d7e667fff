package look

import (
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	"pgregory.net/rapid"
)

func setUp(t *testing.T) {
	test.NewTempApp(t)
	fyne.CurrentApp().Settings().SetTheme(&Theme{Mode: AlwaysDark})
}

func TestFit(t *testing.T) {
	setUp(t)
	style := fyne.TextStyle{}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("abc µ—≤日本e\u0301🙂\n"))).Draw(t, "text")
		width := float32(rapid.IntRange(-5, 300).Draw(t, "width"))
		got := Fit(text, width, Body, style)
		if strings.ToValidUTF8(got, "?") != got {
			t.Fatalf("%q is not text any more: %q", text, got)
		}
		if w := fyne.MeasureText(got, Body, style).Width; got != "…" && w > max(width, 0)+1 {
			t.Fatalf("%q is %g wide, there are %g", got, w, width)
		}
		if strings.ContainsAny(got, "\n\r") {
			t.Fatalf("%q has two lines", got)
		}
	})
	if got := Fit("short", 200, Body, style); got != "short" {
		t.Errorf("a text that fits became %q", got)
	}
	if got := Fit("a rather long text", 60, Body, style); !strings.HasSuffix(got, "…") || len(got) < 6 {
		t.Errorf("a text that does not fit became %q", got)
	}
}

func TestFitOfHostileTextIsQuickToCut(t *testing.T) {
	setUp(t)
	if got := Fit(strings.Repeat("x", 10<<20), 100, Body, fyne.TextStyle{}); len(got) > 200 {
		t.Errorf("%d bytes are left", len(got))
	}
}

func TestParagraphWraps(t *testing.T) {
	setUp(t)
	p := NewParagraph("one two three four five six seven eight nine ten\n\nand a new line " + strings.Repeat("w", 200))
	rapid.Check(t, func(t *rapid.T) {
		width := float32(rapid.IntRange(80, 900).Draw(t, "width"))
		p.Resize(fyne.NewSize(width, 10))
		for _, l := range p.lines {
			if w := fyne.MeasureText(l, Body, fyne.TextStyle{}).Width; w > width+1 {
				t.Fatalf("%q is %g wide, there are %g", l, w, width)
			}
		}
		if got := strings.Join(strings.Fields(strings.Join(p.lines, "")), ""); got != strings.Join(strings.Fields(p.text), "") {
			t.Fatalf("text was lost: %q", got)
		}
	})
	p.Resize(fyne.NewSize(900, 10))
	wide := p.MinSize().Height
	p.Resize(fyne.NewSize(120, 10))
	if narrow := p.MinSize().Height; narrow <= wide {
		t.Errorf("%g high at 120, %g at 900", narrow, wide)
	}
	p.AtMost(2)
	p.Set(p.text + " ")
	p.Resize(fyne.NewSize(120, 10))
	if len(p.lines) != 2 || !strings.HasSuffix(p.lines[1], "…") {
		t.Errorf("of two lines at most: %q", p.lines)
	}
}

// TestRowsKnowHeights shows that a paragraph gets the height of its width in the first layout.
func TestRowsKnowHeights(t *testing.T) {
	setUp(t)
	p := NewParagraph(strings.Repeat("word ", 60))
	below := NewText("below")
	c := Rows(Step, p, Rows(0, below))
	c.Resize(fyne.NewSize(200, 1000))
	if p.Size().Height != p.MinSize().Height || p.Size().Height < 100 {
		t.Errorf("the paragraph is %g high, and needs %g", p.Size().Height, p.MinSize().Height)
	}
	if y := c.Objects[1].Position().Y; y != p.Size().Height+Step {
		t.Errorf("what is below begins at %g", y)
	}
}

func TestFlow(t *testing.T) {
	setUp(t)
	var objects []fyne.CanvasObject
	for range 5 {
		objects = append(objects, Sized(100, 20, NewText("")))
	}
	objects[1] = Sized(100, 50, NewText(""))
	objects[2].Hide()
	c := Flow(10, 100, objects...)
	c.Resize(fyne.NewSize(215, 500))
	want := []fyne.Position{{X: 0, Y: 0}, {X: 110, Y: 0}, {}, {X: 0, Y: 60}, {X: 110, Y: 60}}
	for i, o := range objects {
		if o.Visible() && o.Position() != want[i] {
			t.Errorf("object %d lies at %v, want %v", i, o.Position(), want[i])
		}
	}
	if h := c.MinSize().Height; h != 80 {
		t.Errorf("the flow is %g high, want 80", h)
	}
}

func TestTileKeepsItsSize(t *testing.T) {
	setUp(t)
	tile := NewTile("Median").Steady(5)
	before := tile.MinSize()
	for _, v := range []string{"", "0.001", "12,345,678", "∞"} {
		tile.Set(v, "tok/s", "~", "a note that is much too long to be shown in a tile of this width", Plain)
		if tile.MinSize() != before {
			t.Errorf("%q makes it %v, it was %v", v, tile.MinSize(), before)
		}
	}
	tile.Set("—", "ms", "~", "", Plain)
	if got := tile.Value(); got != "— ms" {
		t.Errorf("what was not measured is written %q", got)
	}
}

func TestThemeModes(t *testing.T) {
	setUp(t)
	for _, c := range []struct {
		mode Mode
		dark bool
	}{{AlwaysDark, true}, {AlwaysLite, false}} {
		fyne.CurrentApp().Settings().SetTheme(&Theme{Mode: c.mode})
		if (Now().Background == Dark.Background) != c.dark {
			t.Errorf("mode %s shows %v", c.mode, Now().Background)
		}
	}
}

func TestItemIsPressedByKey(t *testing.T) {
	setUp(t)
	n := 0
	i := NewItem("Suites", "", func() { n++ })
	for _, k := range []fyne.KeyName{fyne.KeySpace, fyne.KeyReturn, fyne.KeyA} {
		i.TypedKey(&fyne.KeyEvent{Name: k})
	}
	test.Tap(i)
	if n != 3 {
		t.Errorf("pressed %d times, want 3", n)
	}
}

func TestScrollBringsIntoView(t *testing.T) {
	setUp(t)
	s := NewScroll(Sized(100, 1000, NewText("")))
	s.Resize(fyne.NewSize(100, 200))
	for _, c := range []struct{ y, want float32 }{{500, 320}, {450, 320}, {100, 100}, {990, 800}} {
		s.Reveal(c.y, 20)
		if s.Offset() != c.want {
			t.Errorf("%g brings %g to the top, want %g", c.y, s.Offset(), c.want)
		}
	}
}
