//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"
	"velo/engine/ops"
	"velo/engine/sample"
)

// sampleKernels choose tokens.
type sampleKernels struct{ slices, candidates, choose *Kernel }

func (s *sampleKernels) find(find func(**Kernel, string)) {
	find(&s.slices, "sample_slices")
	find(&s.candidates, "sample_candidates")
	find(&s.choose, "sample_choose")
}

// What sample.cu is made for.
const (
	mostPicks    = 64 // of a step
	mostTop      = 20 // likeliest tokens that are told
	mostVocab    = 1 << 19
	candidates   = 2048
	bins         = 1024
	pickWords    = 18
	choiceWords  = 2 + 2*mostTop
	mostSlices   = 128
	sliceThreads = 256
)

// The flags of a choice, as in sample.cu.
const (
	draws = 1 << iota
	cuts
	changes
	probabilities
	repeats
	binned
)

// choices is memory for the choice of tokens.
type choices struct {
	vocab, rows, width, slices int
	changed                    Memory // float32 [rows, vocab]: logits with bias, penalties and mask
	best, raw, totals          Memory // uint64 [rows, slices]
	candidates                 Memory // uint64 [rows, 2, candidates]
	masses, counts             Memory // uint64, uint32 [rows, bins]
	sums                       Memory // float32 [rows, slices, 2]
	found                      Memory // int32 [rows, 2]
	least                      Memory // uint64 [rows]
	chosen                     Memory // int32 [rows, choiceWords], in the host's memory
}

// sliced is how a vocabulary is cut: up to 128 slices, each a multiple of 256 ids.
func sliced(vocab int) (width, slices int) {
	width = ((vocab+mostSlices-1)/mostSlices + sliceThreads - 1) / sliceThreads * sliceThreads
	return width, (vocab + width - 1) / width
}

// take makes room for the choice of up to rows tokens of a vocabulary.
func (c *choices) take(from func(what string, bytes int64) (Memory, error), vocab, rows int) error {
	c.vocab, c.rows = vocab, rows
	c.width, c.slices = sliced(vocab)
	for _, m := range c.parts() {
		var err error
		if *m.to, err = from("the choice of tokens", m.bytes); err != nil {
			return err
		}
	}
	return nil
}

// lists is the words of the lists of all choices of a step.
func (c *choices) lists() int { return c.rows * listRoom(c.vocab) }

// choicePart is a memory of choices, and what it takes.
type choicePart struct {
	to    *Memory
	bytes int64
}

func (c *choices) parts() []choicePart {
	rows, n := int64(c.rows), int64(c.rows*c.slices)
	return []choicePart{{&c.changed, 4 * rows * int64(c.vocab)}, {&c.best, 8 * n}, {&c.raw, 8 * n}, {&c.totals, 8 * n}, {&c.candidates, 8 * rows * 2 * candidates},
		{&c.masses, 8 * rows * bins}, {&c.counts, 4 * rows * bins}, {&c.sums, 8 * n}, {&c.found, 8 * rows}, {&c.least, 8 * rows}}
}

// ChoiceBytes is the memory of the device that a [Backend] takes for the choice of tokens from up to
// rows rows of logits of a vocabulary; 0 where it leaves the choice to the host.
func ChoiceBytes(vocab, rows int) (n int64) {
	if vocab > mostVocab || vocab < 1 {
		return 0
	}
	c := choices{vocab: vocab, rows: choiceRows(rows)}
	c.width, c.slices = sliced(vocab)
	for _, m := range c.parts() {
		n += m.bytes
	}
	return n
}

// choiceRows is for how many of so many rows of logits there is room for a choice.
func choiceRows(rows int) int { return min(mostPicks, rows) }

// stages is what of the work a step's choices need, which its graph depends on.
type stages struct{ draws, tops bool }

