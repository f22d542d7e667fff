//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"velo/engine/ops"
)

// BenchmarkAttention times attention of one layer in a graph that goes round among
// caches of over 1 GB together: one row far into a text, and prompts of 512 rows.
// VELO_BENCH chooses: "kv=bf16", "27B" or "8B", "prompt" or "decode", "once" for one
// launch each and no times, for a profiler.
func BenchmarkAttention(b *testing.B) {
	d := open(b, Options{})
	k := loadKernels(b, d)
	p := pool(b, d, 14<<30)
	words := os.Getenv("VELO_BENCH")
	once := strings.Contains(words, "once")
	if !once {
		space := take(b, p, 8<<30)
		fmt.Printf("%s\nread bandwidth %.3f TB/s\n", d.Facts(), readBandwidth(b, k, space, take(b, p, 4<<10))/1e12)
	}
	mark := 0
	for _, s := range []struct {
		name             string
		heads, kv, width int
	}{{"27B", 24, 4, 256}, {"8B", 32, 8, 128}} {
		for kv := ops.KVF32; kv <= ops.KVQ8; kv++ {
			for _, w := range []struct{ rows, past int }{{1, 128}, {1, 2048}, {1, 8192}, {1, 32768}, {16, 8192}, {64, 16384}, {512, 1536}, {512, 16384}} {
				name := fmt.Sprintf("%s kv=%s %s", s.name, kv, map[bool]string{true: "prompt", false: "decode"}[w.rows > MaxRows])
				all := true
				for word := range strings.FieldsSeq(words) {
					all = all && (word == "once" || strings.Contains(name, word))
				}
				if !all || kv == ops.KVF32 && w.past > 16000 && w.rows > 1 {
					continue
				}
				p.used = int64(mark)
				cache := &Cache{Layers: 1, Heads: s.kv, Dim: s.width, Type: kv}
				n := (w.past + w.rows + PageTokens - 1) / PageTokens
				copies := min(64, int(1<<30/(cache.PageBytes()*int64(n)))+2)
				if once {
					copies = 1
				}
				cache.Pages = take(b, p, cache.PageBytes()*int64(n*copies))
				// Small numbers, whatever the type: exponents have no upper bit.
				if err := k.fillRandom(cache.Pages, 1, 0xbf3fbf3f, 0); err != nil {
					b.Fatal(err)
				}
				width := (s.heads + 2*s.kv) * s.width
				rows := take(b, p, int64(4*w.rows*width))
				if err := k.fillRandom(rows, 2, 0xbfffffff, 0); err != nil {
					b.Fatal(err)
				}
				out := take(b, p, int64(4*w.rows*s.heads*s.width))
				var positions, segments, table []int32
				for i := range w.rows {
					positions, segments = append(positions, int32(w.past+i)), append(segments, 0)
				}
				for i := range n * copies {
					table = append(table, int32(i))
				}
				at := func(v []int32) Memory {
					m := take(b, p, int64(4*len(v)))
					if err := Upload(m, v); err != nil {
						b.Fatal(err)
					}
					return m
				}
				r := &Rows{N: w.rows, Positions: at(positions), Segments: at(segments), Table: at(table), TablePitch: n, Longest: w.past + w.rows - 1,
					Sequences: []ops.Segment{{Rows: w.rows}}}
				scratch := take(b, p, min(AttendScratch(r, s.heads, s.width), max(attendBudget, AttendScratch(&Rows{N: 1, Longest: r.Longest}, s.heads, s.width))))
				part := func(offset, heads int) View { return View{rows, width, offset, heads, s.width, s.width} }
				launch := func(i int) error {
					in := *r
					in.Table = r.Table.Part(int64(4*n*(i%copies)), int64(4*n))
					return k.Attend(View{out, s.heads * s.width, 0, s.heads, s.width, s.width}, part(0, s.heads), part(s.heads*s.width, s.kv),
						part((s.heads+s.kv)*s.width, s.kv), cache, &in, 0, 0, 0.0625, scratch)
				}
				if once {
					if err := launch(0); err != nil {
						b.Fatal(err)
					}
					if err := d.Wait(); err != nil {
						b.Fatal(err)
					}
					fmt.Println(name, w.rows, w.past)
					continue
				}
				launches := max(16, copies)
				if w.rows > MaxRows {
					launches = 4
				}
				g := graph(b, d, launches, launch)
				took := median(b, d, g).Seconds() / float64(launches)
				g.Close()
				bytes := float64(cache.PageBytes()) * float64(n)
				keys := float64(w.past) + float64(w.rows+1)/2
				fmt.Printf("%-22s %3d rows, %5d behind: %8.1f µs, %7.1f MB of keys and values, %.2f TB/s, %6.1f TFLOP/s\n", name, w.rows, w.past, took*1e6,
					bytes/1e6, bytes/took/1e12, 4*float64(w.rows*s.heads*s.width)*keys/took/1e12)
			}
		}
	}
}
