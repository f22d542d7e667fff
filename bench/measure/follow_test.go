package measure

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
)

// TestFollower: what a follower says of a running request agrees with what is computed of the same
// events as far as they have come, looked at how often whatever.
func TestFollower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLive(Options{})
		f := l.Follow(3)
		if got := f.Now(); got.TTFT.Ok() || got.GapMax.Ok() || got.Answer != 0 {
			t.Fatalf("before it begins: %+v", got)
		}
		x := &bench.Exchange{Request: &bench.Request{Number: 3, Start: time.Second, Planned: time.Second}}
		l.Append(x.Request)
		at := 1100 * time.Millisecond
		n := rapid.IntRange(1, 300).Draw(t, "chunks")
		user := rapid.IntRange(0, 2*n).Draw(t, "first without a kernel stamp")
		for i := range n {
			at += time.Duration(rapid.IntRange(0, 50_000).Draw(t, "gap")) * time.Microsecond
			c := bench.Chunk{Request: 3, Read: int32(i), User: at + 300*time.Microsecond, Kernel: at, Usage: -1, Exact: int32(1 + i%3), Text: "word "}
			if i >= user {
				c.Kernel = bench.Unset
			}
			if i < n/3 {
				c.Channel = bench.Reasoning
			}
			x.Chunks = append(x.Chunks, c)
			l.Append(bench.Chunks{c})
			if rapid.Bool().Draw(t, "look") {
				follows(t, f.Now(), x)
			}
		}
		follows(t, f.Now(), x)
		r := Of(x, Options{})
		gaps, counts := f.Gaps()
		icl, k := slices.Clone(r.ICL), 0
		slices.Sort(icl)
		for i, g := range gaps {
			for range int(counts[i]) {
				if k >= len(icl) || math.Abs(g-icl[k]) > 0.002*icl[k]+1e-9 {
					t.Fatalf("gap %d of %d is %v, want %v of %v", k, len(icl), g, icl[min(k, len(icl)-1)], icl)
				}
				k++
			}
		}
		if k != len(icl) {
			t.Fatalf("%d gaps, want %d", k, len(icl))
		}
		follows(t, Followed(&r), x)
	})
}

func follows(t *rapid.T, got Following, x *bench.Exchange) {
	r := Of(x, Options{})
	if got.Answer != r.Answer || got.Thought != r.Thought || got.Source != r.Source {
		t.Fatalf("%d and %d tokens by %s, want %d and %d by %s", got.Answer, got.Thought, got.Source, r.Answer, r.Thought, r.Source)
	}
	near := func(name string, got, want Num, by float64) {
		if got.Ok() != want.Ok() || got.Ok() && math.Abs(float64(got-want)) > by*math.Abs(float64(want))+1e-9 {
			t.Fatalf("%s is %v, want %v", name, got, want)
		}
	}
	near("TTFT", got.TTFT, r.TTFT, 0)
	near("TTFO", got.TTFO, r.TTFO, 0)
	near("the longest gap", got.GapMax, r.MaxGap, 0)
	gaps := slices.Sorted(slices.Values(r.ICL))
	for q, v := range map[float64]Num{0.5: got.GapP50, 0.9: got.GapP90} {
		if len(gaps) == 0 {
			near("a quantile of no gaps", v, Missing, 0)
			continue
		}
		// An order statistic beside the rank, to the width of a bin.
		rank := q * float64(len(gaps))
		low, high := gaps[int(q*float64(len(gaps)-1))], gaps[min(len(gaps)-1, int(math.Ceil(rank)))]
		if float64(v) < low*0.997-1e-9 || float64(v) > high*1.003+1e-9 {
			t.Fatalf("the quantile %v of %v is %v", q, gaps, v)
		}
	}
}

func BenchmarkFollowerNow(b *testing.B) {
	l := NewLive(Options{})
	l.Append(&bench.Request{Number: 1})
	for i := range 50_000 {
		l.Append(bench.Chunks{{Request: 1, Read: int32(i), User: time.Duration(i) * time.Millisecond, Kernel: bench.Unset, Usage: -1, Exact: 1, Text: "a"}})
	}
	f := l.Follow(1)
	f.Now()
	b.ResetTimer()
	for range b.N {
		f.Now()
	}
}
