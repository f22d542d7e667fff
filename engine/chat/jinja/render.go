package jinja

import (
	"fmt"
	"strings"
	"time"
)

// Template is a parsed template. It is safe for concurrent use.
type Template struct{ body []stmt }

// Limits bound what one rendering may use. The zero value of a field is its default.
type Limits struct {
	Steps  int64 // nodes evaluated and items looped over; 5 million
	Memory int64 // bytes of strings and lists made in all, freed or not; 64 MiB and 64 times the output and input
	Output int   // bytes of the result; 64 MiB
}

const (
	defaultSteps  = 5_000_000
	defaultMemory = 64 << 20
	defaultOutput = 64 << 20
	maxRange      = 100_000 // jinja2's sandbox has the same
	maxCalls      = 100     // macros and loops inside one another
)

// Parse reads a template.
func Parse(source string) (t *Template, err error) {
	defer recovered(&err)
	if len(source) > maxSource {
		return nil, &Error{Limit: true, Reason: fmt.Sprintf("the template has %d bytes, more than the %d that one may have", len(source), maxSource)}
	}
	p := &parser{tokens: lex(source)}
	body, _ := p.body(0)
	return &Template{body}, nil
}

// Render renders the template with the given variables. now is what strftime_now tells.
func (t *Template) Render(vars *Dict, now time.Time, limits Limits) (s string, err error) {
	defer recovered(&err)
	r := newRenderer(limits, size(vars, 0))
	r.now = now
	root := &scope{vars: map[string]any{}}
	vars.Entries(func(k, v any) bool {
		if k, ok := k.(string); ok {
			root.vars[k] = v
		}
		return true
	})
	r.block(t.body, &scope{parent: root, vars: map[string]any{}})
	return r.out.String(), nil
}

// size estimates the bytes of a value, so that a long conversation has a larger allowance.
func size(v any, depth int) int64 {
	if depth > maxValueDepth {
		return 0
	}
	n := int64(16)
	switch v := v.(type) {
	case string:
		n += int64(len(v))
	case *List:
		for _, x := range v.Items {
			n += size(x, depth+1)
		}
	case *Dict:
		if v == nil {
			return 0
		}
		for i, k := range v.keys {
			n += size(k, depth+1) + size(v.values[i], depth+1)
		}
	}
	return n
}

type renderer struct {
	out    *strings.Builder
	now    time.Time
	line   int // of the node being evaluated, for errors
	calls  int
	steps  int64 // left
	memory int64 // left
	output int
}

func newRenderer(l Limits, input int64) *renderer {
	if l.Steps <= 0 {
		l.Steps = defaultSteps
	}
	if l.Memory <= 0 {
		l.Memory = defaultMemory + 64*input
	}
	if l.Output <= 0 {
		l.Output = defaultOutput
	}
	return &renderer{out: &strings.Builder{}, steps: l.Steps, memory: l.Memory, output: l.Output}
}

func (r *renderer) fail(format string, args ...any) { fail(r.line, format, args...) }

func (r *renderer) limit(reason string) {
	panic(&Error{Line: r.line, Reason: reason, Limit: true})
}

// step counts work, so that no loop runs for ever.
func (r *renderer) step(n int) {
	if r.steps -= int64(n); r.steps < 0 {
		r.limit("the template takes too many steps; it may loop without end")
	}
}

// charge counts bytes made.
func (r *renderer) charge(n int) {
	if r.memory -= int64(n); r.memory < 0 {
		r.limit("the template makes more text than it may")
	}
}

func (r *renderer) write(s string) {
	if r.out.Len()+len(s) > r.output {
		r.limit("the template writes more text than it may")
	}
	r.charge(len(s))
	r.out.WriteString(s)
}

// capture renders into a string of its own.
func (r *renderer) capture(f func()) string {
	outer := r.out
	r.out = &strings.Builder{}
	defer func() { r.out = outer }()
	f()
	return r.out.String()
}

// nested bounds recursion; the Go stack cannot be caught once it is spent.
func (r *renderer) nested(f func()) {
	if r.calls++; r.calls > maxCalls {
		r.limit("macros and loops call one another too deep")
	}
	line := r.line
	f()
	r.line = line
	r.calls--
}

// scope holds the names set in a template, a loop's turn, a macro or a with block.
type scope struct {
	parent *scope
	vars   map[string]any
}

func (s *scope) lookup(id string) (any, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[id]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) child() *scope { return &scope{s, map[string]any{}} }

// flow says how a block ended.
type flow uint8

const (
	flowOn flow = iota
	flowBreak
	flowContinue
)

func (r *renderer) block(body []stmt, s *scope) flow {
	for _, st := range body {
		r.step(1)
		r.line = st.at()
		if f := r.statement(st, s); f != flowOn {
			return f
		}
	}
	return flowOn
}

