//go:build linux && cuda && cgo

package cuda

import "fmt"

// dispatch is what the calls of a step know of those before them.
type dispatch struct {
	rows       Rows
	segments   Segments
	rope       *call  // whose angles lie in turns
	split      tensor // what the operand at hand was made of
	splitRows  int32
	splitWrite int // writes to its buffer by then
	operand    *Operand
	within     *call // the norm or gate that happens while the rows at hand are split, nil if none
	heads      *call // the norm of heads before that gate, nil if none
	splitFrom  *call // that of the operand at hand
	quantised  bool  // fours holds the operand at hand
	next       *call // the call behind this one, nil if there is none
	few        fewProduct
	beside     *fewProduct // few, if it happens beside that call
}

// flush runs the calls that were noted.
func (b *Backend) flush() {
	if len(b.calls) == 0 {
		return
	}
	b.must(b.run())
	b.calls = b.calls[:0]
}

func (b *Backend) run() error {
	n := &b.input
	partitions := partitionsOf(n.most)
	if err := b.ready(partitions); err != nil {
		return err
	}
	// A step of few rows is one launch of a graph from the second time on.
	var shape *captured
	if graphs := !b.options.Eager && len(b.batch.Tokens) <= MaxRows; graphs {
		rows, segments := len(b.batch.Tokens), len(b.batch.Segments)
		if shape = b.shapes.find(rows, segments, partitions, b.calls); shape == nil {
			b.shapes.note(rows, segments, partitions, b.calls)
		} else if shape.graph == nil && !shape.refused {
			if err := b.spareGraphs(mostGraphs - 1); err != nil {
				return err
			}
		}
	}
	if err := n.send(b.device); err != nil {
		return err
	}
	b.waiting = true
	b.state = dispatch{
		rows:     Rows{Positions: n.at(positions, 0), Segments: n.at(tables, 0), Table: n.at(0, 0), TablePitch: 1, Longest: partitions*partition - 1},
		segments: Segments{N: len(b.batch.Segments), First: n.at(firsts, 0), Rows: n.at(counts, 0), Slot: n.at(slots, 0)}}
	b.state.segments.measure(b.batch.Segments)
	all := func() error { return b.dispatchAll(b.calls) }
	if shape == nil || shape.refused {
		return all()
	}
	if shape.graph == nil {
		g, err := b.capture(all)
		if err != nil {
			return err
		}
		if g == nil {
			shape.refused = true
			return all()
		}
		b.shapes.keep(shape, g)
	}
	return shape.graph.Launch()
}

// capture makes a graph of the launches of all. Where the device has no memory for it, graphs that were
// not used lately make room; the graph is nil if that does not help.
func (b *Backend) capture(all func() error) (*Graph, error) {
	b.preparing.Add(1)
	defer b.preparing.Add(-1)
	state := b.state
	g, err := b.device.Capture(all)
	if !outOfMemory(err) {
		return g, err
	}
	if err := b.spareGraphs(len(b.shapes.graphs) / 2); err != nil {
		return nil, err
	}
	b.waiting = true
	b.state = state
	if g, err = b.device.Capture(all); outOfMemory(err) {
		b.state, g, err = state, nil, nil
	}
	return g, err
}

// spareGraphs closes the graphs that were not used for the longest time, but for most of them.
func (b *Backend) spareGraphs(most int) error {
	if len(b.shapes.graphs) <= most {
		return nil
	}
	b.settle() // one of them may be on its way
	var err error
	for _, g := range b.shapes.drop(most) {
		err = errorsOf(err, g.Close())
	}
	return err
}

// forget drops all shapes, since something that their launches name has moved.
func (b *Backend) forget() error {
	b.shapes.seen = nil
	return b.spareGraphs(0)
}

// attendBudget is how much scratch memory attention takes at most, unless a row alone
// needs more.
const attendBudget = 128 << 20

