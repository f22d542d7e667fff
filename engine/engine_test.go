package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"velo/engine/backend"
	"velo/engine/chat"
	"velo/engine/enginetest"
	"velo/engine/host"
	"velo/engine/memory"
	"velo/engine/weights"
)

func loadTiny(t *testing.T, family string, o Options) *Engine {
	t.Helper()
	e, err := Load(t.Context(), enginetest.Folder(t, family), o)
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

func TestPlan(t *testing.T) {
	w, err := weights.Open(enginetest.Folder(t, enginetest.Hybrid))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p, err := Plan(w, Options{})
	if z := p.Sizes; err != nil || z.Context != 2048 || z.Lanes != 8 || z.Tokens != 8*2048 {
		t.Errorf("the sizes are %+v, %v", z, err)
	}
	if more, _ := Plan(w, Options{Checkpoints: 8}); more.Sizes.Checkpoints != 8 || more.Total <= p.Total {
		t.Errorf("checkpoints became %+v", more)
	}
	// Each option reaches the plan.
	o := Options{Backend: backend.CPU, KV: "f32", Context: 100, Lanes: 3, Tokens: 250, Checkpoints: 5, Rows: 20, Outputs: 17, Exact: true, Available: 1000}
	p, err = Plan(w, o)
	if want := (memory.Sizes{Backend: backend.CPU, KV: "f32", Context: 100, Lanes: 3, Tokens: 250, Checkpoints: 5, Rows: 20, Outputs: 17, Exact: true, Available: 1000}); err != nil || p.Sizes != want {
		t.Errorf("options %+v became %+v, %v", o, p.Sizes, err)
	}
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "available") {
		t.Errorf("1,000 bytes gave %v", err)
	}
	if p, _ := Plan(w, Options{CheckpointBytes: 1 << 40}); p.Sizes.Checkpoints != 4*8 {
		t.Errorf("a terabyte holds %d checkpoints", p.Sizes.Checkpoints)
	}
	if _, err := Plan(w, Options{Context: 4096}); err == nil || !strings.Contains(err.Error(), "2048") {
		t.Errorf("a context beyond the model's own gave %v", err)
	}
}

// TestLoadRefuses: what does not fit is refused before it is loaded, to the byte.
func TestLoadRefuses(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Plain)
	o := Options{Context: 128, Lanes: 2, Backend: backend.CPU, Workers: 1}
	e, err := Load(t.Context(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	need := e.Memory.Total
	if pool := e.Model.Pool(); e.Memory.Pages != int64(pool.Pages())*pool.Shape().PageBytes() {
		t.Errorf("pages of %d bytes are planned, %d pages were made", e.Memory.Pages, pool.Pages())
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	o.Progress = func(Progress) { t.Error("what does not fit is loaded") }
	o.Available = need - 1
	if e, err := Load(t.Context(), folder, o); err == nil || !strings.Contains(err.Error(), "cannot fit the model") {
		t.Errorf("a byte too little gave %v", err)
		if err == nil {
			_ = e.Close()
		}
	}
	o.Progress, o.Available = nil, need
	if e, err = Load(t.Context(), folder, o); err != nil {
		t.Fatalf("refused though it fits: %v", err)
	}
	_ = e.Close()
}

// TestAt: a place decides on the backend and on the memory.
func TestAt(t *testing.T) {
	o := Options{Backend: "auto", Lanes: 3}
	o.At(backend.Place{Name: backend.CPU, Memory: host.Memory{Total: 100, Available: 90}}, 20)
	if o.Backend != backend.CPU || o.Available != 70 || o.Lanes != 3 {
		t.Errorf("%+v", o)
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
