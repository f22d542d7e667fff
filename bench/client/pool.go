package client

import (
	"sync"
	"time"
)

// A pool keeps idle connections for the next request: the one used last first, as many as there are
// streams at once. How many are in use it neither knows nor limits.
type pool struct {
	size int

	mu     sync.Mutex
	closed bool
	idle   map[string][]*conn // by origin
}

func newPool(size int) *pool { return &pool{size: size, idle: map[string][]*conn{}} }

// rested is after how long in the pool a connection is looked at before it is used. Its reader
// notices a close by itself, but may not have had its turn.
const rested = 100 * time.Millisecond

// get returns a live idle connection, nil if there is none.
func (p *pool) get(origin string, now time.Duration) *conn {
	for {
		p.mu.Lock()
		list := p.idle[origin]
		if len(list) == 0 {
			p.mu.Unlock()
			return nil
		}
		k := list[len(list)-1]
		list[len(list)-1] = nil
		p.idle[origin] = list[:len(list)-1]
		p.mu.Unlock()
		if k.queue.again() && (now-k.idle < rested || !k.stale()) {
			return k
		}
		k.close()
	}
}

// put takes a connection back whose answer has been read to its end.
func (p *pool) put(k *conn, now time.Duration) {
	if !k.queue.again() {
		k.close()
		return
	}
	k.idle = now
	var surplus *conn
	p.mu.Lock()
	list := p.idle[k.origin]
	switch {
	case p.closed:
		surplus = k
	case len(list) >= p.size:
		surplus = list[0] // unused for the longest time
		copy(list, list[1:])
		list[len(list)-1] = k
	default:
		p.idle[k.origin] = append(list, k)
	}
	p.mu.Unlock()
	if surplus != nil {
		surplus.close()
	}
}

// close closes the idle connections, and those that come back later.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = map[string][]*conn{}, true
	p.mu.Unlock()
	for _, list := range idle {
		for _, k := range list {
			k.close()
		}
	}
}
