package chart

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"codeberg.org/go-pdf/fpdf"
)

// document is an empty page with the fonts, the same bytes every time.
func document() *fpdf.Fpdf {
	pdf := fpdf.New("P", "mm", "A4", "")
	pdf.SetCatalogSort(true)
	pdf.SetCreationDate(time.Unix(0, 0))
	pdf.SetModificationDate(time.Unix(0, 0))
	pdf.SetCompression(false)
	RegisterFonts(pdf)
	pdf.AddPage()
	return pdf
}

func written(t testing.TB, pdf *fpdf.Fpdf) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := pdf.Output(&out); err != nil {
		t.Fatalf("output: %v", err)
	}
	return out.Bytes()
}

// inPDF is how fpdf writes a text: UTF-16, escaped.
func inPDF(s string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(s)) {
		b.WriteByte(byte(u >> 8))
		b.WriteByte(byte(u))
	}
	return strings.NewReplacer("\\", "\\\\", "(", "\\(", ")", "\\)", "\r", "\\r").Replace(b.String())
}

func TestPDFHoldsVectorsAndRealText(t *testing.T) {
	pdf := document()
	if err := PDF(pdf, samples()["lines"], 15, 20, 180, 90, Light); err != nil {
		t.Fatal(err)
	}
	out := string(written(t, pdf))
	if strings.Contains(out, "/Subtype /Image") {
		t.Error("the chart is an image")
	}
	for _, text := range []string{"Decode rate", "median 43.1", "Rate, tok/s", "llama-3.1-8b", "prose"} {
		if !strings.Contains(out, inPDF(text)) {
			t.Errorf("no text %q in the PDF", text)
		}
	}
	if n := strings.Count(out, " l\n"); n < 100 {
		t.Errorf("only %d line segments", n)
	}
}

func TestPDFKeepsTheStateOfTheDocument(t *testing.T) {
	pdf := document()
	pdf.SetFont("mono", "B", 9.5)
	pdf.SetDrawColor(1, 2, 3)
	pdf.SetFillColor(4, 5, 6)
	pdf.SetTextColor(7, 8, 9)
	pdf.SetLineWidth(0.7)
	pdf.SetLineCapStyle("round")
	pdf.SetLineJoinStyle("bevel")
	pdf.SetXY(33, 44)
	state := func() string {
		size, _ := pdf.GetFontSize()
		x, y := pdf.GetXY()
		alpha, _ := pdf.GetAlpha()
		dr, dg, db := pdf.GetDrawColor()
		fr, fg, fb := pdf.GetFillColor()
		tr, tg, tb := pdf.GetTextColor()
		return fmt.Sprint(pdf.GetFontFamily(), pdf.GetFontStyle(), size, x, y, alpha, dr, dg, db, fr, fg, fb, tr, tg, tb,
			pdf.GetLineWidth(), pdf.GetLineCapStyle(), pdf.GetLineJoinStyle(), pdf.PageNo())
	}
	before := state()
	for name, c := range samples() {
		if err := PDF(pdf, c, 10, 200, 190, 80, Light); err != nil {
			t.Fatal(err)
		}
		if after := state(); after != before {
			t.Errorf("%s leaves %s behind, found %s", name, after, before)
		}
	}
}

func TestPDFWithoutFontsSaysSo(t *testing.T) {
	pdf := fpdf.New("P", "mm", "A4", "")
	pdf.AddPage()
	err := PDF(pdf, samples()["bars"], 10, 10, 100, 60, Light)
	if err == nil || !strings.Contains(err.Error(), "cannot draw chart into PDF") {
		t.Errorf("error is %v", err)
	}
}

func TestSameBytesTwice(t *testing.T) {
	for name := range samples() {
		once := func() (png, svg, pdf []byte) {
			c := samples()[name]
			var a, b bytes.Buffer
			if err := PNG(&a, c, 320, 200, 1.5, Dark); err != nil {
				t.Fatal(err)
			}
			if err := SVG(&b, c, 600, 320, Light); err != nil {
				t.Fatal(err)
			}
			d := document()
			if err := PDF(d, c, 10, 10, 120, 70, Light); err != nil {
				t.Fatal(err)
			}
			return a.Bytes(), b.Bytes(), written(t, d)
		}
		a1, b1, c1 := once()
		a2, b2, c2 := once()
		if !bytes.Equal(a1, a2) || !bytes.Equal(b1, b2) || !bytes.Equal(c1, c2) {
			t.Errorf("%s: two runs differ: png %v, svg %v, pdf %v", name, bytes.Equal(a1, a2), bytes.Equal(b1, b2), bytes.Equal(c1, c2))
		}
	}
}
