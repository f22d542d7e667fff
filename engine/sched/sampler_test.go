package sched

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"velo/engine/cpu"
	"velo/engine/ops"
	"velo/engine/sample"
)

// choosing is the processor with the choice of tokens that a GPU makes, done by engine/sample: a
// step of the scheduler goes the same way as there. Some choices it refuses.
type choosing struct {
	*cpu.Backend
	sampler *sample.Sampler
	chosen  []sample.Result
	tops    [][]sample.LogProb
	rows    []float32
}

var _ ops.Sampler = (*choosing)(nil)

// onDevice says that models are made on a backend that chooses; picked is how many choices were
// made there, told how many rows came to the host beside them.
var (
	onDevice     bool
	picked, told atomic.Int64
)

// TestMain runs the tests twice: with tokens chosen on the host, and where the logits are.
func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if f := flag.Lookup("test.bench"); code == 0 && f.Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
		onDevice = true
		code = m.Run()
		if code == 0 && flag.Lookup("test.run").Value.String() == "" && (picked.Load() == 0 || told.Load() == 0) {
			fmt.Println("no token was chosen in a step, or no logits were read beside")
			code = 1
		}
	}
	os.Exit(code)
}

func (b *choosing) SampleFrom(logits ops.Buffer) error {
	b.sampler = sample.New(logits.Cols())
	return nil
}

func (b *choosing) Samples(p *sample.Pick, vocab, n int) bool {
	return n <= 12 && p.Top <= 4 && p.MinP == 0
}

func (b *choosing) Sample(logits ops.Buffer, rows []int32, picks []sample.Pick) {
	all := b.Read(logits, int(slices.Max(rows))+1)
	b.chosen = b.chosen[:0]
	for i := range picks {
		row := all[int(rows[i])*logits.Cols():][:logits.Cols()]
		r, err := b.sampler.Choose(&picks[i], row)
		if err != nil {
			r = sample.Result{LogProb: sample.LogProb{Token: -1}}
		}
		for len(b.tops) <= i {
			b.tops = append(b.tops, nil)
		}
		b.tops[i] = append(b.tops[i][:0], r.Top...)
		r.Top = b.tops[i]
		b.chosen = append(b.chosen, r)
		picked.Add(1)
	}
}

func (b *choosing) Choices(dst []sample.Result) {
	if copy(dst, b.chosen) != len(dst) {
		panic("more choices are asked for than were made")
	}
}

func (b *choosing) ReadRows(x ops.Buffer, rows []int32) []float32 {
	all := b.Read(x, int(slices.Max(rows))+1)
	b.rows = b.rows[:0]
	for _, r := range rows {
		b.rows = append(b.rows, all[int(r)*x.Cols():][:x.Cols()]...)
	}
	told.Add(int64(len(rows)))
	return b.rows
}
