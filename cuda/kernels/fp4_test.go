package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// assembler finds ptxas of the compiler that the script build has, where it is installed already.
func assembler(t *testing.T) string {
	t.Helper()
	version := setting(t, `(?m)^version=(\S+)$`)
	folder := os.Getenv("VELO_NVCC")
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		folder = filepath.Join(cache, "velo", "nvcc-"+version)
	}
	found, err := filepath.Glob(filepath.Join(folder, "lib", "python*", "site-packages", "nvidia", "*", "bin", "ptxas"))
	if err == nil && len(found) > 0 {
		return found[0]
	}
	path, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("there is no ptxas here; cuda/kernels/build gets one")
	}
	said, err := exec.Command(path, "--version").Output()
	if err != nil || !strings.Contains(string(said), "V"+version) {
		t.Skipf("the ptxas here is another than that of CUDA %s", version)
	}
	return path
}

// TestFP4Assembles: no device that tests run on has the instruction of the module fp4, but its
// assembler does. What is emulated in its place takes no part in the program.
func TestFP4Assembles(t *testing.T) {
	const real = "kind::mxf4nvf4.block_scale.scale_vec::4X"
	if n := strings.Count(string(FP4()), real); n == 0 {
		t.Error("the module fp4 has no block-scaled product")
	}
	emulated, err := os.ReadFile(filepath.Join("..", "testdata", "fp4.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(emulated), real) {
		t.Error("what is to run everywhere has the instruction of one device")
	}
	entries := regexp.MustCompile(`(?m)^\.visible \.entry \w+`)
	if a, b := entries.FindAllString(string(FP4()), -1), entries.FindAllString(string(emulated), -1); len(a) != 3 || strings.Join(a, ",") != strings.Join(b, ",") {
		t.Errorf("kernels are %v and, emulated, %v", a, b)
	}
	ptxas, folder := assembler(t), t.TempDir()
	for _, c := range []struct {
		ptx  []byte
		arch string
		can  bool
	}{{FP4(), "sm_121a", true}, {FP4(), "sm_90", false}, {emulated, "sm_90", true}} {
		from := filepath.Join(folder, "fp4.ptx")
		if err := os.WriteFile(from, c.ptx, 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command(ptxas, "-v", "-arch="+c.arch, "-o", filepath.Join(folder, "fp4.cubin"), from).CombinedOutput()
		if (err == nil) != c.can {
			t.Fatalf("ptxas for %s: %v\n%s", c.arch, err, said)
		}
		if spilled := regexp.MustCompile(`[1-9]\d* bytes spill`).Find(said); spilled != nil {
			t.Errorf("for %s registers are spilled: %s", c.arch, spilled)
		}
	}
}
