//go:build linux && cuda && cgo

package cuda

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/engine/ops"
	"velo/engine/weights"
)

// filed is random weights of a type, in memory, and the same in a file that is not aligned to
// anything; what has scales has them in the file too.
func filed(t testing.TB, r *rand.Rand, path string, kind ops.WeightType, rows, cols int) (memory, file *ops.Weight) {
	t.Helper()
	memory = &ops.Weight{Name: "random", Type: kind, Shape: []int{rows, cols}, Global: 0.5}
	memory.Data = make([]byte, rows*memory.RowBytes())
	for i := range memory.Data {
		memory.Data[i] = byte(r.Uint32()) & 0x3f // finite in every type
	}
	switch kind {
	case ops.NVFP4:
		memory.Scale = make([]byte, rows*cols/16)
		for i := range memory.Scale {
			memory.Scale[i] = byte(r.Uint32()) & 0x7f % 0x7f
		}
	case ops.FP8Row:
		memory.Scale = make([]byte, 4*rows)
		for i := range memory.Scale {
			memory.Scale[i] = byte(r.Uint32()) & 0x3f
		}
	}
	skip := 1 + r.IntN(9000)
	all := slices.Concat(make([]byte, skip), memory.Data, []byte{1, 2, 3}, memory.Scale)
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := weights.NewFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := *memory
	file = &copied
	if kind == ops.BF16 || kind == ops.F16 || kind == ops.FP8Row || kind == ops.NVFP4 {
		file.DataAt = ops.Place{File: f, Offset: int64(skip)}
		file.Data = make([]byte, len(memory.Data)) // nobody looks at it
		if kind == ops.NVFP4 {
			file.ScaleAt = ops.Place{File: f, Offset: int64(skip + len(memory.Data) + 3)}
			file.Scale = make([]byte, len(memory.Scale))
		}
	}
	return memory, file
}

// contents is all that a matrix has on the device.
func contents(t testing.TB, m ops.Matrix) (all []byte) {
	t.Helper()
	for _, p := range m.(*stack).pieces {
		for _, memory := range []Memory{p.m.weights, p.m.factors} {
			data := make([]byte, memory.Bytes())
			if err := Download(memory, data); err != nil {
				t.Fatal(err)
			}
			all = append(all, data...)
		}
	}
	return all
}

// TestLoad: weights that are read from a file, in many slabs, lie on the device as those that a kernel
// packs at once from memory; several matrices may be on their way, and parts are stacked.
func TestLoad(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	b := newBackend(t, BackendOptions{Rows: 16})
	b.load.size = 64 << 10
	scratch := take(t, pool(t, b.device, 8<<20), 8<<20)
	folder := t.TempDir()
	type loaded struct {
		kind ops.WeightType
		m    ops.Matrix
		want []byte
	}
	var all []loaded
	for i, kind := range []ops.WeightType{ops.BF16, ops.F16, ops.FP8Row, ops.NVFP4, ops.F32, ops.Q8_0, ops.BF16, ops.NVFP4} {
		first, one := filed(t, r, filepath.Join(folder, fmt.Sprint(i, "a")), kind, 16*(1+r.IntN(60)), 1024)
		second, two := filed(t, r, filepath.Join(folder, fmt.Sprint(i, "b")), kind, 1+r.IntN(900), 1024)
		m, err := b.Matrix(one, two)
		if err != nil {
			t.Fatal(err)
		}
		// The same without a loader.
		as := storedAs(kind)
		var want []byte
		for j := range as.matrices {
			var parts []Part
			for _, w := range []*ops.Weight{first, second} {
				parts = append(parts, wholePart(w, as, j))
			}
			p := pool(t, b.device, 16<<20)
			plain, err := b.k.Matrix(p, scratch, partFormat(kind, as.format), 1024, parts...)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, contents(t, &stack{pieces: []piece{{m: plain}}})...)
		}
		all = append(all, loaded{kind, m, want})
	}
	if err := b.load.end(); err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if got := contents(t, l.m); !bytes.Equal(got, l.want) {
			t.Errorf("%v: other bytes on the device", l.kind)
		}
	}
	if l := b.Loaded(); l.Read == 0 || l.Cached > l.Read {
		t.Errorf("loaded: %+v", l)
	} else {
		t.Logf("%+v", l)
	}
	if b.load.slots != nil || b.load.staging != nil {
		t.Error("memory for weights on their way is still held")
	}
}

// wholePart is all of a tensor as part of matrix number j of those that hold it.
func wholePart(w *ops.Weight, as stored, j int) Part {
	if !asItIs(w.Type) {
		parts, err := converted(w, as, 0, w.Rows())
		if err != nil {
			panic(err) // its data is in memory
		}
		return parts[j]
	}
	p := Part{Rows: w.Rows(), Data: w.Data, All: w.Global}
	switch w.Type {
	case ops.NVFP4:
		p.Scale = w.Scale
	case ops.FP8Row, ops.F16:
		p.Row = rowFactors(w, 0, w.Rows())
	}
	return p
}

