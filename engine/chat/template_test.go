package chat

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// now is the moment that the goldens were made at.
var now = time.Date(2026, 7, 6, 9, 5, 3, 0, time.UTC)

type testCase struct {
	Name                    string
	Messages, Tools, Kwargs json.RawMessage
	AddGenerationPrompt     bool `json:"add_generation_prompt"`
}

func load(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

// outcome renders a case and names the failure as make_goldens.py does.
func outcome(source string, c testCase) (text, fails string, err error) {
	tpl, err := NewTemplate(source)
	if err != nil {
		return "", "syntax", err
	}
	text, err = tpl.Render(Request{Messages: c.Messages, Tools: c.Tools, Variables: c.Kwargs, BOS: "<s>", EOS: "</s>", AddGenerationPrompt: c.AddGenerationPrompt, Now: now})
	var refused *RefusedError
	switch {
	case err == nil:
		return text, "", nil
	case errors.As(err, &refused):
		return refused.Reason, "raised", err
	}
	return "", "error", err
}

// The templates in testdata/templates are ours, in the shape of those of the families they are
// named after: the same constructs, other words.
func TestTemplatesOfTheFamiliesAsJinja2RendersThem(t *testing.T) {
	var cases []testCase
	load(t, "testdata/cases.json", &cases)
	var goldens map[string]map[string]struct{ Text, Fails string }
	load(t, "testdata/goldens.json", &goldens)
	if len(goldens) < 6 {
		t.Fatalf("only %d templates in the goldens", len(goldens))
	}
	for file, want := range goldens {
		source, err := os.ReadFile(filepath.Join("testdata/templates", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			w, ok := want[c.Name]
			if !ok {
				t.Fatalf("%s has no golden for %q: run make_goldens.py", file, c.Name)
			}
			text, fails, err := outcome(string(source), c)
			if text != w.Text || fails != w.Fails {
				t.Errorf("%s, %s:\n got %q %s %v\nwant %q %s", file, c.Name, text, fails, err, w.Text, w.Fails)
			}
		}
	}
}

// The templates of published models are not in this repository, the sums of what jinja2 makes of
// them are. $VELO_CHAT_TEMPLATES names a folder with the templates, as pip install --target of
// trl 1.16.0 leaves it in trl/chat_templates.
func TestPublishedTemplates(t *testing.T) {
	folder := os.Getenv("VELO_CHAT_TEMPLATES")
	if folder == "" {
		t.Skip("VELO_CHAT_TEMPLATES does not name a folder of published templates")
	}
	var cases []testCase
	load(t, "testdata/cases.json", &cases)
	var digests map[string]struct {
		SHA256 string
		Cases  map[string]string
	}
	load(t, "testdata/digests.json", &digests)
	sum := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	seen := 0
	for file, want := range digests {
		source, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || sum(string(source)) != want.SHA256 {
			continue
		}
		seen++
		for _, c := range cases {
			text, fails, err := outcome(string(source), c)
			got := fails + ":"
			if fails == "" || fails == "raised" {
				got += sum(text)
			}
			if got != want.Cases[c.Name] {
				t.Errorf("%s, %s: differs from jinja2 (%q, %v)", file, c.Name, fails, err)
			}
		}
	}
	if seen == 0 {
		t.Fatalf("none of the templates in %s is one that digests.json knows", folder)
	}
	t.Logf("%d templates, %d cases each", seen, len(cases))
}

func TestArgumentsAsStringsRenderAsObjects(t *testing.T) {
	const source = "{{ messages[0].tool_calls[0].function.arguments | tojson }}|{{ messages[0].thinking }}"
	for arguments, want := range map[string]string{
		`"{\"z\": 1, \"a\": [true]}"`: `{"z": 1, "a": [true]}|why`,
		`{"z": 1, "a": 2}`:            `{"z": 1, "a": 2}|why`,
		`"not json"`:                  `"not json"|why`,
		`"[1]"`:                       `"[1]"|why`,
	} {
		c := testCase{Messages: json.RawMessage(`[{"role":"assistant","reasoning_content":"why","tool_calls":[{"function":{"name":"f","arguments":` + arguments + `}}]}]`)}
		if got, _, err := outcome(source, c); got != want {
			t.Errorf("%s: got %q %v, want %q", arguments, got, err, want)
		}
	}
}

func TestBadRequestsAreSentences(t *testing.T) {
	tpl, err := NewTemplate("{{ messages }}")
	if err != nil {
		t.Fatal(err)
	}
	for want, q := range map[string]Request{
		"messages are missing":          {},
		"messages: it must be an array": {Messages: []byte(`{}`)},
		"number 2 is not an object":     {Messages: []byte(`[{"role":"user"},1]`)},
		"number 1 has no role":          {Messages: []byte(`[{}]`)},
		"cannot read messages":          {Messages: []byte(`[{]`)},
		"tools: it must be an array":    {Messages: []byte(`[]`), Tools: []byte(`{}`)},
		"it must be an object":          {Messages: []byte(`[]`), Variables: []byte(`[]`)},
		"messages has its own place":    {Messages: []byte(`[]`), Variables: []byte(`{"messages":[]}`)},
	} {
		if _, err := tpl.Render(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := NewTemplate("{% if %}"); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("got %v, want the line", err)
	}
}

func BenchmarkRender(b *testing.B) {
	source, err := os.ReadFile("testdata/templates/qwen3_5.jinja")
	if err != nil {
		b.Fatal(err)
	}
	tpl, err := NewTemplate(string(source))
	if err != nil {
		b.Fatal(err)
	}
	var cases []testCase
	load(b, "testdata/cases.json", &cases)
	for _, c := range cases {
		if c.Name != "two calls, two results, then talk" {
			continue
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tpl.Render(Request{Messages: c.Messages, Tools: c.Tools, AddGenerationPrompt: true}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
