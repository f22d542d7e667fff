package app

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// listed is one package of this module, as `go list -json` prints it.
type listed struct {
	ImportPath, Dir, Doc               string
	GoFiles, CgoFiles                  []string
	Imports, TestImports, XTestImports []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,GoFiles,CgoFiles,Imports,TestImports,XTestImports", "velo/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 10 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}

func under(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// TestImportsPointOneWay holds the direction of imports: main → app → ui → bench. A package that is
// named on the left may not import what stands on the right.
func TestImportsPointOneWay(t *testing.T) {
	forbidden := []struct{ from, to string }{
		{"velo/bench", "velo/store"}, {"velo/bench", "velo/engine"}, {"velo/bench", "velo/ui"}, {"velo/bench", "velo/app"},
		{"velo/bench", "fyne.io/fyne/v2"},
		{"velo/bench/measure", "os"}, {"velo/bench/measure", "net"}, {"velo/bench/measure", "net/http"},
		{"velo/bench/measure", "velo/bench/client"}, {"velo/bench/measure", "velo/bench/runner"},
		{"velo/store", "velo/ui"}, {"velo/store", "velo/app"}, {"velo/store", "velo/bench/measure"}, {"velo/store", "velo/bench/runner"},
		{"velo/store", "velo/bench/report"}, {"velo/store", "velo/bench/client"}, {"velo/store", "fyne.io/fyne/v2"},
		{"velo/ui", "velo/store"}, {"velo/ui", "velo/app"}, {"velo/ui", "fyne.io/fyne/v2/app"}, {"velo/ui", "net/http"},
		{"velo/ui/console", "fyne.io/fyne/v2"},
		{"velo/engine", "velo/bench"}, {"velo/engine", "velo/ui"}, {"velo/cuda", "velo/bench"},
		{"velo/assets", "velo/bench"}, {"velo/assets", "velo/ui"}, {"velo/assets", "velo/app"},
	}
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			for _, f := range forbidden {
				if under(p.ImportPath, f.from) && under(imp, f.to) {
					t.Errorf("%s imports %s", p.ImportPath, imp)
				}
			}
			if imp == "velo/app/window" && p.ImportPath != "velo" {
				t.Errorf("%s imports velo/app/window: only main may, every other test must build without OpenGL", p.ImportPath)
			}
			if imp == "fyne.io/fyne/v2/app" && p.ImportPath != "velo/app/window" {
				t.Errorf("%s imports fyne.io/fyne/v2/app: only velo/app/window may", p.ImportPath)
			}
			if imp == "github.com/wcharczuk/go-chart/v2" && p.ImportPath != "velo/bench/report/chart" {
				t.Errorf("%s imports go-chart: only velo/bench/report/chart may", p.ImportPath)
			}
			if imp == "go.etcd.io/bbolt" && !under(p.ImportPath, "velo/store") {
				t.Errorf("%s imports bbolt: only velo/store may", p.ImportPath)
			}
		}
		for _, imp := range append(p.TestImports, p.XTestImports...) {
			if (imp == "fyne.io/fyne/v2/app" || imp == "velo/app/window") && p.ImportPath != "velo/app/window" {
				t.Errorf("a test of %s imports %s: tests build without OpenGL", p.ImportPath, imp)
			}
		}
	}
}

// TestEveryPackageSaysWhatItIs requires a package comment everywhere, and no name that says nothing.
func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles)+len(p.CgoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		switch name := p.ImportPath[strings.LastIndex(p.ImportPath, "/")+1:]; name {
		case "util", "utils", "common", "helpers", "helper", "manager", "misc":
			t.Errorf("%s: a package is a noun that says what lives there, not %q", p.ImportPath, name)
		}
	}
}
