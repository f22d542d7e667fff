package suite

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"velo/assets"
)

// A file as VeloBenchmark writes it: every member of every step, with zero values where a step does not
// use it, and a member that this program does not know.
const foreign = `{
  "id": "3f1c", "title": "Mixed", "description": "", "temperature": 0.5, "max_tokens": 256,
  "regimesFromSections": true, "prebuilt": false, "favorite": true, "created_at": "2026-03-01T10:00:00+00:00",
  "someday": {"a": [1, 2]},
  "steps": [
    {"type":"section","title":"One","text":"","k":0,"depth":0,"pp":0,"tg":0,"exactTg":false,"image":"","prompt":"","reasoningEffort":"","reset":true},
    {"type":"prompt","title":"","text":"Say <b> & go","k":0,"depth":0,"pp":0,"tg":64,"exactTg":false,"image":"","prompt":"","reasoningEffort":"off","reset":false},
    {"type":"context","title":"","text":"","k":192,"depth":0,"pp":0,"tg":0,"exactTg":false,"image":"","prompt":"","reasoningEffort":"","reset":false},
    {"type":"bench","title":"","text":"","k":0,"depth":4096,"pp":2048,"tg":32,"exactTg":true,"image":"","prompt":"","reasoningEffort":"","reset":false},
    {"type":"image","title":"","text":"","k":0,"depth":0,"pp":0,"tg":0,"exactTg":false,"image":"x240.jpg","prompt":"What is it?","reasoningEffort":"xhigh","reset":false}
  ]
}`

func TestParseForeignFile(t *testing.T) {
	s, err := Parse("mixed.json", []byte(foreign))
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != "3f1c" || s.Title != "Mixed" || *s.Temperature != 0.5 || *s.MaxTokens != 256 || !s.RegimesFromSections || !s.Favorite || s.CreatedAt == "" {
		t.Errorf("head: %+v", s)
	}
	want := []Step{
		{Type: Section, Title: "One", Reset: true},
		{Type: Prompt, Text: "Say <b> & go", TG: 64, Reasoning: "off"},
		{Type: Context, K: 192},
		{Type: Bench, Depth: 4096, PP: 2048, TG: 32, ExactTG: true},
		{Type: Image, Image: "x240.jpg", Prompt: "What is it?", Reasoning: "xhigh"},
	}
	if !reflect.DeepEqual(s.Steps, want) {
		t.Errorf("steps: %+v", s.Steps)
	}
	if got := string(s.Extra["someday"]); got != `{"a":[1,2]}` {
		t.Errorf("the unknown member came back as %q", got)
	}
	out := s.Marshal()
	if !bytes.Contains(out, []byte("Say <b> & go")) || !bytes.Contains(out, []byte("someday")) {
		t.Errorf("written: %s", out)
	}
	again, err := Parse("mixed.json", out)
	if err != nil || !reflect.DeepEqual(s, again) {
		t.Errorf("written and read again: %+v, %v", again, err)
	}
}

func TestParseListOfSuites(t *testing.T) {
	list := "[" + foreign + "," + strings.Replace(foreign, "Mixed", "Other", 1) + "]"
	suites, err := ParseAll("tests.json", []byte(list))
	if err != nil || len(suites) != 2 || suites[1].Title != "Other" {
		t.Fatalf("%d suites, %v", len(suites), err)
	}
	if _, err := Parse("tests.json", []byte(list)); err == nil || !strings.Contains(err.Error(), "2 suites") {
		t.Errorf("Parse of a list: %v", err)
	}
	if s, err := Parse("tests.json", []byte("["+foreign+"]")); err != nil || s.Title != "Mixed" {
		t.Errorf("Parse of a list of one: %v", err)
	}
	_, err = ParseAll("tests.json", []byte("["+foreign+`,{"title":"x","steps":[]}]`))
	if err == nil || !strings.Contains(err.Error(), "suite 2 of the list") {
		t.Errorf("a problem in the second suite: %v", err)
	}
}

