package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"velo/bench"
	"velo/bench/measure"
)

// An independent program, in another language and by the definitions alone, finds the same figures
// in the raw events; and all formats show them.
func TestIndependentScriptFindsTheFigures(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: testdata/check.py did not run")
	}
	sessions := append(goldenSessions[:len(goldenSessions):len(goldenSessions)], struct {
		name    string
		session func() *bench.Session
	}{"cutoff", cutOffSession})
	for _, g := range sessions {
		t.Run(g.name, func(t *testing.T) {
			dir := t.TempDir()
			r := New(g.session(), testOptions)
			if _, err := Export(dir, r, []string{"json", "csv", "vllm", "benchstat", "md", "pdf"}); err != nil {
				t.Fatal(err)
			}
			base := filepath.Join(dir, FileName(r))
			if pdftotext, err := exec.LookPath("pdftotext"); err == nil {
				if out, err := exec.Command(pdftotext, "-layout", base+".pdf", base+".pdf.txt").CombinedOutput(); err != nil {
					t.Fatalf("pdftotext: %v\n%s", err, out)
				}
			}
			if out, err := exec.Command(python, "testdata/check.py", base).CombinedOutput(); err != nil {
				t.Errorf("check.py: %v\n%s", err, out)
			}
		})
	}
}

// The script must be able to fail: a figure that is off by a thousandth is found.
func TestIndependentScriptFindsAWrongFigure(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: testdata/check.py did not run")
	}
	dir := t.TempDir()
	r := New(singleSession(), testOptions)
	for i := range r.Run.Requests {
		if q := &r.Run.Requests[i]; q.Rate.Ok() {
			q.Rate *= 1.001
			break
		}
	}
	if _, err := Export(dir, r, []string{"json"}); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "testdata/check.py", filepath.Join(dir, FileName(r))).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "rate") {
		t.Errorf("check.py did not see a wrong rate: %v\n%s", err, out)
	}
}

// Text from outside never becomes markup, a link or a script.
func TestHTMLEscapes(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, New(failingSession(), testOptions), "html"); err != nil {
		t.Fatal(err)
	}
	s := strings.ReplaceAll(b.String(), `xmlns="http://www.w3.org/2000/svg"`, "") // a name, nothing is fetched
	if strings.Contains(s, "<script") {
		t.Error("a script got into the page")
	}
	if !strings.Contains(s, "&lt;script&gt;alert(1)") {
		t.Error("the hostile text is not there at all, so this test proves nothing")
	}
	if strings.Contains(s, "secret") {
		t.Error("the password of the URL is in the page")
	}
	for _, outside := range []string{"http://www.", "https://", "src=", "@import", "url("} {
		if strings.Contains(s, outside) {
			t.Errorf("the page refers to something outside itself: %q", outside)
		}
	}
	if n := strings.Count(s, "<svg"); n < 4 {
		t.Errorf("%d charts in the page", n)
	}
}

func TestMarkdownEscapes(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, New(failingSession(), testOptions), "md"); err != nil {
		t.Fatal(err)
	}
	s := b.String()
	for _, bad := range []string{"<script>", "[x](", "**b**", "\x1b", "secret"} {
		if strings.Contains(s, bad) {
			t.Errorf("Markdown holds %q", bad)
		}
	}
	columns := regexp.MustCompile(`(^|[^\\])\|`)
	head := 0
	for _, l := range strings.Split(s, "\n") {
		if !strings.HasPrefix(l, "|") {
			head = 0
			continue
		}
		n := len(columns.FindAllString(l, -1))
		if head == 0 {
			head = n
		}
		if n != head {
			t.Errorf("a row has %d bars, its table %d: %s", n, head, l)
		}
	}
}

// A spreadsheet must not take text for a formula.
func TestCSVIsHarmless(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, New(failingSession(), testOptions), "csv"); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	guarded := false
	for _, row := range rows {
		if len(row) != len(requestColumns) {
			t.Fatalf("%d fields for %d columns", len(row), len(requestColumns))
		}
		for i, f := range row {
			if f != "" && strings.ContainsRune("=+@", rune(f[0])) {
				t.Errorf("column %s begins a formula: %q", requestColumns[i], f)
			}
			guarded = guarded || strings.HasPrefix(f, "'=")
		}
	}
	if !guarded {
		t.Error("the hostile text is not there, so this test proves nothing")
	}
	for in, want := range map[string]string{"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\t=1": "'=1", "plain": "plain", "": ""} {
		if got := harmless(in); got != want {
			t.Errorf("harmless(%q) = %q, want %q", in, got, want)
		}
	}
}

