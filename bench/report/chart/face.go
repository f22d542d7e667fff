package chart

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/unicode/norm"

	"velo/assets"
)

// face is one of the embedded fonts.
type face struct {
	family string // as registered with a PDF and named in an SVG
	bold   bool

	mu     sync.Mutex
	font   *opentype.Font
	buf    sfnt.Buffer
	glyphs map[rune]*glyph
}

// glyph is the outline of a rune at a size of one pixel an em, y downwards,
// origin on the baseline.
type glyph struct {
	advance  float64
	segments []segment
}

// segment is a line (one point), a quadratic (two) or a cubic curve (three);
// a move starts a new contour.
type segment struct {
	op sfnt.SegmentOp
	at [3]vec
}

var (
	textRegular = newFace("text", false, assets.TextRegular)
	textBold    = newFace("text", true, assets.TextBold)
	monoRegular = newFace("mono", false, assets.MonoRegular)
	monoBold    = newFace("mono", true, assets.MonoBold)

	faces = []*face{textRegular, textBold, monoRegular, monoBold}
)

const emUnits = 1000 // units per em of the four fonts: metrics are exact

// newFace parses an embedded font. A font that does not parse is a broken
// build, which the tests find; it draws nothing then.
func newFace(family string, bold bool, data []byte) *face {
	f, err := opentype.Parse(data)
	if err != nil {
		f = nil
	}
	return &face{family: family, bold: bold, font: f, glyphs: map[rune]*glyph{}}
}

// glyph returns the outline of r, nil where the font has none.
func (f *face) glyph(r rune) *glyph {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g, ok := f.glyphs[r]; ok {
		return g
	}
	g := f.load(r)
	if len(f.glyphs) < 4096 { // text from models can hold any rune
		f.glyphs[r] = g
	}
	return g
}

func (f *face) load(r rune) *glyph {
	if f.font == nil {
		return nil
	}
	index, err := f.font.GlyphIndex(&f.buf, r)
	if err != nil || index == 0 {
		return nil
	}
	size := fixed.I(emUnits)
	advance, err := f.font.GlyphAdvance(&f.buf, index, size, font.HintingNone)
	if err != nil {
		return nil
	}
	outline, err := f.font.LoadGlyph(&f.buf, index, size, nil)
	if err != nil {
		return nil
	}
	g := &glyph{advance: float64(advance) / 64 / emUnits, segments: make([]segment, len(outline))}
	for i, s := range outline {
		g.segments[i].op = s.Op
		for j, at := range s.Args {
			g.segments[i].at[j] = vec{float64(at.X) / 64 / emUnits, float64(at.Y) / 64 / emUnits}
		}
	}
	return g
}

// width of a text at a size in px. There is no kerning, in none of the
// renderers, so that a label is equally wide in all.
func (f *face) width(text string, size float64) float64 {
	total := 0.0
	for _, r := range text {
		if g := f.glyph(r); g != nil {
			total += g.advance
		}
	}
	return total * size
}

// fit shortens a text with an ellipsis to a width in px. Where not even the
// ellipsis fits the text is empty.
func (f *face) fit(text string, size, width float64) string {
	if f.width(text, size) <= width {
		return text
	}
	runes := []rune(text)
	room := width - f.width("…", size)
	if room < 0 {
		return ""
	}
	n := 0
	for used := 0.0; n < len(runes); n++ {
		used += f.width(string(runes[n]), size)
		if used > room {
			break
		}
	}
	return strings.TrimRight(string(runes[:n]), " ,·—") + "…"
}

// Printable maps what the embedded fonts lack to something visible, so that
// text from models and endpoints can be drawn and set in a PDF: composed and
// compatibility forms first (é from e and an accent, A from a full-width A),
// then near twins (a tick for an emoji tick), then □. Line ends stay, a tab
// is four spaces, joiners and other invisible marks go.
func Printable(s string) string {
	if plain(s) {
		return s
	}
	s = norm.NFC.String(strings.ToValidUTF8(s, "�"))
	var b strings.Builder
	for _, r := range s {
		near, known := twins[r]
		switch {
		case known:
			b.WriteString(near)
		case r == '\n' || hasGlyph(r):
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case r == '\r' || invisible(r):
		default:
			b.WriteString(compatible(r))
		}
	}
	return b.String()
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < ' ' || c > '~') && c != '\n' {
			return false
		}
	}
	return true
}

// hasGlyph reports whether all four fonts can draw r.
func hasGlyph(r rune) bool {
	if r < ' ' || unicode.IsControl(r) || invisible(r) {
		return false
	}
	for _, f := range faces {
		if f.glyph(r) == nil {
			return false
		}
	}
	return true
}

// invisible reports joiners, variation selectors, direction marks and tags.
func invisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) ||
		unicode.Is(unicode.Mn, r) && r >= 0x0300 && r <= 0x036f || r >= 0x1f3fb && r <= 0x1f3ff
}

// twins are runes that the fonts lack, or that some have and others do not,
// with what stands for them.
var twins = map[rune]string{
	'✅': "✓", '✔': "✓", '☑': "✓", '✗': "×", '✘': "×", '❌': "×", '✕': "×", '✖': "×",
	'⁃': "-", '‐': "-", '‑': "-", '‒': "–", '―': "—", '⸺': "—",
	'⚫': "●", '⬛': "■", '⬜': "□", '▶': "→", '◀': "←", '➜': "→", '➔': "→", '⇒': "→",
	'∙': "·", '⋅': "·", '◦': "○", '‣': "•", '⋯': "…", '∼': "~", '␣': " ",
	'∗': "*", '∶': ":", '′': "'", '″': "\"",
}

// compatible is the compatibility form of r where the fonts have that.
func compatible(r rune) string {
	if unicode.IsSpace(r) {
		return " "
	}
	form := norm.NFKC.String(string(r))
	for _, c := range form {
		if c == r || !hasGlyph(c) {
			return "□"
		}
	}
	return form
}