func TestParseSpelling(t *testing.T) {
	for _, file := range []string{
		`{"title":"x","max_tokens":9,"steps":[{"type":"section","title":"s"},{"type":"bench","pp":1,"tg":2,"exact_tg":true,"reasoning_effort":"low"}]}`,
		`{"Title":"x","maxtokens":9,"createdAt":null,"temperature":null,"steps":[{"type":"section","title":"s","k":null},{"type":"bench","pp":1.0,"tg":2e0,"exactTG":true,"reasoning-effort":"low"}]}`,
		"\xef\xbb\xbf" + `{"title":"x","maxTokens":9,"steps":[{"type":"section","title":"s"},{"type":"bench","pp":1,"tg":2,"exactTg":true,"reasoningEffort":"low"}]}`,
	} {
		s, err := Parse("folder/spelling.json", []byte(file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if s.ID != "spelling" || *s.MaxTokens != 9 || s.Temperature != nil || s.CreatedAt != "" {
			t.Errorf("head: %+v", s)
		}
		if want := (Step{Type: Bench, PP: 1, TG: 2, ExactTG: true, Reasoning: "low"}); !reflect.DeepEqual(s.Steps[1], want) {
			t.Errorf("step: %+v", s.Steps[1])
		}
	}
}

func TestParseProblems(t *testing.T) {
	steps := func(s string) string {
		return `{"title":"x","steps":[{"type":"section","title":"s"},` + s + `]}`
	}
	for _, test := range []struct {
		name, file string
		want       []string // each somewhere in the message, in this order
	}{
		{"empty", "  \n", []string{"the file is empty"}},
		{"not text", "\xff\xfe{", []string{"not UTF-8"}},
		{"not JSON", "{\n  \"title\": \"x\",,\n}", []string{"line 2, column 16: not JSON"}},
		{"cut off", `{"title": "x"`, []string{"not JSON: unexpected end"}},
		{"after the end", `{"title":"x","steps":[]} x`, []string{"line 1, column 26: not JSON"}},
		{"a text", `"hello"`, []string{`the file holds "hello" where a suite`}},
		{"an empty list", `[]`, []string{"an empty list"}},
		{"an empty object", `{}`, []string{"2 problems", "title: a suite needs a title", "steps: a suite needs at least one step"}},
		{"steps are no list", `{"title":"x","steps":{}}`, []string{"steps: want a list of steps in brackets, have an object"}},
		{"a step is no object", `{"title":"x","steps":["section"]}`, []string{`step 1: want a step, an object in braces, have "section"`}},
		{"no section first", `{"title":"x","steps":[{"type":"prompt","text":"a"}]}`, []string{"step 1 (prompt), type: the first step must be a section"}},
		{"section without title", steps(`{"type":"section","title":" "}`), []string{"step 2 (section), title: a section needs a title"}},
		{"prompt without text", steps(`{"type":"prompt"}`), []string{"step 2 (prompt), text: a prompt needs a text"}},
		{"image without name", steps(`{"type":"image"}`), []string{"step 2 (image), image: an image step needs"}},
		{"context size", steps(`{"type":"context","k":3}`), []string{"step 2 (context), k: 3 is not a context size; it is one of 1, 2, 4"}},
		{"bench without tg", steps(`{"type":"bench","pp":5}`), []string{"step 2 (bench), tg: a bench step needs"}},
		{"bench without tokens", steps(`{"type":"bench","tg":5}`), []string{"step 2 (bench), pp: depth and pp make 0 tokens"}},
		{"bench too long", steps(`{"type":"bench","tg":5,"depth":1048576,"pp":1}`), []string{"step 2 (bench), pp: depth and pp make 1048577 tokens"}},
		{"negative", steps(`{"type":"bench","tg":-1,"pp":-5}`), []string{"2 problems", "tg: -1 is not between 0", "pp: -5 is not between 0"}},
		{"too many requests", steps(`{"type":"bench","tg":1,"pp":5,"requests":1001}`), []string{"step 2 (bench), requests: 1001 is not between 1 and 1000"}},
		{"requests of a prompt", steps(`{"type":"prompt","text":"a","requests":2}`), []string{"step 2 (prompt), requests: only a bench step"}},
		{"fraction", steps(`{"type":"bench","tg":1.5,"pp":5}`), []string{"step 2 (bench), tg: want a whole number, have 1.5"}},
		{"huge", steps(`{"type":"bench","tg":1e99,"pp":5}`), []string{"tg: want a whole number, have 1e99"}},
		{"number in quotes", steps(`{"type":"bench","tg":"32","pp":5}`), []string{"step 2 (bench), tg: the number 32 stands in quotes"}},
		{"text for a number", steps(`{"type":"bench","tg":"many","pp":5}`), []string{`tg: want a number, have "many"`}},
		{"number for a text", steps(`{"type":"prompt","text":7}`), []string{"text: want a text in quotes, have 7"}},
		{"text for a flag", steps(`{"type":"bench","tg":1,"pp":5,"exactTg":"true"}`), []string{`exactTg: want true or false, have "true"`}},
		{"no type", steps(`{"text":"a"}`), []string{"step 2, type: a step needs a type"}},
		{"unknown type", steps(`{"type":"shell","text":"a"}`), []string{`step 2 (shell), type: "shell" is no type of step`}},
		{"misspelt", steps(`{"type":"prompt","text":"a","reasoningEfort":"off"}`), []string{"reasoningEfort: there is no such member; did you mean reasoningEffort?"}},
		{"given twice", steps(`{"type":"bench","tg":1,"pp":5,"exactTg":true,"exact_tg":false}`), []string{"exactTg: is given twice, as exactTg and as exact_tg"}},
		{"reasoning in words", steps(`{"type":"prompt","text":"a","reasoningEffort":"very much"}`), []string{"reasoningEffort: \"very much\" is not one word"}},
		{"temperature", `{"title":"x","temperature":2.5,"steps":[{"type":"section","title":"s"}]}`, []string{"temperature: 2.5 is not between 0 and 2"}},
		{"max tokens", `{"title":"x","maxTokens":0,"steps":[{"type":"section","title":"s"}]}`, []string{"maxTokens: 0 is not between 1"}},
		{"own members", `{"title":"x","warmup":-1,"repeat":-2,"failure":"retry","prefix":"hot","steps":[{"type":"section","title":"s"}]}`,
			[]string{"4 problems", "warmup: -1", "repeat: -2", `failure: "retry" is none of stop, skip, continue`, `prefix: "hot" is none of salted, shared`}},
		{"everything at once", `{"title":"","steps":[{"type":"section"},{"type":"context","k":5},{"type":"bench","pp":1,"tg":"x"}]}`,
			[]string{"4 problems", "step 3 (bench), tg", "title: a suite needs", "step 1 (section), title", "step 2 (context), k"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Parse("some.json", []byte(test.file))
			var invalid *Invalid
			if !errors.As(err, &invalid) {
				t.Fatalf("error %v, suite %v", err, s)
			}
			message := err.Error()
			if !strings.HasPrefix(message, "cannot read suite some.json: ") {
				t.Errorf("the message does not name the file: %s", message)
			}
			rest := message
			for _, want := range test.want {
				i := strings.Index(rest, want)
				if i < 0 {
					t.Fatalf("no %q in\n%s", want, message)
				}
				rest = rest[i+len(want):]
			}
			if len(invalid.Problems) == 1 && strings.Contains(message, "\n") {
				t.Errorf("one problem on several lines: %s", message)
			}
		})
	}
}

// The built-in suites, and the files that they come from written exactly as Marshal writes them, so that
// a suite that was copied and saved differs from its origin in nothing but what was changed.
func TestBuiltIn(t *testing.T) {
	names, err := fs.Glob(assets.Suites(), "*.json")
	if err != nil {
		t.Fatal(err)
	}
	suites := BuiltIn()
	if len(suites) != len(names) {
		t.Errorf("%d files, %d suites in the list", len(names), len(suites))
	}
	byID := map[string]*Suite{}
	for _, s := range suites {
		file := s.ShortID() + ".json"
		data, err := fs.ReadFile(assets.Suites(), file)
		if err != nil {
			t.Errorf("%s: %v", s.ID, err)
			continue
		}
		if !s.Prebuilt || s.Description == "" || s.ID != prebuiltPrefix+s.ShortID() {
			t.Errorf("%s: prebuilt %v, description %q", s.ID, s.Prebuilt, s.Description)
		}
		if got := s.Marshal(); !bytes.Equal(got, data) {
			t.Errorf("%s is not written as Marshal writes it:\n%s", file, got)
		}
		for i := range s.Steps {
			st := &s.Steps[i]
			if st.Type == Section && !st.Reset {
				t.Errorf("%s: section %q continues the conversation", s.ID, st.Title)
			}
			if st.Type == Image {
				if _, ok := assets.Picture(st.Image); !ok {
					t.Errorf("%s: there is no picture %q", s.ID, st.Image)
				}
			}
		}
		byID[s.ShortID()] = s
	}
	shape := func(id string) (out [][3]int) {
		for _, st := range byID[id].Steps {
			if st.Type == Bench {
				out = append(out, [3]int{st.Depth, st.PP, st.TG})
			}
		}
		return out
	}
	if got, want := shape("shape-pp-sweep"), [][3]int{{0, 512, 16}, {0, 2048, 32}, {4096, 2048, 32}, {8192, 2048, 32}, {16384, 2048, 32}, {32768, 2048, 32}}; !reflect.DeepEqual(got, want) {
		t.Errorf("shape-pp-sweep: %v", got)
	}
	if got, want := shape("shape-tg-sweep"), [][3]int{{0, 256, 16}, {0, 256, 32}, {0, 256, 128}, {8192, 256, 32}, {8192, 256, 128}, {32768, 256, 32}, {32768, 256, 128}}; !reflect.DeepEqual(got, want) {
		t.Errorf("shape-tg-sweep: %v", got)
	}
	if s := byID["pure-code-c"]; *s.Temperature != 0.2 || *s.MaxTokens != 4096 || s.Steps[1].TG != 4096 {
		t.Errorf("pure-code-c: %v", s)
	}
	for _, st := range byID["classification-balance"].Steps[1:] {
		if n := len(strings.Fields(st.Text)); n < 200 || n > 320 || st.TG == 0 || st.Reasoning == "" {
			t.Errorf("classification-balance: a prompt of %d words, tg %d, reasoning %q", n, st.TG, st.Reasoning)
		}
	}
	// They are the caller's to change.
	suites[0].Steps[0].Title = "changed"
	if BuiltIn()[0].Steps[0].Title == "changed" {
		t.Error("a change to a built-in suite reaches the next caller")
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own.json")
	if err := os.WriteFile(own, []byte(foreign), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"title":"x"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ in, id, err string }{
		{"sanity", "prebuilt-sanity", ""},
		{"prebuilt-sanity", "prebuilt-sanity", ""},
		{"quick", "prebuilt-quick", ""},
		{"load", "prebuilt-load", ""},
		{own, "3f1c", ""},
		{broken, "", "steps: a suite needs at least one step"},
		{dir + "/", "", "it is a folder"},
		{filepath.Join(dir, "none.json"), "", "cannot open suite " + filepath.Join(dir, "none.json") + ": no such file"},
		{"sanety", "", "did you mean sanity?"},
		{"shape", "", "did you mean shape-quick or shape-pp-sweep or shape-tg-sweep?"},
		{"zzzzzzzzzzzzzz", "", "built in are quick, sanity,"},
		{"./sanity", "", "cannot open suite ./sanity"},
		{"sanity.json", "", "cannot open suite sanity.json"},
		{"", "", "cannot find suite"},
	} {
		s, err := Find(test.in)
		switch {
		case test.err == "" && (err != nil || s.ID != test.id):
			t.Errorf("Find(%q): %v", test.in, err)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("Find(%q): %v, want %q", test.in, err, test.err)
		}
		if s != nil && test.in == own && s.Dir != dir {
			t.Errorf("the folder of %q is %q", own, s.Dir)
		}
	}
}

func TestRequests(t *testing.T) {
	s, err := Find("sanity")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ workers, repeat, want int }{{1, 1, 4}, {3, 1, 12}, {3, 5, 60}, {0, 0, 4}} {
		if got := s.Requests(test.workers, test.repeat); got != test.want {
			t.Errorf("Requests(%d, %d) = %d, want %d", test.workers, test.repeat, got, test.want)
		}
	}
	s.Steps = append(s.Steps, Step{Type: Bench, PP: 9, TG: 9, Requests: 6})
	if got := s.Requests(3, 2); got != 4*6+36 {
		t.Errorf("with a step of 6 requests a worker there are %d", got)
	}
}

func TestOutputLimitAndNames(t *testing.T) {
	limit := 300
	bounded, free := &Suite{MaxTokens: &limit}, &Suite{}
	for _, test := range []struct {
		step          Step
		bounded, free int
		name          string
		fill          int
		exact         bool
	}{
		{Step{Type: Prompt, Text: "  What   is\nthis? "}, 300, 0, "What is this?", 0, false},
		{Step{Type: Prompt, Text: strings.Repeat("word ", 30), TG: 5, ExactTG: true}, 5, 5, "word word word word word word word word word…", 0, true},
		{Step{Type: Context, K: 8}, 300, 0, "context 8K", 8192, false},
		{Step{Type: Bench, Depth: 4096, PP: 512, TG: 32}, 32, 32, "pp512 tg32 @ d4096", 4608, false},
		{Step{Type: Bench, PP: 512, TG: 32, ExactTG: true}, 32, 32, "pp512 tg32", 512, true},
		{Step{Type: Image, Image: "velo-240.png"}, 300, DefaultImageOutput, "velo-240.png", 0, false},
		{Step{Type: Section, Title: "S", ExactTG: true, TG: 1}, 1, 1, "S", 0, false},
		{Step{Type: Prompt, Text: "a", ExactTG: true}, 300, 0, "a", 0, false},
	} {
		if got := bounded.OutputLimit(&test.step); got != test.bounded {
			t.Errorf("%s: limit %d in a suite with one, want %d", test.name, got, test.bounded)
		}
		if got := free.OutputLimit(&test.step); got != test.free {
			t.Errorf("%s: limit %d in a suite with none, want %d", test.name, got, test.free)
		}
		if got := test.step.Name(); got != test.name {
			t.Errorf("name %q, want %q", got, test.name)
		}
		if test.step.Fill() != test.fill || test.step.Exact() != test.exact {
			t.Errorf("%s: fill %d, exact %v", test.name, test.step.Fill(), test.step.Exact())
		}
	}
}

// genSuite makes any valid suite.
func genSuite(t *rapid.T) *Suite {
	word := rapid.StringMatching(`[a-zA-Zäß<&"\\ ]{0,20}x`)
	opt := func(lo, hi int, name string) *int {
		if !rapid.Bool().Draw(t, name+"?") {
			return nil
		}
		v := rapid.IntRange(lo, hi).Draw(t, name)
		return &v
	}
	s := &Suite{
		ID: word.Draw(t, "id"), Title: word.Draw(t, "title"), Description: rapid.String().Draw(t, "description"),
		MaxTokens: opt(1, MaxOutput, "maxTokens"), Warmup: opt(0, 100, "warmup"), Repeat: rapid.IntRange(0, 9).Draw(t, "repeat"),
		Failure: rapid.SampledFrom([]string{"", "stop", "skip", "continue"}).Draw(t, "failure"),
		Prefix:  rapid.SampledFrom([]string{"", "salted", "shared"}).Draw(t, "prefix"),
		Steps:   []Step{{Type: Section, Title: word.Draw(t, "first")}},
	}
	if rapid.Bool().Draw(t, "temperature?") {
		v := rapid.Float64Range(0, 2).Draw(t, "temperature")
		s.Temperature = &v
	}
	for range rapid.IntRange(0, 5).Draw(t, "n") {
		st := Step{Type: rapid.SampledFrom([]string{Section, Prompt, Context, Bench, Image}).Draw(t, "type")}
		st.TG, st.ExactTG = rapid.IntRange(1, 99).Draw(t, "tg"), rapid.Bool().Draw(t, "exact")
		if st.Type == Bench {
			st.Requests = rapid.IntRange(0, MaxRequests).Draw(t, "requests")
		}
		st.Title, st.Text, st.Image = word.Draw(t, "t"), word.Draw(t, "x"), word.Draw(t, "i")
		st.K, st.Depth, st.PP = rapid.SampledFrom(ContextSizes).Draw(t, "k"), rapid.IntRange(0, MaxFill-9).Draw(t, "depth"), rapid.IntRange(1, 9).Draw(t, "pp")
		s.Steps = append(s.Steps, st)
	}
	return s
}

func TestMarshalRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genSuite(t)
		again, err := Parse("x.json", s.Marshal())
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Marshal())
		}
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("%+v\ncame back as\n%+v", s, again)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(foreign))
	f.Add([]byte(`[{"title":"x","steps":[{"type":"section","title":"s"}]}]`))
	f.Add([]byte(`{"title":"x","steps":[{"type":"bench","tg":"32","TG":1}]}`))
	for _, s := range BuiltIn() {
		f.Add(s.Marshal())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		suites, err := ParseAll("f.json", data)
		if err != nil {
			var invalid *Invalid
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 || len(suites) != 0 {
				t.Fatalf("error %v with %d suites", err, len(suites))
			}
			return
		}
		for _, s := range suites {
			if ps := s.Validate(); ps != nil {
				t.Fatalf("read, but not valid: %v", ps)
			}
			again, err := Parse("f.json", s.Marshal())
			if err != nil {
				t.Fatalf("cannot be read again: %v\n%s", err, s.Marshal())
			}
			if !bytes.Equal(again.Marshal(), s.Marshal()) {
				t.Fatalf("written %s\nand then %s", s.Marshal(), again.Marshal())
			}
		}
	})
}
