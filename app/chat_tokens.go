package app

import (
	"sync"

	"velo/bench"
)

// tokenCounters keeps the tokenizer of the engine's model: reading one takes a while.
type tokenCounters struct {
	mu      sync.Mutex
	path    string
	counter bench.TokenCounter
}

// of returns the tokenizer of a model.
func (c *tokenCounters) of(path string) (bench.TokenCounter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == path && c.counter != nil {
		return c.counter, nil
	}
	counter, err := openTokenizer(path)
	if err != nil {
		return nil, err
	}
	c.path, c.counter = path, counter
	return counter, nil
}
