package report

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"velo/bench"
)

// tool finds a program of poppler-utils or skips.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (package poppler-utils): this check did not run", name)
	}
	return path
}

// pdfFile writes a report to a file for the tools.
func pdfFile(t *testing.T, s *bench.Session) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, New(s, testOptions), "pdf"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "report.pdf")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// The text of the PDF is text: titles, numbers, notes and page numbers can be read and copied.
func TestPDFText(t *testing.T) {
	pdftotext := tool(t, "pdftotext")
	s := output(t, pdftotext, "-layout", pdfFile(t, concurrentSession()), "-")
	for _, want := range []string{"Depth sweep with four workers", "System output rate", "Findings", "What was measured", "Throughput", "Latency",
		"Tokens", "Steps", "Turns", "Objectives", "Trust", "Exact figures", "Methodology", "Example 9 9900X", "max of", "tok/s", "≥", "µs"} {
		if !strings.Contains(s, want) {
			t.Errorf("the text of the PDF has no %q", want)
		}
	}
	pages := strings.Split(strings.TrimSuffix(s, "\f"), "\f")
	for i, p := range pages {
		if want := whole(i+1) + " / " + whole(len(pages)); !strings.Contains(p, want) {
			t.Errorf("page %d does not say %q", i+1, want)
		}
	}
}

// All fonts are embedded subsets with a way back to Unicode, and nothing is a picture.
func TestPDFFontsAndImages(t *testing.T) {
	name := pdfFile(t, reasoningSession())
	fonts := output(t, tool(t, "pdffonts"), name)
	rows := strings.Split(strings.TrimSpace(fonts), "\n")[2:]
	if len(rows) < 3 {
		t.Errorf("%d fonts:\n%s", len(rows), fonts)
	}
	for _, l := range rows {
		if !regexp.MustCompile(`yes yes yes`).MatchString(l) && !regexp.MustCompile(`yes no  yes`).MatchString(l) {
			t.Errorf("a font is not embedded with its Unicode map: %s", l)
		}
	}
	images := output(t, tool(t, "pdfimages"), "-list", name)
	if n := len(strings.Split(strings.TrimSpace(images), "\n")); n > 2 {
		t.Errorf("raster images in the PDF:\n%s", images)
	}
}

// Hostile text neither breaks the file nor vanishes from it; the password of a URL does.
func TestPDFOfHostileText(t *testing.T) {
	pdftotext := tool(t, "pdftotext")
	s := output(t, pdftotext, "-layout", pdfFile(t, failingSession()), "-")
	for _, want := range []string{"<script>alert(1)</script>", "http-429", "timeout-idle", "estimate"} {
		if !strings.Contains(s, want) {
			t.Errorf("the text of the PDF has no %q", want)
		}
	}
	if strings.Contains(s, "secret") {
		t.Error("the password of the URL is in the PDF")
	}
	if !strings.Contains(s, "{nb}") {
		t.Error("a text of the session was taken for the number of pages")
	}
}

// A bookmark a section.
func TestPDFBookmarks(t *testing.T) {
	var b bytes.Buffer
	r := New(concurrentSession(), testOptions)
	if err := Write(&b, r, "pdf"); err != nil {
		t.Fatal(err)
	}
	if n, want := bytes.Count(b.Bytes(), []byte("/Dest [")), len(r.Sections)+1; n != want {
		t.Errorf("%d bookmarks, want %d", n, want)
	}
}

// A run of ten thousand turns is a report of few pages that says where the rest is.
func TestPDFOfALongRunIsBounded(t *testing.T) {
	pdftotext := tool(t, "pdftotext")
	s := output(t, pdftotext, "-layout", pdfFile(t, longSession(10_000, 4)), "-")
	if n := strings.Count(s, "\f"); n > 30 {
		t.Errorf("%d pages", n)
	}
	if !strings.Contains(s, "the first 200 of 10,000 rows are shown; the CSV export has all of them") {
		t.Error("nothing says where the other turns are")
	}
}

// No text is drawn outside the page.
func TestPDFStaysOnThePage(t *testing.T) {
	pdftotext := tool(t, "pdftotext")
	word := regexp.MustCompile(`<word xMin="([-0-9.]+)" yMin="([-0-9.]+)" xMax="([-0-9.]+)" yMax="([-0-9.]+)">(.*)</word>`)
	for _, g := range goldenSessions {
		s := output(t, pdftotext, "-bbox", pdfFile(t, g.session()), "-")
		words := word.FindAllStringSubmatch(s, -1)
		if len(words) < 100 {
			t.Fatalf("%s: %d words", g.name, len(words))
		}
		for _, w := range words {
			left, top, right, bottom := points(w[1]), points(w[2]), points(w[3]), points(w[4])
			if left < 40 || right > 595.28-40 || top < 20 || bottom > 841.89-12 {
				t.Errorf("%s: %q lies at %s..%s × %s..%s pt, off the text area", g.name, w[5], w[1], w[3], w[2], w[4])
			}
		}
	}
}

func points(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return v
}
