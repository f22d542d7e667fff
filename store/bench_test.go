//go:build unix

package store

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"velo/bench"
	"velo/store/internal/sample"
)

// BenchmarkBytes records sessions into one database as the program does, a commit about every 1,600
// chunks (64 streams × 100 tokens/s × 250 ms), and reports by how much the file grew.
func BenchmarkBytes(b *testing.B) {
	for _, c := range []struct {
		name   string
		chunks int
		text   bool
	}{
		{"stamps/100k", 100_000, false}, {"text/100k", 100_000, true},
		{"stamps/1M", 1_000_000, false}, {"text/1M", 1_000_000, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := Open(b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			n := 0
			before := cpu()
			for b.Loop() {
				record(b, s, fmt.Sprintf("session-%04d", n), sample.Load(c.chunks, c.text))
				n++
			}
			b.StopTimer()
			list, err := s.Sessions()
			if err != nil {
				b.Fatal(err)
			}
			var blocks int64
			for _, sum := range list {
				blocks += sum.Bytes
			}
			total := float64(n * c.chunks)
			b.ReportMetric(float64(s.Size())/total, "file-bytes/event")
			b.ReportMetric(float64(blocks)/total, "block-bytes/event")
			b.ReportMetric((cpu()-before)*1e9/total, "cpu-ns/event") // making the events included
		})
	}
}

// cpu is the processor time of this process so far, in seconds: on a machine that others use too, the
// clock says little.
func cpu() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkSession reads a session of a million chunks; run it with -cpu 1 for one core.
func BenchmarkSession(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const chunks = 1_000_000
	record(b, s, "session-0001", sample.Load(chunks, true))
	b.ResetTimer()
	before := cpu()
	for b.Loop() {
		session, err := s.Session("session-0001")
		if err != nil || session.Finish == nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpu()-before)/float64(b.N), "cpu-s/1M-events")
}

func BenchmarkExportImport(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	record(b, s, "session-0001", sample.Load(200_000, true))
	b.ResetTimer()
	var file bytes.Buffer
	for b.Loop() {
		file.Reset()
		if err := s.Export("session-0001", &file); err != nil {
			b.Fatal(err)
		}
		if err := s.Delete("session-0001"); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Import(bytes.NewReader(file.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(file.Len())/200_000, "bytes/event")
}

// BenchmarkAppend is what a stream's goroutine pays for each chunk.
func BenchmarkAppend(b *testing.B) {
	s, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	r, err := s.Record(sample.Header("session-0001"))
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.RunParallel(func(pb *testing.PB) {
		c := bench.Chunks{{Text: "token", Usage: -1, Exact: -1}}
		for pb.Next() {
			r.Append(c)
		}
	})
}
