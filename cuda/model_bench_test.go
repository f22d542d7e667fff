//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/engine/model"
	"velo/engine/weights"
)

// shaped is a model of a shape without weights: the backend makes some up.
type shaped struct {
	c *weights.Config
	t weights.Type
}

func (s shaped) Tensor(name string) (*weights.Tensor, bool) {
	c := s.c
	keys, values := c.LinearKeyHeads*c.LinearKeyDim, c.LinearValueHeads*c.LinearValueDim
	queries, pairs := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	if c.AttentionGate {
		queries *= 2
	}
	for _, k := range []struct {
		end   string
		shape []int
	}{
		{"embed_tokens.weight", []int{c.Vocab, c.Hidden}}, {"lm_head.weight", []int{c.Vocab, c.Hidden}},
		{"layernorm.weight", []int{c.Hidden}}, {"model.norm.weight", []int{c.Hidden}},
		{"gate_proj.weight", []int{c.Intermediate, c.Hidden}}, {"up_proj.weight", []int{c.Intermediate, c.Hidden}},
		{"down_proj.weight", []int{c.Hidden, c.Intermediate}},
		{"q_proj.weight", []int{queries, c.Hidden}}, {"k_proj.weight", []int{pairs, c.Hidden}}, {"v_proj.weight", []int{pairs, c.Hidden}},
		{"o_proj.weight", []int{c.Hidden, c.Heads * c.HeadDim}}, {"q_norm.weight", []int{c.HeadDim}}, {"k_norm.weight", []int{c.HeadDim}},
		{"in_proj_qkv.weight", []int{2*keys + values, c.Hidden}}, {"in_proj_z.weight", []int{values, c.Hidden}},
		{"in_proj_b.weight", []int{c.LinearValueHeads, c.Hidden}}, {"in_proj_a.weight", []int{c.LinearValueHeads, c.Hidden}},
		{"out_proj.weight", []int{c.Hidden, values}}, {"conv1d.weight", []int{2*keys + values, 1, c.ConvKernel}},
		{"linear_attn.norm.weight", []int{c.LinearValueDim}}, {"A_log", []int{c.LinearValueHeads}}, {"dt_bias", []int{c.LinearValueHeads}},
	} {
		if strings.HasSuffix(name, k.end) {
			t := &weights.Tensor{Name: name, Type: s.t, Shape: k.shape}
			if len(k.shape) != 2 || strings.HasSuffix(name, "in_proj_a.weight") || strings.HasSuffix(name, "in_proj_b.weight") || strings.Contains(name, "embed") {
				t.Type = weights.BF16
			}
			return t, true
		}
	}
	return nil, false
}

// hybrid is the shape of a Qwen3.5 model.
func hybrid(layers, hidden, heads, inner, valueHeads int) *weights.Config {
	c := &weights.Config{Architecture: weights.Qwen35, Layers: layers, Hidden: hidden, Heads: heads, KVHeads: 4, HeadDim: 256, Intermediate: inner,
		Vocab: 248320, MaxPosition: 262144, RopeTheta: 1e7, PartialRotary: 0.25, RMSEps: 1e-6, QKNorm: true, AttentionGate: true, NormOnePlus: true,
		LinearKeyHeads: 16, LinearValueHeads: valueHeads, LinearKeyDim: 128, LinearValueDim: 128, ConvKernel: 4}
	for i := range layers {
		kind := weights.LinearAttention
		if i%4 == 3 {
			kind = weights.FullAttention
		}
		c.LayerTypes = append(c.LayerTypes, kind)
	}
	return c
}

var synthetic = []struct {
	name string
	c    *weights.Config
	t    weights.Type
}{
	{"27B", hybrid(64, 5120, 24, 17408, 48), weights.NVFP4},
	{"9B", hybrid(32, 4096, 16, 12288, 32), weights.NVFP4},
	{"9B", hybrid(32, 4096, 16, 12288, 32), weights.FP8Row},
	{"9B", hybrid(32, 4096, 16, 12288, 32), weights.BF16},
}

// BenchmarkModel times steps of models of true shapes with random weights: decode for
// 1 to 16 sequences, with what each kind of kernel takes, and prefill. VELO_BENCH
// chooses by words, "9B nvfp4 decode" for example.
func BenchmarkModel(b *testing.B) {
	for _, s := range synthetic {
		name := s.name + " " + strings.ToLower(s.t.String())
		if !strings.HasPrefix(name, os.Getenv("VELO_BENCH")) {
			continue
		}
		func() {
			backend := newBackend(b, BackendOptions{Rows: 512})
			defer backend.Close()
			begin := time.Now()
			m, err := model.New(s.c, shaped{s.c, s.t}, backend, model.Options{Tokens: 16 * 9000, Sequences: 17, Outputs: 16})
			if err != nil {
				b.Fatal(err)
			}
			bytes := int64(0)
			for _, layer := range backend.memory.pools {
				bytes += layer.whole.bytes
			}
			fmt.Printf("%s: ready after %v, %.1f GB\n", name, time.Since(begin).Round(time.Millisecond), float64(bytes)/1e9)
			for _, past := range []int{128, 8192} {
				for _, n := range []int{1, 2, 4, 8, 16} {
					if past > 1000 && n > 2 {
						continue
					}
					decode(b, m, backend, name, n, past)
				}
			}
			prefill(b, m, backend, name, 2048)
		}()
	}
}

