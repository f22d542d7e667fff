//go:build linux && cuda && cgo

package cuda

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
	"velo/engine/synthetic"
)

var benched = []string{"qwen3.6-27b:nvfp4", "qwen3.5-9b:nvfp4", "qwen3.5-9b:fp8", "qwen3.5-9b:bf16"}

// BenchmarkModel times steps of models of true shapes with random weights: decode for
// 1 to 16 sequences, with what each kind of kernel takes, and prefill. VELO_BENCH
// chooses by the beginning of a name, "qwen3.5-9b:nvfp4" for example; VELO_ROWS is how
// many rows of a prompt are a step, and then there is no decode. VELO_WAYS are ways to launch
// products (device_test.go), separated by semicolons, to be compared by steps of VELO_DECODE rows.
func BenchmarkModel(b *testing.B) {
	for _, name := range benched {
		if !strings.HasPrefix(name, os.Getenv("VELO_BENCH")) {
			continue
		}
		func() {
			rows, promptsOnly := 512, false
			if n, err := strconv.Atoi(os.Getenv("VELO_ROWS")); err == nil {
				rows, promptsOnly = n, true
			}
			backend := newBackend(b, BackendOptions{Rows: rows, KV: ops.KVBF16})
			defer backend.Close()
			begin := time.Now()
			w, err := synthetic.Open(name)
			if err != nil {
				b.Fatal(err)
			}
			m, err := model.New(&w.Config, w, backend, model.Options{Tokens: 16 * 9000, Sequences: 17, Outputs: 16})
			if err != nil {
				b.Fatal(err)
			}
			bytes := int64(0)
			for _, layer := range backend.memory.pools {
				bytes += layer.whole.bytes
			}
			fmt.Printf("%s: ready after %v, %.1f GB\n", name, time.Since(begin).Round(time.Millisecond), float64(bytes)/1e9)
			if all, ok := os.LookupEnv("VELO_WAYS"); ok {
				for words := range strings.SplitSeq(all, ";") {
					launchAs(b, backend.k, words)
					if err := backend.forget(); err != nil {
						b.Fatal(err)
					}
					fmt.Printf("way [%s]\n", words)
					past := 128
					if n, err := strconv.Atoi(os.Getenv("VELO_PAST")); err == nil {
						past = n
					}
					for n := range strings.FieldsSeq(cmp.Or(os.Getenv("VELO_DECODE"), "1 2 4 8 16")) {
						rows, err := strconv.Atoi(n)
						if err != nil {
							b.Fatal(err)
						}
						decode(b, m, backend, name, rows, past)
						if os.Getenv("VELO_GAPS") != "" {
							gaps(b, m, backend, rows, past)
						}
					}
				}
				return
			}
			for _, past := range []int{128, 8192} {
				for _, n := range []int{1, 2, 4, 8, 16} {
					if promptsOnly || past > 1000 && n > 2 {
						continue
					}
					decode(b, m, backend, name, n, past)
				}
			}
			prefill(b, m, backend, name, 2048)
			tail(b, m, backend, name, 64, 16384)
		}()
	}
}

// decode times steps of one row for each of n sequences with so many tokens behind them.
func decode(t testing.TB, m *model.Model, b *Backend, name string, n, past int) {
	step := m.NewStep()
	// Tokens chosen in the step with top-k 20 and top-p 0.8, or logits on the host.
	run := func(choose bool) time.Duration {
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
		for i := range n {
			if choose && !step.Pick(i, sample.Pick{Temperature: 0.7, TopK: 20, TopP: 0.8, Uniform: 0.5, Top: sample.NoLogProbs}, false) {
				t.Fatal("a choice was refused")
			}
		}
		// New sequences' states are cleared on the device, 151 MB each of the 27B model.
		if err := b.device.Wait(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := m.Run(step); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
	middle := func(choose bool) time.Duration {
		var times []time.Duration
		for i := range 9 {
			if took := run(choose); i > 2 {
				times = append(times, took)
			}
		}
		slices.Sort(times)
		return times[len(times)/2]
	}
	logits := middle(false)
	wall := middle(true)
	graph := median(t, b.device, b.shapes.graphs[0].graph)
	read := int64(0)
	for _, c := range b.shapes.graphs[0].calls {
		if c.kind == linearCall {
			for _, p := range c.m.pieces {
				read += p.m.Bytes()
			}
		}
	}
	fmt.Printf("%s decode %2d rows, %5d behind: step %8.1f µs (with logits on the host %8.1f), graph %8.1f µs, weights %.2f GB: %.2f TB/s, %.1f rows/s\n",
		name, n, past, float64(wall)/1e3, float64(logits)/1e3, float64(graph)/1e3, float64(read)/1e9, float64(read)/graph.Seconds()/1e12, float64(n)/wall.Seconds())
	if _, ok := os.LookupEnv("VELO_WAYS"); !ok && (n == 1 || n == 8) {
		kinds(t, b, b.shapes.graphs[0].calls)
	}
}

// gaps says what a step of n rows takes beyond its launches by themselves.
func gaps(t testing.TB, m *model.Model, b *Backend, n, past int) {
	step := m.NewStep()
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
	cost, err := b.StepCost(func() error { _, err := m.Run(step); return err }, time.Now().Add(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	sum := time.Duration(0)
	for _, c := range cost.Costs {
		sum += c.Time
		if c.Time > 5*time.Microsecond {
			fmt.Printf("    %-28s %-28s %4d × %7.2f µs\n", c.Kernel, c.Shape, c.Launches, float64(c.Time)/1e3/float64(c.Launches))
		}
	}
	fmt.Printf("    %d launches, graph %.1f µs, each kind by itself %.1f µs: %.2f µs a launch between them\n", cost.Launches,
		float64(cost.Graph)/1e3, float64(sum)/1e3, float64(cost.Graph-sum)/1e3/float64(cost.Launches))
}

// kinds times the calls of a step by what they are, each kind as a graph of its own.
func kinds(t testing.TB, b *Backend, calls []call) {
	names := [...]string{"embed", "norm", "linear", "rope", "attend", "convolve", "delta", "silu", "sigmoid", "gather", "sample"}
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
		o := b.operands[p.m.in]
		o.values, o.scales = b.values.Memory, b.scales
		return b.k.splitFrom(o, &activations{x: c.x.view()}, int(c.rows))
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
					o := b.operands[p.m.in]
					o.n, o.values, o.scales = int(c.rows), b.values.Memory, b.scales
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

// tail times a step that reads n rows more of a text of which so many tokens are behind, as
// after a hit in the prefix cache.
func tail(t testing.TB, m *model.Model, b *Backend, name string, n, past int) {
	step := m.NewStep()
	var times []time.Duration
	for range 5 {
		s := sequence(t, m)
		if err := s.Reserve(past); err != nil {
			t.Fatal(err)
		}
		s.Advance(past)
		step.Reset()
		if err := step.Add(s, words(m, 3, n), 1); err != nil {
			t.Fatal(err)
		}
		if err := b.device.Wait(); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := m.Run(step); err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(begin))
		s.Free()
	}
	slices.Sort(times)
	fmt.Printf("%s %d rows, %d behind: step %.2f ms\n", name, n, past, float64(times[2])/1e6)
	if last := slices.IndexFunc(b.calls[:cap(b.calls)], func(c call) bool { return c.kind == gatherCall }); last >= 0 {
		kinds(t, b, slices.Clone(b.calls[:last+2]))
	}
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
