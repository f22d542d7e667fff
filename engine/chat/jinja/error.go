package jinja

import "fmt"

// Error says why a template cannot be parsed or rendered, and at which of its lines.
type Error struct {
	Line   int    // 1-based line of the template, 0 where there is none to name
	Reason string // one sentence
	// Raised is true where the template itself refused its input through raise_exception: the
	// fault is in the conversation, and Reason is the template's own message.
	Raised bool
	// Limit is true where the template asked for more steps or memory than it may have.
	Limit bool
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("chat template, line %d: %s", e.Line, e.Reason)
	}
	return "chat template: " + e.Reason
}

// fail ends parsing or rendering. Parse and Render, the only two entries, turn the panic back
// into an error, so that the hundreds of places where a template can be wrong stay one line each.
func fail(line int, format string, args ...any) {
	panic(&Error{Line: line, Reason: fmt.Sprintf(format, args...)})
}

// recovered stores a failure raised by fail in err and passes every other panic on.
func recovered(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}