func (r *renderer) statement(st stmt, s *scope) flow {
	switch st := st.(type) {
	case *text:
		r.write(st.s)
	case *output:
		r.write(r.str(r.eval(st.x, s)))
	case *ifStmt:
		if truth(r.eval(st.cond, s)) {
			return r.block(st.then, s)
		}
		return r.block(st.last, s)
	case *forStmt:
		r.forLoop(st, r.eval(st.over, s), s, 0)
	case *setStmt:
		r.assign(st.target, r.eval(st.value, s), s)
	case *setBlock:
		v := any(r.capture(func() { r.block(st.body, s.child()) }))
		r.assign(st.target, r.applyFilters(st.filters, v, s), s)
	case *filterBlock:
		v := any(r.capture(func() { r.block(st.body, s.child()) }))
		r.write(r.str(r.applyFilters(st.filters, v, s)))
	case *withStmt:
		c := s.child()
		for i, t := range st.targets {
			r.assign(t, r.eval(st.values[i], s), c)
		}
		return r.block(st.body, c)
	case *macroStmt:
		s.vars[st.macro.name] = r.macro(st.macro, s)
	case *callBlock:
		inv := r.invocation(&st.call.arguments, s)
		inv.names = append(inv.names, "caller")
		inv.named = append(inv.named, r.macro(st.body, s))
		r.write(r.str(r.invoke(r.eval(st.call.callee, s), inv)))
	case *group:
		return r.block(st.body, s.child())
	case *jump:
		if st.again {
			return flowContinue
		}
		return flowBreak
	}
	return flowOn
}

func (r *renderer) assign(target expr, v any, s *scope) {
	switch t := target.(type) {
	case *name:
		s.vars[t.id] = v
	case *attribute:
		n, ok := r.eval(t.of, s).(*namespace)
		if !ok {
			r.fail("only attributes of a namespace can be set")
		}
		if strings.HasPrefix(t.name, "_") {
			r.fail("the attribute %q of a namespace begins with an underscore; rename it", t.name)
		}
		n.vars.Set(t.name, v)
	case *sequence:
		items := r.iterate(v)
		if len(items) != len(t.items) {
			r.fail("%d values cannot be assigned to %d names", len(items), len(t.items))
		}
		for i, x := range t.items {
			r.assign(x, items[i], s)
		}
	}
}

// loop is the variable of that name inside a for block.
type loop struct {
	items   []any
	i       int
	depth   int
	again   func(over any) string // loop(…) of a recursive loop
	changed []any                 // what changed() saw last
}

func (r *renderer) forLoop(st *forStmt, over any, s *scope, depth int) {
	items := r.iterate(over)
	if st.keep != nil {
		var kept []any
		for _, x := range items {
			r.step(10)
			c := s.child()
			r.assign(st.target, x, c)
			if truth(r.eval(st.keep, c)) {
				kept = append(kept, x)
			}
		}
		r.charge(16 * len(kept))
		items = kept
	}
	l := &loop{items: items, depth: depth}
	if st.recursive {
		l.again = func(over any) string {
			return r.capture(func() { r.forLoop(st, over, s, depth+1) })
		}
	}
	r.nested(func() {
		for i, x := range items {
			r.step(10) // what a turn costs beside the nodes in it: a scope
			l.i = i
			c := s.child()
			c.vars["loop"] = l
			r.assign(st.target, x, c)
			if r.block(st.body, c) == flowBreak {
				break
			}
		}
	})
	if len(items) == 0 {
		r.block(st.empty, s.child())
	}
}

func (l *loop) attribute(id string) any {
	n := int64(len(l.items))
	i := int64(l.i)
	neighbour := func(at int) any {
		if at < 0 || at >= len(l.items) {
			return &undefined{"there is no " + id}
		}
		return l.items[at]
	}
	switch id {
	case "index":
		return i + 1
	case "index0":
		return i
	case "revindex":
		return n - i
	case "revindex0":
		return n - i - 1
	case "first":
		return i == 0
	case "last":
		return i == n-1
	case "length":
		return n
	case "depth":
		return int64(l.depth + 1)
	case "depth0":
		return int64(l.depth)
	case "previtem":
		return neighbour(l.i - 1)
	case "nextitem":
		return neighbour(l.i + 1)
	case "cycle":
		return &function{id, func(c *invocation) any {
			if len(c.args) == 0 {
				c.r.fail("loop.cycle needs a value")
			}
			return c.args[l.i%len(c.args)]
		}}
	case "changed":
		return &function{id, func(c *invocation) any {
			same := l.changed != nil && c.r.equal(&List{Items: l.changed}, &List{Items: c.args}, 0)
			l.changed = append([]any{}, c.args...)
			return !same
		}}
	}
	return &undefined{fmt.Sprintf("loop has no attribute %q", id)}
}
