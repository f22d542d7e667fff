//go:build linux && cgo

package stub

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// driver is a library that answers as a driver of three devices does, with an
// error of its own for cuInit if the environment asks for one.
const driver = `
#include <stdlib.h>
int cuInit(unsigned flags) { const char *e = getenv("FAKE_INIT"); return e ? atoi(e) : 0; }
int cuDeviceGetCount(int *n) { *n = 3; return 0; }
int cuMemcpy3DPeer(void *p) { return p == (void *)7 ? 42 : 43; }
int cuLaunchKernel(void *f, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned g, unsigned h,
                   void *s, void **p, void **x) {
	return (f == (void *)1) + a + b + c + d + e + g + h + (s == (void *)9) + (p == (void **)10) + (x == (void **)11);
}
`

// build compiles the library and gives its path.
func build(t *testing.T) string {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skip("no C compiler: ", err)
	}
	folder := t.TempDir()
	source, library := filepath.Join(folder, "driver.c"), filepath.Join(folder, Library)
	if err := os.WriteFile(source, []byte(driver), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return library
}

// TestForwarding runs in a process of its own for each driver, since a library
// that was opened stays.
func TestForwarding(t *testing.T) {
	if path := os.Getenv("STUB_TEST_LIBRARY"); path != "" {
		forwarding(t, path)
		return
	}
	library := build(t)
	for _, want := range []string{"0", "999"} {
		c := exec.Command(os.Args[0], "-test.run=^TestForwarding$", "-test.v")
		c.Env = append(os.Environ(), "STUB_TEST_LIBRARY="+library, "FAKE_INIT="+want)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("with a driver whose cuInit gives %s: %v\n%s", want, err, out)
		}
		if !strings.Contains(string(out), "cuInit gave "+want+"\n") {
			t.Errorf("with a driver whose cuInit gives %s:\n%s", want, out)
		}
	}
}

func forwarding(t *testing.T, path string) {
	before := probe()
	if before.init != 0 {
		t.Errorf("cuInit gives %d before a driver is asked for", before.init)
	}
	if before.code != 100 || before.launch != 100 || before.last != 100 {
		t.Errorf("functions give %+v without a driver, not 100", before)
	}
	if Symbol("cuInit") != nil {
		t.Error("there is a symbol without a driver")
	}
	if _, err := load(path + ".missing"); err == nil || !strings.Contains(err.Error(), ".missing") {
		t.Errorf("a library that is not there: %v", err)
	}
	got, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cuInit gave %d", got)
	after := probe()
	if after.init != got {
		t.Errorf("cuInit gives %d, the driver %d", after.init, got)
	}
	if after.code != 0 || after.count != 3 {
		t.Errorf("cuDeviceGetCount gives %d and %d devices", after.code, after.count)
	}
	if after.launch != 1+2+3+4+5+6+7+8+1+1+1 {
		t.Errorf("cuLaunchKernel got other arguments: %d", after.launch)
	}
	if after.last != 42 {
		t.Errorf("cuMemcpy3DPeer gives %d", after.last)
	}
	if after.missing != 100 {
		t.Errorf("a function that the driver does not have gives %d", after.missing)
	}
	if Symbol("cuDeviceGetCount") == nil || Symbol("cuNothing") != nil {
		t.Error("symbols are looked up wrongly")
	}
	if Functions() < 150 {
		t.Errorf("the stub answers for %d functions", Functions())
	}
}