// The JSON holds every raw event, so that a session can be built from it again.
func TestJSONHoldsTheRawEvents(t *testing.T) {
	for _, g := range goldenSessions {
		s := g.session()
		var b bytes.Buffer
		if err := Write(&b, New(s, testOptions), "json"); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Format string
			Events struct {
				Steps    []*bench.Step
				Requests []*bench.Request
				Conns    []json.RawMessage
				Chunks   []struct {
					Request      int
					Read         []int32
					User, Kernel []*int64
					Channel      []string
					Usage, Exact []*int32
					Text         []string
				}
				Ends    []*bench.End
				Samples []*bench.Sample
				Notes   []*bench.Note
				Finish  *bench.Finish
			}
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		e := got.Events
		if got.Format != jsonFormat || len(e.Steps) != len(s.Steps) || len(e.Requests) != len(s.Exchanges) || len(e.Samples) != len(s.Samples) || len(e.Notes) != len(s.Notes) || (e.Finish == nil) != (s.Finish == nil) {
			t.Fatalf("%s: events are missing", g.name)
		}
		byNumber := map[int]int{}
		for i, c := range e.Chunks {
			byNumber[c.Request] = i
		}
		for _, x := range s.Exchanges {
			if len(x.Chunks) == 0 {
				continue
			}
			i, ok := byNumber[x.Request.Number]
			if !ok {
				t.Fatalf("%s: no chunks of request %d", g.name, x.Request.Number)
			}
			c := e.Chunks[i]
			for k, want := range x.Chunks {
				if *c.User[k] != int64(want.User) || (c.Kernel[k] == nil) != (want.Kernel == bench.Unset) || c.Read[k] != want.Read || c.Channel[k] != want.Channel.String() || c.Text[k] != want.Text {
					t.Fatalf("%s: chunk %d of request %d differs", g.name, k, x.Request.Number)
				}
				if c.Kernel[k] != nil && *c.Kernel[k] != int64(want.Kernel) {
					t.Fatalf("%s: kernel stamp of chunk %d differs", g.name, k)
				}
			}
		}
		if bytes.Contains(b.Bytes(), []byte("-9223372036854775808")) {
			t.Errorf("%s: a time that was not recorded is written as a number", g.name)
		}
		if bytes.Contains(b.Bytes(), []byte("secret")) {
			t.Errorf("%s: the password of the URL is in the JSON", g.name)
		}
	}
}

// The keys that readers of vLLM's results look for.
func TestVLLMKeys(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, New(concurrentSession(), testOptions), "vllm"); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	keys := strings.Fields(`date backend model_id num_prompts request_rate max_concurrency duration completed failed
		total_input_tokens total_output_tokens request_throughput request_goodput output_throughput total_token_throughput
		max_output_tokens_per_s max_concurrent_requests input_lens output_lens ttfts itls start_times generated_texts errors`)
	for _, m := range []string{"ttft", "tpot", "itl", "e2el"} {
		for _, p := range []string{"mean", "median", "std", "p99"} {
			keys = append(keys, p+"_"+m+"_ms")
		}
	}
	for _, k := range keys {
		if _, ok := got[k]; !ok {
			t.Errorf("no key %q", k)
		}
	}
	n := int(got["num_prompts"].(float64))
	for _, k := range []string{"input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts", "errors"} {
		if l := len(got[k].([]any)); l != n {
			t.Errorf("%s has %d entries for %d requests", k, l, n)
		}
	}
}

