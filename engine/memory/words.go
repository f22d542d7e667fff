package memory

import (
	"fmt"
	"strings"

	"velo/engine/backend"
	"velo/engine/ops"
)

// Check refuses what does not fit, with the arithmetic and what could be smaller. Where it is not
// known how much may be used, everything fits.
func (p Plan) Check() error {
	available := p.Sizes.Available
	if available <= 0 || p.Total <= available {
		return nil
	}
	advice := []string{"a shorter context"}
	if p.Sizes.Lanes > 1 {
		advice[0] = "fewer lanes or a shorter context"
	}
	if p.Sizes.Tokens > times(p.Sizes.Lanes, p.Sizes.Context) {
		advice = append(advice, "fewer tokens remembered of all requests together")
	}
	if p.Checkpoints > 0 {
		advice = append(advice, "fewer checkpoints")
	}
	if p.Sizes.Backend == backend.CUDA && p.KV == ops.KVBF16 && p.Pages > available/4 {
		advice = append(advice, "keys and values in fp8")
	}
	if p.Weights > available/2 {
		advice = append(advice, "a smaller model or quantisation")
	}
	return fmt.Errorf("cannot fit the model: it takes %s (%s) and %s are available; use %s",
		bytes(p.Total), p.terms(), bytes(available), strings.Join(advice, ", or "))
}

// Sum is the arithmetic in a line.
func (p Plan) Sum() string { return p.terms() + " = " + bytes(p.Total) }

func (p Plan) terms() string {
	s := fmt.Sprintf("weights %s + keys and values %s (%d tokens in %s)", bytes(p.Weights), bytes(p.Pages), p.Sizes.Tokens, p.KV)
	if p.States > 0 {
		s += " + recurrent states " + bytes(p.States)
	}
	if p.Checkpoints > 0 {
		s += " + checkpoints " + bytes(p.Checkpoints)
	}
	s += fmt.Sprintf(" + scratch %s%s", bytes(p.Scratch), p.estimate())
	if p.Choice > 0 {
		s += " + choice of tokens " + bytes(p.Choice)
	}
	if p.Own.Device > 0 {
		s += " + the GPU's own " + bytes(p.Total-p.Asked())
	}
	return s
}

// Estimated tells whether Scratch is an estimate: of the processor not all is reckoned, of a GPU it is.
func (p Plan) Estimated() bool { return p.Own.Device == 0 }

// estimate says that something is not reckoned, where that is so.
func (p Plan) estimate() string {
	if p.Estimated() {
		return " (estimate)"
	}
	return ""
}

// String is the plan in words, a line each.
func (p Plan) String() string {
	var b strings.Builder
	line := func(what, n, why string) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-18s %10s  %s", what, n, why), " ") + "\n")
	}
	z := p.Sizes
	line("weights", bytes(p.Weights), "as they are computed with")
	line("keys and values", bytes(p.Pages), fmt.Sprintf("%d tokens in %s, in pages of %d, for all requests together", z.Tokens, p.KV, ops.PageTokens))
	if p.States > 0 {
		line("recurrent states", bytes(p.States), "one for each of "+count(z.Lanes, "lane"))
		line("checkpoints", bytes(p.Checkpoints), count(z.Checkpoints, "state")+" for the prefix cache")
	}
	line("scratch", bytes(p.Scratch), "a step of "+count(z.Rows, "row")+p.estimate())
	if p.Choice > 0 {
		line("choice of tokens", bytes(p.Choice), "on the GPU")
	}
	if p.Own.Device > 0 {
		why := "kernels' scratch and operands, and weights on their way while loading"
		if z.Shared {
			why += "; page-locked memory, which is the machine's too"
		}
		line("the GPU's own", bytes(p.Total-p.Asked()), why)
	}
	fits := ""
	switch free := z.Available - p.Total; {
	case z.Available <= 0:
	case free < 0:
		fits = "does not fit: " + bytes(-free) + " too little"
	default:
		fits = "fits: " + bytes(free) + " are left"
	}
	line("total", bytes(p.Total), "")
	if z.Available > 0 {
		line("available", bytes(z.Available), fits)
	}
	for _, change := range p.Changed {
		line("changed", "", change)
	}
	return b.String()
}

// count is a number of things.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// bytes is a number of bytes for people.
func bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
