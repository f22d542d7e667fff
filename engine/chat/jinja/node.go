package jinja

// Expressions.
type expr interface{ at() int }

// place is the line where a node begins.
type place int

func (p place) at() int { return int(p) }

type (
	literal struct {
		place
		value any
	}
	name struct {
		place
		id string
	}
	sequence struct { // list or tuple display
		place
		items []expr
		tuple bool
	}
	mapping struct {
		place
		keys, values []expr
	}
	attribute struct {
		place
		of   expr
		name string
	}
	subscript struct {
		place
		of, key expr
	}
	slice struct {
		place
		of             expr
		from, to, step expr // nil where left out
	}
	call struct {
		place
		callee    expr
		arguments arguments
	}
	filter struct {
		place
		of        expr // nil in a filter block: the rendered body
		name      string
		arguments arguments
	}
	test struct {
		place
		of        expr
		name      string
		negated   bool
		arguments arguments
	}
	unary struct {
		place
		op string // - + not
		x  expr
	}
	binary struct {
		place
		op   string
		a, b expr
	}
	comparison struct { // a < b < c
		place
		first expr
		ops   []string
		rest  []expr
	}
	concat struct {
		place
		parts []expr
	}
	conditional struct {
		place
		then, cond, other expr // other nil: undefined
	}
)

type arguments struct {
	positional []expr
	names      []string
	named      []expr
	star, dict expr // *args, **kwargs
}

// Statements.
type stmt interface{ at() int }

type (
	text struct {
		place
		s string
	}
	output struct {
		place
		x expr
	}
	ifStmt struct {
		place
		cond       expr
		then, last []stmt
	}
	forStmt struct {
		place
		target    expr
		over      expr
		keep      expr // the filter after "if", or nil
		recursive bool
		body      []stmt
		empty     []stmt
	}
	setStmt struct {
		place
		target expr
		value  expr
	}
	setBlock struct {
		place
		target  expr
		filters []*filter
		body    []stmt
	}
	filterBlock struct {
		place
		filters []*filter
		body    []stmt
	}
	withStmt struct {
		place
		targets, values []expr
		body            []stmt
	}
	macroStmt struct {
		place
		macro *macroDef
	}
	callBlock struct {
		place
		call *call
		body *macroDef
	}
	group struct { // a block that only groups: generation
		place
		body []stmt
	}
	jump struct {
		place
		again bool // continue, else break
	}
)

// macroDef is a macro, or the body of a call block.
type macroDef struct {
	name     string
	params   []string
	defaults []expr // for the last len(defaults) parameters
	body     []stmt
	// Whether the body asks for what was passed beyond the parameters.
	varargs, kwargs, caller bool
}
