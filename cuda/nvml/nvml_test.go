//go:build linux && cuda && cgo

package nvml

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fake compiles testdata/fake.c as a library.
func fake(t *testing.T, flags ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("there is no gcc")
	}
	path := filepath.Join(t.TempDir(), "libfake.so")
	args := append([]string{"-shared", "-fPIC", "-fvisibility=hidden", "-o", path, "testdata/fake.c"}, flags...)
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func TestRead(t *testing.T) {
	path := fake(t)
	for _, bus := range []string{"", "0000:1b:00.0"} {
		g, err := open(path, bus)
		if err != nil {
			t.Fatal(err)
		}
		s, err := g.Read()
		if err != nil {
			t.Fatal(err)
		}
		want := Sample{0.87, 0.64, 653.21, 700, 1755e6, 3201e6, 61, 19754820096, 150754820096, nil}
		for i, v := range [][2]float64{{s.Utilisation, want.Utilisation}, {s.MemoryBusy, want.MemoryBusy}, {s.Power, want.Power}, {s.PowerLimit, want.PowerLimit},
			{s.SMClock, want.SMClock}, {s.MemoryClock, want.MemoryClock}, {s.Temperature, want.Temperature}} {
			if math.Abs(v[0]-v[1]) > 1e-9*v[1] {
				t.Errorf("number %d is %v, not %v", i, v[0], v[1])
			}
		}
		if s.Used != want.Used || s.Total != want.Total {
			t.Errorf("%d of %d bytes are used", s.Used, s.Total)
		}
		if !slices.Equal(s.Throttled, []string{"power cap", "thermal slowdown by hardware"}) {
			t.Errorf("throttled by %q", s.Throttled)
		}
		if g.Driver() != "580.159.03" {
			t.Errorf("driver %q", g.Driver())
		}
		g.Close()
		g.Close()
		if _, err := g.Read(); err == nil {
			t.Error("a closed one can be read")
		}
	}
}

func TestReadOfUnifiedMemory(t *testing.T) {
	g, err := open(fake(t, "-DUNIFIED"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	s, err := g.Read()
	if err != nil {
		t.Fatal(err)
	}
	if s.Used != -1 || s.Total != -1 || !math.IsNaN(s.Power) || !math.IsNaN(s.PowerLimit) || s.Utilisation != 0.87 || s.SMClock != 1755e6 {
		t.Errorf("%+v", s)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		path, bus, want string
	}{
		{"/nowhere/libnvidia-ml.so.1", "", "cannot open shared object file"},
		{fake(t, "-DBROKEN"), "", "Driver Not Loaded (9)"},
		{fake(t), "0000:99:00.0", "0000:99:00.0"},
	} {
		g, err := open(c.path, c.bus)
		if err == nil {
			g.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.path, c.bus, err)
		}
	}
	g, err := open(fake(t, "-DLOST"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if s, err := g.Read(); err == nil || !strings.Contains(err.Error(), "GPU is lost") || !math.IsNaN(s.Utilisation) {
		t.Errorf("a lost GPU tells %+v, %v", s, err)
	}
}

func TestThrottled(t *testing.T) {
	if got := throttled(1); got == nil || len(got) > 0 {
		t.Errorf("idle is %#v", got)
	}
	all := throttled(1<<40 | 0x1fe)
	if len(all) != len(reasons)+1 || all[len(all)-1] != "an unknown reason" {
		t.Errorf("%q", all)
	}
}

// TestOnThisMachine reads the GPU there is.
func TestOnThisMachine(t *testing.T) {
	if os.Getenv("VELO_GPU") == "" {
		t.Skip("VELO_GPU is not set")
	}
	g, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	s, err := g.Read()
	t.Logf("driver %s: %+v, %v", g.Driver(), s, err)
	if err != nil || !(s.Temperature > 0) {
		t.Errorf("it tells %+v, %v", s, err)
	}
}