// decode times steps of one row for each of n sequences with so many tokens behind them.
func decode(t testing.TB, m *model.Model, b *Backend, name string, n, past int) {
	step := m.NewStep()
	run := func() time.Duration {
		step.Reset()
		for range n {
			s := sequence(t, m)
			defer s.Free()
			if err := s.Reserve(past); err != nil {
				t.Fatal(err)
			}
			s.Advance(past)
			if err := step.Add(s, []int32{7}, 1); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if _, err := m.Run(step); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	var times []time.Duration
	for i := range 9 {
		if took := run(); i > 2 {
			times = append(times, took)
		}
	}
	slices.Sort(times)
	wall := times[len(times)/2]
	graph := median(t, b.device, b.graphs[0].graph)
	read := int64(0)
	for _, c := range b.graphs[0].calls {
		if c.kind == linearCall {
			for _, p := range c.m.pieces {
				read += p.m.Bytes()
			}
		}
	}
	fmt.Printf("%s decode %2d rows, %5d behind: step %8.1f µs, graph %8.1f µs, weights %.2f GB: %.2f TB/s, %.1f rows/s\n",
		name, n, past, float64(wall)/1e3, float64(graph)/1e3, float64(read)/1e9, float64(read)/graph.Seconds()/1e12, float64(n)/wall.Seconds())
	if n == 1 || n == 8 {
		kinds(t, b, b.graphs[0].calls)
	}
}

// kinds times the calls of a step by what they are, each kind as a graph of its own.
func kinds(t testing.TB, b *Backend, calls []call) {
	names := [...]string{"embed", "norm", "linear", "rope", "attend", "convolve", "delta", "silu", "sigmoid", "gather"}
	var order []string
	groups := map[string][]*call{}
	for i := range calls {
		c := &calls[i]
		name := names[c.kind]
		switch c.kind {
		case linearCall:
			name = fmt.Sprintf("linear %d × %d", c.m.out, c.m.in)
		case normCall:
			name = fmt.Sprintf("norm %d × %d", c.x.heads, c.x.dim)
		}
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], c)
	}
	state := b.state
	whole := b.state
	whole.operand = nil
	state = whole
	g := graph(t, b.device, 1, func(int) error {
		b.state = whole
		return b.dispatchAll(calls)
	})
	fmt.Printf("    all %38.1f µs\n", float64(median(t, b.device, g))/1e3)
	g.Close()
	// Splits alone: each linear layer's.
	var splits []*call
	for i := range calls {
		if calls[i].kind == linearCall {
			splits = append(splits, &calls[i])
		}
	}
	timed := func(f func(c *call) error, calls []*call) float64 {
		g := graph(t, b.device, len(calls), func(i int) error { return f(calls[i]) })
		defer g.Close()
		return float64(median(t, b.device, g)) / 1e3
	}
	took := timed(func(c *call) error {
		p := c.m.pieces[0]
		o := b.operands[operandKey{p.m.format, p.m.in}]
		o.values, o.scales = b.values, b.scales
		return b.k.splitFrom(0, o, c.x.view(), View{}, 0, int(c.rows))
	}, splits)
	fmt.Printf("    %-24s %4d × %7.2f µs = %8.1f µs\n", "split", len(splits), took/float64(len(splits)), took)
	for _, name := range order {
		list := groups[name]
		b.state = state
		took := timed(b.dispatch, list)
		extra := ""
		if list[0].kind == linearCall {
			read := int64(0)
			alone := timed(func(c *call) error {
				for _, p := range c.m.pieces {
					o := b.operands[operandKey{p.m.format, p.m.in}]
					o.n, o.values, o.scales = int(c.rows), b.values, b.scales
					read += p.m.Bytes()
					if err := b.k.Linear(&Product{Y: c.dst.view().Memory, Pitch: c.dst.buffer.cols, X: o, M: p.m, Add: c.flags != 0}); err != nil {
						return err
					}
				}
				return nil
			}, list)
			extra = fmt.Sprintf(", product alone %8.1f, %.2f TB/s", alone, float64(read)/alone/1e6)
		}
		fmt.Printf("    %-24s %4d × %7.2f µs = %8.1f µs%s\n", name, len(list), took/float64(len(list)), took, extra)
	}
	b.state = state
}

// prefill times a prompt, in steps of as many rows as the backend takes.
func prefill(t testing.TB, m *model.Model, b *Backend, name string, n int) {
	step := m.NewStep()
	var took []time.Duration
	for range 2 {
		s := sequence(t, m)
		begin := time.Now()
		for at := 0; at < n; at += m.Rows() {
			step.Reset()
			tokens, outputs := words(m, uint64(at), min(m.Rows(), n-at)), 0
			if at+len(tokens) == n {
				outputs = 1
			}
			if err := step.Add(s, tokens, outputs); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Run(step); err != nil {
				t.Fatal(err)
			}
		}
		took = append(took, time.Since(begin))
		s.Free()
	}
	fmt.Printf("%s prefill %d rows: %.1f ms, %.0f rows/s\n", name, n, float64(took[1])/1e6, float64(n)/took[1].Seconds())
	// The last step, which Read left in the list's memory.
	for last := len(b.calls); last < cap(b.calls); last++ {
		if b.calls[:last+1][last].kind == gatherCall {
			kinds(t, b, slices.Clone(b.calls[:last+2]))
			return
		}
	}
}
