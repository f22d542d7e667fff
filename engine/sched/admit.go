package sched

import (
	"fmt"
	"slices"
	"time"

	"velo/engine/kv"
	"velo/engine/ops"
	"velo/engine/sample"
)

// admit gives free lanes to those who wait, oldest first. Nobody passes the
// first who may begin: a large request is not starved by small ones. Copies
// whose prompt another copy is reading do not hold up the others.
func (s *Scheduler) admit() {
	for len(s.lanes) < s.o.Lanes && !s.blocked {
		j := s.next()
		if j == nil {
			return
		}
		if err := s.begin(j); err != nil {
			s.finish(j, Failed, "", err)
			continue
		}
		if !s.lodge(j) {
			if len(s.lanes) == 0 { // nobody will ever give memory back
				s.finish(j, Failed, "", fmt.Errorf("cannot find memory for %d tokens with nothing else running: %w", len(j.text()), kv.ErrFull))
				continue
			}
			s.blocked = true
			s.requeue(j)
			return
		}
		s.join(j)
	}
}

// next takes the first who may begin out of the queue.
func (s *Scheduler) next() *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, j := range s.waiting {
		if g := j.group; g != nil && g.reader != nil && !j.started() {
			continue
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		j.state = admitted
		return j
	}
	return nil
}

// requeue puts a job back to where its age belongs.
func (s *Scheduler) requeue(j *job) {
	s.mu.Lock()
	if j.cancel {
		why := j.why
		s.mu.Unlock()
		s.finish(j, Cancelled, "", why)
		return
	}
	defer s.mu.Unlock()
	j.state = waiting
	i, _ := slices.BinarySearchFunc(s.waiting, j, byAge)
	s.waiting = slices.Insert(s.waiting, i, j)
}

func byAge(a, b *job) int {
	switch {
	case a.order < b.order:
		return -1
	case a.order > b.order:
		return 1
	}
	return 0
}

// begin makes what sampling needs, once a job.
func (s *Scheduler) begin(j *job) (err error) {
	if j.chosen != nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("cannot begin the answer: a panic where its guide or watch is made: %v", v)
		}
	}()
	r := j.request
	p := r.Sampling
	p.Seed += uint64(j.copy)
	if j.chosen, err = sample.NewSequence(p, s.vocab, r.Prompt, min(j.max, 1024)); err != nil {
		return err
	}
	if r.Guide != nil {
		j.guide = r.Guide(j.copy)
	}
	if r.Watch != nil {
		j.watch = r.Watch(j.copy)
	}
	if s.o.LoopWindow > 0 {
		j.repeats = newRepeats(s.o.LoopWindow, s.o.LoopRepeats)
	}
	return nil
}

// text is what a job has to know before it can go on.
func (j *job) text() []int32 {
	if j.started() {
		return j.tokens
	}
	return j.request.Prompt
}

// lodge finds a sequence for a job, from a fork, a cached prefix or new, and
// makes sure that there is room for it to grow. On false nothing has changed,
// except that the cache may be smaller.
func (s *Scheduler) lodge(j *job) bool {
	text := j.text()
	if g := j.group; g != nil && g.fork != nil && !j.started() {
		if !s.fits(len(text), len(text), g.fork) {
			return false
		}
		if s.branch(j) {
			s.settle(j, len(text))
			return true
		}
		if g.fork != nil {
			return false
		}
		// The fork had to be given up.
	}
	var from *entry
	cached := 0
	if s.o.PrefixCache {
		from, cached = s.cache.find(text)
	}
	var shot *kv.Snapshot
	if from != nil {
		shot = from.shot
	}
	if !s.fits(len(text), cached, shot) {
		return false
	}
	for s.lacksState() && s.cache.evict(from) {
	}
	for from == nil && len(s.lanes) == 0 && s.lacksState() && s.reclaim() {
	}
	var err error
	switch {
	case from == nil:
		j.seq, err = s.pool.NewSequence()
	case s.lacksState(): // the last checkpoint turns into the sequence
		s.cache.take(from)
		j.seq = shot.Thaw()
	default:
		s.cache.use(from)
		if j.seq, err = shot.Restore(); err == nil && cached < j.seq.Len() {
			err = j.seq.Truncate(cached)
		}
	}
	if err != nil {
		if j.seq != nil {
			j.seq.Free()
			j.seq = nil
		}
		return false
	}
	if cached == len(text) {
		j.kept = from.logits
	}
	s.settle(j, cached)
	return true
}

// branch starts a copy where another has read the prompt to.
func (s *Scheduler) branch(j *job) bool {
	g := j.group
	last := g.waiting == 1
	for !last && s.lacksState() {
		if !s.cache.evict(nil) && (len(s.lanes) > 0 || !s.reclaim()) {
			return false
		}
		if g.fork == nil {
			return false
		}
	}
	logits := g.logits
	if last {
		j.seq = g.fork.Thaw()
		s.dropFork(g)
	} else {
		seq, err := g.fork.Restore()
		if err != nil {
			return false
		}
		j.seq = seq
	}
	j.kept = logits
	return true
}

