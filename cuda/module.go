//go:build linux && cuda && cgo

package cuda

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gorgonia.org/cu"
)

// Module is kernels compiled for the device.
type Module struct {
	device  *Device
	name    string
	m       cu.Module
	kernels []*Kernel // asked for so far
	cached  bool      // it came from the cache of compiled modules
}

// Load compiles PTX for the device and loads it. The machine code is kept in
// the cache folder under a name made of the PTX, the device and the driver; a
// file there that is damaged, or that the driver does not take, is compiled again.
func (d *Device) Load(name string, ptx []byte) (*Module, error) {
	return d.load(name, d.machineCode(ptx))
}

// LoadAll loads modules by name, each compiled on a thread of its own: all take as long as the slowest.
func (d *Device) LoadAll(ptx map[string][]byte) (map[string]*Module, error) {
	codes := make(map[string]*machineCode, len(ptx))
	var compiling sync.WaitGroup
	for name, text := range ptx {
		code := new(machineCode)
		codes[name] = code
		compiling.Go(func() { *code = d.machineCode(text) })
	}
	compiling.Wait()
	modules := make(map[string]*Module, len(ptx))
	for _, name := range slices.Sorted(maps.Keys(codes)) {
		m, err := d.load(name, *codes[name])
		if err != nil {
			return nil, err
		}
		modules[name] = m
	}
	return modules, nil
}

// machineCode is a module compiled for a device.
type machineCode struct {
	ptx    []byte
	cubin  []byte
	path   string // where it is kept
	cached bool   // it came from there
	err    error
}

// machineCode takes a module from the cache or compiles it. It may run on several threads at once.
func (d *Device) machineCode(ptx []byte) machineCode {
	c := machineCode{ptx: ptx, path: d.cachePath(ptx)}
	c.cubin = readCache(c.path)
	c.cached = c.cubin != nil
	if !c.cached {
		c.cubin, c.err = compile(rawContext(d.context), ptx)
	}
	return c
}

func (d *Device) load(name string, c machineCode) (*Module, error) {
	m := &Module{device: d, name: name, cached: c.cached}
	load := func() error {
		return d.on(func() (err error) {
			m.m, err = cu.LoadData(string(c.cubin))
			return err
		})
	}
	err := c.err
	if err == nil {
		err = load()
	}
	if err != nil && m.cached && !outOfMemory(err) {
		// What was kept is of no use to this driver: it goes, and is made anew, once.
		_ = os.Remove(c.path)
		m.cached = false
		if c.cubin, c.err = compile(rawContext(d.context), c.ptx); c.err == nil {
			err = load()
		}
	}
	switch {
	case c.err != nil:
		return nil, fmt.Errorf("cannot compile the kernels %s for %s: %w", name, d.facts.Name, c.err)
	case err != nil:
		return nil, fmt.Errorf("cannot load the kernels %s on %s, as it compiled them: %w", name, d.facts.Name, err)
	}
	if !m.cached {
		writeCache(c.path, c.cubin)
	}
	d.modules = append(d.modules, m)
	return m, nil
}

// Kernel is the function of that name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	k := &Kernel{name: name, device: m.device}
	err := m.device.on(func() (err error) {
		k.f, err = m.m.Function(name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find the kernel %s in %s: %w", name, m.name, err)
	}
	m.kernels = append(m.kernels, k)
	k.registers, _, err = k.Registers()
	return k, err
}

func (m *Module) unload() error { return m.m.Unload() }

// cachePath is where the machine code of ptx is kept, "" for nowhere.
func (d *Device) cachePath(ptx []byte) string {
	folder := d.options.Cache
	switch folder {
	case "-":
		return ""
	case "":
		base, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(base, "velo", "kernels")
	}
	h := sha256.New()
	h.Write(ptx)
	fmt.Fprintf(h, "\x00%d %d", d.facts.Capability(), d.facts.Driver)
	return filepath.Join(folder, fmt.Sprintf("%x.cubin", h.Sum(nil)))
}

// readCache gives the machine code kept in a file: a SHA-256 and what it is
// of. It is nil if there is none that is whole.
func readCache(path string) []byte {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) <= sha256.Size {
		return nil
	}
	sum := sha256.Sum256(data[sha256.Size:])
	if !bytes.Equal(sum[:], data[:sha256.Size]) {
		return nil
	}
	return data[sha256.Size:]
}

// writeCache keeps machine code. That it cannot costs the next start a second,
// so it is no error.
func writeCache(path string, cubin []byte) {
	if path == "" || os.MkdirAll(filepath.Dir(path), 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return
	}
	sum := sha256.Sum256(cubin)
	_, err = f.Write(append(sum[:], cubin...))
	if closed := f.Close(); err == nil && closed == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
}
