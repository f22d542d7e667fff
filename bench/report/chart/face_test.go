package chart

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain text, 42.1 tok/s":  "plain text, 42.1 tok/s",
		"µ ± ≤ ≥ — × · ▪ ▫ ~ ▲ ▼": "µ ± ≤ ≥ — × · ▪ ▫ ~ ▲ ▼",
		"μs":                   "μs", // Greek mu
		"e\u0301":              "é",
		"ＡＢＣ１":                 "ABC1",
		"ﬃn":                   "ffin",
		"日本":                   "□□",
		"ok 🙂":                 "ok □",
		"👍🏽":                   "□",
		"✅ done ❌":             "✓ done ×",
		"a\u200db\ufe0f":       "ab",
		"\u202eabc":            "abc",
		"two\nlines\r\n":       "two\nlines\n",
		"a\tb":                 "a    b",
		"a\x00b":               "a□b",
		"\xff\xfe":             "�",
		"non\u00a0breaking":    "non\u00a0breaking",
		"em\u2003space\u205f.": "em\u2003space .",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "tok/s", "日本語 🙂", "\x00\xff", "e\u0301\u0301", "ﷺ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := Printable(s)
		if !utf8.ValidString(out) {
			t.Fatalf("%q is not UTF-8", out)
		}
		for _, r := range out {
			if r != '\n' && !hasGlyph(r) {
				t.Fatalf("Printable(%q) holds %q (U+%04X), which no font has", s, r, r)
			}
		}
		if again := Printable(out); again != out {
			t.Fatalf("Printable is not stable: %q, then %q", out, again)
		}
	})
}

func TestWidthsAreThoseOfThePDF(t *testing.T) {
	pdf := document()
	for _, f := range faces {
		style := ""
		if f.bold {
			style = "B"
		}
		for _, s := range []string{"Decode rate, tok/s", "−12.4 ± 0.3 µs", "10⁻⁷", "▲ 3 % ▪", "WAVE Ty"} {
			pdf.SetFont(f.family, style, 12)
			got, want := f.width(s, 12), pdf.GetStringWidth(s)*72/25.4
			if math.Abs(got-want) > 0.02*12 {
				t.Errorf("%s %s: %q is %.3f wide here, %.3f in a PDF", f.family, style, s, got, want)
			}
		}
	}
}

func TestFitShortens(t *testing.T) {
	long := "a name that is much too long for its place"
	for _, width := range []float64{0, 3, 20, 80, 1000} {
		got := textRegular.fit(long, 12, width)
		if w := textRegular.width(got, 12); w > width {
			t.Errorf("%q is %.1f wide, room for %g", got, w, width)
		}
		if width == 1000 && got != long || width == 80 && !strings.HasSuffix(got, "…") {
			t.Errorf("fit to %g gives %q", width, got)
		}
	}
}
