package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	if s, err := Load("speculation"); err != nil || s.Speculation.Draft != 4 {
		t.Errorf("built-in: %+v, %v", s, err)
	}
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "scenario.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s, err := Load(file("\xef\xbb\xbf" + `{"ttft": "20ms", "tokens": 7, "gaps": {"kind": "bimodal", "fast": "1ms", "slow": "1.5s", "fast_share": 0.5}}`))
	if err != nil {
		t.Fatal(err)
	}
	if s.TTFT != 20*ms || s.Tokens != 7 || s.Gaps.Slow != 1500*ms || s.Name != filepath.Join(dir, "scenario.json") {
		t.Errorf("%+v", s)
	}
	for _, c := range []struct{ text, want string }{
		{"", "not a JSON object"},
		{"[]", "not a JSON object"},
		{`"steady"`, "not a JSON object"},
		{"{", "ends before its closing brace"},
		{"{\n\"ttft\": \"20ms\",\n\"itl\" \"3ms\"}", "line 3: not JSON"},
		{`{"ttft": "20ms"} {"itl": "1ms"}`, "one scenario"},
		{`{"tfft": "20ms"}`, `member "tfft" is not one of a scenario`},
		{`{"gaps": {"sd": "1ms", "mean": "2ms"}}`, `member "mean"`},
		{`{"ttft": 20}`, `20 is not a duration`},
		{`{"ttft": "20"}`, `"20" is not a duration`},
		{`{"ttft": "-3ms"}`, "ttft is -3ms: it must be between 0s"},
		{"{\n\"tokens\": \"12\"}", "line 2: tokens is a string: it must be a whole number"},
		{`{"bom": 1}`, "bom is a number: it must be a true or false"},
		{`{"gaps": 3}`, "gaps is a number: it must be a JSON object"},
		{`{"tokens": -1}`, "tokens is -1: it must be between 0 and"},
		{`{"tokens": 1e9}`, "tokens"},
		{`{"regime": "poem"}`, `regime is "poem": it must be one of "prose"`},
		{`{"gaps": {"kind": "bimodal"}}`, "gaps.slow is missing"},
		{`{"gaps": {"kind": "bimodal", "fast": "9ms", "slow": "1ms"}}`, "exchange them"},
		{`{"gaps": {"kind": "normal"}}`, "gaps.sd is missing"},
		{`{"gaps": {"kind": "stall"}}`, "gaps.stall is missing"},
		{`{"speculation": {"draft": 4, "acceptance": 1.5}}`, "speculation.acceptance is 1.5"},
		{`{"speculation": {"draft": 4}, "tokens_per_chunk": 2}`, "tokens_per_chunk is 2 beside speculation"},
		{`{"speculation": {"acceptance": 0.5}}`, "speculation.draft is missing"},
		{`{"reasoning": {"tokens": 80}}`, "above tokens 64"},
		{`{"reasoning": {"tokens": 8, "field": "think_tags"}}`, "with think_tags at least 16"},
		{`{"fault": {"after": 3}}`, "fault.kind is missing"},
		{`{"fault": {"kind": "explode"}}`, `fault.kind is "explode"`},
		{`{"status": 99}`, "status is 99"},
		{`{"html": true}`, "html is set without a status"},
		{`{"split": "crlf"}`, "there is no CRLF to split"},
		{`{"split": "utf8", "gzip": true}`, "split contradicts gzip"},
		{`{"usage": "finish", "finish": "none"}`, "no chunk to carry it"},
		{`{"buffer_all": true, "buffer_bytes": 100}`, "choose one"},
		{`{"buffer_bytes": 1}`, "at least 64"},
		{`{"keep_alive": "1us"}`, "at least 1ms"},
		{`{"header_trickle": true}`, "header_delay is missing"},
		{`{"ignore_n": true, "choices": 2}`, "choose one"},
		{`{"tool_calls": 1, "refusal": true}`, "refusal contradicts tool_calls"},
		{`{"tokens": 1000000, "line_bytes": 1000000}`, "below 1 GiB"},
		{`{"split": "bytes", "line_bytes": 1000000, "tokens": 2}`, "split_bytes is 7"},
	} {
		_, err := Load(file(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "scenario.json") {
			t.Errorf("%s: error %v, want it to say %q and the file", c.text, err, c.want)
		}
	}
	for name, want := range map[string]string{
		"usage":                            "near it: usage-own",
		"nothing":                          "no built-in scenario has that name",
		filepath.Join(dir, "missing.json"): "no such file",
		dir:                                "is a directory",
	} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want it to say %q", name, err, want)
		}
	}
	if _, err := Load(file(strings.Repeat(" ", maxFile+1))); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a file of %d bytes: %v", maxFile+1, err)
	}
}

// What is written as JSON reads back the same, for each built-in scenario.
func TestScenarioJSON(t *testing.T) {
	for _, s := range Scenarios() {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parse(text)
		if err != nil || back != s {
			t.Errorf("%s: %v\n%+v", text, err, back)
		}
	}
}

func TestDurationJSON(t *testing.T) {
	var d Duration
	if err := d.UnmarshalJSON([]byte(`"1h2m3.5s"`)); err != nil || time.Duration(d) != time.Hour+2*time.Minute+3500*time.Millisecond {
		t.Errorf("%v, %v", d, err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range Scenarios() {
		text, err := json.Marshal(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"gaps": {"kind": "normal", "sd": "1ms"}, "sim": null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "json:") && strings.Contains(err.Error(), "sim.") {
				t.Errorf("the error speaks of Go types: %v", err)
			}
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parse(again)
		if err != nil || back != s {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

// members are the JSON names of a struct, nested ones as a.b.
func members(prefix string, t reflect.Type) (list []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Type.Kind() == reflect.Struct {
			list = append(list, members(prefix+name+".", f.Type)...)
			continue
		}
		list = append(list, prefix+name)
	}
	return list
}

// The documentation lists the scenarios that there are, with their
// descriptions, and every member of the file and of the log.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/sim.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	_, table, ok := strings.Cut(text, "## Scenarios\n")
	if !ok {
		t.Fatal("docs/sim.md has no section Scenarios")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var want strings.Builder
	for _, s := range Scenarios() {
		want.WriteString("| `" + s.Name + "` | " + s.Description + " |\n")
	}
	var got strings.Builder
	for line := range strings.SplitAfterSeq(table, "\n") {
		if strings.HasPrefix(line, "| `") {
			got.WriteString(line)
		}
	}
	if got.String() != want.String() {
		t.Errorf("the scenarios of docs/sim.md are not those of Scenarios(); they should be\n%s", want.String())
	}
	for _, name := range append(members("", reflect.TypeFor[Scenario]()), members("", reflect.TypeFor[Write]())...) {
		if !strings.Contains(text, "| `"+name+"` |") {
			t.Errorf("docs/sim.md does not describe %s", name)
		}
	}
	for _, kind := range []string{KindHeaders, KindRole, KindEmpty, KindReasoning, KindContent, KindRefusal, KindTool, KindFinish,
		KindUsage, KindDone, KindComment, KindError, KindMalformed, KindTruncated, KindJSON, KindEnd, KindCancel} {
		if !strings.Contains(text, "`"+kind+"`") {
			t.Errorf("docs/sim.md does not describe the kind %s", kind)
		}
	}
}