// One line a step and repetition, in the form that benchstat parses.
func TestBenchstatLines(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, New(concurrentSession(), testOptions), "benchstat"); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^Benchmark[^\s/]+(/[a-z]+=[^\s/]+)* +\d+( +[0-9.]+ [^\s]+)+$`)
	n := 0
	for _, l := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		if !strings.HasPrefix(l, "Benchmark") {
			continue
		}
		n++
		if !line.MatchString(l) {
			t.Errorf("not a line of benchstat: %s", l)
		}
	}
	if n != 9 {
		t.Errorf("%d lines for 3 steps and 3 repetitions", n)
	}
	if w := word(hostile); strings.ContainsAny(w, " /\n\t|<>") || w == "" {
		t.Errorf("word(hostile) = %q", w)
	}
}

func TestWriteRefusesWhatItCannot(t *testing.T) {
	r := New(stoppedSession(), testOptions)
	if err := Write(&bytes.Buffer{}, r, "docx"); err == nil || !strings.Contains(err.Error(), `"docx"`) || !strings.Contains(err.Error(), "pdf") {
		t.Errorf("an unknown format: %v", err)
	}
	if err := Write(&bytes.Buffer{}, r, "png"); err == nil || !strings.Contains(err.Error(), "export to a folder") {
		t.Errorf("a format of many files: %v", err)
	}
	if _, err := Export(t.TempDir(), r, []string{"md", "docx"}); err == nil {
		t.Error("Export takes an unknown format")
	}
}

// Every format reaches the disk whole, under its own name, and leaves nothing else behind.
func TestExport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	r := New(concurrentSession(), testOptions)
	var all []string
	for _, f := range Formats() {
		all = append(all, f.ID)
	}
	files, err := Export(dir, r, append(all, "md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		if seen[f] {
			t.Errorf("%s is written twice", f)
		}
		seen[f] = true
		if st, err := os.Stat(f); err != nil || st.Size() == 0 || st.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v %v", f, st, err)
		}
		if !strings.HasPrefix(filepath.Base(f), "depth-sweep-with-four-workers-a1b2c3d4") {
			t.Errorf("name %s", f)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(files) {
		t.Errorf("%d files in the folder, %d reported: %v", len(entries), len(files), err)
	}
	if want := 7 + 1 + 2*len(r.Charts()); len(files) != want {
		t.Errorf("%d files, want %d", len(files), want)
	}
	png, err := os.ReadFile(filepath.Join(dir, FileName(r)+"-timeline.png"))
	if err != nil || !bytes.HasPrefix(png, []byte("\x89PNG")) {
		t.Errorf("timeline.png: %v", err)
	}
}

// A folder that cannot be made is one clear sentence.
func TestExportIntoAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "taken")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Export(file, New(stoppedSession(), testOptions), []string{"md"}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("err = %v", err)
	}
}

func TestFileName(t *testing.T) {
	name := func(title, id string) string {
		return FileName(&Report{Title: title, Session: &bench.Session{Header: bench.Header{ID: id}}})
	}
	for _, c := range []struct{ title, id, want string }{
		{"Shape, pp sweep @ depth", "019ced5ee8d5a1b2c3d4", "shape-pp-sweep-depth-a1b2c3d4"},
		{"../../etc/passwd", "../x", "etc-passwd-x"},
		{"日本語", "", "report"},
		{strings.Repeat("long title ", 20), "12345678", "long-title-long-title-long-title-long-title-long-12345678"},
	} {
		if got := name(c.title, c.id); got != c.want {
			t.Errorf("FileName(%q, %q) = %q, want %q", c.title, c.id, got, c.want)
		}
	}
}

// The summary's value is the median, or the number itself, in three decimals.
func TestSummaryCSV(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, New(stoppedSession(), testOptions), "csv-summary"); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string][]string{}
	for _, row := range rows {
		seen[row[0]] = row
	}
	if row := seen["ttft"]; row == nil || row[1] != "ms" || row[3] != "2" || row[4] != "97.000" || row[7] != "" {
		t.Errorf("row of TTFT: %q", row)
	}
	if row := seen["cached_tokens"]; row == nil || row[4] != "" {
		t.Errorf("what was not measured must be empty: %q", row)
	}
	if got := fixed(measure.PerSec, 57.3494); got != "57.349" {
		t.Errorf("fixed = %q", got)
	}
}

// The script of docs/exports.md runs, and says what the report says.
func TestDocumentedScript(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the script of docs/exports.md did not run")
	}
	doc, err := os.ReadFile("../../docs/exports.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, ok := strings.Cut(string(doc), "```python\n")
	script, _, closed := strings.Cut(script, "```")
	if !ok || !closed {
		t.Fatal("docs/exports.md has no script")
	}
	dir := t.TempDir()
	files, err := Export(dir, New(failingSession(), testOptions), []string{"json"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-c", script, files[0]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !regexp.MustCompile(`TTFT median ([0-9.]+) ms of 35 requests\n(?s:.*)the report says ([0-9.]+) ms`).Match(out) {
		t.Fatalf("it says %s", out)
	}
	said := regexp.MustCompile(`(?:TTFT median|the report says) ([0-9.]+) ms`).FindAllSubmatch(out, -1)
	if len(said) != 2 || !bytes.Equal(said[0][1], said[1][1]) {
		t.Errorf("the script and the report differ: %s", out)
	}
}

// One line of JSON, with the files that were written.
func TestWriteSummary(t *testing.T) {
	var b bytes.Buffer
	r := New(stoppedSession(), testOptions)
	if err := WriteSummary(&b, r, []string{"a.pdf"}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 1 {
		t.Errorf("%d lines", n)
	}
	var got struct {
		Metrics map[string]struct {
			Quantiles map[string]struct{ Value float64 }
		}
		Files    []string
		Requests []any
		Events   any
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if v := got.Metrics["ttft"].Quantiles["p50"].Value; v < 0.0969 || v > 0.0971 || len(got.Files) != 1 || got.Requests != nil || got.Events != nil {
		t.Errorf("summary %+v", got)
	}
}
