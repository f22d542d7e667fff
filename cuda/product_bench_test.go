//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"velo/cuda/kernels"
)

// BenchmarkProduct times products of prompts, first a plain one of halves, which is what
// the tensor cores are measured with, then those of models. Operations are 2·rows·columns
// a row of x. VELO_BENCH chooses by words in a line's beginning.
func BenchmarkProduct(b *testing.B) {
	d := open(b, Options{})
	k := loadKernels(b, d)
	p := pool(b, d, 6<<30)
	space := take(b, p, p.Left()-(1<<20))
	for _, c := range []struct {
		name    string
		out, in int
		formats []Format
		rows    []int
	}{
		{"plain", 16384, 5120, []Format{F16}, []int{4096}},
		{"27B gate+up", 34816, 5120, []Format{NVFP4, FP8, F16}, []int{64, 512, 1024, 2048}},
		{"27B down", 5120, 17408, []Format{NVFP4}, []int{64, 512, 1024, 2048}},
		{"27B delta qkv", 10240, 5120, []Format{NVFP4}, []int{512, 1024, 2048}},
		{"27B delta z", 6144, 5120, []Format{NVFP4}, []int{512, 1024, 2048}},
		{"27B outputs", 5120, 6144, []Format{NVFP4}, []int{512, 1024, 2048}},
		{"27B attention q+k+v+gate", 14336, 5120, []Format{NVFP4}, []int{512, 1024, 2048}},
		{"9B gate+up", 24576, 4096, []Format{NVFP4, FP8, F16}, []int{512, 1024, 2048}},
		{"9B down", 4096, 12288, []Format{NVFP4, FP8, F16}, []int{512, 1024, 2048}},
		{"9B outputs", 4096, 4096, []Format{NVFP4}, []int{512, 1024, 2048}},
	} {
		if !strings.HasPrefix(c.name, os.Getenv("VELO_BENCH")) {
			continue
		}
		for _, format := range c.formats {
			keep, set := uint32(0xbfbfbfbf), uint32(0)
			if format == F16 {
				keep, set = 0x8fff8fff, 0x30003000
			}
			for _, n := range c.rows {
				own := &Pool{whole: space}
				if err := k.fillRandom(space, 2, 0x8fff8fff, 0x30003000); err != nil { // activations
					b.Fatal(err)
				}
				o, err := k.Operand(own, c.in, n)
				if err != nil {
					b.Fatal(err)
				}
				o.n = n
				y := take(b, own, int64(n)*int64(c.out)*4)
				var copies []*Matrix
				for len(copies) < 4 {
					m, err := k.blank(own, format, c.out, c.in)
					if err != nil {
						b.Fatal(err)
					}
					if err := k.fillRandom(m.weights, len(copies), keep, set); err != nil {
						b.Fatal(err)
					}
					copies = append(copies, m)
				}
				line := fmt.Sprintf("%-25s %-6s %5d rows:", c.name, format, n)
				for i := range productTiles {
					g := graph(b, d, 4, func(j int) error {
						return k.promptProduct(&Product{Y: y, Pitch: c.out, X: o, M: copies[j]}, i)
					})
					took := median(b, d, g).Seconds() / 4
					g.Close()
					mark := ""
					if i == productTile(c.out, n, d.facts.SMs) {
						mark = "*"
					}
					line += fmt.Sprintf("  %s%s %8.1f µs %5.0f TFLOP/s", mark, productTiles[i].name, took*1e6, 2*float64(n)*float64(c.out)*float64(c.in)/took/1e12)
				}
				fmt.Println(line)
			}
		}
	}
}

// BenchmarkFP4 times the same products with rows in NVFP4, and their quantisation, on a device
// that does it.
func BenchmarkFP4(b *testing.B) {
	d := open(b, Options{})
	if err := checkFP4(&d.facts); err != nil {
		b.Skip(err)
	}
	k := loadKernels(b, d)
	if err := k.loadFP4(kernels.FP4(), true); err != nil {
		b.Fatal(err)
	}
	p := pool(b, d, 2<<30)
	space := take(b, p, p.Left()-(1<<20))
	for _, c := range []struct {
		name    string
		out, in int
	}{{"27B gate+up", 34816, 5120}, {"27B down", 5120, 17408}, {"27B outputs", 5120, 6144}, {"9B gate+up", 24576, 4096}, {"9B down", 4096, 12288}} {
		if !strings.HasPrefix(c.name, os.Getenv("VELO_BENCH")) {
			continue
		}
		for _, n := range []int{64, 512, 2048} {
			own := &Pool{whole: space}
			if err := k.fillRandom(space, 2, 0x8fff8fff, 0x30003000); err != nil { // activations
				b.Fatal(err)
			}
			o, err := k.Operand(own, c.in, n)
			if err != nil {
				b.Fatal(err)
			}
			o.n = n
			four, y := take(b, own, fp4Bytes(c.in, n)), take(b, own, int64(n)*int64(c.out)*4)
			var copies []*Matrix
			for len(copies) < 4 {
				m, err := k.blank(own, NVFP4, c.out, c.in)
				if err == nil {
					err = k.fillRandom(m.weights, len(copies), 0xbfbfbfbf, 0)
				}
				if err != nil {
					b.Fatal(err)
				}
				copies = append(copies, m)
			}
			time := func(launch func(j int) error) float64 {
				g := graph(b, d, 4, launch)
				defer g.Close()
				return median(b, d, g).Seconds() / 4
			}
			line := fmt.Sprintf("%-25s %5d rows: quantised in %6.1f µs", c.name, n, time(func(int) error { return k.quantise(four, o) })*1e6)
			for i := range fp4Tiles {
				took := time(func(j int) error {
					return k.fp4Product(&Product{Y: y, Pitch: c.out, X: o, M: copies[j]}, four, i)
				})
				mark := ""
				if i == fp4Tile(c.out, n, d.facts.SMs) {
					mark = "*"
				}
				line += fmt.Sprintf("  %s%s %8.1f µs %5.0f TFLOP/s", mark, fp4Tiles[i].name, took*1e6, 2*float64(n)*float64(c.out)*float64(c.in)/took/1e12)
			}
			fmt.Println(line)
		}
	}
}
