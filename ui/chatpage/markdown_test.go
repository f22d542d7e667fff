package chatpage

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shown is the text of a document without blanks.
func shown(d document) string {
	var b strings.Builder
	for i := range d.lines {
		b.WriteString(d.lines[i].text())
	}
	return strings.Join(strings.Fields(b.String()), "")
}

func checkLines(t interface{ Fatalf(string, ...any) }, lines []line, width float32) {
	y := float32(-1)
	for i := range lines {
		l := &lines[i]
		if l.y < y-0.01 || l.h <= 0 {
			t.Fatalf("line %d at %g, %g high, follows one at %g", i, l.y, l.h, y)
		}
		y = l.y
		x := l.x
		for k, s := range l.spans {
			if s.x >= 0 {
				x = l.x + s.x
			}
			if k == len(l.spans)-1 {
				s.text = strings.TrimRight(s.text, " ") // blanks may hang out
			}
			x += widthOf(s.text, s.style)
		}
		if x > width+1 && len([]rune(l.text())) > 3 {
			t.Fatalf("line %d %q ends at %g of %g", i, l.text(), x, width)
		}
	}
}

func TestMarkdownBlocks(t *testing.T) {
	d := markdown("# Title\n\nOne *two* **three** `four` &amp; \\* [five](http://six) ~~seven~~.\n\n"+
		"- a\n- b\n  1. c\n  2. d\n\n> quoted\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n---\n\n```go\nfunc main() {\n\tprintln(\"hi\") // say\n}\n```\n\nend", 500)
	checkLines(t, d.lines, 500)
	for _, want := range []string{"Title", "Onetwothreefour&*five(http://six)seven.", "•a", "1.c", "2.d", "quoted", "xy", "12", "funcmain(){", `println("hi")//say`, "end"} {
		if !strings.Contains(shown(d), want) {
			t.Errorf("%q is missing in %q", want, shown(d))
		}
	}
	find := func(text string) span {
		for _, l := range d.lines {
			for _, s := range l.spans {
				if strings.Contains(s.text, text) {
					return s
				}
			}
		}
		t.Fatalf("no span holds %q", text)
		return span{}
	}
	if s := find("Title"); !s.style.bold || s.style.size != 18 {
		t.Errorf("the heading is written %+v", s.style)
	}
	if s := find("three"); !s.style.bold {
		t.Error("strong text is not bold")
	}
	if s := find("two"); !s.style.underline {
		t.Error("emphasis is not marked")
	}
	if s := find("func"); s.style.ink != inkKeyword || !s.style.mono {
		t.Errorf("a keyword is written %+v", s.style)
	}
	if s := find("say"); s.style.ink != inkComment {
		t.Errorf("a comment is written %+v", s.style)
	}
	if s := find(`"hi"`); s.style.ink != inkString {
		t.Errorf("a string is written %+v", s.style)
	}
	if len(d.codes) != 1 || d.codes[0].text != "func main() {\n\tprintln(\"hi\") // say\n}" || d.codes[0].language != "go" {
		t.Errorf("the code is %+v", d.codes)
	}
}

func TestMarkdownLosesNoText(t *testing.T) {
	words := rapid.SampledFrom([]string{"word", "**bold**", "`code`", "\n\n", "\n", "- item\n", "1. one\n", "# head\n\n", "```\ncode\n```\n", "> quote\n\n", "日本語の文章", "🙂", "\t", strings.Repeat("w", 90), "| a | b |\n|---|---|\n| c | d |\n\n", "<b>", "    four\n"})
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(words, 0, 40).Draw(t, "words"), " ")
		width := float32(rapid.IntRange(160, 900).Draw(t, "width"))
		d := markdown(source, width)
		checkLines(t, d.lines, width)
		for word, runes := range map[string]string{"word": "word", "日本語の文章": "日本語の文章", "wwww": "wwww"} {
			if strings.Contains(source, word) && !strings.Contains(shown(d), runes) {
				t.Fatalf("%q is missing in %q, shown of %q", word, shown(d), source)
			}
		}
	})
}

func TestPartsAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"text\n", "\n", "```go\n", "```\n", "````\n", "  ```\n", "~~~\n", "x", "`"})).Draw(t, "lines"), "")
		p := parts(source, rapid.IntRange(0, 30).Draw(t, "size"))
		if got := strings.Join(p, ""); got != source {
			t.Fatalf("%q became %q", source, got)
		}
	})
	rapid.Check(t, func(t *rapid.T) { // a fence is never cut: fenced lines and others, in blocks that are closed
		var b strings.Builder
		blocks := 0
		for range rapid.IntRange(0, 20).Draw(t, "blocks") {
			if rapid.Bool().Draw(t, "fenced") {
				fence := rapid.SampledFrom([]string{"```", "````", "~~~"}).Draw(t, "fence")
				b.WriteString(fence + "go\n" + strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"code\n", "\n", "``\n"})).Draw(t, "code"), "") + fence + "\n\n")
				blocks++
			} else {
				b.WriteString("some words\n\n")
			}
		}
		whole := 0
		for _, one := range parts(b.String(), rapid.IntRange(0, 30).Draw(t, "size")) {
			whole += len(markdown(one, 400).codes)
		}
		if whole != blocks {
			t.Fatalf("%d blocks of code became %d: %q", blocks, whole, b.String())
		}
	})
}

func TestGrowingIsWrappingTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.StringOf(rapid.RuneFrom([]rune("ab  \n\tµ日🙂-")))).Draw(t, "pieces")
		width := float32(rapid.IntRange(10, 300).Draw(t, "width"))
		p := plain{style: body}
		text := ""
		for _, piece := range pieces {
			text += piece
			p.grow(text, width)
		}
		whole := plain{style: body}
		whole.grow(text, width)
		a, b := p.rows(), whole.rows()
		if len(a) != len(b) || p.count() != len(a) {
			t.Fatalf("%d rows grown, %d at once, count %d", len(a), len(b), p.count())
		}
		joined := ""
		for i := range a {
			if a[i].text() != b[i].text() || a[i].y != b[i].y || p.at(i).text() != a[i].text() {
				t.Fatalf("row %d: %q grown, %q at once", i, a[i].text(), b[i].text())
			}
			joined += a[i].text() + a[i].join
		}
		if got, want := strings.Join(strings.Fields(joined), ""), strings.Join(strings.Fields(text), ""); got != want {
			t.Fatalf("%q became %q", want, got)
		}
	})
}

func longAnswer(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString("The **rate** of a run is the number of tokens over the time from the first chunk to the last, and `c1` is the first.\n\n- one thing that is long enough to be wrapped at the width of a page, and more\n- another\n\n```go\nfunc rate(n, n1 int, d time.Duration) float64 {\n\treturn float64(n-n1) / d.Seconds() // tok/s\n}\n```\n\n")
	}
	return b.String()[:size]
}

func BenchmarkMarkdown200000(b *testing.B) {
	text := longAnswer(200_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		markdown(text, 560)
	}
}

// BenchmarkGrow is what one look at a stream costs at 200,000 characters: 50 are new.
func BenchmarkGrow(b *testing.B) {
	text := longAnswer(200_000 + 50)
	b.ReportAllocs()
	p := plain{style: body}
	p.grow(text[:200_000], 560)
	for b.Loop() {
		b.StopTimer()
		q := p
		b.StartTimer()
		q.grow(text, 560)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# a\n\n- b\n  - c\n\n```go\nx\n", "|a|\n|-|\n|b|", "> > > 1) x", "\x00\xff\r\n\t`", "***a**b*"} {
		f.Add(s, 300)
	}
	if data, err := os.ReadFile("markdown.go"); err == nil {
		f.Add(string(data), 80)
	}
	f.Fuzz(func(t *testing.T, source string, width int) {
		d := markdown(source, float32(min(max(width, 0), 4000)))
		y := float32(0)
		for _, l := range d.lines {
			if l.y < y || l.y+l.h > d.height+1 {
				t.Fatalf("a line at %g of %g, after %g", l.y, d.height, y)
			}
			y = l.y
		}
	})
}
