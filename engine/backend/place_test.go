package backend

import (
	"errors"
	"strings"
	"testing"

	"velo/engine/host"
)

func TestResolve(t *testing.T) {
	machine := func() (host.Memory, error) { return host.Memory{Total: 128 << 30, Available: 100 << 30}, nil }
	with := func(f *Facts, err error) *accelerator {
		return &accelerator{look: func(Options) (*Facts, error) { return f, err }}
	}
	h200 := with(&Facts{Name: "NVIDIA H200", Memory: 140 << 30, Free: 139 << 30}, nil)
	gb10 := with(&Facts{Name: "NVIDIA GB10", Memory: 119 << 30, Free: 3 << 30, Integrated: true}, nil)
	none := with(nil, errors.New("cannot open the CUDA driver's library"))
	const keep = 5 << 30
	for _, c := range []struct {
		title, asked string
		gpu          *accelerator
		name         string
		room         int64
		passed       bool
		err          string
	}{
		{"no GPU in the build", "auto", nil, CPU, 95 << 30, false, ""},
		{"the processor by name", CPU, h200, CPU, 95 << 30, false, ""},
		{"a GPU with memory of its own", "", h200, CUDA, 139<<30 - 512<<20, false, ""},
		{"a GPU that shares the machine's: what the page cache holds counts as free, a tenth stays", "auto", gb10, CUDA, 90 << 30, false, ""},
		{"a GPU by name", CUDA, h200, CUDA, 139<<30 - 512<<20, false, ""},
		{"a GPU that does not open", "auto", none, CPU, 95 << 30, true, ""},
		{"the same by name", CUDA, none, "", 0, false, "cannot open the CUDA driver's library"},
		{"none in the build, by name", CUDA, nil, "", 0, false, "cannot compute on"},
		{"an unknown name", "abacus", h200, "", 0, false, "abacus"},
	} {
		o, p, err := resolve(Options{Name: c.asked, Rows: 7}, c.gpu, machine)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.title, err)
			}
			continue
		}
		if err != nil || o.Name != c.name || p.Name != c.name || o.Rows != 7 || p.Room(keep) != c.room || (p.Passed != nil) != c.passed {
			t.Errorf("%s: %+v, %+v, room %d, %v", c.title, o, p, p.Room(keep), err)
		}
	}
	_, p, err := resolve(Options{}, gb10, func() (host.Memory, error) { return host.Memory{}, errors.New("no /proc") })
	if err != nil || p.Name != CUDA || p.Room(keep) != 0 {
		t.Errorf("a machine that does not tell its memory: %+v, room %d, %v", p, p.Room(keep), err)
	}
	if p := (Place{Name: CPU, Memory: host.Memory{Total: 2 << 30, Available: 1 << 30}}); p.Room(keep) != 1 {
		t.Errorf("less than nothing is %d", p.Room(keep))
	}
}
