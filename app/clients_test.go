package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// clients is the folder that scripts/clients/install filled: `make test` sets it, so there these
// tests run; a plain `go test` leaves them out.
func clients(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("VELO_CLIENTS")
	if folder == "" {
		t.Skip("not run: make test, or scripts/clients/install FOLDER and VELO_CLIENTS=FOLDER")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// serve runs `velo serve` in a process of its own until the test ends and returns its URL.
func serve(t *testing.T, path string, args ...string) string {
	t.Helper()
	status, child, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer status.Close()
	cmd := exec.Command(os.Args[0], append([]string{"serve", "--model-dir", path, "--port", "0", "--with-parent", "--status-fd", "3"}, args...)...)
	cmd.ExtraFiles = []*os.File{child}
	var log bytes.Buffer
	cmd.Stderr = &log
	life, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = child.Close()
	t.Cleanup(func() {
		_ = life.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("velo serve ended with %v\n%s", err, log.String())
		}
	})
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		var s struct{ State, URL, Message string }
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("status %q: %v", lines.Text(), err)
		}
		switch s.State {
		case "ready":
			return s.URL
		case "failed":
			t.Fatalf("velo serve: %s", s.Message)
		}
	}
	t.Fatalf("velo serve ended before it was ready\n%s", log.String())
	return ""
}

// Programs that nobody here wrote use the API with a real model, and each of their checks holds.
func TestClients(t *testing.T) {
	folder := clients(t)
	url := serve(t, filepath.Join(folder, "smollm2.gguf"), "--max-seq-len", "4096", "--max-batch", "16")
	scripts, err := filepath.Abs("../scripts/clients")
	if err != nil {
		t.Fatal(err)
	}
	node, err := os.ReadFile(filepath.Join(scripts, "openai_node.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	// Node looks for packages beside the file.
	if err := os.WriteFile(filepath.Join(folder, "node", "openai_node.mjs"), node, 0o644); err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(folder, "python", "bin", "python")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"openai for Python", []string{python, filepath.Join(scripts, "openai_python.py"), url}},
		{"openai for Node", []string{"node", filepath.Join(folder, "node", "openai_node.mjs"), url}},
		{"agent", []string{python, filepath.Join(scripts, "agent.py"), url}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), c.args[0], c.args[1:]...)
			out, err := cmd.CombinedOutput()
			checks := 0
			for line := range strings.Lines(string(out)) {
				var r struct {
					Check, Error string
					OK           bool
				}
				if json.Unmarshal([]byte(line), &r) != nil || r.Check == "" {
					continue
				}
				checks++
				if !r.OK {
					t.Errorf("%s: %s", r.Check, r.Error)
				}
			}
			if err != nil || checks == 0 {
				t.Errorf("%d checks, %v\n%s", checks, err, out)
			}
		})
	}
}

// The console measures this program's own engine: what the server says of a request and what the
// client saw of it must fit together.
func TestBenchOwnEngine(t *testing.T) {
	folder := clients(t)
	file := filepath.Join(folder, "smollm2.gguf")
	url := serve(t, file, "--max-seq-len", "2048", "--max-batch", "4")
	t.Setenv("VELO_DATA", t.TempDir())
	out := t.TempDir()
	suite := suiteFile(t, `{"title": "Own engine", "steps": [{"type": "section", "title": "One"},
		{"type": "prompt", "text": "Write a story about a ship.", "tg": 40}, {"type": "bench", "pp": 256, "tg": 24}]}`)
	code, text, errs := velo(t.Context(), "bench", suite, "--endpoint", url, "--tokenizer", file, "--workers", "2", "--out", out, "--format", "json")
	if code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, text, errs)
	}
	files, _ := filepath.Glob(filepath.Join(out, "*.json"))
	if len(files) != 1 {
		t.Fatalf("files: %v", files)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Requests []struct {
			Request, Tokens, Prompt int
			Status                  string
			Source                  string
			TTFT, Unseen            float64
		}
		Broken []string
		Events struct {
			Ends []struct {
				Request int
				Usage   *struct{ Prompt, Completion int }
				Timings *struct {
					Prompt   float64 `json:"prompt_ms"`
					Decode   float64 `json:"predicted_ms"`
					Decoded  int     `json:"predicted_n"`
					Prefills int     `json:"prompt_n"`
				}
			}
		}
	}
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Requests) == 0 || len(report.Requests) != len(report.Events.Ends) || len(report.Broken) > 0 {
		t.Fatalf("%d requests, %d ends, broken: %v", len(report.Requests), len(report.Events.Ends), report.Broken)
	}
	ttft := 0.0
	for _, r := range report.Requests {
		for _, e := range report.Events.Ends {
			if e.Request != r.Request {
				continue
			}
			if r.Status != "ok" || e.Usage == nil || e.Timings == nil {
				t.Errorf("request %d: %s, usage %v, timings %v", r.Request, r.Status, e.Usage, e.Timings)
				continue
			}
			// The end token is counted and not shown.
			if unseen := e.Usage.Completion - r.Tokens; unseen < 0 || unseen > 1 || r.Source == "estimate" {
				t.Errorf("request %d: the server counts %d tokens, the console %d (%s)", r.Request, e.Usage.Completion, r.Tokens, r.Source)
			}
			server := e.Timings.Prompt / 1000
			if r.TTFT < server {
				t.Errorf("request %d: the first token came after %.6f s, before the server had read the prompt after %.6f s", r.Request, r.TTFT, server)
			}
			t.Logf("request %d: TTFT %.4f s at the client, %.4f s of prefill at the server, %.2f ms between", r.Request, r.TTFT, server, 1e3*(r.TTFT-server))
			ttft += r.TTFT
		}
	}
	// The server's own histogram counts the same requests (and the console's probes before them).
	response, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	h := families["velogb10_time_to_first_token_seconds"].GetMetric()[0].GetHistogram()
	if int(h.GetSampleCount()) < len(report.Requests) {
		t.Errorf("the server's histogram of TTFT has %d requests, the report %d", h.GetSampleCount(), len(report.Requests))
	}
	t.Logf("TTFT of %d requests at the client: %.4f s together; of %d at the server: %.4f s", len(report.Requests), ttft, h.GetSampleCount(), h.GetSampleSum())
}
