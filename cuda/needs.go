//go:build linux && cuda && cgo

package cuda

import "velo/engine/ops"

// Needs says what a [Backend] takes of memory besides what a model asks it for: Matrix, Vector, Buffer,
// Cache and SampleFrom, whose bytes are those of their values. All of it is taken while a model is made;
// a step takes none.
type Needs struct {
	Rows      int // most rows of a step
	Outputs   int // most rows whose logits are wanted
	Sequences int // most sequences at a time
	Pages     int // of the cache
	Cols      int // of the widest matrix
	Vocab     int
	Shape     ops.CacheShape
}

// slack is what is lost between the pieces that a model asks for, but for its weights.
const slack = 64 << 10

// reserve is a pool for what a model asks for, of so many bytes, and for what the backend takes beside it.
func reserve(asked int64, rows int) int64 {
	return grains(min(asked, 1<<60) + scaleBytes(rows) + slack)
}

// grain is that in which a driver hands out memory: what a [Pool] takes is a multiple.
const grain = 2 << 20

func grains(bytes int64) int64 { return (bytes + grain - 1) / grain * grain }

// Bytes is the memory of the device and the page-locked memory of the host, if what the model asks for
// is reserved at once ([BackendOptions].Reserve).
func (n *Needs) Bytes() (device, pinned int64) {
	device += reserve(0, n.Rows) // beside what the model asks for
	device += grains(scratchBytes + counterBytes + fusedRows*powerBytes)
	device += grains(operandBytes(n.Cols, n.Rows))
	if n.Shape.Attention > 0 {
		device += grains(attentionBytes(&n.Shape, n.Pages, n.Rows))
		device += grains(2 * angleBytes(&n.Shape, n.Rows))
	}
	words := inputWords(n.Rows) + pageWords(&n.Shape, n.Pages, n.Rows, n.Sequences) + choiceLists(n.Vocab, n.Outputs)
	device += grains(int64(4 * words))
	pinned += int64(4*words) + int64(4*n.Outputs*n.Vocab) + 4*choiceWords*mostPicks
	return device, pinned
}

// LoadingBytes is what weights on their way take, of the device and as much of the host, until all are
// there.
func LoadingBytes() int64 { return grains(int64(loadSlots * slotBytes(loadSlab))) }

// mostPartitions is a bound on the partitions that a row of a sequence attends to, as a step has them:
// a power of two, so that one graph serves many steps.
func mostPartitions(s *ops.CacheShape, pages int) int {
	longest := s.Longest
	if longest <= 0 {
		longest = pages * PageTokens
	}
	return partitionsOf(longest - 1)
}

// partitionsOf is the power of two of partitions that holds positions up to n.
func partitionsOf(n int) int {
	p := 1
	for p*partition <= n {
		p *= 2
	}
	return p
}

// attentionBytes is scratch memory of attention: for as many rows of a step as attendBudget holds, one at
// least.
func attentionBytes(s *ops.CacheShape, pages, rows int) int64 {
	one := Rows{N: 1, Longest: mostPartitions(s, pages)*partition - 1}
	row := AttendScratch(&one, max(s.Heads, s.KVHeads), s.HeadDim)
	return row * max(1, min(int64(rows), attendBudget/max(row, 1)))
}

// angleBytes is the cosines, or sines, of a step.
func angleBytes(s *ops.CacheShape, rows int) int64 { return int64(4 * rows * (s.HeadDim / 2)) }

// inputWords is what a step brings besides pages and lists of choices.
func inputWords(rows int) int {
	n := input{rows: rows}
	return n.pages()
}

// pageWords is the pages that the sequences of a step have at most, each counted for each sequence.
func pageWords(s *ops.CacheShape, pages, rows, sequences int) int {
	each := pages
	if s.Longest > 0 {
		each = min(pages, (s.Longest-1)/PageTokens+1)
	}
	return each * max(1, min(rows, sequences))
}

// mostListed is how many tokens the lists of a choice, bias and those seen, may have together to be made
// on the device.
const mostListed = 2 * 4096

// listRoom is the words that the lists of a choice have room for.
func listRoom(vocab int) int { return 2*((vocab+63)/64) + 2*min(2*vocab, mostListed) }

// choiceLists is the words of the lists of all choices of a step.
func choiceLists(vocab, outputs int) int {
	if vocab > mostVocab {
		return 0
	}
	return choiceRows(outputs) * listRoom(vocab)
}
