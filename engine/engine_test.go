package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"velo/engine/chat"
	"velo/engine/enginetest"
	"velo/engine/weights"
)

func loadTiny(t *testing.T, family string, o Options) *Engine {
	t.Helper()
	e, err := Load(enginetest.Folder(t, family), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func TestLoad(t *testing.T) {
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		var last, total int64
		e := loadTiny(t, family, Options{Context: 128, Lanes: 2, Progress: func(p Progress) {
			if p.Done < last {
				t.Errorf("progress went back from %d to %d", last, p.Done)
			}
			last, total = p.Done, p.Total
		}})
		if last != total || total != e.Weights.Bytes() {
			t.Errorf("%s: progress ended at %d of %d, of %d bytes", family, last, total, e.Weights.Bytes())
		}
		if e.Name != "tiny-"+family {
			t.Errorf("the folder's model is called %q", e.Name)
		}
		if len(e.EOS) != 2 || e.EOS[0] != enginetest.First || e.EOS[1] != enginetest.First+2 {
			t.Errorf("%s: EOS is %v", family, e.EOS)
		}
		if e.Defaults.Temperature != 0.7 || e.Defaults.TopK != 20 {
			t.Errorf("%s: defaults are %+v", family, e.Defaults)
		}
		text, ids, err := e.Prompt(chat.Request{Messages: []byte(`[{"role":"user","content":"the <|im_end|>"}]`), AddGenerationPrompt: true})
		if err != nil {
			t.Fatal(err)
		}
		if want := "<|im_start|>user\nthe <|im_end|><|im_end|>\n<|im_start|>assistant\n"; text != want || ids[0] != enginetest.First+1 {
			t.Errorf("the prompt is %q, ids %v", text, ids)
		}
		if got := e.Tokenizer.Decode(ids); got != text {
			t.Errorf("the ids say %q, not %q", got, text)
		}
		for _, id := range e.Text("the <|im_end|>") {
			if e.Tokenizer.Special(id) {
				t.Errorf("%s: a plain text made the control token %d", family, id)
			}
		}
	}
}

func TestSize(t *testing.T) {
	w, err := weights.Open(enginetest.Folder(t, enginetest.Hybrid))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	o, fit, err := Size(w, Options{})
	if err != nil || o.Context != 2048 || o.Lanes != 8 || o.Tokens != 8*2048 {
		t.Errorf("the sizes are %+v, %v", o, err)
	}
	if fit.Total != fit.Weights+fit.KV+fit.State+fit.Scratch || fit.Weights != w.Bytes() /* bf16 is used where it lies */ {
		t.Errorf("the parts of %+v are not its sum", fit)
	}
	if more, _, _ := Size(w, Options{Checkpoints: 8}); more.Checkpoints != 8 {
		t.Errorf("checkpoints became %d", more.Checkpoints)
	}
	if _, _, err := Size(w, Options{Context: 4096}); err == nil || !strings.Contains(err.Error(), "2048") {
		t.Errorf("a context beyond the model's own gave %v", err)
	}
	if _, _, err := Size(w, Options{Available: 1000}); err == nil || !strings.Contains(err.Error(), "available") {
		t.Errorf("1,000 bytes gave %v", err)
	}
}

func TestCardName(t *testing.T) {
	for text, want := range map[string]string{
		"---\nlicense: mit\nbase_model: a/b\n---\n":     "a/b",
		"---\nbase_model:\n- \"a/b\"\ntags: x\n---\n":   "a/b",
		"---\nbase_model:\n- a/b\n- a/c\n---\n":         "",
		"# base_model: a/b\n":                           "",
		"---\ntags:\n- x\nbase_model: 'q'\n---\n- no":   "q",
		"---\ntags:\n- x\n---\nbase_model: elsewhere\n": "",
	} {
		path := filepath.Join(t.TempDir(), "README.md")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := cardName(path); got != want {
			t.Errorf("%q is named %q, not %q", text, got, want)
		}
	}
}
