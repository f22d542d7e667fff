package assets

import (
	"testing"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// written is every rune beyond ASCII that Velo writes by itself.
const written = "µμ±≤≥—–×·▪▫▲▼■□●○◆◇→←−…≈°ΔΩ“”‘’⁰¹²³⁴⁵⁶⁷⁸⁹⁻äöüßéèñçøåÄÖÜ€"

var fonts = map[string][]byte{
	"TextRegular": TextRegular, "TextBold": TextBold,
	"MonoRegular": MonoRegular, "MonoBold": MonoBold,
}

func TestFontsHaveEveryRuneWritten(t *testing.T) {
	for name, data := range fonts {
		f, err := sfnt.Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var buf sfnt.Buffer
		for r := rune(' '); r < 127; r++ {
			if g, err := f.GlyphIndex(&buf, r); err != nil || g == 0 {
				t.Errorf("%s lacks %q", name, r)
			}
		}
		for _, r := range written {
			g, err := f.GlyphIndex(&buf, r)
			if err != nil || g == 0 {
				t.Errorf("%s lacks %q (U+%04X)", name, r, r)
				continue
			}
			if outline, err := f.LoadGlyph(&buf, g, fixed.I(64), nil); err != nil || len(outline) == 0 {
				t.Errorf("%s has no outline for %q (U+%04X): %v", name, r, r, err)
			}
		}
	}
}

func TestDigitsAreTabular(t *testing.T) {
	for name, data := range fonts {
		f, err := sfnt.Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var buf sfnt.Buffer
		advance := func(r rune) fixed.Int26_6 {
			g, _ := f.GlyphIndex(&buf, r)
			a, err := f.GlyphAdvance(&buf, g, fixed.I(1000), font.HintingNone)
			if err != nil {
				t.Fatalf("%s %q: %v", name, r, err)
			}
			return a
		}
		for r := '1'; r <= '9'; r++ {
			if advance(r) != advance('0') {
				t.Errorf("%s: digit %q is %v wide, 0 is %v", name, r, advance(r), advance('0'))
			}
		}
	}
}
