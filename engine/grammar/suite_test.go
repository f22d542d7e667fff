package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Cases of the suite below which this package must not fall.
const (
	leastCompiled = 216
	leastTexts    = 1271
)

// narrower are the valid instances that are refused, by file, schema and case. Each is a value
// that a schema allows and that this package never writes; docs/grammar.md names the reasons.
var narrower = map[string]bool{
	"format/date-time: validation of date-time strings: a valid date-time with a leap second, with minus offset":                    true,
	"format/date-time: validation of date-time strings: a second fraction of fifteen nines is valid":                                true,
	"format/duration: validation of duration strings: a component with many digits is valid":                                        true,
	"format/email: validation of e-mail addresses: a quoted string with a space in the local part is valid":                         true,
	"format/email: validation of e-mail addresses: a quoted string with a double dot in the local part is valid":                    true,
	"format/email: validation of e-mail addresses: a quoted string with a @ in the local part is valid":                             true,
	"format/email: validation of e-mail addresses: an IPv4-address-literal after the @ is valid":                                    true,
	"format/email: validation of e-mail addresses: an IPv6-address-literal after the @ is valid":                                    true,
	"format/hostname: validation of A-label (punycode) host names: a valid host name (example.test in Hangul)":                      true,
	"format/hostname: validation of A-label (punycode) host names: Exceptions that are PVALID, left-to-right chars":                 true,
	"format/hostname: validation of A-label (punycode) host names: Exceptions that are PVALID, right-to-left chars":                 true,
	"format/hostname: validation of A-label (punycode) host names: MIDDLE DOT with surrounding 'l's":                                true,
	"format/hostname: validation of A-label (punycode) host names: Greek KERAIA followed by Greek":                                  true,
	"format/hostname: validation of A-label (punycode) host names: Hebrew GERESH preceded by Hebrew":                                true,
	"format/hostname: validation of A-label (punycode) host names: Hebrew GERSHAYIM preceded by Hebrew":                             true,
	"format/hostname: validation of A-label (punycode) host names: KATAKANA MIDDLE DOT with Hiragana":                               true,
	"format/hostname: validation of A-label (punycode) host names: KATAKANA MIDDLE DOT with Katakana":                               true,
	"format/hostname: validation of A-label (punycode) host names: KATAKANA MIDDLE DOT with Han":                                    true,
	"format/hostname: validation of A-label (punycode) host names: Arabic-Indic digits not mixed with Extended Arabic-Indic digits": true,
	"format/hostname: validation of A-label (punycode) host names: Extended Arabic-Indic digits not mixed with Arabic-Indic digits": true,
	"format/hostname: validation of A-label (punycode) host names: ZERO WIDTH JOINER preceded by Virama":                            true,
	"format/hostname: validation of A-label (punycode) host names: ZERO WIDTH NON-JOINER preceded by Virama":                        true,
	"format/hostname: validation of A-label (punycode) host names: ZERO WIDTH NON-JOINER not preceded by Virama but matches regexp": true,
	"format/time: validation of time strings: valid leap second, positive time-offset":                                              true,
	"format/time: validation of time strings: valid leap second, large positive time-offset":                                        true,
	"format/time: validation of time strings: valid leap second, negative time-offset":                                              true,
	"format/time: validation of time strings: valid leap second, large negative time-offset":                                        true,
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// suite calls visit for each schema of the JSON-Schema-Test-Suite.
func suite(t testing.TB, visit func(file string, g suiteGroup)) {
	t.Helper()
	files, err := filepath.Glob("testdata/JSON-Schema-Test-Suite/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("the suite is missing", err)
	}
	more, _ := filepath.Glob("testdata/JSON-Schema-Test-Suite/format/*.json")
	for _, f := range append(files, more...) {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var groups []suiteGroup
		if err := json.Unmarshal(data, &groups); err != nil {
			t.Fatal(f, err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		if filepath.Base(filepath.Dir(f)) == "format" {
			name = "format/" + name
		}
		for _, g := range groups {
			visit(name, g)
		}
	}
}

// writings are the ways to write a value compactly: objects in every order of their members, up to
// a few thousand.
func writings(v any) []string {
	const most = 5000
	cross := func(heads []string, separator string, tails []string) []string {
		var out []string
		for _, h := range heads {
			for _, t := range tails {
				if len(out) < most {
					out = append(out, h+separator+t)
				}
			}
		}
		return out
	}
	switch v := v.(type) {
	case []any:
		out := []string{"["}
		for i, x := range v {
			out = cross(out, map[bool]string{true: ","}[i > 0], writings(x))
		}
		return cross(out, "", []string{"]"})
	case *object:
		var out []string
		var orders func(left, done []string)
		orders = func(left, done []string) {
			if len(out) >= most {
				return
			}
			if len(left) == 0 {
				one := []string{"{"}
				for i, n := range done {
					one = cross(one, map[bool]string{true: ","}[i > 0]+quoted(n)+":", writings(v.values[n]))
				}
				out = append(out, cross(one, "", []string{"}"})...)
				return
			}
			for i, n := range left {
				orders(slices.Delete(slices.Clone(left), i, i+1), append(slices.Clone(done), n))
			}
		}
		orders(v.names, nil)
		return out
	case json.Number:
		return []string{numberText(v)}
	case string:
		return []string{quoted(v)}
	}
	return []string{fmt.Sprint(map[bool]any{true: "null", false: v}[v == nil])}
}

func TestSuite(t *testing.T) {
	v := letters()
	refused := map[string]int{}
	schemas, compiled, texts := 0, 0, 0
	left := maps.Clone(narrower)
	suite(t, func(file string, group suiteGroup) {
		schemas++
		g, err := Schema(group.Schema)
		if err != nil {
			var se *schemaError
			if errors.As(err, &se) {
				refused[se.keyword]++
			} else if strings.Contains(err.Error(), "no finite text") {
				refused["(nothing satisfies it)"]++
				for _, c := range group.Tests {
					if c.Valid {
						t.Errorf("%s: %s: %v, but %s is valid", file, group.Description, err, c.Data)
					}
				}
			} else {
				t.Errorf("%s: %s: the error names no keyword: %v", file, group.Description, err)
			}
			return
		}
		compiled++
		for _, c := range group.Tests {
			name := file + ": " + group.Description + ": " + c.Description
			data, err := parseDocument(c.Data)
			if err != nil {
				t.Fatal(name, err)
			}
			texts++
			got := slices.ContainsFunc(writings(data), func(text string) bool { return accepts(t, g, v, text) })
			if c.Valid && left[name] && !got {
				delete(left, name)
				continue
			}
			if got != c.Valid {
				t.Errorf("%s: %s: accepted is %v\n\t%q: true,", name, c.Data, got, name)
			}
		}
	})
	for name := range left {
		t.Errorf("%s is not refused any more", name)
	}
	var keywords []string
	for _, k := range slices.Sorted(maps.Keys(refused)) {
		keywords = append(keywords, fmt.Sprintf("%s %d", k, refused[k]))
	}
	t.Logf("%d schemas: %d compiled, with %d texts, %d of them valid and never written; refused for %s",
		schemas, compiled, texts, len(narrower), strings.Join(keywords, ", "))
	if compiled < leastCompiled || texts < leastTexts {
		t.Errorf("%d schemas compiled and %d texts were tried, before %d and %d", compiled, texts, leastCompiled, leastTexts)
	}
}
