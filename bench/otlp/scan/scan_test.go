package scan

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// deep tells whether a text nests deeper than the scanner follows.
func deep(s string) bool {
	n, most, inside := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			n++
			most = max(most, n)
		case c == '}' || c == ']':
			n--
		}
	}
	return most > MostNesting
}

func FuzzAgainstStandardLibrary(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"x\u00e9\ud83d\ude00\n",null,true,false,{}]}`, `[]`, `{"a":}`, `[1,]`, `"\ud800"`,
		`01`, `-`, `1.`, `{"a" 1}`, `"\x"`, "\"\x01\"", `nul`, `[1 2]`, strings.Repeat("[", 200), `"\ud83dx"`, `"\u12"`, `""1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if deep(s) {
			p := New(s)
			p.Skip()
			if p.End() == nil {
				t.Fatal("a text that is too deep was taken")
			}
			return
		}
		p := New(s)
		p.Skip()
		if got, want := p.End() == nil, json.Valid([]byte(s)); got != want {
			t.Fatalf("%q: valid %v, want %v (%v)", s, got, want, p.Err())
		}
		var text string
		if err := json.Unmarshal([]byte(s), &text); err == nil && utf8.ValidString(s) && strings.HasPrefix(strings.TrimSpace(s), `"`) {
			p := New(s)
			if got := p.String(); got != text || p.End() != nil {
				t.Fatalf("%q is %q, want %q (%v)", s, got, text, p.Err())
			}
		}
		var number float64
		if err := json.Unmarshal([]byte(s), &number); err == nil {
			p := New(s)
			if got := p.Float(); got != number || p.End() != nil {
				t.Fatalf("%q is %v, want %v (%v)", s, got, number, p.Err())
			}
		}
	})
}

func TestIntegersComeAsNumbersAndAsStrings(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		bad  bool
	}{
		{`7`, 7, false}, {`"7"`, 7, false}, {`-9223372036854775808`, math.MinInt64, false}, {`"9223372036854775807"`, math.MaxInt64, false},
		{`1.7e3`, 1700, false}, {`"1e2"`, 100, false}, {`null`, 0, false}, {`1.5`, 0, true}, {`"x"`, 0, true}, {`9223372036854775808`, 0, true},
		{`true`, 0, true}, {`"0x10"`, 0, true}, {`"NaN"`, 0, true},
	} {
		p := New(c.text)
		if got := p.Int(); got != c.want || (p.End() != nil) != c.bad {
			t.Errorf("%s: %d, %v", c.text, got, p.Err())
		}
	}
	p := New(`"18446744073709551615"`)
	if got := p.Uint(); got != math.MaxUint64 || p.End() != nil {
		t.Errorf("greatest: %d, %v", got, p.Err())
	}
	p = New(`-1`)
	if p.Uint(); p.End() == nil {
		t.Error("a negative number was taken as one without sign")
	}
	p = New(`"-Infinity"`)
	if got := p.Float(); !math.IsInf(got, -1) || p.End() != nil {
		t.Errorf("-Infinity: %v, %v", got, p.Err())
	}
}

func TestErrorsSayWhere(t *testing.T) {
	p := New(`{"a": [1, 2, }`)
	p.Skip()
	if err := p.End(); err == nil || !strings.Contains(err.Error(), "byte 13") {
		t.Errorf("error is %v", err)
	}
}
