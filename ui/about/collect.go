//go:build ignore

// Collect writes licences.json: what the modules of go.mod, Go itself and the fonts ask to be told of
// them. Run it (go generate ./ui/about) after go.mod has changed; a test says when that is due.
package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

type entry struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Licence string `json:"licence"`
	Texts   []int  `json:"texts"`
}

type list struct {
	Entries []entry  `json:"entries"`
	Texts   []string `json:"texts"`
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents|unlicense|ofl|ftl)([-._].*)?$`)

func main() {
	log.SetFlags(0)
	var l list
	index := map[string]int{}
	add := func(e entry, texts []string) {
		if len(texts) == 0 {
			log.Fatalf("%s has no licence", e.Name)
		}
		var all []string
		for _, t := range texts {
			i, known := index[t]
			if !known {
				i = len(l.Texts)
				index[t] = i
				l.Texts = append(l.Texts, t)
			}
			if !slices.Contains(e.Texts, i) {
				e.Texts = append(e.Texts, i)
			}
			for _, k := range kinds(t) {
				if !slices.Contains(all, k) {
					all = append(all, k)
				}
			}
		}
		if len(all) == 0 {
			log.Fatalf("%s has a licence of no known kind", e.Name)
		}
		e.Licence = strings.Join(all, ", ")
		l.Entries = append(l.Entries, e)
	}
	read := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			log.Fatal(err)
		}
		return tidy(string(b))
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		log.Fatal(err)
	}
	dir := strings.TrimSpace(string(root))
	add(entry{Name: "Velo: the console"}, []string{read("../../LICENSE")})
	add(entry{Name: "Velo: the engine"}, []string{read("../../engine/LICENSE"), read("../../cuda/LICENSE")})
	add(entry{Name: "Go and its standard library", Version: strings.TrimPrefix(runtime.Version(), "go")}, []string{read(filepath.Join(dir, "LICENSE")), read(filepath.Join(dir, "PATENTS"))})
	add(entry{Name: "Velo Sans and Velo Mono (from IBM Plex)"}, []string{read("../../assets/fonts/OFL.txt")})

	for _, m := range required() {
		out, err := exec.Command("go", "mod", "download", "-json", m[0]+"@"+m[1]).Output()
		if err != nil {
			log.Fatalf("cannot fetch %s: %v", m[0], err)
		}
		var got struct{ Dir string }
		if err := json.Unmarshal(out, &got); err != nil {
			log.Fatal(err)
		}
		var texts []string
		err = filepath.WalkDir(got.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := d.Name()
			if d.IsDir() && (name == "testdata" || name == "examples" || name == "internal_gengo" || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			if !d.IsDir() && licenceFile.MatchString(name) && filepath.Ext(name) != ".go" {
				texts = append(texts, read(path))
			}
			return nil
		})
		if err != nil {
			log.Fatal(err)
		}
		add(entry{Name: m[0], Version: m[1]}, texts)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(l); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("licences.json", b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
	log.Printf("%d entries, %d texts, %d bytes", len(l.Entries), len(l.Texts), b.Len())
}

// required are the modules of go.mod with their versions.
func required() (out [][2]string) {
	b, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		log.Fatal(err)
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(b, &mod); err != nil {
		log.Fatal(err)
	}
	for _, r := range mod.Require {
		out = append(out, [2]string{r.Path, r.Version})
	}
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return out
}

// kinds names the licences in a text by their words; none where it is no licence of its own.
func kinds(text string) (out []string) {
	t := strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(part string) bool { return strings.Contains(t, part) }
	switch { // these name others in their text
	case has("mozilla public license version 2.0"):
		return []string{"MPL-2.0"}
	case has("gnu affero general public license"):
		return []string{"AGPL-3.0"}
	case has("freetype project license"), has("the freetype license") && has("your choice of exactly one"):
		return []string{"FTL"}
	case has("gnu general public license"):
		log.Fatalf("there is a GPL among the licences:\n%.300s", text)
	}
	bsd := has("redistribution and use in source and binary forms")
	for _, k := range []struct {
		name string
		is   bool
	}{
		{"Apache-2.0", has("apache license") && has("version 2.0")},
		{"BSD-3-Clause", bsd && has("neither the name")},
		{"BSD-2-Clause", bsd && !has("neither the name")},
		{"MIT", has("permission is hereby granted, free of charge, to any person obtaining a copy of this software")},
		{"ISC", has("permission to use, copy, modify, and/or distribute this software") || has("permission to use, copy, modify, and distribute this software")},
		{"Zlib", has("this software is provided 'as-is', without any express or implied warranty")},
		{"OFL-1.1", has("sil open font license")},
		{"Bitstream Vera", has("bitstream vera fonts copyright")},
	} {
		if k.is {
			out = append(out, k.name)
		}
	}
	return out
}

// tidy makes texts that say the same the same.
func tidy(text string) string {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff")
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(strings.ReplaceAll(lines[i], "\t", "    "), " \f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}
