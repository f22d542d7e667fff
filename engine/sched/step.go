package sched

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"velo/engine/kv"
)

// advance builds a step, runs it and hands out what comes of it.
func (s *Scheduler) advance() error {
	began := time.Now()
	s.status.begin(began)
	if s.o.PanicSteps > 0 && s.status.steps == uint64(s.o.PanicSteps) {
		panic("a panic was asked for at this step")
	}
	if s.o.HangSteps > 0 && s.status.steps == uint64(s.o.HangSteps) {
		<-make(chan struct{})
	}
	report, err := s.compute()
	if err != nil {
		return fmt.Errorf("cannot go on: step %d of the engine failed: %w", s.status.steps, err)
	}
	s.choose.run(s.picks)
	now := time.Now()
	for i := range s.picks {
		s.accept(&s.picks[i], now)
	}
	report.Took = time.Since(began)
	s.pace.note(report)
	s.status.end(began.Add(report.Took), report)
	if s.o.Observer != nil {
		s.o.Observer.Stepped(report)
	}
	return nil
}

// compute runs the model on the rows of this step and lists the tokens to choose.
func (s *Scheduler) compute() (report Step, err error) {
	s.step.Reset()
	s.placed, s.picks = s.placed[:0], s.picks[:0]
	s.share()
	for i := 0; i < len(s.lanes); i++ { // oldest first; a preemption shortens the list at its end
		j := s.lanes[i]
		if j.take == 0 {
			continue
		}
		placed, err := s.place(j)
		if err != nil {
			s.finish(j, Failed, "", err)
			i--
			continue
		}
		if !placed {
			break // j was the youngest and is gone
		}
		s.placed = append(s.placed, j)
		if j.decodes() {
			report.Decode++
		} else {
			report.Prefill += j.take
		}
	}
	report.Rows = report.Decode + report.Prefill
	for _, j := range s.placed {
		if j.output {
			s.picks = append(s.picks, pick{job: j})
		}
	}
	if s.model.Chooses() {
		s.choose.ask(s.picks)
		for i := range s.picks {
			if p := &s.picks[i]; p.err == nil {
				p.placed = s.step.Pick(i, p.choice, s.wantsLogits(p.job))
			}
		}
	}
	var logits []float32
	if len(s.placed) > 0 {
		if logits, err = s.model.Run(s.step); err != nil {
			return report, err
		}
	}
	chosen, next := s.step.Choices(), 0
	for _, j := range s.placed {
		var row []float32
		if j.output {
			p := &s.picks[next]
			next++
			if p.placed {
				p.result, chosen = chosen[0], chosen[1:]
			}
			if !p.placed || s.wantsLogits(j) {
				row, logits = logits[:s.vocab:s.vocab], logits[s.vocab:]
				p.logits = row
			}
		}
		s.remember(j, row)
	}
	for _, j := range s.lanes {
		if j.kept != nil {
			s.picks = append(s.picks, pick{job: j, logits: j.kept})
			j.kept = nil
		}
	}
	return report, nil
}

// decodes tells whether all but the answer's last token is computed.
func (j *job) decodes() bool { return j.generated() > 0 && j.seq.Len() == len(j.tokens)-1 }

// share says how many rows each lane gets: one to each that decodes, and what
// is left in equal parts to those that read, as far as they can use it. Who
// gets the remainder goes round.
func (s *Scheduler) share() {
	left, reading := s.pace.rows(s.o.StepTime, s.o.StepTokens), 0
	for _, j := range s.lanes {
		switch {
		case j.kept != nil:
			j.take = 0
		case j.decodes():
			j.take = 1
			left--
		default:
			j.take = 0
			reading++
		}
	}
	if reading == 0 {
		return
	}
	s.turns++
	part := left / reading
	for _, j := range s.lanes {
		if j.reads() {
			j.take = min(part, j.ahead())
			left -= j.take
		}
	}
	skip := s.turns % reading
	for i := 0; left > 0 && i < 2*len(s.lanes); i++ {
		j := s.lanes[i%len(s.lanes)]
		if !j.reads() {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		more := min(left, j.ahead()-j.take)
		j.take += more
		left -= more
	}
}

// reads tells whether a lane still computes a text.
func (j *job) reads() bool { return j.kept == nil && !j.decodes() }

// ahead is how many tokens can be computed up to the next checkpoint.
func (j *job) ahead() int {
	end := len(j.tokens)
	if len(j.cuts) > 0 {
		end = j.cuts[0]
	}
	return end - j.seq.Len()
}

// place adds the rows of a lane to the step. When pages run out, the prefix
// cache goes first, then the youngest lanes. It is false if the lane itself
// was preempted.
func (s *Scheduler) place(j *job) (bool, error) {
	at := j.seq.Len()
	rows := j.tokens[at : at+j.take]
	j.output = at+j.take == len(j.tokens)
	outputs := 0
	if j.output {
		outputs = 1
	}
	for {
		err := s.step.Add(j.seq, rows, outputs)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, kv.ErrFull) {
			return false, err
		}
		if s.reclaim() {
			continue
		}
		if len(s.lanes) == 1 {
			return false, err
		}
		youngest := s.lanes[len(s.lanes)-1]
		s.preempt(youngest)
		if youngest == j {
			return false, nil
		}
	}
}

// wantsLogits tells whether what follows a prompt may be kept for others,
// which takes its logits even if the step chooses the token itself.
func (s *Scheduler) wantsLogits(j *job) bool {
	return j.generated() == 0 && (j.group != nil || s.o.PrefixCache && s.hybrid)
}

// remember keeps what others can begin from: at the boundaries of a prompt, and
// at its end, after which row are the logits.
func (s *Scheduler) remember(j *job, row []float32) {
	at, prompt := j.seq.Len(), j.request.Prompt
	atCut := len(j.cuts) > 0 && j.cuts[0] == at
	if atCut {
		j.cuts = j.cuts[1:]
	}
	if j.generated() > 0 || at < len(prompt) && !atCut {
		return
	}
	if at < len(prompt) {
		if !s.cache.has(prompt[:at], false) && s.cache.room(0) {
			if shot := s.spare(j.seq); shot != nil {
				s.cache.add(slices.Clone(prompt[:at]), shot, nil)
			}
		}
		return
	}
	var logits []float32
	if g := j.group; g != nil {
		if g.reader == j {
			g.reader = nil
			s.blocked = false
		}
		if g.waiting > 0 && g.fork == nil {
			if shot := s.spare(j.seq); shot != nil {
				logits = slices.Clone(row)
				g.fork, g.logits = shot, logits
				s.forks = append(s.forks, g)
			}
		}
	}
	if !s.o.PrefixCache {
		return
	}
	n := s.whole(at)
	if !s.hybrid {
		if n == 0 || s.cache.has(prompt[:n], false) {
			return
		}
	} else if s.cache.has(prompt, true) || !s.cache.room(len(row)) {
		return
	} else if logits == nil {
		logits = slices.Clone(row)
	}
	shot := s.spare(j.seq)
	if shot == nil {
		return
	}
	if !s.hybrid {
		logits = nil
		if shot.Truncate(n) != nil {
			shot.Free()
			return
		}
	}
	s.cache.add(slices.Clone(prompt[:n]), shot, logits)
}
