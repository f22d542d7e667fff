package kernels

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// setting gives the value of a line of the build script.
func setting(t *testing.T, pattern string) string {
	t.Helper()
	script, err := os.ReadFile("build")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(script)
	if m == nil {
		t.Fatalf("the script build has no line like %s", pattern)
	}
	return string(m[1])
}

// inputs is what the PTX of a source for a target is made of, as the script build
// hashes it: the source and the headers that it includes, flags, target and compiler.
func inputs(t *testing.T, source, target string) []byte {
	t.Helper()
	var all bytes.Buffer
	include := regexp.MustCompile(`(?m)^#include "(.*)"$`)
	list := []string{source}
	for i := 0; i < len(list); i++ {
		data, err := os.ReadFile(list[i])
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
		for _, m := range include.FindAllSubmatch(data, -1) {
			if name := string(m[1]); !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	flags, err := os.ReadFile("flags")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(flags)) {
		if !strings.HasPrefix(line, "#") {
			all.WriteString(line)
		}
	}
	fmt.Fprintf(&all, "%s\n%s\n", target, setting(t, `(?m)^version=(\S+)$`))
	return all.Bytes()
}

func TestPTXIsMadeFromItsSource(t *testing.T) {
	sources, err := filepath.Glob("*.cu")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for _, source := range sources {
		targets := targets
		if source == "fp4.cu" {
			targets = fp4Targets
		}
		for suffix, target := range targets {
			name := strings.TrimSuffix(source, ".cu") + suffix
			if strings.HasSuffix(target, emulate) {
				name = filepath.Join("..", "testdata", name)
			}
			ptx, err := os.ReadFile(name)
			if err != nil {
				t.Errorf("%s is not compiled (run cuda/kernels/build): %v", source, err)
				continue
			}
			want := fmt.Sprintf("// made from %x\n", sha256.Sum256(inputs(t, source, target)))
			if got, _, _ := strings.Cut(string(ptx), "\n"); got+"\n" != want {
				t.Errorf("%s is of other sources, flags or compiler (run cuda/kernels/build):\n%s\n%s", name, got, want)
			}
			if !regexp.MustCompile(`(?m)^\.target ` + strings.Replace(strings.TrimSuffix(target, emulate), "compute", "sm", 1) + `$`).Match(ptx) {
				t.Errorf("%s is not for %s", name, target)
			}
		}
	}
}

// targets are the ends of the names of PTX and what it is for.
var targets = map[string]string{".ptx": "compute_80", "90.ptx": "compute_90"}

// emulate is what follows a target whose one instruction of its own is emulated.
const emulate = " -DEMULATE"

var fp4Targets = map[string]string{"_121a.ptx": "compute_121a", ".ptx": "compute_80" + emulate}

func TestPTXHasASource(t *testing.T) {
	files, err := filepath.Glob("*.ptx")
	if err != nil || len(files) == 0 {
		t.Fatalf("no PTX: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(file, ".ptx"), "90"), "_121a")
		if _, err := os.Stat(name + ".cu"); err != nil {
			t.Errorf("%s has no source: %v", file, err)
		}
	}
}
