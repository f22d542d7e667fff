package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden SVG files")

func TestGoldenSVG(t *testing.T) {
	for name, c := range samples() {
		p := Light
		if name == "five" || name == "counts" || name == "across" {
			p = Dark
		}
		var out bytes.Buffer
		if err := SVG(&out, c, 480, 270, p); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".svg")
		if *update {
			if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			a, b := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
			for i := range a {
				if i >= len(b) || a[i] != b[i] {
					t.Errorf("%s differs in line %d:\n got %.200s\nwant %.200s", file, i+1, a[i], append(b, "")[min(i, len(b))])
					break
				}
			}
		}
	}
}

func TestSVGIsWellFormedWithTextAsText(t *testing.T) {
	for name, c := range hostile() {
		var out bytes.Buffer
		if err := SVG(&out, c, 400, 240, Light); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(out.Bytes()))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
	var out bytes.Buffer
	if err := SVG(&out, Bars{Title: `a < b & "c"`, Labels: []string{"<script>"}, Values: []float64{1}}, 400, 240, Light); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<title>a &lt; b &amp; &quot;c&quot;</title>", ">&lt;script&gt;</text>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in the SVG", want)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAFullDiskIsAnError(t *testing.T) {
	c := samples()["lines"]
	if err := SVG(full{}, c, 400, 240, Light); err == nil || !strings.Contains(err.Error(), "cannot write SVG chart: no space left") {
		t.Errorf("SVG: %v", err)
	}
	if err := PNG(full{}, c, 400, 240, 1, Light); err == nil || !strings.Contains(err.Error(), "cannot write PNG chart: no space left") {
		t.Errorf("PNG: %v", err)
	}
}
