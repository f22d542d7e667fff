package synthetic_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/engine"
	"velo/engine/meter"
	"velo/engine/sched"
	"velo/engine/server"
	"velo/engine/synthetic"
)

// A served model takes a text byte by byte and writes every id.
func TestServed(t *testing.T) {
	w, err := synthetic.Served("qwen3.5-0.8b:bf16")
	if err != nil {
		t.Fatal(err)
	}
	z, _, err := engine.Tokenizer(w)
	if err != nil {
		t.Fatal(err)
	}
	if ids := z.Encode("an hour\n", true); len(ids) != 8 {
		t.Errorf("8 bytes are %v", ids)
	}
	if z.Vocab() != synthetic.Vocab || !slices.Equal(z.EOS(), []int32{synthetic.Vocab - 1}) {
		t.Errorf("%d ids, of which %v end an answer", z.Vocab(), z.EOS())
	}
	for _, id := range []int32{0, 255, 256, 100000, synthetic.Vocab - 2} {
		if z.Decode([]int32{id}) == "" {
			t.Errorf("id %d has no text", id)
		}
	}
}

// BenchmarkServe is what a client of a served model sees on a GPU: the time to the first token of
// a prompt of 16,384 tokens, of the same prompt again and with a tail, whose state is kept on the
// device, and the speed of an answer. VELO_MODEL chooses the model.
func BenchmarkServe(b *testing.B) {
	name := os.Getenv("VELO_MODEL")
	if name == "" {
		name = "qwen3.5-9b:nvfp4"
	}
	w, err := synthetic.Served(name)
	if err != nil {
		b.Fatal(err)
	}
	const prompt = 16384
	e, err := engine.Open(b.Context(), w, engine.Options{Backend: "cuda", Context: prompt + 2048, Lanes: 16, Tokens: 8 * prompt, Checkpoints: 24})
	if err != nil {
		b.Skip(err)
	}
	defer e.Close()
	m := meter.New(meter.Build{}, func() sched.Status { return sched.Status{} }, meter.Sources{})
	scheduler := sched.New(e.Model, sched.Options{Lanes: e.Lanes, Context: e.Context, StepTime: 100 * time.Millisecond, PrefixCache: true, LoopWindow: -1, Observer: m})
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- scheduler.Run(running) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}()
	s := httptest.NewServer(server.New(server.Options{Engine: e, Scheduler: scheduler, Meter: m}).Handler())
	defer s.Close()

	ask := func(text string, most int) (first, last time.Duration, tokens int) {
		body, err := json.Marshal(map[string]any{"prompt": text, "max_tokens": most, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "ignore_eos": true, "stream": true, "seed": 1})
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		r, err := http.Post(s.URL+"/v1/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		defer r.Body.Close()
		lines := bufio.NewScanner(r.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if line := lines.Text(); !strings.HasPrefix(line, "data: {") {
				if line != "" && line != "data: [DONE]" {
					b.Fatal(line)
				}
				continue
			} else if !strings.Contains(line, `"text":""`) {
				last = time.Since(begin)
				if tokens++; tokens == 1 {
					first = last
				}
			}
		}
		if tokens == 0 {
			b.Fatal("no token came")
		}
		return first, last, tokens
	}
	median := func(what string, times []time.Duration) {
		slices.Sort(times)
		fmt.Printf("%s: %s: median %.2f ms (%.2f to %.2f)\n", name, what, times[len(times)/2].Seconds()*1e3, times[0].Seconds()*1e3, times[len(times)-1].Seconds()*1e3)
	}
	ask("warm", 40)
	text := strings.Repeat("sixteen letters ", prompt/16)
	first, _, _ := ask(text, 8)
	median("first token of 16,384 tokens that are new", []time.Duration{first})
	var again, tail []time.Duration
	for i := range 7 {
		t, _, _ := ask(text, 8)
		again = append(again, t)
		t, _, _ = ask(text+fmt.Sprintf("%64d", i), 8)
		tail = append(tail, t)
	}
	median("the same prompt again", again[1:])
	median("that and 64 tokens more", tail[1:])
	for _, at := range []struct {
		what, text string
	}{{"a short prompt", "begin"}, {"16,384 tokens", text}} {
		var rates []float64
		for range 3 {
			first, last, n := ask(at.text, 300)
			rates = append(rates, float64(n-1)/(last-first).Seconds())
		}
		slices.Sort(rates)
		fmt.Printf("%s: an answer after %s: %.1f tokens/s\n", name, at.what, rates[1])
	}
	// Sixteen clients at once.
	const clients = 16
	begin := time.Now()
	total := make(chan int, clients)
	for i := range clients {
		go func() {
			_, _, n := ask(fmt.Sprintf("client %d", i), 200)
			total <- n
		}()
	}
	sum := 0
	for range clients {
		sum += <-total
	}
	fmt.Printf("%s: %d clients together: %.1f tokens/s\n", name, clients, float64(sum)/time.Since(begin).Seconds())
}
