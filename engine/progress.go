package engine

import (
	"time"

	"velo/engine/weights"
)

// Progress tells how far loading is: bytes of weights taken over, of all, and how many a second, 0
// before that is known.
type Progress struct {
	Done, Total int64
	Rate        float64
}

// rateEvery is the time over which a rate is taken.
const rateEvery = 500 * time.Millisecond

// counted tells how far a backend has got with the weights: when it asks for a tensor it is done
// with the one before, or has it on its way.
type counted struct {
	model       *weights.Model
	done, total int64
	last        int64
	rate        float64
	from        time.Time // when the rate's span began, and what was done then
	before      int64
	now         func() time.Time
	progress    func(Progress) // may be nil
}

func newCounted(w *weights.Model, progress func(Progress)) *counted {
	return &counted{model: w, total: w.Bytes(), from: time.Now(), now: time.Now, progress: progress}
}

func (c *counted) Tensor(name string) (*weights.Tensor, bool) {
	t, ok := c.model.Tensor(name)
	c.done += c.last
	c.last = 0
	if ok {
		c.last = int64(len(t.Data) + len(t.Scale))
	}
	if c.progress == nil {
		return t, ok
	}
	done := min(c.done, c.total)
	if now := c.now(); now.Sub(c.from) >= rateEvery {
		c.rate = float64(done-c.before) / now.Sub(c.from).Seconds()
		c.from, c.before = now, done
	}
	c.progress(Progress{done, c.total, c.rate})
	return t, ok
}

func (c *counted) end() {
	if c.progress != nil {
		c.progress(Progress{c.total, c.total, c.rate})
	}
}