func (s *Scheduler) lacksState() bool { return s.hybrid && s.pool.FreeStates() == 0 }

// fits tells whether there are pages for a text and its next page, of which
// cached tokens come from a snapshot, beside what those who run need next.
// Pages that only snapshots hold can be had. Who is alone always fits: Submit
// saw to that.
func (s *Scheduler) fits(text, cached int, from *kv.Snapshot) bool {
	if len(s.lanes) == 0 {
		return true
	}
	// One page more, as a shared last page is copied.
	need := pages(text+ops.PageTokens) - pages(cached) + 1
	for _, other := range s.lanes {
		need += max(0, pages(len(other.tokens)+ops.PageTokens)-pages(other.seq.Len()))
	}
	have := s.pool.FreePages() + s.pool.KeptPages()
	if from != nil {
		have -= from.Alone(cached)
	}
	return need <= have
}

// settle notes where a job begins, or goes on after it was preempted.
func (s *Scheduler) settle(j *job, cached int) {
	g, prompt := j.group, j.request.Prompt
	j.cuts = nil
	if cached < len(prompt) && j.answered() == 0 {
		j.cuts = s.cuts(j.request.Boundaries, cached)
	}
	if j.started() {
		return
	}
	j.tokens = append(make([]int32, 0, len(prompt)+min(j.max, 1024)), prompt...)
	j.result.Cached, j.result.Admitted = cached, time.Now()
	if s.o.PrefixCache {
		if cached > 0 {
			s.status.hits++
		} else {
			s.status.misses++
		}
	}
	if g == nil {
		return
	}
	g.waiting--
	if cached < len(prompt) && g.fork == nil {
		g.reader = j
	}
	if g.waiting == 0 {
		s.dropFork(g)
	}
}

// mostCuts is how many boundaries of one prompt get a checkpoint: the first,
// which other conversations share, and the last ones.
const mostCuts = 8

// cuts are the boundaries after position from at which the prompt is cut. An
// attention model needs none.
func (s *Scheduler) cuts(boundaries []int, from int) []int {
	if !s.hybrid || !s.o.PrefixCache {
		return nil
	}
	var cuts []int
	for _, b := range boundaries {
		if b > from && (len(cuts) == 0 || cuts[len(cuts)-1] != b) {
			cuts = append(cuts, b)
		}
	}
	if n := len(cuts); n > mostCuts {
		cuts = append(cuts[:1], cuts[n-mostCuts+1:]...)
	}
	return cuts
}

// join gives a job its lane.
func (s *Scheduler) join(j *job) {
	i, _ := slices.BinarySearchFunc(s.lanes, j, byAge)
	s.lanes = slices.Insert(s.lanes, i, j)
}

// preempt takes the memory of a running job away and lets it wait. It is
// computed again, or taken from what the cache still has of it.
func (s *Scheduler) preempt(j *job) {
	s.status.preempted++
	j.result.Preempted++
	i := slices.Index(s.lanes, j)
	s.lanes = slices.Delete(s.lanes, i, i+1)
	s.keep(j, !s.hybrid)
	j.kept = nil
	if g := j.group; g != nil && g.reader == j {
		g.reader = nil
	}
	s.blocked = false
	s.requeue(j)
}

// reclaim gives back some memory that no running job needs. It tells whether
// there was any.
func (s *Scheduler) reclaim() bool {
	if s.cache.evict(nil) {
		return true
	}
	if n := len(s.forks); n > 0 {
		s.dropFork(s.forks[n-1])
		return true
	}
	return false
}

// dropFork gives up the copies' common start. Those that still wait read the
// prompt themselves.
func (s *Scheduler) dropFork(g *group) {
	if i := slices.Index(s.forks, g); i >= 0 {
		s.forks = slices.Delete(s.forks, i, i+1)
	}
	if g.fork != nil {
		g.fork.Free()
	}
	g.fork, g.logits = nil, nil
}

// whole is n cut to whole pages in an attention model.
func (s *Scheduler) whole(n int) int {
	if s.hybrid {
		return n
	}
	return n / ops.PageTokens * ops.PageTokens
}

// spare takes a snapshot of a sequence for the cache or a fork, evicting
// checkpoints for its state.
func (s *Scheduler) spare(seq *kv.Sequence) *kv.Snapshot {
	for {
		shot, err := seq.Snapshot()
		if err == nil {
			return shot
		}
		if !s.cache.evict(nil) {
			return nil
		}
	}
}

func pages(tokens int) int { return (tokens + ops.PageTokens - 1) / ops.PageTokens }
