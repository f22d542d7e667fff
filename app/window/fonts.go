package window

import (
	"reflect"
	"unsafe" // for linkname, and for a field that Fyne keeps to itself

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/lang"
	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/shaping"
	"golang.org/x/text/language"
)

// Fyne reads every font that a text may need once for each style of text: the one of 4 MB with the
// emoji four times, and four of the system's for the desktop's language, though the program's own have
// its letters. That is 35 MiB of the heap, and as much again until it is collected. These are the
// functions and types behind it.

type fontCacheItem struct{ Fonts shaping.Fontmap }

//go:linkname cachedFontFace fyne.io/fyne/v2/internal/painter.CachedFontFace
func cachedFontFace(fyne.TextStyle, fyne.Resource, fyne.CanvasObject) *fontCacheItem

// scanned is true once the system's fonts were looked through, which is done when one is wanted.
//
//go:linkname scanned fyne.io/fyne/v2/internal/painter.loaded
var scanned bool

// styles are those that the program writes in.
var styles = []fyne.TextStyle{{}, {Bold: true}, {Monospace: true}, {Monospace: true, Bold: true}}

// loadFonts reads the fonts of the current theme before anything is measured. Where the desktop's
// language is written in Latin letters none of the system's is read for it: what the program's own do
// not have is looked up in the system when it is met.
func loadFonts() {
	if !scanned && writtenInLatin(lang.SystemLocale().LanguageString()) {
		scanned = true // and nothing was found, for as long as this takes
		defer func() { scanned = false }()
	}
	shareFonts()
}

// shareFonts makes the styles share the fonts that they have in common. Call it on the UI thread,
// again whenever Fyne has read the fonts again, which it does when the theme was set.
func shareFonts() {
	var before [][]*font.Face
	for _, s := range styles {
		l := facesOf(cachedFontFace(s, nil, nil))
		if l == nil {
			return // another Fyne: it keeps its fonts otherwise
		}
		for i, f := range *l {
			for _, b := range before {
				if i < len(b) && b[i].Describe() == f.Describe() && b[i].Upem() == f.Upem() {
					(*l)[i] = font.NewFace(b[i].Font) // its caches are its own
					break
				}
			}
		}
		before = append(before, *l)
	}
}

// facesOf is the list of fonts in an item of Fyne's cache; nil where it is not as expected.
func facesOf(item *fontCacheItem) *[]*font.Face {
	if item == nil || item.Fonts == nil {
		return nil
	}
	v := reflect.ValueOf(item.Fonts)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	f := v.Elem().FieldByName("faces")
	if !f.IsValid() || f.Type() != reflect.TypeFor[[]*font.Face]() {
		return nil
	}
	return (*[]*font.Face)(unsafe.Pointer(f.UnsafeAddr()))
}

// writtenInLatin tells whether a language is written in the letters that the program's fonts have.
func writtenInLatin(tag string) bool {
	t, err := language.Parse(tag)
	if err != nil {
		return true // no language: Fyne takes English
	}
	s, _ := t.Script()
	return s.String() == "Latn"
}
