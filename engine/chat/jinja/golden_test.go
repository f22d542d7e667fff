package jinja

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"
)

// now is the moment that testdata was made at.
var now = time.Date(2026, 7, 6, 9, 5, 3, 0, time.UTC)

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func testVariables(t testing.TB) *Dict {
	t.Helper()
	v, err := FromJSON(readFile(t, "testdata/variables.json"))
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Dict)
}

// golden is what jinja2 made of a template; testdata/../../testdata/make_goldens.py asks it.
type golden struct{ Template, Text, Fails string }

func outcome(source string, vars *Dict) (text, fails string) {
	t, err := Parse(source)
	if err != nil {
		return "", "syntax"
	}
	text, err = t.Render(vars, now, Limits{})
	var e *Error
	switch {
	case err == nil:
		return text, ""
	case errors.As(err, &e) && e.Raised:
		return e.Reason, "raised"
	}
	return "", "error"
}

func TestSnippetsAsJinja2RendersThem(t *testing.T) {
	var goldens []golden
	if err := json.Unmarshal(readFile(t, "testdata/goldens.json"), &goldens); err != nil {
		t.Fatal(err)
	}
	vars := testVariables(t)
	for _, g := range goldens {
		text, fails := outcome(g.Template, vars)
		if text == g.Text && fails == g.Fails {
			continue
		}
		reason := ""
		if fails != "" {
			p, err := Parse(g.Template)
			if err == nil {
				_, err = p.Render(vars, now, Limits{})
			}
			reason = err.Error()
		}
		t.Errorf("%q\n got %q %s %s\nwant %q %s", g.Template, text, fails, reason, g.Text, g.Fails)
	}
}
