package assets

import (
	"bytes"
	"image/png"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCorpus(t *testing.T) {
	text := Corpus()
	if len(text) < 4.5e6 {
		t.Errorf("the corpus has %d bytes: too few for a prompt of a million tokens", len(text))
	}
	if !utf8.ValidString(text) {
		t.Error("the corpus is not UTF-8")
	}
	if !strings.HasPrefix(text, "Call me Ishmael.") {
		t.Errorf("the corpus begins with %q", text[:40])
	}
	for _, r := range text {
		if r < ' ' && r != '\n' {
			t.Fatalf("the corpus holds the control character %q", r)
		}
	}
	for _, word := range []string{"Gutenberg", "http", "Wikisource", "Stdlib"} {
		if strings.Contains(text, word) {
			t.Errorf("the corpus names %q, which is not part of the works", word)
		}
	}
}

func TestPictures(t *testing.T) {
	for _, size := range PictureSizes {
		data, ok := Picture(PictureName(size))
		if !ok {
			t.Fatalf("no picture of %d pixels", size)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() != size || b.Dy() != size {
			t.Errorf("%s is %d by %d pixels", PictureName(size), b.Dx(), b.Dy())
		}
		if len(data) > 32<<10 {
			t.Errorf("%s has %d bytes: a picture should be small", PictureName(size), len(data))
		}
	}
	for _, name := range []string{"", "velo-241.png", "../images/velo-240.png", "images/velo-240.png", "draw.go"} {
		if _, ok := Picture(name); ok {
			t.Errorf("there is a picture called %q", name)
		}
	}
}

func TestSuites(t *testing.T) {
	names, err := fs.Glob(Suites(), "*.json")
	if err != nil || len(names) != 15 {
		t.Fatalf("%d built-in suites (%v), want 15", len(names), err)
	}
}
