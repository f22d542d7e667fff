package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime"
)

// twoKinds is a session of one request that writes a paragraph at 50 tok/s and a program at 200.
func twoKinds() *bench.Session {
	sc := newScript("kinds", "Two kinds", 1, 1)
	sc.begin(bench.Step{Title: "Both", Kind: "prompt", Workers: 1})
	texts := []string{"The ships "}
	var gaps []time.Duration
	for range 20 {
		texts, gaps = append(texts, "come in with the tide. "), append(gaps, 20*time.Millisecond)
	}
	texts, gaps = append(texts, "\n\n```go\n"), append(gaps, 5*time.Millisecond)
	for range 20 {
		texts, gaps = append(texts, "x := f(1)\n"), append(gaps, 5*time.Millisecond)
	}
	texts, gaps = append(texts, "```\n"), append(gaps, 5*time.Millisecond)
	sc.send(reply{prompt: 20, ttft: 100 * time.Millisecond, gaps: gaps, perChunk: 1, text: func(i int) string { return texts[i] },
		usage: &bench.Usage{Prompt: 20, Completion: len(texts), Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}})
	return sc.s
}

func TestKindsOfTextInEveryFormat(t *testing.T) {
	r := New(twoKinds(), testOptions)
	if len(r.Regimes) != 2 || r.Regimes[0].Regime != regime.Prose || r.Regimes[1].Regime != regime.Code {
		t.Fatalf("%+v", r.Regimes)
	}
	prose, code := r.Regimes[0], r.Regimes[1]
	if prose.Tokens != 21 || prose.Rate < 49.999 || prose.Rate > 50.001 {
		t.Errorf("prose: %+v", prose)
	}
	if code.Tokens != 22 || code.Rate < 199.99 || code.Rate > 200.01 || code.MaxGap != 0.005 {
		t.Errorf("code: %+v", code)
	}
	if s := r.Section("regimes"); s == nil || len(s.Tables[0].Rows) != 2 || len(s.Charts) != 1 {
		t.Fatalf("section: %+v", s)
	}
	dir := t.TempDir()
	if _, err := Export(dir, r, []string{"json", "csv", "html", "pdf", "md"}); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(dir, FileName(r))
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	wants := map[string][]string{
		read(base + ".json"):        {`"regimes"`, `"regime":"code"`, `"rate_code"`, `"decoded_tokens":20`},
		read(base + ".html"):        {"Kinds of text", "Decode rate by kind of text"},
		read(base + ".md"):          {"rate"},
		read(base + "-summary.csv"): {"tokens_prose,tokens,server,1,21,", "rate_code,tok/s,server,1,200.000,", "rate_prose,tok/s,server,1,50.000,"},
	}
	if pdftotext, err := exec.LookPath("pdftotext"); err == nil {
		out, err := exec.Command(pdftotext, "-layout", base+".pdf", "-").Output()
		if err != nil {
			t.Fatal(err)
		}
		wants[string(out)] = []string{"Kinds of text", "rate_code", "200.000"}
	}
	for text, words := range wants {
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%q is not in %.60q…", w, text)
			}
		}
	}
}

// A session that kept no text says nothing of kinds; requests without one are counted.
func TestKindsOfTextNeedText(t *testing.T) {
	s := twoKinds()
	for i := range s.Exchanges[0].Chunks {
		s.Exchanges[0].Chunks[i].Text = ""
	}
	r := New(s, testOptions)
	if r.Section("regimes") != nil || len(r.Regimes) != 0 {
		t.Errorf("%+v", r.Regimes)
	}
	for _, f := range r.Figures {
		if strings.HasPrefix(f.Metric.ID, "rate_") && f.Metric.Unit == measure.PerSec {
			t.Errorf("there is a figure %s", f.Metric.ID)
		}
	}
}

// A request that failed without a word is not one whose text was left out of the session.
func TestKindsOfTextCountFailures(t *testing.T) {
	s := New(failingSession(), testOptions).Section("regimes")
	if s == nil || !strings.Contains(s.Text, "brought no text.") || strings.Contains(s.Text, "not in the session") {
		t.Fatalf("%+v", s)
	}
}
