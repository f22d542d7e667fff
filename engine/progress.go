package engine

import "time"

// Progress tells how far loading is: bytes of weights taken over, of all, and how many a second, 0
// before that is known.
type Progress struct {
	Done, Total int64
	Rate        float64
}

// rateEvery is the time over which a rate is taken.
const rateEvery = 500 * time.Millisecond

// pace adds the rate to how far loading is.
type pace struct {
	rate     float64
	from     time.Time // when the rate's span began, and what was done then
	before   int64
	now      func() time.Time
	progress func(Progress)
}

// paced is what tells progress how far loading is and how fast; nil for nil.
func paced(progress func(Progress)) func(done, total int64) {
	if progress == nil {
		return nil
	}
	p := &pace{from: time.Now(), now: time.Now, progress: progress}
	return p.tell
}

func (p *pace) tell(done, total int64) {
	if now := p.now(); now.Sub(p.from) >= rateEvery && done < total {
		p.rate = float64(done-p.before) / now.Sub(p.from).Seconds()
		p.from, p.before = now, done
	}
	p.progress(Progress{done, total, p.rate})
}
