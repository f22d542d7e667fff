//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// median runs a graph some times and gives the middle of the times it took.
func median(t testing.TB, d *Device, g *Graph) time.Duration {
	t.Helper()
	var times []time.Duration
	for i := range 9 {
		took, err := d.Time(g.Launch)
		if err != nil {
			t.Fatal(err)
		}
		if i > 1 {
			times = append(times, took)
		}
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// graph captures n launches.
func graph(t testing.TB, d *Device, n int, f func(i int) error) *Graph {
	t.Helper()
	g, err := d.Capture(func() error {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// readBandwidth is the most bytes a second that a kernel read of m, of several shapes.
func readBandwidth(t testing.TB, k *Kernels, m, sink Memory) float64 {
	best := 0.0
	for _, blocks := range []int{2, 4, 8} {
		g := graph(t, k.device, 2, func(int) error {
			a := k.device.args.Reset().Pointer(m.at).Pointer(sink.at).Pointer(uint64(m.bytes / 16))
			return k.read.Launch(Grid{X: k.device.facts.SMs * blocks, Block: 512}, a)
		})
		best = max(best, float64(m.bytes)*2/median(t, k.device, g).Seconds())
		g.Close()
	}
	return best
}

// layers are matrices of models that are served: name, rows, columns.
var layers = []struct {
	name    string
	out, in int
}{
	{"27B lm_head", 248320, 5120},
	{"27B gate+up", 34816, 5120},
	{"27B down", 5120, 17408},
	{"27B attention q+k+v+gate", 14336, 5120},
	{"27B attention out", 5120, 6144},
	{"27B delta qkv+z", 16384, 5120},
	{"9B gate+up", 24576, 4096},
	{"9B down", 4096, 12288},
	{"9B attention out", 4096, 4096},
	{"0.8B gate+up", 7168, 1024},
	{"0.8B down", 1024, 3584},
}

// BenchmarkLinear times products in a graph that goes round among copies of the
// weights, so that the second cache does not help. VELO_BENCH chooses what:
// "format=bf16 name=lm_head rows=1,16", "all" for all variants instead of the
// chosen one, "once" for one launch each and no times, for a profiler, "own" for products
// whose blocks normalise the rows themselves.
func BenchmarkLinear(b *testing.B) {
	d := open(b, Options{})
	k := loadKernels(b, d)
	p := pool(b, d, 12<<30)
	sink := take(b, p, 4<<10)
	out := take(b, p, 16*248320*4)
	space := take(b, p, p.Left()-(64<<20))
	if err := k.fillRandom(space, 1, 0xbfbfbfbf, 0); err != nil {
		b.Fatal(err)
	}
	bandwidth := readBandwidth(b, k, space.Part(0, 8<<30), sink)
	fmt.Printf("%s\nread bandwidth %.3f TB/s\n", d.Facts(), bandwidth/1e12)
	rows := []int{1, 16}
	all, once, own, names, form := false, false, false, "", ""
	for _, word := range strings.Fields(os.Getenv("VELO_BENCH")) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "all":
			all = true
		case "once":
			once = true
		case "own":
			own = true
		case "name":
			names = value
		case "format":
			form = value
		case "rows":
			rows = nil
			for s := range strings.SplitSeq(value, ",") {
				n, err := strconv.Atoi(s)
				if err != nil {
					b.Fatal(err)
				}
				rows = append(rows, n)
			}
		}
	}
	for f := range formats {
		if form != "" && !strings.Contains(form, Format(f).String()) {
			continue
		}
		for _, l := range layers {
			if !strings.Contains(l.name, names) {
				continue
			}
			benchmarkLayer(b, k, space, out, Format(f), l.name, l.out, l.in, rows, bandwidth, all, once, own)
		}
	}
}

func benchmarkLayer(b *testing.B, k *Kernels, space, out Memory, format Format, name string, rows, cols int, ns []int, bandwidth float64, all, once, prepared bool) {
	d := k.device
	if err := k.fillRandom(space, 2, 0xbfbfbfbf, 0); err != nil {
		b.Fatal(err)
	}
	own := &Pool{whole: space}
	x := take(b, own, int64(MaxRows*cols*4))
	if err := k.fillRandom(x, 3, 0x807fffff, 0x3f000000); err != nil {
		b.Fatal(err)
	}
	o, err := k.Operand(own, cols, MaxRows)
	if err != nil {
		b.Fatal(err)
	}
	norm := take(b, own, int64(cols*4))
	if err := k.fillRandom(norm, 4, 0x807fffff, 0x3f000000); err != nil {
		b.Fatal(err)
	}
	from := activations{source: normSource, x: View{x, cols, 0, 1, cols, cols}, norm: norm, eps: 1e-6}
	var copies []*Matrix
	for len(copies) < 64 && (len(copies) < 2 || int64(len(copies))*copies[0].Bytes() < 1<<30) {
		m, err := k.blank(own, format, rows, cols)
		if err != nil {
			if len(copies) < 2 {
				b.Fatal(err)
			}
			break
		}
		copies = append(copies, m)
	}
	n := max(len(copies), 16)
	for _, batch := range ns {
		if err := k.Split(o, x, batch, cols); err != nil {
			b.Fatal(err)
		}
		choices := []choice{plan(copies[0], batch)}
		if all {
			choices = nil
			for s := range shapes {
				for _, splits := range []int{2, 4, 8, 16} {
					c := choice{splits: splits, shape: s}
					if c.narrowShared(format, batch) > portableShared ||
						prepared && (c.ownTeam(copies[0], batch)+ownBytes(copies[0], batch) > portableShared || !c.holds(copies[0])) {
						continue
					}
					choices = append(choices, c)
				}
			}
			if batch > 8 && !prepared {
				choices = append(choices, choice{splits: plan(copies[0], batch).splits, shape: wideShape})
			}
		}
		if _, ok := k.ownable(copies[0], &from, batch); prepared && !ok {
			continue
		}
		product := func(m *Matrix, c choice) error {
			p := &Product{Y: out, Pitch: rows, X: o, M: m}
			if prepared {
				return k.ownProduct(p, &from, c)
			}
			return k.product(p, c)
		}
		if once {
			if err := product(copies[0], choices[0]); err != nil {
				b.Fatal(err)
			}
			continue
		}
		for _, c := range choices {
			g := graph(b, d, n, func(i int) error {
				return product(copies[i%len(copies)], c)
			})
			took := median(b, d, g).Seconds() / float64(n)
			g.Close()
			bytes := float64(copies[0].Bytes())
			how := "wide "
			if c.shape != wideShape {
				how = fmt.Sprintf("r%d s%d", shapes[c.shape].tiles, shapes[c.shape].stages)
			}
			fmt.Printf("%-25s %-6s %8.1f MB  n %-2d  %s %2d  %8.2f µs  %5.1f%%\n", name, format, bytes/1e6, batch,
				how, c.splits, took*1e6, 100*bytes/took/bandwidth)
		}
	}
	if err := d.Wait(); err != nil {
		b.Fatal(err)
	}
}
