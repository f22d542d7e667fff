package report

import (
	"io"
	"testing"
)

// A session of a million chunks, from events to model and to PDF.
func BenchmarkMillionChunks(b *testing.B) {
	s := longSession(10_000, 100)
	b.Run("New", func(b *testing.B) {
		for range b.N {
			New(s, Options{})
		}
	})
	r := New(s, Options{})
	for _, f := range []string{"pdf", "json", "csv", "html"} {
		b.Run(f, func(b *testing.B) {
			for range b.N {
				if err := Write(io.Discard, r, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
