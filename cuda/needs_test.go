//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"strings"
	"testing"

	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
	"velo/engine/weights"
)

// asking is a source and a backend between a model and a GPU that add up what the model asks for.
type asking struct {
	*Backend
	bytes, states, pages int64
}

func (a *asking) Matrix(parts ...*ops.Weight) (ops.Matrix, error) {
	for _, t := range parts {
		a.bytes += WeightBytes(t)
	}
	return a.Backend.Matrix(parts...)
}

func (a *asking) Vector(add float32, parts ...*ops.Weight) (ops.Vector, error) {
	for _, t := range parts {
		a.bytes += WeightBytes(t)
	}
	return a.Backend.Vector(add, parts...)
}

func (a *asking) Buffer(rows, cols int) ops.Buffer {
	a.bytes += int64(4 * rows * cols)
	return a.Backend.Buffer(rows, cols)
}

func (a *asking) SampleFrom(logits ops.Buffer) error {
	a.bytes += ChoiceBytes(logits.Cols(), logits.(*buffer).rows)
	return a.Backend.SampleFrom(logits)
}

func (a *asking) Cache(shape ops.CacheShape, pages, states int) (ops.Cache, error) {
	shape.KV = a.options.KV
	a.bytes += int64(pages)*shape.PageBytes() + int64(states)*shape.StateBytes()
	return a.Backend.Cache(shape, pages, states)
}

// needsOf is what a model's backend needs.
func needsOf(w *weights.Model, b BackendOptions, m model.Options) Needs {
	shape := model.Shape(&w.Config)
	shape.KV, shape.Longest = b.KV, m.Context
	return Needs{Rows: b.Rows, Outputs: min(m.Outputs, b.Rows), Sequences: m.Sequences, Pages: (m.Tokens+PageTokens-1)/PageTokens + m.Sequences,
		Cols: model.Widest(&w.Config), Vocab: w.Config.Vocab, Shape: shape}
}

