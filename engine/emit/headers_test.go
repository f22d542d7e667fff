package emit

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseHeaders(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[string]string
		bad  string
	}{
		{text: ""},
		{text: " , "},
		{text: "Authorization=Bearer%20a%2Cb%3D", want: map[string]string{"Authorization": "Bearer a,b="}},
		{text: "a=1, b = 2 ,c=x=y", want: map[string]string{"a": "1", "b": "2", "c": "x=y"}},
		{text: "a=1,secret", bad: "entry 2 has no ="},
		{text: "=1", bad: "no name"},
		{text: "a=%zz", bad: "not percent-encoded"},
	} {
		got, err := ParseHeaders(c.text)
		if c.bad != "" {
			if err == nil || !strings.Contains(err.Error(), c.bad) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "zz") {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		if err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
}

func TestFormatHeaderIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[ -~]{1,40}`).Draw(t, "value")
		got, err := ParseHeaders(FormatHeader("authorization", value) + "," + FormatHeader("x", "1"))
		if err != nil || got["authorization"] != value || got["x"] != "1" {
			t.Fatalf("%q became %v, %v", value, got, err)
		}
	})
}

func TestHeadersThatAreGivenGoBeforeTheEnvironments(t *testing.T) {
	m, err := withEnvironment(map[string]string{"authorization": "flag"}, "Authorization=Bearer%20env,x=1")
	if err != nil || len(m) != 2 || m["authorization"] != "flag" || m["x"] != "1" {
		t.Errorf("%v, %v", m, err)
	}
}
