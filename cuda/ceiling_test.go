//go:build linux && cuda && cgo

package cuda

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// TestReadMemory: the kernel that measures bandwidth reads every word. It writes to its sink if what a
// thread reads combines to one number, so with that number in one word, and 0 in all others, it must.
func TestReadMemory(t *testing.T) {
	rt := newRowsTest(t)
	const words, magic = 4 * 100_003, 0x2545f491
	for range 20 {
		at := rt.r.IntN(words)
		data := make([]uint32, words)
		data[at] = magic
		for _, want := range []uint32{magic, 7} {
			if want != magic {
				data[at] ^= 1 << rt.r.IntN(32)
			}
			from, sink := upload(rt, data), upload(rt, []uint32{7})
			a := rt.k.device.args.Reset().Pointer(from.at).Pointer(sink.at).Pointer(words / 4)
			rt.check(rt.k.read.Launch(Grid{X: 4, Block: 512}, a))
			got := make([]uint32, 1)
			rt.check(Download(sink, got))
			if got[0] != want {
				t.Fatalf("with word %d set to %#x the sink is %#x", at, data[at], got[0])
			}
		}
		rt.p.Reset()
	}
}

// TestFillRandom: the numbers are those of the formula, and nothing else is written.
func TestFillRandom(t *testing.T) {
	rt := newRowsTest(t)
	const n = 100_001
	seed, keep, set := rand.Uint32(), rand.Uint32(), rand.Uint32()
	out := newOutput(t, rt.p, n)
	out.poison(t)
	rt.check(rt.k.fillRandom(out.all.Part(0, 4*n), int(int32(seed)), keep, set))
	bytes := make([]byte, out.all.Bytes())
	rt.check(Download(out.all, bytes))
	for i := range n {
		h := uint32(i)*0x9e3779b9 ^ seed
		h = (h ^ h>>16) * 0x85ebca6b
		h = (h ^ h>>13) * 0xc2b2ae35
		if got, want := binary.LittleEndian.Uint32(bytes[4*i:]), (h^h>>16)&keep|set; got != want {
			t.Fatalf("word %d is %#x, not %#x", i, got, want)
		}
	}
	for i := 4 * n; i < len(bytes); i++ {
		if bytes[i] != guard {
			t.Fatalf("byte %d behind the end was written", i)
		}
	}
}