// exercise runs steps of every width up to the backend's rows, of one sequence and of several, to the end
// of the context, with choices that have lists and masks, copies of states and pages.
func exercise(t *testing.T, m *model.Model, sequences, context int) {
	t.Helper()
	step := m.NewStep()
	list := make([]*kv.Sequence, sequences)
	restart := func() {
		for i, s := range list {
			if s != nil {
				s.Free()
			}
			list[i] = sequence(t, m)
		}
	}
	restart()
	vocab := m.Config.Vocab
	bias := make(map[int32]float32, vocab)
	for id := range int32(min(vocab, 4096)) {
		bias[id] = 1
	}
	q, err := sample.NewSequence(sample.Params{Temperature: 1, TopP: 0.9, RepetitionPenalty: 1.1, FrequencyPenalty: 0.1, LogitBias: bias}, vocab, words(m, 9, 200), 1)
	if err != nil {
		t.Fatal(err)
	}
	mask := sample.NewMask(vocab)
	mask.AllowAll()
	run := func(rows []int) {
		for i, n := range rows {
			if list[i].Len()+n > context {
				restart()
			}
		}
		step.Reset()
		for i, n := range rows {
			if err := step.Add(list[i], words(m, uint64(n), n), 1); err != nil {
				t.Fatal(err)
			}
		}
		for i := range step.Outputs() {
			if !step.Pick(i, q.Pick(mask, 20), i%2 == 0) {
				t.Fatal("the choice is not made on the device")
			}
		}
		if _, err := m.Run(step); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= m.Rows(); n++ {
		run([]int{n})
		if n >= sequences {
			rows := make([]int, sequences)
			for i := range rows {
				rows[i] = n / sequences
			}
			run(rows)
			run(rows)
		}
	}
	for list[0].Len() < context { // to the last position
		run([]int{min(m.Rows(), context-list[0].Len())})
	}
	if s, err := list[0].Snapshot(); err == nil { // a page and a state are copied
		list[0].Rewind(s)
		s.Free()
	} else if !errors.Is(err, kv.ErrFull) {
		t.Fatal(err)
	}
}

// TestLargeNeeds: what is planned for the longest contexts and largest vocabularies has no overflow, and
// no more than what it is for.
func TestLargeNeeds(t *testing.T) {
	shape := ops.CacheShape{Attention: 16, Heads: 24, KVHeads: 4, HeadDim: 256, Longest: 262144}
	n := Needs{Rows: 512, Outputs: 16, Sequences: 8, Pages: 8 * 262144 / PageTokens, Cols: 17408, Vocab: 248320, Shape: shape}
	row := int64(24 * 4096 * 258 * 4) // one row at the last position, whatever there is of other sequences
	if got := attentionBytes(&shape, n.Pages, n.Rows); got != row {
		t.Errorf("attention of 262,144 positions has %d bytes of scratch, a row needs %d", got, row)
	}
	if p := mostPartitions(&shape, n.Pages); p != partitionsOf(262143) || p*partition != 262144 {
		t.Errorf("262,144 positions are %d partitions", p)
	}
	if got, want := pageWords(&shape, n.Pages, n.Rows, n.Sequences), 8*262144/PageTokens; got != want {
		t.Errorf("pages of 8 sequences are %d words, not %d", got, want)
	}
	device, pinned := n.Bytes()
	if logits := int64(4 * 16 * 248320); pinned < logits || pinned > logits+8<<20 || device < row || device > row+200<<20 {
		t.Errorf("%d bytes of the device and %d page-locked ones", device, pinned)
	}
	n.Rows, n.Sequences, n.Vocab, n.Pages, n.Cols, n.Shape.Longest = mostRows, 1<<20, 1<<20, 1<<27-1, operandMost, 0
	if d, p := n.Bytes(); d <= device || p <= pinned {
		t.Errorf("the largest of all needs %d bytes of the device and %d page-locked ones", d, p)
	}
	if n := listRoom(248320); n < 2*248320/64+2*(4096+1024) || n > 1<<15 {
		t.Errorf("the lists of a choice have room for %d words", n)
	}
}

// TestListsOfChoices: a choice whose lists are longer than there is room for is left to the host; the
// longest that a request of the server may have, with the usual window of penalties, is not.
func TestListsOfChoices(t *testing.T) {
	const vocab = 248320
	b := &Backend{choice: choices{vocab: vocab, rows: 4}}
	for _, c := range []struct {
		bias, seen int
		mask, want bool
	}{{0, 0, false, true}, {4096, 1024, true, true}, {4096, 4096, true, true}, {4096, 4097, true, false}, {0, 100_000, false, false}} {
		p := sample.Pick{Bias: make([]sample.Bias, c.bias), Seen: make([]int32, c.seen), Top: sample.NoLogProbs}
		if c.mask {
			p.Mask = sample.NewMask(vocab)
		}
		if got := b.Samples(&p, vocab, 1); got != c.want {
			t.Errorf("%+v: on the device: %v", c, got)
		}
	}
}

// TestGrowth: a model that told less than it does still computes. What grows gives the smaller piece back
// first, and graphs that named it are forgotten.
func TestGrowth(t *testing.T) {
	h, ok := onHollow(t)
	if !ok {
		return
	}
	b, m, _ := hollowModel(t, "llama", BackendOptions{Rows: 70}, model.Options{Tokens: 40000, Context: 20, Sequences: 1, Outputs: 16})
	s := sequence(t, m)
	feedLast(t, m, s, 5)
	feedLast(t, m, s, 5)
	before := len(h.log(t))
	held := outstanding(t, h.log(t), "device")
	for s.Len() < 35000 {
		feedLast(t, m, s, 70)
	}
	for range 3 {
		feedLast(t, m, s, 1)
	}
	log := h.log(t)[before:]
	taken, back := 0, 0
	for _, line := range log {
		switch n := outstanding(t, []string{line}, "device"); {
		case n > 0:
			taken++
		case n < 0:
			back++
		}
	}
	if taken == 0 || taken != back || len(b.shapes.graphs) != 1 {
		t.Errorf("%d pieces were taken and %d given back, %d shapes have graphs: %q", taken, back, len(b.shapes.graphs), log)
	}
	if now := outstanding(t, h.log(t), "device"); now <= held {
		t.Errorf("%d bytes were held and now %d", held, now)
	}
}

// TestNeeds: what is planned is what the driver hands out, to its last 2 MiB, from the opening of a
// backend to the end of steps of every kind; none of them takes anything. The planned memory is found by
// names and shapes alone.
func TestNeeds(t *testing.T) {
	h, ok := onHollow(t)
	if !ok {
		return
	}
	for _, name := range models {
		for _, kind := range []ops.KVType{ops.KVF32, ops.KVBF16, ops.KVQ8} {
			const context = 300
			o := BackendOptions{Rows: 70, KV: kind}
			mo := model.Options{Tokens: 3 * context, Context: context, Sequences: 4, Outputs: 16}
			w := openModel(t, name)
			needs := needsOf(w, o, mo)
			asked := int64(0)
			w.Each(func(tensor *ops.Weight) { asked += WeightBytes(tensor) })
			row, output := model.Activations(&w.Config)
			shape := needs.Shape
			asked += int64(o.Rows)*row + int64(needs.Outputs)*output + ChoiceBytes(w.Config.Vocab, needs.Outputs) +
				int64(needs.Pages)*shape.PageBytes() + int64(mo.Sequences)*shape.StateBytes()
			o.Reserve = asked

			before := len(h.log(t))
			b := newBackend(t, o)
			a := &asking{Backend: b}
			m, err := model.New(&w.Config, w, a, mo)
			if err != nil {
				t.Fatal(err)
			}
			if a.bytes > asked || a.bytes < asked-asked/50 {
				t.Errorf("%s, %v: %d bytes are planned for the model, it asks for %d", name, kind, asked, a.bytes)
			}
			made := h.log(t)[before:]
			if n := len(b.memory.pools); n != 1 {
				t.Errorf("%s, %v: %d pools instead of one", name, kind, n)
			}
			device, pinned := needs.Bytes()
			got := int64(0)
			for _, line := range made {
				if n := outstanding(t, []string{line}, "device"); n > 0 {
					got += grains(n)
				} else {
					got -= grains(-n)
				}
			}
			if want := grains(asked) + device; got > want || got < want-2*grain {
				t.Errorf("%s, %v: %d bytes of the device are planned, %d are taken: %q", name, kind, want, got, made)
			}
			if got := outstanding(t, made, "pinned"); got > pinned || got < pinned-pinned/20 {
				t.Errorf("%s, %v: %d page-locked bytes are planned, %d are taken: %q", name, kind, pinned, got, made)
			}
			// Whatever is taken beside is a piece more: it belongs into Needs, and then here.
			for where, want := range map[string]int{"device": 6, "pinned": 3} { // what is reserved, kernels', operands, scratch, angles, input; input, logits, ids
				pieces := 0
				for _, line := range made {
					switch n := outstanding(t, []string{line}, where); {
					case n > 0:
						pieces++
					case n < 0:
						pieces--
					}
				}
				if pieces != want {
					t.Errorf("%s, %v: %d pieces of %s memory are held, not the %d that are planned: %q", name, kind, pieces, where, want, made)
				}
			}
			highest, now := int64(0), int64(0)
			for _, line := range made {
				now += outstanding(t, []string{line}, "device")
				highest = max(highest, now)
			}
			if most := grains(asked) + device + LoadingBytes(); highest > most {
				t.Errorf("%s, %v: %d bytes are planned while loading, %d are taken", name, kind, most, highest)
			}
			exercise(t, m, 3, context)
			for _, line := range h.log(t)[before+len(made):] {
				if !strings.HasPrefix(line, "graph") {
					t.Errorf("%s, %v: a step made the driver do: %s", name, kind, line)
				}
			}
		}
	}
}
