package window

import (
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/lang"
	"fyne.io/fyne/v2/test"

	"velo/ui/look"
)

// A newer Fyne that keeps its fonts otherwise is told here.
func TestStylesShareFonts(t *testing.T) {
	a := test.NewTempApp(t)
	a.Settings().SetTheme(&look.Theme{})
	measure := func(size float32) (out [4]float32) {
		for i, s := range styles {
			out[i] = fyne.MeasureText("Größe 42 ▪ Ω ж 👍", size, s).Width
		}
		return out
	}
	before := measure(look.Body)
	shareFonts()
	first := facesOf(cachedFontFace(styles[0], nil, nil))
	if first == nil || len(*first) < 4 {
		t.Fatal("the list of fonts was not found")
	}
	emoji := (*first)[2]
	if _, ok := emoji.NominalGlyph('👍'); !ok {
		t.Fatalf("the third font, %q, has no emoji", emoji.Describe().Family)
	}
	for _, s := range styles[1:] {
		l := facesOf(cachedFontFace(s, nil, nil))
		if (*l)[2].Font != emoji.Font {
			t.Errorf("%+v has an emoji font of its own", s)
		}
		if (*l)[0].Font == (*first)[0].Font {
			t.Errorf("%+v has the regular style's own font", s)
		}
	}
	// At another size, since widths that were measured are kept.
	for i, after := range measure(8 * look.Body) {
		if d := after/8 - before[i]; d < -1 || d > 1 {
			t.Errorf("%+v: the words were %v wide, and are %v", styles[i], before[i], after/8)
		}
	}
}

// What the program's fonts do not have comes from the system's, though these were not read at first.
func TestLettersOfTheSystem(t *testing.T) {
	a := test.NewTempApp(t)
	a.Settings().SetTheme(&look.Theme{})
	scanned = false
	loadFonts()
	if scanned && writtenInLatin(lang.SystemLocale().LanguageString()) {
		t.Error("the system's fonts were looked through")
	}
	fyne.MeasureText("漢", look.Body, fyne.TextStyle{})
	if !scanned {
		t.Error("the system's fonts were not looked through for a letter that the program does not have")
	}
}

func TestWrittenInLatin(t *testing.T) {
	for tag, want := range map[string]bool{"en": true, "de-DE": true, "vi": true, "C": true, "": true,
		"ja": false, "zh-Hans": false, "ru": false, "sr": false, "sr-Latn": true, "ar": false, "hi": false} {
		if got := writtenInLatin(tag); got != want {
			t.Errorf("%q: %v", tag, got)
		}
	}
}
