package assist

import (
	"strings"
	"unicode/utf8"

	"velo/bench/regime"
)

// undecided marks the blocks of the second round.
const undecided = regime.Regime(255)

// split cuts prose into blocks; every other span is one locked block.
func split(text string, spans []regime.Span) []block {
	var blocks []block
	for _, s := range spans {
		if s.Regime != regime.Prose || strings.TrimSpace(text[s.From:s.To]) == "" {
			blocks = append(blocks, block{s.From, s.To, s.Regime, true})
			continue
		}
		blocks = cut(blocks, text, block{from: s.From, to: s.To, regime: regime.Prose}, blockSize)
	}
	return blocks
}

// cut appends a block in pieces of about size bytes, which end after a line if that makes none of less than half,
// else after a space, else anywhere between characters. A piece of nothing but space joins the one before.
func cut(blocks []block, text string, b block, size int) []block {
	first := len(blocks)
	for from := b.from; from < b.to; {
		to := b.to
		if b.to-from > size {
			piece := text[from : from+size]
			n := strings.LastIndexByte(piece, '\n') + 1
			if n < size/2 {
				n = strings.LastIndexByte(piece, ' ') + 1
			}
			if n < size/2 {
				n = size
				for n > 1 && !utf8.RuneStart(text[from+n]) {
					n--
				}
			}
			to = from + n
		}
		if len(blocks) > first && strings.TrimSpace(text[from:to]) == "" {
			blocks[len(blocks)-1].to = to
		} else {
			blocks = append(blocks, block{from, to, b.regime, b.locked})
		}
		from = to
	}
	return blocks
}

// refine cuts the blocks on both sides of a change that the helper saw into finer ones, for a second round.
func refine(text string, blocks []block) []block {
	again := make([]bool, len(blocks))
	sites := 0
	for i := 1; i < len(blocks) && sites < maxSites; i++ {
		a, b := &blocks[i-1], &blocks[i]
		if !a.locked && !b.locked && a.regime != b.regime {
			again[i-1], again[i] = true, true
			sites++
		}
	}
	var finer []block
	for i, b := range blocks {
		if !again[i] {
			finer = append(finer, b)
			continue
		}
		b.regime = undecided
		finer = cut(finer, text, b, fineSize)
	}
	return finer
}
