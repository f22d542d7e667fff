package app

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"velo/engine/enginetest"
)

// velo runs a command line and returns the exit code and what it wrote.
func command(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, strings.NewReader(in), &o, &e, nil)
	return code, o.String(), e.String()
}

func TestRunAnswers(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Hybrid)
	code, out, errs := command(t, "", "run", folder, "--prompt", "the thing", "--greedy", "-n", "12", "--ignore-eos", "--json")
	var got timings
	if err := json.Unmarshal([]byte(errs), &got); err != nil || code != exitOK || len(out) < 5 {
		t.Fatalf("exit %d, %v\n%s\n%s", code, err, out, errs)
	}
	if got.GeneratedTokens != 12 || got.MemoryBytes < 100_000 || got.Finish != "length" || got.DecodeRate <= 0 || got.PromptRate <= 0 || got.TTFT <= 0 {
		t.Errorf("the timings are %+v", got)
	}
	_, again, words := command(t, "the thing", "run", folder, "--greedy", "-n", "12", "--ignore-eos")
	if again != out {
		t.Errorf("from the standard input the answer is %q, from a flag %q", again, out)
	}
	for _, want := range []string{"tiny-qwen3_5 on cpu", "memory   weights", "prefill", "decode   12 tokens", "at the limit"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is missing in\n%s", want, words)
		}
	}
	plain := "--plain"
	if _, bare, _ := command(t, "", "run", folder, "--prompt", "the thing", "--greedy", "-n", "12", "--ignore-eos", "-q", plain); bare == out {
		t.Error("the chat template made no difference")
	}
	// The makers' advice is to sample: two seeds, two answers.
	_, one, _ := command(t, "", "run", folder, "-p", "a", "-n", "30", "--ignore-eos", "--seed", "1", "-q")
	_, same, _ := command(t, "", "run", folder, "-p", "a", "-n", "30", "--ignore-eos", "--seed", "1", "-q")
	_, other, _ := command(t, "", "run", folder, "-p", "a", "-n", "30", "--ignore-eos", "--seed", "2", "-q")
	if one != same || one == other {
		t.Errorf("seed 1 gave %q and %q, seed 2 %q", one, same, other)
	}
}

func TestRunRefuses(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Plain)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run"}, exitUsage, "0 of 1 arguments"},
		{[]string{"run", folder}, exitUsage, "there is no prompt"},
		{[]string{"run", folder, "--prompt", ""}, exitUsage, "--prompt is empty"},
		{[]string{"run", folder + "x", "--prompt", "a"}, exitFailed, "no such file"},
		{[]string{"run", folder, "--prompt", "a", "--temperature", "-1"}, exitUsage, "temperature"},
		{[]string{"run", folder, "--prompt", "a", "--temperature", "1", "--greedy"}, exitUsage, "--greedy and --temperature exclude each other"},
		{[]string{"run", folder, "--prompt", "a", "--prompt-file", "b"}, exitUsage, "--prompt and --prompt-file exclude each other"},
		{[]string{"run", folder, "--prompt", "a", "--plain", "--system", "b"}, exitUsage, "--plain and --system exclude each other"},
		{[]string{"run", folder, "--prompt", "a", "-n", "-1"}, exitUsage, "--max-tokens is -1"},
		{[]string{"run", folder, "--prompt", "a", "-n", "many"}, exitUsage, `--max-tokens takes a whole number, not "many"`},
		{[]string{"run", folder, "--prompt", "a", "-n", "99999999999999999999"}, exitUsage, `--max-tokens takes a number that is not so large`},
		{[]string{"run", folder, "--prompt", "a", "--context", "-1"}, exitUsage, "--context is -1"},
		{[]string{"run", folder, "--prompt", "a", "--threads", "-1"}, exitUsage, "--threads is -1"},
		{[]string{"run", folder, "--prompt", "a", "--seed", "-1"}, exitUsage, `--seed takes a whole number from 0 on, not "-1"`},
		{[]string{"run", folder, "--prompt", "a\xff"}, exitFailed, "it is no UTF-8 from byte 1 on (0xff)"},
		{[]string{"run", folder, "--prompt", "\xff\xfea\x00"}, exitFailed, "it is UTF-16; save it as UTF-8"},
		{[]string{"run", folder, "--prmopt", "a"}, exitUsage, "there is no flag --prmopt; did you mean --prompt?"},
		{[]string{"run", folder, "--prompt"}, exitUsage, "--prompt needs a value"},
		{[]string{"run", folder, "what", "is"}, exitUsage, "\"what\" is one too many\nvelo: `velo run --help` says what it takes"},
		{[]string{"run", folder, "--prompt", "a", "--context", "4096"}, exitFailed, "2048"},
		{[]string{"run", folder, "--prompt", strings.Repeat("x", 3000)}, exitFailed, "the context is 2048"},
		{[]string{"run", folder, "--prompt", "a", "--device", "abacus"}, exitUsage, "it is auto, cpu"},
		{[]string{"run", folder, "--prompt", "a", "--device", "cpu", "--kv-type", "q8"}, exitUsage, "f32 alone"},
		{[]string{"run", folder, "--prompt", "a", "--device", "cpu", "--prefill-fp4"}, exitFailed, "no weights in NVFP4"},
		{[]string{"run", folder, "--prompt-file", filepath.Join(folder, "none")}, exitFailed, "cannot read the prompt"},
	} {
		if code, _, errs := command(t, "", c.args...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, %s", c.args, code, errs)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"run", folder, "--prompt", "a"}, strings.NewReader(""), &out, &errs, nil); code != exitStopped {
		t.Errorf("stopped at once: exit %d, %s", code, errs.String())
	}
}

func TestQuantizeCommand(t *testing.T) {
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		folder, out := enginetest.Folder(t, family), filepath.Join(t.TempDir(), "small")
		text := filepath.Join(t.TempDir(), "text")
		if err := os.WriteFile(text, []byte(strings.Repeat("the thing and another; ", 10)), 0o600); err != nil {
			t.Fatal(err)
		}
		code, report, errs := command(t, "", "quantize", folder, out, "--text", text, "--window", "64", "--json")
		var got quantised
		if err := json.Unmarshal([]byte(report), &got); err != nil || code != exitOK {
			t.Fatalf("exit %d, %v\n%s", code, err, errs)
		}
		if len(got.Report.Losses) == 0 || got.Report.After >= got.Report.Before || got.PerplexityBefore < 2 || got.PerplexityAfter == got.PerplexityBefore {
			t.Errorf("%s: the report is %+v", family, got)
		}
		if ratio := got.PerplexityAfter / got.PerplexityBefore; ratio < 0.5 || ratio > 2 {
			t.Errorf("%s: the perplexity went from %.3g to %.3g", family, got.PerplexityBefore, got.PerplexityAfter)
		}
		// What was written answers.
		if code, answer, errs := command(t, "", "run", out, "-p", "the", "--greedy", "-n", "5", "--ignore-eos", "-q"); code != exitOK || answer == "" {
			t.Errorf("%s: the smaller model: exit %d, %q, %s", family, code, answer, errs)
		}
		if code, _, errs := command(t, "", "quantize", folder, out); code != exitFailed || !strings.Contains(errs, out) {
			t.Errorf("over a folder that is there: exit %d, %s", code, errs)
		}
	}
	if code, _, errs := command(t, "", "quantize", "a", "b", "--recipe", "mlp:fp3"); code != exitUsage || !strings.Contains(errs, "fp3") {
		t.Errorf("an unknown format: exit %d, %s", code, errs)
	}
}