// Choose launches the choice of n tokens from logits, float32 [n or more, vocab]. picks are
// words of input, from that place on.
func (k *Kernels) Choose(c *choices, logits, input Memory, picks, n int, s stages) error {
	args := func() *Args {
		a := k.device.args.Reset().Pointer(input.at).Int(picks).Pointer(logits.at).Int(c.vocab).Int(c.width)
		for _, m := range [...]*Memory{&c.changed, &c.best, &c.raw, &c.totals, &c.candidates, &c.masses, &c.counts, &c.sums, &c.found, &c.least, &c.chosen} {
			a.Pointer(m.at)
		}
		return a
	}
	if err := k.sampleKernels.slices.Launch(Grid{X: c.slices, Y: n, Block: sliceThreads, Shared: 4 * c.width}, args()); err != nil {
		return err
	}
	if s.draws || s.tops {
		if err := k.sampleKernels.candidates.Launch(Grid{X: c.slices, Y: n, Block: sliceThreads}, args()); err != nil {
			return err
		}
	}
	blocks := 1
	if s.tops {
		blocks = 2
	}
	return k.sampleKernels.choose.Launch(Grid{X: blocks, Y: n, Block: 1024}, args().Int(c.slices))
}

// words32 writes a choice from a row of logits as sample.cu reads it, its lists to list, which
// gives place for so many words and says where that is.
func words32(w []int32, p *sample.Pick, row int32, list func(n int) (place int, words []int32)) stages {
	flags := int32(0)
	s := stages{draws: p.Draws(), tops: p.Top > 0}
	u := math.Float64bits(p.Uniform)
	w[0], w[1] = int32(u), int32(u>>32)
	w[2] = row
	float := func(f float32) int32 { return int32(math.Float32bits(f)) }
	scale, floor, topP := float32(0), float32(math.Inf(-1)), float32(0)
	if s.draws {
		flags |= draws
		scale = 1 / p.Temperature
		if p.MinP > 0 {
			floor = float32(math.Log(float64(p.MinP)))
		}
		if p.TopP > 0 && p.TopP < 1 {
			topP = p.TopP
		}
		if p.TopK > 0 || topP > 0 {
			flags |= cuts
			if p.TopK == 0 || p.TopK > mostSlices/2 {
				flags |= binned // the first tokens of slices may not be enough
			}
		}
	}
	w[4], w[5] = int32(min(p.TopK, mostVocab)), int32(max(p.Top, 0))
	w[6], w[7], w[8] = float(scale), float(floor), float(topP)
	w[9], w[10], w[11] = float(p.Repetition), float(p.Presence), float(p.Frequency)
	clear(w[12:pickWords])
	if p.Changes() {
		flags |= changes
	}
	if p.Repeats() {
		flags |= repeats
	}
	if p.Top >= 0 {
		flags |= probabilities
	}
	w[3] = flags
	if n := len(p.Bias); n > 0 {
		place, pairs := list(2 * n)
		for i, b := range p.Bias {
			pairs[2*i], pairs[2*i+1] = b.Token, float(b.Bias)
		}
		w[12], w[13] = int32(place), int32(n)
	}
	if n := len(p.Seen); n > 0 {
		place, pairs := list(2 * n)
		for i, id := range p.Seen {
			pairs[2*i], pairs[2*i+1] = id, p.Count[id]
		}
		w[14], w[15] = int32(place), int32(n)
	}
	if n := len(p.Mask); n > 0 {
		place, bits := list(2 * n)
		for i, word := range p.Mask {
			bits[2*i], bits[2*i+1] = int32(word), int32(word>>32)
		}
		w[16] = int32(place)
	}
	return s
}

// listWords is how many words the lists of a choice take.
func listWords(p *sample.Pick) int { return 2 * (len(p.Bias) + len(p.Seen) + len(p.Mask)) }

// result32 reads what was chosen, with memory for the likeliest tokens.
func result32(w []int32, p int, top []sample.LogProb) sample.Result {
	r := sample.Result{LogProb: sample.LogProb{Token: w[0], LogProb: math.Float32frombits(uint32(w[1]))}}
	for i := range p {
		if w[2+i] < 0 {
			break
		}
		top = append(top, sample.LogProb{Token: w[2+i], LogProb: math.Float32frombits(uint32(w[2+mostTop+i]))})
	}
	if p > 0 {
		r.Top = top
	}
	return r
}

var _ ops.Sampler = (*Backend)(nil)

// Samples tells whether a choice can be made on the device.
func (b *Backend) Samples(p *sample.Pick, vocab, n int) bool {
	return n <= b.choice.rows && vocab == b.choice.vocab && p.Top <= mostTop && listWords(p) <= listRoom(vocab)
}