// ready makes room for what the noted calls need besides their operands.
func (b *Backend) ready(partitions int) error {
	if err := b.grow(&b.values, "activations", b.need); err != nil { // of a backend without a cache
		return err
	}
	if err := b.grow(&b.fours, "activations in FP4", b.fourNeed); err != nil {
		return err
	}
	for i := range b.calls {
		switch c := &b.calls[i]; c.kind {
		case attendCall:
			// There is enough unless the model has more heads, or longer sequences, than its cache told.
			r := Rows{N: 1, Longest: partitions*partition - 1}
			if err := b.grow(&b.scratch, "scratch of attention", AttendScratch(&r, int(c.x.heads), c.cache.pair.Dim)); err != nil {
				return err
			}
		case ropeCall:
			if err := b.turning(len(c.rope.Inverse)); err != nil {
				return err
			}
			if _, ok := b.inverse[c.rope]; !ok {
				m, err := b.memory.Take("angles", int64(4*len(c.rope.Inverse)))
				if err == nil {
					err = Upload(m, c.rope.Inverse)
				}
				if err != nil {
					return err
				}
				b.inverse[c.rope] = m
			}
		}
	}
	return nil
}

// dispatchAll launches calls one after the other.
func (b *Backend) dispatchAll(calls []call) error {
	for i := 0; i < len(calls); i++ {
		c := &calls[i]
		b.state.within, b.state.heads = nil, nil
		if j := source(calls, i); j >= 0 {
			b.state.within, b.state.heads = &calls[j], headNorm(calls, j)
		}
		if into(calls, i) {
			c.dst.buffer.writes++
			continue
		}
		b.device.tape.enter(c)
		n, err := b.fused(calls, i)
		if n == 0 && err == nil {
			n, err = b.fusedAttention(calls[i:])
		}
		if err != nil {
			return err
		}
		if n > 0 {
			i += n - 1
			continue
		}
		if turned(calls[i:]) {
			for j := range turnedCalls {
				calls[i+j].dst.buffer.writes++
			}
			if err := b.normRope(calls[i : i+turnedCalls]); err != nil {
				return err
			}
			i += turnedCalls - 1
			continue
		}
		b.state.next = nil
		if i+1 < len(calls) {
			b.state.next = &calls[i+1]
		}
		if err := b.dispatch(c); err != nil {
			return err
		}
	}
	return nil
}

// dispatch launches a call.
func (b *Backend) dispatch(c *call) error {
	k, n := b.k, int(c.rows)
	c.dst.buffer.writes++
	switch c.kind {
	case embedCall:
		for _, p := range c.m.pieces {
			if p.row != 0 {
				return fmt.Errorf("cannot embed from a table of %d matrices", len(c.m.pieces))
			}
			if err := k.Embed(c.dst.view(), p.m, b.input.at(tokens, 0), n, p.adds); err != nil {
				return err
			}
		}
		return nil
	case normCall:
		return k.Norm(c.dst.view(), c.x.view(), c.w.values, c.float(), n)
	case linearCall:
		return b.product(c)
	case ropeCall:
		if err := b.turn(c); err != nil {
			return err
		}
		return k.Rope(c.dst.view(), &b.turns, n)
	case attendCall:
		return b.attend(c)
	case convolveCall:
		few := b.state.beside
		b.state.beside = nil
		return k.Convolve(c.dst.view(), c.w.values, &c.cache.states, &b.state.segments, int(c.layer), few)
	case deltaCall:
		return k.DeltaRule(c.dst.view(), &Delta{c.x.view(), c.k.view(), c.v.view(), c.a.view(), c.b.view(), c.w.values, c.bias.values, c.flags != 0},
			&c.cache.states, &b.state.segments, int(c.layer))
	case siluCall:
		return k.SiLU(c.dst.view(), c.k.view(), c.x.view(), n)
	case sigmoidCall:
		return k.Sigmoid(c.dst.view(), c.k.view(), n)
	case gatherCall:
		return k.Gather(c.dst.view(), c.x.view(), b.input.at(picks, int(c.picked)), n)
	case sampleCall:
		return b.sample(c)
	}
	return fmt.Errorf("cannot run operation %d", c.kind)
}

// turn makes sure that the angles of a rope lie in turns.
func (b *Backend) turn(c *call) error {
	s := &b.state
	b.turns.Pairs = len(c.rope.Inverse)
	if s.rope != nil && s.rope.rope == c.rope {
		return nil
	}
	s.rope = c
	return b.k.Turn(&b.turns, s.rows.Positions, b.inverse[c.rope], c.rope.Scale, int(c.rows))
}

