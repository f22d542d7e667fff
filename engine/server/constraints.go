package server

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"velo/engine/grammar"
)

// constraints keeps what was compiled for recent requests. Agents send the same tools and schemas
// again and again, and a compiled grammar knows masks that a new one would have to work out anew.
type constraints struct {
	mu     sync.Mutex
	recent []constraint // oldest first
	// compiling bounds how many requests compile at a time: it takes a processor from the engine.
	compiling chan struct{}
}

// constraint is what an answer is held to.
type constraint struct {
	key      [sha256.Size]byte
	grammar  *grammar.Grammar // nil is nothing
	enforced string           // what x-json-schema-enforced says
}

const (
	constraintsKept = 32
	compilers       = 2
)

func newConstraints() *constraints {
	return &constraints{compiling: make(chan struct{}, compilers)}
}

func (c *constraints) find(key [sha256.Size]byte) (constraint, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, k := range c.recent {
		if k.key == key {
			c.recent = append(slices.Delete(c.recent, i, i+1), k)
			return k, true
		}
	}
	return constraint{}, false
}

func (c *constraints) add(k constraint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recent = append(c.recent, k); len(c.recent) > constraintsKept {
		c.recent = slices.Delete(c.recent, 0, len(c.recent)-constraintsKept)
	}
}

// formatMembers are those that say what an answer must look like.
var formatMembers = []string{"response_format", "grammar", "guided_grammar", "guided_json", "json_schema", "guided_regex", "guided_choice", "structured_outputs"}

// constraintOf is what a request holds its answer to. p is nil for a plain completion.
func (s *Server) constraintOf(o *object, p *prompt) (constraint, *Error) {
	h := sha256.New()
	wanted := p != nil && p.choice.forced()
	for _, m := range formatMembers {
		raw := o.raw(m)
		wanted = wanted || raw != nil
		fmt.Fprintf(h, "%s %d\n%s", m, len(raw), raw)
	}
	if !wanted {
		return constraint{}, nil
	}
	if p == nil {
		p = &prompt{}
	}
	fmt.Fprintf(h, "%v %v %v %v %v ", p.choice, p.style.Format, p.style.Think, p.style.Opened, strings.HasSuffix(strings.TrimRight(p.text, "\n"), "</think>"))
	for _, t := range p.choice.offered(p.tools) {
		fmt.Fprintf(h, "%q %v %d\n%s", t.name, t.strict, len(t.parameters), t.parameters)
	}
	var k constraint
	h.Sum(k.key[:0])
	if found, ok := s.constraints.find(k.key); ok {
		return found, nil
	}
	s.constraints.compiling <- struct{}{}
	defer func() { <-s.constraints.compiling }()
	content, enforced, e := readFormat(o)
	if e != nil {
		return k, e
	}
	k.enforced = enforced
	k.grammar, e = constrain(content, p.choice, p.tools, p.style, strings.Contains(s.o.Engine.Source, "<function="), p.text)
	if e == nil {
		s.constraints.add(k)
	}
	return k, e
}