// TestLoadFails: a file that was shortened is an error of loading with its name, and the backend can be
// closed and goes on.
func TestLoadFails(t *testing.T) {
	b := newBackend(t, BackendOptions{Rows: 16})
	b.load.size = 64 << 10
	path := filepath.Join(t.TempDir(), "weights.bin")
	r := rand.New(rand.NewPCG(1, 1))
	_, w := filed(t, r, path, ops.BF16, 640, 1024)
	if _, err := b.Matrix(w); err != nil { // opens the file
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100_000); err != nil {
		t.Fatal(err)
	}
	_, err := b.Matrix(w)
	if err == nil {
		_, err = b.Cache(ops.CacheShape{Attention: 1, KVHeads: 1, HeadDim: 64}, 1, 0)
	}
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "shortened") {
		t.Errorf("%v", err)
	}
	if err := b.load.close(); err != nil {
		t.Error(err)
	}
	_, again := filed(t, r, path+"2", ops.FP8Row, 64, 1024)
	if _, err := b.Matrix(again); err != nil {
		t.Error(err)
	}
	if err := b.load.end(); err != nil {
		t.Error(err)
	}
}

// BenchmarkLoad loads $VELO_LOAD_GB (2) of weights from a file, from the disk and from the page cache,
// as a model is loaded. The folder $VELO_LOAD_FOLDER is on the disk to be measured.
func BenchmarkLoad(b *testing.B) {
	gb := 2.0
	if _, err := fmt.Sscan(os.Getenv("VELO_LOAD_GB"), &gb); err != nil {
		gb = 2
	}
	folder := os.Getenv("VELO_LOAD_FOLDER")
	if folder == "" {
		folder = b.TempDir()
	}
	path := filepath.Join(folder, "weights.bin")
	const rows, cols = 16384, 5120
	matrices := max(1, int(gb*1e9/(rows*cols*2)))
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(path)
	r := rand.New(rand.NewPCG(1, 2))
	block := make([]byte, 16<<20)
	for i := range block {
		block[i] = byte(r.Uint32()) & 0x3f
	}
	for left := matrices * rows * cols * 2; left > 0; left -= len(block) {
		if _, err := f.Write(block[:min(left, len(block))]); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	file, err := weights.NewFile(path)
	if err != nil {
		b.Fatal(err)
	}
	one := make([]byte, rows*cols*2) // for its length alone
	diskAlone(b, file, int64(matrices)*rows*cols*2)
	for _, kind := range []ops.WeightType{ops.BF16, ops.FP8Row, ops.NVFP4} {
		for _, from := range []string{"disk", "cache"} {
			if from == "disk" {
				dropCache(b)
			} else if _, err := os.ReadFile(path); err != nil {
				b.Fatal(err)
			}
			backend := newBackend(b, BackendOptions{Rows: 16})
			begin := time.Now()
			all, most := int64(0), matrices
			if from == "disk" {
				most = max(1, matrices/2)
			}
			for at := int64(0); at+rows*cols*2 <= int64(most)*rows*cols*2; {
				w := &ops.Weight{Name: "random", Type: kind, Shape: []int{rows, cols}, Global: 1, DataAt: ops.Place{File: file, Offset: at}}
				n := rows * w.RowBytes()
				w.Data = one[:n]
				at += int64(n)
				switch kind {
				case ops.NVFP4:
					w.ScaleAt, w.Scale = ops.Place{File: file, Offset: at}, one[:rows*cols/16]
					at += rows * cols / 16
				case ops.FP8Row:
					w.Scale = one[:4*rows]
				}
				if _, err := backend.Matrix(w); err != nil {
					b.Fatal(err)
				}
				all = at
			}
			if err := backend.load.end(); err != nil {
				b.Fatal(err)
			}
			took := time.Since(begin)
			l := backend.Loaded()
			fmt.Printf("load %v from the %s: %.2f GB in %.2f s, %.2f GB/s (%.0f %% from the page cache) %s\n", kind, from, float64(all)/1e9, took.Seconds(),
				float64(all)/1e9/took.Seconds(), 100*float64(l.Cached)/float64(max(1, l.Read)), l.Refused)
			if err := backend.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// diskAlone reads the file without a device, as the bound of what the disk can do.
func diskAlone(b *testing.B, file *weights.File, size int64) {
	b.Helper()
	var slabs [loadSlots]*HostMemory
	d := open(b, Options{})
	for i := range slabs {
		var err error
		if slabs[i], err = d.HostMemory(ops.ReadSpace(loadSlab)); err != nil {
			b.Fatal(err)
		}
		defer slabs[i].Close()
	}
	for _, n := range []int{2, 4, loadReads, 16} {
		dropCache(b)
		r := ops.NewReader(n)
		var reads [loadSlots]*ops.Read
		begin := time.Now()
		all := size / 2
		for at, i := int64(0), 0; at < all; at, i = at+loadSlab, (i+1)%loadSlots {
			if reads[i] != nil {
				if _, err := reads[i].Wait(); err != nil {
					b.Fatal(err)
				}
			}
			reads[i] = r.Start(ops.Place{File: file, Offset: at}, loadSlab, slabs[i].Host)
		}
		for _, read := range reads {
			if _, err := read.Wait(); err != nil {
				b.Fatal(err)
			}
		}
		fmt.Printf("read alone, %d in flight: %.2f GB/s %s\n", n, float64(all)/1e9/time.Since(begin).Seconds(), r.Refused())
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// dropCache empties the page cache, where the system lets it.
func dropCache(b *testing.B) {
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		b.Log("the page cache stays: ", err)
	}
}
