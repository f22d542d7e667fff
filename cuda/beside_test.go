//go:build linux && cuda && cgo

package cuda

import "testing"

// TestBesideLeavesHalf: blocks of a product and those of the one behind it fit on an SM
// together, on a device with 228 KiB of shared memory an SM and on one with 100.
func TestBesideLeavesHalf(t *testing.T) {
	for _, f := range []Facts{{SMs: 132, SharedSM: 228 << 10}, {SMs: 48, SharedSM: 100 << 10}} {
		for _, blocks := range []int{1, 2} {
			for _, size := range [][2]int{{34816, 5120}, {5120, 17408}, {16384, 5120}, {5120, 6144}, {14336, 5120}, {24576, 4096}, {4096, 12288}, {12288, 4096}, {4096, 4096}, {10240, 4096}} {
				m := &Matrix{format: NVFP4, out: size[0], in: size[1], units: NVFP4.units(size[1])}
				for n := 1; n <= 8; n++ {
					old := plan(m, n)
					own := 0
					if n == 1 && m.in <= 6144 {
						own = ownBytes(m, n)
					}
					c, ok := besideOf(old, m, n, own, &f, blocks)
					if !ok {
						if n == 1 {
							t.Errorf("%d × %d on %d KiB, %d blocks: not possible", m.out, m.in, f.SharedSM>>10, blocks)
						}
						continue
					}
					threads := 32 * c.splits * c.abreast * c.blocks
					shared := (besideRoom(&f, c.blocks) + 1024 + 1536) * c.blocks
					if c.splits != old.splits {
						t.Errorf("%d × %d: %d splits instead of %d change the sums", m.out, m.in, c.splits, old.splits)
					}
					if 2*shared > f.SharedSM || 2*threads > 1024 || c.besideShared(n)+own > besideRoom(&f, c.blocks) {
						t.Errorf("%d × %d, %d rows on %d KiB: two of %+v take %d bytes and %d threads", m.out, m.in, n, f.SharedSM>>10, c, 2*shared, 2*threads)
					}
				}
			}
		}
	}
	if _, ok := besideOf(choice{splits: 2}, &Matrix{format: NVFP4, out: 248320}, 1, 0, &Facts{SMs: 132, SharedSM: 228 << 10}, 2); ok {
		t.Error("the largest matrix is divided too")
	}
}

// TestThinEights: a block of the fewest threads still takes its row.
func TestThinEights(t *testing.T) {
	for n := 128; n <= operandMost; n += 128 {
		if threads := thinEights(n); threads*8*splitTimes < n || threads > 1024 || threads%32 != 0 || threads > max(256, eights(n)) {
			t.Fatalf("%d threads for a row of %d values", threads, n)
		}
	}
	if got := thinEights(17408); got != 544 {
		t.Errorf("%d threads for 17,408 values, not 544", got)
	}
}
