package about

import (
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"velo/ui/look"
)

// TestEveryModuleIsListed holds the list against go.mod: each module in the version that is built,
// each with its licence, and none besides.
func TestEveryModuleIsListed(t *testing.T) {
	b, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]Part{}
	for _, p := range Parts() {
		if _, twice := listed[p.Name]; twice {
			t.Errorf("%s is listed twice", p.Name)
		}
		listed[p.Name] = p
	}
	own := 4 // the console, the engine, Go, the fonts
	required := regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+/\S+) (v\S+)`).FindAllStringSubmatch(string(b), -1)
	if len(required) < 40 {
		t.Fatalf("go.mod was not understood: %d modules", len(required))
	}
	due := false
	for _, r := range required {
		p, ok := listed[r[1]]
		if !ok || p.Version != r[2] {
			t.Errorf("go.mod has %s %s, the list has %q", r[1], r[2], p.Version)
			due = true
		}
	}
	if len(listed) != len(required)+own {
		t.Errorf("%d parts are listed, go.mod and this program have %d", len(listed), len(required)+own)
		due = true
	}
	if due {
		t.Log("run go generate ./ui/about")
	}
	if g := listed["Go and its standard library"]; "go"+g.Version != runtime.Version() {
		t.Logf("built with %s, the list was made with %s", runtime.Version(), g.Version)
	}
}

// TestEveryLicenceHasItsText: a known licence, whose own words are there.
func TestEveryLicenceHasItsText(t *testing.T) {
	words := map[string]string{"MIT": "free of charge", "BSD-3-Clause": "neither the name", "BSD-2-Clause": "redistribution", "Apache-2.0": "apache license",
		"AGPL-3.0": "affero", "MPL-2.0": "mozilla", "ISC": "permission to use", "Zlib": "as-is", "OFL-1.1": "sil open font", "FTL": "freetype", "Bitstream Vera": "bitstream"}
	for _, p := range Parts() {
		text := strings.ToLower(Text(p))
		if len(text) < 300 || p.Licence == "" {
			t.Errorf("%s: licence %q, %d bytes of text", p.Name, p.Licence, len(text))
		}
		for _, l := range strings.Split(p.Licence, ", ") {
			if w, known := words[l]; !known || !strings.Contains(text, w) {
				t.Errorf("%s: the text of %q is not there", p.Name, l)
			}
		}
		if strings.Contains(p.Licence, "AGPL") && p.Name != "Velo: the console" {
			t.Errorf("%s is under %s", p.Name, p.Licence)
		}
	}
}

func TestChoosingAPartShowsItsLicence(t *testing.T) {
	test.NewTempApp(t)
	fyne.CurrentApp().Settings().SetTheme(&look.Theme{Mode: look.AlwaysDark})
	v := New(Params{Version: "1", DataDir: "/d"})
	w := test.NewWindow(v.Object)
	defer w.Close()
	w.Resize(fyne.NewSize(960, 600))
	if !strings.Contains(v.lines[0], "AFFERO") {
		t.Errorf("%q is shown first, not the program's own licence", v.lines[0])
	}
	w.Canvas().Focus(v.Focus())
	for range 5 {
		v.Focus().TypedKey(&fyne.KeyEvent{Name: fyne.KeyDown})
	}
	p := Parts()[5]
	if v.title.Text() != p.Name+" · "+p.Licence || len(v.lines) < 20 || v.text.Length() != len(v.lines) {
		t.Errorf("%s is shown as %q", p.Name, v.title.Text())
	}
}

// TestLinesLoseNothing: all words are there, in order, and no line is too long.
func TestLinesLoseNothing(t *testing.T) {
	for _, text := range append([]string{strings.Repeat("x", 3*lineLength), "a " + strings.Repeat("é", lineLength+1) + " b"}, parts().Texts...) {
		got := lines(text)
		for _, l := range got {
			if n := len([]rune(l)); n > lineLength {
				t.Errorf("a line of %d letters: %q", n, l)
			}
		}
		strip := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if strip(strings.Join(got, "\n")) != strip(text) {
			t.Errorf("something is lost of %.60q", text)
		}
	}
}
