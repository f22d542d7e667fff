package sched

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"velo/engine/sample"
)

// pick is a token to be chosen: by the model's backend in the step itself, or
// from logits on the host.
type pick struct {
	job    *job
	choice sample.Pick
	asked  bool // choice is filled in
	placed bool // the step chooses
	logits []float32
	result sample.Result
	forced bool // the guide left no choice
	err    error
}

// chooser chooses the tokens of a step, several at a time. Each choice
// depends on its own job alone, so it does not matter who makes it.
type chooser struct {
	vocab    int
	samplers []*sample.Sampler
	picks    []pick
	do, asks func(*pick, *sample.Sampler)
	next     atomic.Int64
	wake     chan struct{}
	helpers  sync.WaitGroup // at work
	running  bool
	alone    int // logits of a step that are looked at without help: waking somebody takes microseconds
}

func newChooser(vocab, lanes int) *chooser {
	c := &chooser{vocab: vocab, alone: 1 << 16}
	c.asks = func(p *pick, _ *sample.Sampler) { p.ask(vocab) }
	for range max(1, min(lanes, runtime.GOMAXPROCS(0))) {
		c.samplers = append(c.samplers, sample.New(vocab))
	}
	return c
}

func (c *chooser) start() {
	c.wake = make(chan struct{})
	c.running = true
	for _, s := range c.samplers[1:] {
		go func() {
			for range c.wake {
				c.work(s)
				c.helpers.Done()
			}
		}()
	}
}

func (c *chooser) stop() {
	c.running = false
	close(c.wake)
}

// ask fills in what is to be chosen, before the step that chooses.
func (c *chooser) ask(picks []pick) {
	guided := 0
	for i := range picks {
		if picks[i].job.guide != nil {
			guided++
		}
	}
	c.each(picks, guided > 1, c.asks)
}

// run fills in the results that are not there yet. They are valid until the
// next call.
func (c *chooser) run(picks []pick) {
	left := 0
	for i := range picks {
		if !picks[i].placed && picks[i].err == nil {
			left++
		}
	}
	c.each(picks, left > 1 && left*c.vocab >= c.alone, (*pick).choose)
}

// each does something to every pick, with help if it is worth it.
func (c *chooser) each(picks []pick, help bool, do func(*pick, *sample.Sampler)) {
	c.picks, c.do = picks, do
	c.next.Store(0)
	if c.running && help {
		helpers := min(len(c.samplers), len(picks)) - 1
		c.helpers.Add(helpers)
		for range helpers {
			c.wake <- struct{}{}
		}
	}
	c.work(c.samplers[0])
	c.helpers.Wait()
}

func (c *chooser) work(s *sample.Sampler) {
	for {
		i := int(c.next.Add(1)) - 1
		if i >= len(c.picks) {
			return
		}
		c.do(&c.picks[i], s)
	}
}

// ask fills in what is to be chosen. A guide that panics fails its own answer.
func (p *pick) ask(vocab int) {
	defer p.caught()
	j := p.job
	mask := j.allowed(vocab)
	p.forced = mask != nil && j.guide != nil && single(mask)
	p.choice = j.chosen.Pick(mask, j.request.Top)
	p.asked = true
}

func (p *pick) caught() {
	if v := recover(); v != nil {
		p.err = fmt.Errorf("cannot choose a token: a panic in its guide or the sampler: %v", v)
	}
}

// choose samples one token on the host, unless the step did.
func (p *pick) choose(s *sample.Sampler) {
	defer p.caught()
	if p.err == nil && !p.asked {
		p.ask(len(p.logits))
	}
	if p.err != nil {
		return
	}
	if !p.placed {
		p.result, p.err = s.Choose(&p.choice, p.logits)
	} else if p.result.Token < 0 {
		p.err = sample.ErrNone
	}
	j := p.job
	if n := len(p.result.Top); n > 0 {
		// The list belongs to the sampler; the reader gets a copy.
		if cap(j.tops)-len(j.tops) < n {
			j.tops = make([]sample.LogProb, 0, 64*n)
		}
		from := len(j.tops)
		j.tops = append(j.tops, p.result.Top...)
		p.result.Top = j.tops[from:len(j.tops):len(j.tops)]
	}
}

// allowed is what may come next: what the guide says, without the ids that
// would end the answer too early, unless nothing else is left.
func (j *job) allowed(vocab int) sample.Mask {
	var mask sample.Mask
	if j.guide != nil {
		mask = j.guide.Mask()
	}
	early := j.generated() < j.request.MinTokens || j.request.IgnoreEOS && j.guide != nil
	if !early || len(j.request.End) == 0 {
		return mask
	}
	if j.mask == nil {
		j.mask = sample.NewMask(vocab)
	}
	if mask != nil {
		copy(j.mask, mask)
	} else {
		j.mask.AllowAll()
	}
	for _, id := range j.request.End {
		if id >= 0 && int(id) < vocab {
			j.mask.Ban(id)
		}
	}
	for _, word := range j.mask {
		if word != 0 {
			return j.mask
		}
	}
	return mask
}

// single tells whether a mask allows one token only.
func single(mask sample.Mask) bool {
	found := false
	for _, word := range mask {
		if word == 0 {
			continue
		}
		if found || word&(word-1) != 0 {
			return false
		}
		found = true
	}
	return found
}

// accept appends a chosen token, hands it out and sees whether it was the last.
func (s *Scheduler) accept(p *pick, now time.Time) {
	j := p.job
	if p.err != nil {
		s.finish(j, Failed, "", p.err)
		return
	}
	id := p.result.Token
	end := slices.Contains(j.request.End, id) && (j.guide != nil || !j.request.IgnoreEOS)
	stop, done := false, false
	if !end {
		var err error
		if stop, done, err = j.follow(id); err != nil {
			s.finish(j, Failed, "", err)
			return
		}
	}
	j.tokens = append(j.tokens, id)
	j.chosen.Append(id)
	if j.generated() == 1 {
		j.result.First = now
	}
	if !j.stream.push(Token{ID: id, At: now, LogProb: p.result.LogProb.LogProb, Top: p.result.Top}) {
		j.tokens = j.tokens[:len(j.tokens)-1]
		s.finish(j, Cancelled, ReasonBacklog, nil)
		return
	}
	switch {
	case end:
		s.finish(j, Stop, "", nil)
	case stop:
		s.finish(j, Stop, ReasonString, nil)
	case done:
		s.finish(j, Stop, "", nil)
	case j.repeats != nil && !p.forced && j.repeats.add(id):
		s.finish(j, Stop, ReasonLoop, nil)
	case j.generated() == j.max:
		s.finish(j, Length, "", nil)
	}
}

// follow tells the guide and the watch of a token. stop is what the watch
// says, done that the guide allows no more text.
func (j *job) follow(id int32) (stop, done bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("cannot go on with the answer: a panic in its guide or watch: %v", v)
		}
	}()
	if j.guide != nil {
		if err := j.guide.Accept(id); err != nil {
			return false, false, fmt.Errorf("cannot go on with the answer: %w", err)
		}
		done = j.guide.Done()
	}
	return j.watch != nil && j.watch(id), done, nil
}
