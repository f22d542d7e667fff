package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"velo/assets"
	"velo/bench/suite"
)

func TestPictures(t *testing.T) {
	dir := t.TempDir()
	png, _ := assets.Picture("velo-240.png")
	write := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("own.png", png)
	write("holiday1024.png", png)
	write("notes.txt", []byte("not a picture"))
	write("large.png", append(png[:len(png):len(png)], make([]byte, maxPicture)...))
	outside := filepath.Join(t.TempDir(), "secret.png")
	if err := os.WriteFile(outside, png, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.png")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ dir, name, found, note, err string }{
		{"", "velo-512.png", "velo-512.png", "", ""},
		{dir, "own.png", "own.png", "", ""},
		{dir, "holiday1024.png", "holiday1024.png", "", ""},
		{dir, "elsewhere1365.jpeg", "velo-1365.png", "The picture elsewhere1365.jpeg is not here; velo-1365.png, which has the same size, was sent in its place.", ""},
		{"", "own.png", "", "", `there is no picture "own.png"; put it into the suite's folder, or take one of velo-240.png, `},
		{dir, "none.png", "", "", "put it into " + dir},
		{dir, "elsewhere2048.jpg", "", "", `there is no picture "elsewhere2048.jpg"`},
		{dir, "notes.txt", "", "", "notes.txt is not a picture that models take (PNG, JPEG, GIF or WebP), but text/plain"},
		{dir, "large.png", "", "", "has more than 20 MiB"},
		{dir, "../x.png", "", "", "there is no picture"},
		{dir, outside, "", "", "there is no picture"},
		{dir, "link.png", "", "", "escapes"},
	} {
		s := &suite.Suite{Title: "P", Dir: test.dir, Steps: []suite.Step{{Type: suite.Section, Title: "s"}, {Type: suite.Image, Image: test.name}}}
		found, notes, err := pictures(s)
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || !strings.HasPrefix(err.Error(), `cannot run the suite "P": step 2 (image), image: `) {
				t.Errorf("%s: error %v", test.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		img := found[test.name]
		if img.Name != test.found || img.MIME != "image/png" || len(img.Data) == 0 {
			t.Errorf("%s: %s, %s, %d bytes", test.name, img.Name, img.MIME, len(img.Data))
		}
		if strings.Join(notes, "") != test.note {
			t.Errorf("%s: notes %q", test.name, notes)
		}
	}
}
