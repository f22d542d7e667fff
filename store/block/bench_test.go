package block_test

import (
	"testing"

	"velo/bench"
	"velo/store/block"
	"velo/store/internal/sample"
)

// full collects the blocks of a session as a sealed one has them.
func full(tb testing.TB, shape sample.Shape, effort block.Effort) (bodies [][]byte) {
	var b block.Batch
	flush := func() {
		body, err := b.Encode(nil, effort)
		if err != nil {
			tb.Fatal(err)
		}
		bodies = append(bodies, body)
		b.Reset()
	}
	shape.Events(func(e bench.Event) {
		if err := b.Add(e); err != nil {
			tb.Fatal(err)
		}
		if b.Full() {
			flush()
		}
	})
	flush()
	return bodies
}

func BenchmarkEncode(b *testing.B) {
	for _, c := range []struct {
		name   string
		text   bool
		effort block.Effort
	}{{"stamps", false, block.Best}, {"text", true, block.Best}, {"text/quick", true, block.Quick}} {
		b.Run(c.name, func(b *testing.B) {
			const chunks = 500_000
			size := 0
			for b.Loop() {
				size = 0
				for _, body := range full(b, sample.Load(chunks, c.text), c.effort) {
					size += len(body)
				}
			}
			b.ReportMetric(float64(size)/chunks, "bytes/event")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	const chunks = 500_000
	bodies := full(b, sample.Load(chunks, true), block.Best)
	b.ResetTimer()
	for b.Loop() {
		var s bench.Session
		for _, body := range bodies {
			if err := block.Decode(body, func(e bench.Event) error { s.Append(e); return nil }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/event")
}
