package offset

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench/measure"
)

const noon = int64(1_700_000_000_000_000_000)

// TestTheOffsetLiesWithinItsBounds, however large it is and however long things take; and the sum of
// offset and least delay is never below the offset.
func TestTheOffsetLiesWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := time.Duration(rapid.Int64Range(-int64(48*time.Hour), int64(48*time.Hour)).Draw(t, "client − emitter"))
		var e Estimator
		j := NewJoin()
		var narrowest time.Duration = 1 << 62
		for i := range rapid.IntRange(1, 30).Draw(t, "requests") {
			some := func(what string) time.Duration { return time.Duration(rapid.Int64Range(0, 1e9).Draw(t, what)) }
			t0 := noon + int64(i)*3e9
			start := t0 + int64(some("way there")) // on the client's clock
			first := start + int64(some("prefill and way back"))
			narrowest = min(narrowest, time.Duration(first-t0))
			now := time.Duration(i) * time.Second
			if !e.Request(now, t0, first, start-int64(offset)) {
				t.Fatal("a request was refused")
			}
			e.Record(start-int64(offset), start+int64(some("delay of the record")))
			session := string(rune('a' + i))
			if rapid.Bool().Draw(t, "client first") {
				j.Client(now, session, t0, first)
				j.Start(now, session, "engine", start-int64(offset))
			} else {
				j.Start(now, session, "engine", start-int64(offset))
				j.Client(now, session, t0, first)
			}
			j.ClientTTFT(session, 3)
			j.ServerTTFT(session, 2)
		}
		for _, b := range []Bounds{e.Bounds(), j.Bounds()["engine"]} {
			if b.Low > offset || b.High < offset || b.Conflicts != 0 || b.High-b.Low > narrowest {
				t.Fatalf("the offset is %v, the bounds are %+v, the narrowest request took %v", offset, b, narrowest)
			}
		}
		if b := e.Bounds(); b.LeastSum < offset {
			t.Fatalf("offset plus least delay is %v, the offset %v", b.LeastSum, offset)
		}
		pairs, n := j.Pairs()
		if n != len(pairs) || n == 0 || pairs[0].Difference() != 1 {
			t.Fatalf("pairs %+v", pairs)
		}
	})
}

func TestBoundsBeginAnewWhenAClockIsSet(t *testing.T) {
	var e Estimator
	e.Request(0, noon, noon+1e6, noon)
	e.Request(time.Second, noon+1e9, noon+1e9+1e6, noon+1e9+int64(time.Hour)) // the emitter's clock was set ahead
	if b := e.Bounds(); b.Conflicts != 1 || b.Pairs != 1 || b.High >= -59*time.Minute {
		t.Errorf("%+v", b)
	}
	e.Request(time.Hour, noon+2e9, noon+2e9+1e6, noon) // what is old has drifted and says nothing
	if b := e.Bounds(); b.Conflicts != 1 || b.Pairs != 1 || b.Low != 2*time.Second {
		t.Errorf("%+v", b)
	}
	if e.Request(time.Hour, noon, noon-1, noon) {
		t.Error("a first byte before its request was taken")
	}
}

// TestGuessesAreNotMade: of two requests of one session, which stream belongs to which is not known.
func TestGuessesAreNotMade(t *testing.T) {
	j := NewJoin()
	j.Client(0, "s", noon, noon+1e9)
	j.Client(0, "s", noon+5e9, noon+6e9)
	j.Start(0, "s", "engine", noon+5e8)
	j.Start(0, "", "engine", noon)
	j.Client(0, "", noon, noon+1)
	if _, n := j.Pairs(); n != 0 || j.Bounds()["engine"].Known() {
		t.Error("a pair was guessed")
	}
	for i := range mostWaiting + 100 {
		j.Client(0, string(rune(i))+"x", noon, noon+1)
	}
	if len(j.client) > mostWaiting || len(j.order) > mostWaiting {
		t.Errorf("%d sessions are waited for", len(j.client))
	}
	j.ClientTTFT("never heard of", measure.Num(1))
}
