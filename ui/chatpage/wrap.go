package chatpage

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"velo/assets"
	"velo/ui/look"
)

// face tells how wide letters are, on any goroutine: Fyne's own measuring keeps its results where only
// the UI thread may go, and a long answer is wrapped elsewhere.
type face struct {
	mu     sync.Mutex
	font   *sfnt.Font
	buffer sfnt.Buffer
	ascii  [utf8.RuneSelf]float32 // em
	others map[rune]float32
}

var faces = sync.OnceValue(func() (f [4]*face) {
	for i, data := range [][]byte{assets.TextRegular, assets.TextBold, assets.MonoRegular, assets.MonoBold} {
		parsed, err := sfnt.Parse(data)
		if err != nil {
			panic("cannot read an embedded font: " + err.Error()) // it is part of this binary
		}
		f[i] = &face{font: parsed, others: map[rune]float32{}}
		for c := range f[i].ascii {
			f[i].ascii[c] = f[i].measure(rune(c))
		}
	}
	return f
})

// measure is the advance of a letter in em. What the fonts of this program do not have comes from
// another one: it is taken to be as wide as the widest that is usual.
func (f *face) measure(c rune) float32 {
	const em = 1000
	if i, err := f.font.GlyphIndex(&f.buffer, c); err == nil && i != 0 {
		if a, err := f.font.GlyphAdvance(&f.buffer, i, fixed.I(em), font.HintingNone); err == nil {
			return float32(a) / 64 / em
		}
	}
	switch runewidth.RuneWidth(c) {
	case 0:
		return 0
	case 1:
		return 0.65
	}
	return 1.25
}

func (f *face) advance(c rune) float32 {
	if c < utf8.RuneSelf {
		return f.ascii[c]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.others[c]
	if !ok {
		w = f.measure(c)
		if len(f.others) < 1<<16 {
			f.others[c] = w
		}
	}
	return w
}

// style is how a piece of text is written.
type style struct {
	size      float32
	bold      bool
	mono      bool
	underline bool
	struck    bool
	ink       ink
}

func (s style) face() *face {
	i := 0
	if s.mono {
		i = 2
	}
	if s.bold {
		i++
	}
	return faces()[i]
}

func (s style) height() float32 {
	switch s.size {
	case look.Small:
		return 18
	case look.Head:
		return 28
	}
	return 21
}

// span is a piece of a line in one style. x is where it begins where that is not behind the one
// before.
type span struct {
	text  string
	style style
	x     float32 // ≥ 0: from the line's left; < 0: behind the span before
}

// ground is what lies behind a line.
type ground uint8

const (
	bare ground = iota
	onCode
	onPrompt
	onHead // of a table
	ruled  // a thin line through the middle
)

// line is a line on screen.
type line struct {
	y, h   float32
	x      float32
	back   float32 // where its ground begins
	spans  []span
	ground ground
	bars   uint8  // of quotes, at the left
	join   string // what stands between this line and the next one in the text: "", " ", "\n"
}

func (l *line) text() string {
	if len(l.spans) == 1 {
		return l.spans[0].text
	}
	var b strings.Builder
	for i, s := range l.spans {
		if s.x >= 0 && i > 0 {
			b.WriteByte('\t') // another cell of a table
		}
		b.WriteString(s.text)
	}
	return b.String()
}

// row cuts the next row of a text from its start: text[:n] fits the width, text[next:] comes after
// it, and join stands between the two. complete is false where the row ends because the text does.
func row(text string, s style, width float32) (n, next int, join string, complete bool) {
	f := s.face()
	limit := width / s.size
	var w float32
	space, after := -1, 0 // the last place to break
	for i := 0; i < len(text); {
		c, k := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, k = utf8.DecodeRuneInString(text[i:])
		}
		switch c {
		case '\n':
			return i, i + 1, "\n", true
		case '\r':
			i++
			continue
		}
		if c == '\t' {
			w += 4 * f.ascii[' ']
		} else {
			w += f.advance(c)
		}
		if c == ' ' || c == '\t' {
			space, after = i, i+k // blanks at the end may hang out
		} else if w > limit {
			if space > 0 {
				return space, after, text[space:after], true
			}
			if i == 0 { // not even one letter fits
				return k, k, "", true
			}
			return i, i, "", true
		}
		if runewidth.RuneWidth(c) == 2 { // between these a line may end
			space, after = i+k, i+k
			if i+k >= len(text) {
				space = -1
			}
		}
		i += k
	}
	return len(text), len(text), "", false
}