// Sample chooses a token from row rows[i] of logits for picks[i].
func (b *Backend) Sample(logits ops.Buffer, rows []int32, picks []sample.Pick) {
	b.enter()
	defer b.leave()
	words := 0
	for i := range picks {
		words += listWords(&picks[i])
	}
	b.must(b.input.spare(b, words))
	var all stages
	b.picked = b.picked[:0]
	for i := range picks {
		at := b.input.choices() + i*pickWords
		s := words32(b.input.values[at:at+pickWords], &picks[i], rows[i], b.input.list)
		all.draws, all.tops = all.draws || s.draws, all.tops || s.tops
		b.picked = append(b.picked, max(picks[i].Top, 0))
	}
	c := call{kind: sampleCall, dst: of(ops.All(logits)), rows: int32(len(picks))}
	if all.draws {
		c.flags |= 1
	}
	if all.tops {
		c.flags |= 2
	}
	b.note(c)
}

// SampleFrom makes room for the choice of tokens from rows of logits, and for these on the host: some
// requests want them beside, and all where a choice cannot be made here.
func (b *Backend) SampleFrom(logits ops.Buffer) error {
	f := logits.(*buffer)
	b.enter()
	defer b.leave()
	if b.failed != nil {
		return b.failed
	}
	if err := b.results(f); err != nil {
		return err
	}
	if f.cols > mostVocab || b.choice.vocab == f.cols && b.choice.rows >= choiceRows(f.rows) {
		return nil
	}
	errs := []error{b.forget()}
	errs = append(errs, b.choice.take(b.memory.Take, f.cols, choiceRows(f.rows)))
	if b.chosen == nil {
		var err error
		b.chosen, err = b.device.HostMemory(4 * choiceWords * mostPicks)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	b.choice.chosen = b.chosen.Memory
	return nil
}

// sample launches a choice of tokens.
func (b *Backend) sample(c *call) error {
	logits := c.dst.buffer.memory
	return b.k.Choose(&b.choice, logits, b.input.device, b.input.choices(), int(c.rows), stages{c.flags&1 != 0, c.flags&2 != 0})
}

// Choices waits for the step and sets dst to what was chosen.
func (b *Backend) Choices(dst []sample.Result) {
	b.enter()
	defer b.leave()
	b.flush()
	b.settle()
	if len(dst) > len(b.picked) {
		panic(fmt.Sprintf("cuda: %d choices of a step of %d", len(dst), len(b.picked)))
	}
	b.tops = b.tops[:0]
	for i := range dst {
		w := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b.chosen.Host))), (i+1)*choiceWords)[i*choiceWords:]
		from := len(b.tops)
		if cap(b.tops)-from < mostTop {
			b.tops, from = make([]sample.LogProb, 0, mostPicks*mostTop), 0
		}
		dst[i] = result32(w, b.picked[i], b.tops[from:from:cap(b.tops)])
		b.tops = b.tops[:from+len(dst[i].Top)]
	}
}

// ReadRows waits for the step and gives rows of x.
func (b *Backend) ReadRows(x ops.Buffer, rows []int32) []float32 {
	f := x.(*buffer)
	for _, r := range rows {
		if r < 0 || int(r) >= f.rows || len(rows) > f.rows {
			panic(fmt.Sprintf("cuda: row %d, one of %d, of a buffer of %d rows is read", r, len(rows), f.rows))
		}
	}
	b.enter()
	defer b.leave()
	b.must(b.results(f))
	b.flush()
	b.must(b.device.on(func() error {
		for i, r := range rows {
			bytes := int64(4 * f.cols)
			to := unsafe.Pointer(unsafe.SliceData(b.result.Host[int64(i)*bytes:]))
			if err := cu.MemcpyDtoHAsync(to, cu.DevicePtr(f.memory.at+uint64(int64(r)*bytes)), bytes, b.device.stream); err != nil {
				return err
			}
		}
		return nil
	}))
	b.waiting = true
	b.settle()
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b.result.Host))), len(rows)*f.cols)
}

// results makes room for what of a buffer comes to the host.
func (b *Backend) results(f *buffer) error {
	whole := 4 * f.rows * f.cols
	if b.result != nil && len(b.result.Host) >= whole {
		return nil
	}
	b.settle()
	if b.result != nil {
		if err := b.result.Close(); err != nil {
			return err
		}
		b.result = nil
	}
	var err error
	if b.result, err = b.device.HostMemory(max(whole, 4)); err != nil {
		return fmt.Errorf("cannot make room for %d rows of %d logits: %w", f.rows, f.cols, err)
	}
	return nil
}
