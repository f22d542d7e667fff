package sim

import (
	"encoding/binary"
	"hash/fnv"
	"sync"
)

// CacheBlock is the number of tokens in one block of the prefix cache.
const CacheBlock = 16

// maxBlocks bounds the cache; the oldest blocks go first.
const maxBlocks = 1 << 20

// prefixCache knows which prompt prefixes it has seen, in whole blocks, the way
// a paged KV cache does: a block is found only if all before it are the same.
type prefixCache struct {
	mu     sync.Mutex
	blocks map[uint64]struct{}
	order  []uint64
}

// take is the number of leading tokens of the prompt that were cached, and
// remembers the prompt. At least one token is always left to compute.
func (c *prefixCache) take(prompt []promptPart) (cached int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocks == nil {
		c.blocks = map[uint64]struct{}{}
	}
	chain := fnv.New64a()
	tokens, known := 0, true
	// Each token enters the chain with its length in front, so that two ways to
	// cut the same bytes differ.
	next := func(token string) {
		var length [4]byte
		binary.LittleEndian.PutUint32(length[:], uint32(len(token)))
		chain.Write(length[:])
		chain.Write([]byte(token))
		if tokens++; tokens%CacheBlock != 0 {
			return
		}
		sum := chain.Sum64()
		if _, ok := c.blocks[sum]; ok {
			if known {
				cached = tokens
			}
			return
		}
		known = false
		c.blocks[sum] = struct{}{}
		c.order = append(c.order, sum)
	}
	for _, part := range prompt {
		if part.fixed > 0 {
			next(part.text)
			for range part.fixed - 1 {
				next("")
			}
			continue
		}
		for text := part.text; len(text) > 0; {
			n := tokenLength(text)
			next(text[:n])
			text = text[n:]
		}
	}
	for len(c.order) > maxBlocks {
		delete(c.blocks, c.order[0])
		c.order = c.order[1:]
	}
	if cached == tokens && cached > 0 {
		cached -= CacheBlock
	}
	return cached
}