// normRope launches the calls that turned found.
func (b *Backend) normRope(c []call) error {
	if err := b.turn(&c[2]); err != nil {
		return err
	}
	return b.k.NormRope(c[0].dst.view(), c[1].dst.view(), c[0].w.values, c[1].w.values, c[0].float(), &b.turns, int(c[0].rows))
}

// activations is what a linear layer multiplies.
func (b *Backend) activations(c *call) activations {
	switch w, heads := b.state.within, b.state.heads; {
	case w == nil:
		return activations{x: c.x.view()}
	case w.kind == normCall:
		return activations{source: normSource, x: w.x.view(), norm: w.w.values, eps: w.float()}
	case heads != nil:
		return activations{source: gatedSource, x: heads.x.view(), gate: w.k.view(), norm: heads.w.values, eps: heads.float()}
	default:
		return activations{source: siluSource, x: w.x.view(), gate: w.k.view()}
	}
}

// product launches a linear layer. Several that read the same rows share what these
// are split into.
func (b *Backend) product(c *call) error {
	s := &b.state
	for _, p := range c.m.pieces {
		y := c.dst.view()
		y.Offset += p.row
		add := c.flags != 0 || p.adds
		var bias Memory
		if c.bias != nil && !p.adds {
			bias = c.bias.values.Part(int64(4*p.row), int64(4*p.m.out))
		}
		if w := s.within; int(c.rows) <= MaxRows && few(p.m) && (w == nil || w.kind == normCall) {
			x, norm, eps := c.x.view(), Memory{}, float32(0)
			if w != nil {
				x, norm, eps = w.x.view(), w.w.values, w.float()
			}
			s.few = fewProduct{y: y, x: x, m: p.m, bias: bias, norm: norm, eps: eps, add: add, n: int(c.rows)}
			if next := s.next; next != nil && next.kind == convolveCall && next.dst.buffer != c.dst.buffer &&
				next.dst.buffer != c.x.buffer && (w == nil || next.dst.buffer != w.x.buffer) && len(c.m.pieces) == 1 {
				s.beside = &s.few
			} else if err := b.k.Few(&s.few); err != nil {
				return err
			}
			continue
		}
		at := Product{Y: Memory{b.device, y.first(), y.Memory.bytes}, Pitch: y.Pitch, M: p.m, Bias: bias, Add: add}
		from := b.activations(c)
		if divided, ok := b.k.ownable(p.m, &from, int(c.rows)); ok {
			if err := b.k.ownProduct(&at, &from, divided); err != nil {
				return err
			}
			continue
		}
		o := b.operands[p.m.in]
		if s.operand != o || s.split != c.x || s.splitRows != c.rows || s.splitWrite != c.x.buffer.writes || s.splitFrom != s.within {
			o.values, o.scales = b.values.Memory, b.scales
			if err := b.k.splitFrom(o, &from, int(c.rows)); err != nil {
				return err
			}
			s.operand, s.split, s.splitRows, s.splitWrite, s.splitFrom = o, c.x, c.rows, c.x.buffer.writes, s.within
			s.quantised = false
		}
		at.X = o
		if b.k.fp4 != nil && p.m.format == NVFP4 && o.n > MaxRows {
			if !s.quantised {
				if err := b.k.quantise(b.fours.Memory, o); err != nil {
					return err
				}
				s.quantised = true
			}
			if err := b.k.fp4Product(&at, b.fours.Memory, fp4Tile(p.m.out, o.n, b.device.facts.SMs)); err != nil {
				return err
			}
			continue
		}
		if err := b.k.Linear(&at); err != nil {
			return err
		}
	}
	return nil
}

// attend launches attention.
func (b *Backend) attend(c *call) error {
	r := b.state.rows
	r.N, r.Sequences = int(c.rows), b.batch.Segments
	return b.k.Attend(c.dst.view(), c.x.view(), c.k.view(), c.v.view(), &c.cache.pair, &r, int(c.layer), int(c.window), c.float(), b.scratch.Memory)
}
