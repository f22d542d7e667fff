package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseList(t *testing.T) {
	for text, want := range map[string]string{
		"0": "[0]", "0-3,8": "[0 1 2 3 8]", " 8, 0-1 ": "[0 1 8]", "1,1-2,2": "[1 2]",
		"":     "not a processor's number",
		"a":    "not a processor's number",
		"1-":   "not a processor's number",
		"-1":   "not a processor's number",
		"3-1":  "ends before it begins",
		"0,,1": "not a processor's number",
		"8192": "beyond the largest", "0-4294967295": "beyond the largest",
	} {
		cpus, err := parseList(text)
		if got := fmt.Sprint(cpus, err); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if _, err := Pin("1-x"); err == nil || !strings.Contains(err.Error(), `cannot run on processors "1-x"`) {
		t.Error(err)
	}
}

func TestListsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfNDistinct(rapid.IntRange(0, 200), 1, 40, rapid.ID).Draw(t, "cpus")
		slices.Sort(want)
		got, err := parseList(formatList(want))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v is written %s and read %v, %v", want, formatList(want), got, err)
		}
	})
}

func FuzzParseList(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, text string) {
		cpus, err := parseList(text)
		if err == nil && (len(cpus) == 0 || !slices.IsSorted(cpus) || cpus[len(cpus)-1] >= mostCPUs) {
			t.Errorf("%q: %v", text, cpus)
		}
	})
}

func TestBig(t *testing.T) {
	for name, c := range map[string]struct {
		strength map[int]int
		want     string
	}{
		"big and little":         {map[int]int{0: 718, 1: 718, 2: 1024, 3: 1024}, "2-3"},
		"one kind":               {map[int]int{0: 1024, 1: 1024}, ""},
		"some clock higher":      {map[int]int{0: 3900, 1: 4004}, ""},
		"three kinds":            {map[int]int{0: 400, 1: 871, 2: 1024}, "1-2"},
		"unknown":                {map[int]int{0: 0, 1: 0}, ""},
		"one unknown":            {map[int]int{0: 0, 1: 1024}, ""},
		"nothing":                {nil, ""},
		"little ones at the end": {map[int]int{5: 10, 9: 2, 7: 9}, "5,7"},
	} {
		if got := formatList(big(c.strength)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
