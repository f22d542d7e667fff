package engine

import (
	"context"
	"math"
	"strings"
	"testing"

	"velo/engine/enginetest"
	"velo/engine/sample"
)

func TestGenerate(t *testing.T) {
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		// A step of few rows cuts the prompt into chunks: the answer must be the same.
		var answers []string
		for _, rows := range []int{0, 3} {
			e := loadTiny(t, family, Options{Context: 64, Lanes: 1, Rows: rows})
			var text strings.Builder
			a, err := e.Generate(t.Context(), e.Text("the other thing"), sample.Params{}, 20, true, func(s string) { text.WriteString(s) })
			if err != nil {
				t.Fatal(err)
			}
			if a.Generated != 20 || a.Finish != Length || a.Prompt == 0 || !a.First.After(a.Begin) || !a.Last.After(a.First) {
				t.Errorf("%s: the answer is %+v", family, a)
			}
			answers = append(answers, text.String())
			all, err := e.Generate(t.Context(), e.Text("a"), sample.Params{}, 0, true, func(string) {})
			if err != nil || all.Prompt+all.Generated != 64 {
				t.Errorf("%s: without a limit the answer is %+v, %v", family, all, err)
			}
			if free := e.Model.Pool().FreePages(); free != 5 { // 64 tokens in pages of 16, and one more
				t.Errorf("%s: %d pages are free after the answers", family, free)
			}
		}
		if answers[0] != answers[1] {
			t.Errorf("%s: in chunks the answer is %q, in one go %q", family, answers[1], answers[0])
		}
	}
}

func TestGenerateEnds(t *testing.T) {
	e := loadTiny(t, enginetest.Plain, Options{Context: 32, Lanes: 1})
	// A bias makes the end the likeliest token.
	p := sample.Params{LogitBias: map[int32]float32{e.EOS[0]: 1000}}
	text := ""
	a, err := e.Generate(t.Context(), e.Text("a"), p, 5, false, func(s string) { text += s })
	if err != nil || a.Finish != Stopped || a.Generated != 1 || text != "" {
		t.Errorf("an answer that ends at once is %+v, %q, %v", a, text, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	count := 0
	a, err = e.Generate(ctx, e.Text("a"), sample.Params{}, 20, true, func(string) {
		if count++; count == 3 {
			cancel()
		}
	})
	if err != nil || a.Finish != Cancelled || a.Generated != 3 {
		t.Errorf("a cancelled answer is %+v, %v", a, err)
	}
	for prompt, want := range map[string]string{"": "empty", strings.Repeat("a", 32): "context is 32"} {
		if _, err := e.Generate(t.Context(), e.Text(prompt), sample.Params{}, 5, false, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a prompt of %d bytes gave %v", len(prompt), err)
		}
	}
}

// The perplexity of a text must not depend on how the rows are grouped, and follows from the
// logits of single steps.
func TestPerplexity(t *testing.T) {
	text := strings.Repeat("the thing and another ", 4)
	var all []float64
	for _, o := range []Options{{Lanes: 1, Context: 128}, {Lanes: 1, Context: 128, Rows: 7}, {Lanes: 1, Context: 128, Outputs: 64}} {
		e := loadTiny(t, enginetest.Hybrid, o)
		ids, last := e.Text(text), 0
		p, err := e.Perplexity(t.Context(), ids, 40, func(done, total int) {
			if done <= last || total != len(ids) {
				t.Errorf("progress went from %d to %d of %d", last, done, total)
			}
			last = done
		})
		if err != nil || last != len(ids) {
			t.Fatalf("%v after %d of %d", err, last, len(ids))
		}
		all = append(all, p)
	}
	if all[0] != all[1] || all[0] != all[2] || math.IsNaN(all[0]) || all[0] < 2 {
		t.Errorf("the perplexities are %v", all)
	}
}
