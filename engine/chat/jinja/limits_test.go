package jinja

import (
	"errors"
	"strings"
	"testing"
)

// A template that asks for too much must end in an error that says so, soon and in little memory.
func TestHostileTemplatesAreErrors(t *testing.T) {
	for _, source := range []string{
		"{{ range(1000000000) | list }}",
		"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
		"{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
		"{{ 'a' * 10000000000 }}",
		"{{ [1] * 10000000000 }}",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"{% set ns = namespace(s='a') %}{% for i in range(100) %}{% set ns.s = ns.s.replace('a', 'aaaaaaaaaa') %}{% endfor %}",
		"{% set ns = namespace(s=[]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
		"{% set ns = namespace(s=[]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | tojson }}",
		"{% set ns = namespace(s=[]) %}{% for i in range(50) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s == ns.s + [] or [ns.s] == [ns.s] }}",
		"{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"{% macro m(x) %}{{ m(x) }}{{ m(x) }}{% endmacro %}{{ m(1) }}",
		"{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}",
		"{{ 'a'.ljust(100000000000) }}",
		"{{ 'a'.zfill(100000000000) }}",
		"{{ 'x' | indent(100000000000) }}",
		"{{ [[1]] | tojson(indent=100000000000) }}",
		"{{ " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000) + " }}",
		"{{ " + strings.Repeat("[", 100000) + " }}",
		"{{ " + strings.Repeat("not ", 100000) + " 1 }}",
		"{{ " + strings.Repeat("-", 100000) + " 1 }}",
		"{{ 1 " + strings.Repeat("if 1 else 1 ", 100000) + " }}",
		strings.Repeat("{% if true %}", 100000),
		strings.Repeat("a", maxSource+1),
	} {
		p, err := Parse(source)
		if err == nil {
			_, err = p.Render(NewDict(), now, Limits{Steps: defaultSteps / 10, Memory: defaultMemory / 10})
		}
		var e *Error
		if !errors.As(err, &e) || !e.Limit {
			t.Errorf("%.80q: got %v, want an error about a limit", source, err)
		}
	}
}

func TestNamesOfNamespacesThatTransformersRefuses(t *testing.T) {
	for _, source := range []string{"{{ namespace(_a=1) }}", "{% set ns = namespace() %}{% set ns._a = 1 %}"} {
		if _, fails := outcome(source, NewDict()); fails != "error" {
			t.Errorf("%s: got %q", source, fails)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	for source, want := range map[string]string{
		"a\nb\n{{ x.y }}":                      "line 3: \"x\" is undefined",
		"a\n{% nosuch %}":                      "line 2: unknown block \"nosuch\"",
		"\n\n{% if a %}":                       "line 3: a block that begins here has no endif",
		"{{ 1 }}\n{{ raise_exception('no') }}": "line 2: no",
	} {
		p, err := Parse(source)
		if err == nil {
			_, err = p.Render(NewDict(), now, Limits{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", source, err, want)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	vars := testVariables(f)
	for _, s := range []string{"{{ s }}", "{% for x in list if x %}{{ loop.index }}{% endfor %}", "{{ d|tojson(indent=2) }}", "{%- macro m(a=1) -%}{{ a }}{%- endmacro %}{{ m() }}", "{% raw %}{{{% endraw %}", "{# #}", "{{ u[::-1] }}{{ 2**9 }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := Parse(source)
		if err != nil {
			return
		}
		a, err := p.Render(vars, now, Limits{Steps: 20000, Memory: 1 << 20, Output: 1 << 20})
		b, again := p.Render(vars, now, Limits{Steps: 20000, Memory: 1 << 20, Output: 1 << 20})
		if a != b || (err == nil) != (again == nil) {
			t.Fatalf("%q renders differently the second time", source)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"a":[1,2.5,null,true,"é\n"],"b":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := FromJSON([]byte(text))
		if err != nil {
			return
		}
		s, err := ToJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := FromJSON([]byte(s)); err == nil {
			if again, _ := ToJSON(w); again != s {
				t.Fatalf("%q became %q", s, again)
			}
		}
	})
}