// clean makes a row fit to be shown: tabs become spaces, other control characters a mark.
func clean(text string) string {
	if strings.IndexFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f || c == utf8.RuneError }) < 0 {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '\t':
			b.WriteString("    ")
		case c == '\r' || c == '\n':
		case c < ' ' || c == 0x7f:
			b.WriteRune('·')
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// plain wraps a text of one style into rows of one height. It may be called again as the text grows:
// only what is new, and the last row, is looked at. What Rows gave out stays as it is.
type plain struct {
	style style
	width float32
	x     float32 // of each row
	bars  uint8

	text string
	from int    // where the last row begins
	done []line // rows that no longer change
	last line
}

// grow takes the text as it is now: what was given before and more, or another text.
func (p *plain) grow(text string, width float32) {
	if width != p.width || len(text) < len(p.text) || text[:p.from] != p.text[:p.from] {
		p.width, p.from, p.done = width, 0, nil
	}
	p.text = text
	h := p.style.height()
	for {
		n, next, join, complete := row(text[p.from:], p.style, width)
		l := line{y: float32(len(p.done)) * h, h: h, x: p.x, bars: p.bars, join: join,
			spans: []span{{text: clean(text[p.from : p.from+n]), style: p.style, x: -1}}}
		if !complete {
			l.join = "\n"
			p.last = l
			return
		}
		p.done = append(p.done, l)
		p.from += next
	}
}

// parts are all rows, in parts that are never written again: the rows that no longer change are not
// copied.
func (p *plain) parts() []part {
	if p.text == "" {
		return nil
	}
	last := p.last
	last.y = 0
	if len(p.done) == 0 {
		return []part{{lines: []line{last}}}
	}
	return []part{{lines: p.done[:len(p.done):len(p.done)]}, {lines: []line{last}}}
}

// rows are all rows; the slice is the caller's.
func (p *plain) rows() []line {
	if p.text == "" {
		return nil
	}
	return append(p.done[:len(p.done):len(p.done)], p.last)
}

// count is the number of rows.
func (p *plain) count() int {
	if p.text == "" {
		return 0
	}
	return len(p.done) + 1
}

// at is row i.
func (p *plain) at(i int) *line {
	if i < len(p.done) {
		return &p.done[i]
	}
	return &p.last
}

// wrap breaks spans into lines of a width. The first line begins at first, the others at hang.
func wrap(spans []span, width, first, hang float32) []line {
	w := wrapper{width: width, hang: hang, cur: line{x: first}, room: width - first}
	for _, s := range spans {
		from := 0
		for i, c := range s.text {
			k := utf8.RuneLen(c)
			if k < 0 {
				k = 1
			}
			switch {
			case c == '\n':
				w.piece(s.text[from:i], s.style)
				w.word()
				w.end("\n")
				from = i + k
			case c == ' ' || c == '\t':
				w.piece(s.text[from:i], s.style)
				w.word()
				w.space = append(w.space, span{text: s.text[i : i+k], style: s.style, x: -1})
				from = i + k
			case c >= 0x1100 && runewidth.RuneWidth(c) == 2: // a line may end behind each of these
				w.piece(s.text[from:i+k], s.style)
				w.word()
				from = i + k
			}
		}
		w.piece(s.text[from:], s.style)
	}
	w.word()
	if len(w.cur.spans) > 0 || len(w.out) == 0 {
		w.end("\n")
	}
	w.out[len(w.out)-1].join = "\n"
	return w.out
}

// wrapper fills lines with words; a word may have several styles.
type wrapper struct {
	width, hang float32
	out         []line
	cur         line
	room        float32 // that is left on the current line
	letters     []span  // the word that is being read
	space       []span  // before it
}

func (w *wrapper) piece(text string, s style) {
	if text != "" {
		w.letters = append(w.letters, span{text: text, style: s, x: -1})
	}
}

// word puts the word that was read on a line.
func (w *wrapper) word() {
	if len(w.letters) == 0 {
		return
	}
	var need, gap float32
	for _, s := range w.letters {
		need += widthOf(s.text, s.style)
	}
	for _, s := range w.space {
		gap += widthOf(s.text, s.style)
	}
	if len(w.cur.spans) > 0 && gap+need > w.room {
		join := ""
		for _, s := range w.space {
			join += s.text
		}
		w.end(join)
	} else if len(w.cur.spans) > 0 {
		for _, s := range w.space {
			w.put(s)
		}
	}
	w.space = nil
	for _, s := range w.letters {
		for { // a word longer than a line: an address, a path
			n, next, _, complete := row(s.text, s.style, w.room)
			if complete && n == 0 || complete && next == 0 || complete && len(w.cur.spans) > 0 && w.room < s.style.size {
				w.end("")
				continue
			}
			w.put(span{text: s.text[:n], style: s.style, x: -1})
			if !complete {
				break
			}
			s.text = s.text[next:]
			w.end("")
		}
	}
	w.letters = w.letters[:0]
}

func (w *wrapper) put(s span) {
	if s.text == "" {
		return
	}
	w.room -= widthOf(s.text, s.style)
	s.text = clean(s.text)
	if n := len(w.cur.spans); n > 0 && w.cur.spans[n-1].style == s.style {
		w.cur.spans[n-1].text += s.text
		return
	}
	w.cur.spans = append(w.cur.spans, s)
}

// end begins the next line.
func (w *wrapper) end(join string) {
	w.cur.join = join
	for _, s := range w.cur.spans {
		w.cur.h = max(w.cur.h, s.style.height())
	}
	if len(w.cur.spans) == 0 {
		w.cur.h = (style{size: look.Body}).height()
	}
	w.out = append(w.out, w.cur)
	w.cur = line{x: w.hang}
	w.room = w.width - w.hang
	w.space = nil
}

// widthOf is the width of a text in units.
func widthOf(text string, s style) float32 {
	f := s.face()
	var w float32
	for _, c := range text {
		if c == '\t' {
			w += 4 * f.ascii[' ']
		} else {
			w += f.advance(c)
		}
	}
	return w * s.size
}

// stack puts lines below each other from y on, and returns where they end.
func stack(lines []line, y float32) float32 {
	for i := range lines {
		lines[i].y = y
		y += lines[i].h
	}
	return y
}
