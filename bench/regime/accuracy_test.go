package regime

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"
	"unicode"

	"velo/bench"
)

// passage is a labelled text: its parts, one regime each, are the text.
type passage struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`   // model, public domain, velo or written
	Source string `json:"source"` // where it comes from
	Parts  []struct {
		Regime Regime `json:"regime"`
		Text   string `json:"text"`
	} `json:"parts"`
}

// push gives a classifier the passage, reasoning on its channel.
func (p *passage) push(c *Classifier) {
	for _, part := range p.Parts {
		channel := bench.Content
		if part.Regime == Reasoning {
			channel = bench.Reasoning
		}
		c.Push(part.Text, channel)
	}
}

func (p *passage) text() string {
	var b strings.Builder
	for _, part := range p.Parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

func readPassages(t testing.TB, half string) []passage {
	f, err := os.Open("testdata/" + half + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []passage
	s := bufio.NewScanner(f)
	for s.Scan() {
		var p passage
		if err := json.Unmarshal(s.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v", half, err)
		}
		all = append(all, p)
	}
	if err := s.Err(); err != nil || len(all) == 0 {
		t.Fatalf("%s: %d passages, %v", half, len(all), err)
	}
	return all
}

// matrix counts by true regime, then by the regime found.
type matrix [5][5]int

func (m *matrix) accuracy() (right, all int) {
	for i := range m {
		for j := range m[i] {
			all += m[i][j]
		}
		right += m[i][i]
	}
	return right, all
}

func (m *matrix) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s", "true \\ found")
	for _, r := range All() {
		fmt.Fprintf(&b, "%12s", r)
	}
	for _, r := range All() {
		fmt.Fprintf(&b, "\n%-12s", r)
		for _, n := range m[r] {
			fmt.Fprintf(&b, "%12d", n)
		}
	}
	return b.String()
}

// measure classifies passages and compares: parts by the regime of most of their characters, and characters.
// Blanks do not count.
func measure(passages []passage, wrong func(p passage, part int, found Regime)) (parts, characters matrix) {
	for _, p := range passages {
		var c Classifier
		p.push(&c)
		spans := c.Spans()
		offset := 0
		for i, part := range p.Parts {
			var count [5]int
			for j, r := range part.Text {
				if unicode.IsSpace(r) {
					continue
				}
				found := at(spans, offset+j)
				count[found]++
				characters[part.Regime][found]++
			}
			offset += len(part.Text)
			best := Prose
			for r := range count {
				if count[r] > count[best] {
					best = Regime(r)
				}
			}
			parts[part.Regime][best]++
			if best != part.Regime && wrong != nil {
				wrong(p, i, best)
			}
		}
	}
	return parts, characters
}

var showTune = flag.Bool("tune", false, "show what is wrong in the half that rules may be tuned on")

// TestTune shows the half that rules are tuned on.
func TestTune(t *testing.T) {
	if !*showTune {
		t.Skip("for tuning: run with -tune")
	}
	parts, characters := measure(readPassages(t, "tune"), func(p passage, part int, found Regime) {
		t.Logf("%s part %d is %s, found %s:\n%s", p.ID, part, p.Parts[part].Regime, found, p.Parts[part].Text)
	})
	right, all := parts.accuracy()
	rightC, allC := characters.accuracy()
	t.Logf("%d of %d parts, %d of %d characters (%.2f %%)\n%v\n%v", right, all, rightC, allC, 100*float64(rightC)/float64(allC), &parts, &characters)
}

// TestPassages holds what docs/regimes.md says of the labelled set.
func TestPassages(t *testing.T) {
	seen := map[string]bool{}
	total, free := 0, 0
	for bit, half := range []string{"tune", "held-out"} {
		for _, p := range readPassages(t, half) {
			h := fnv.New32a()
			h.Write([]byte(p.ID))
			if h.Sum32()%2 != uint32(bit) {
				t.Errorf("%s is in the half %s; its hash puts it into the other", p.ID, half)
			}
			if seen[p.ID] {
				t.Errorf("%s is there twice", p.ID)
			}
			seen[p.ID] = true
			total++
			if p.Kind == "model" || p.Kind == "public domain" {
				free++
			}
			for i, part := range p.Parts {
				if strings.TrimSpace(part.Text) == "" || i > 0 && p.Parts[i-1].Regime == part.Regime {
					t.Errorf("%s: part %d is empty or like the one before", p.ID, i)
				}
			}
		}
	}
	if total < 200 || free*2 < total {
		t.Errorf("%d passages, %d of them by a model or in the public domain: want 200 and half of them", total, free)
	}
}

// TestAccuracy measures on the half that no rule was tuned on, and on passages that were generated and labelled
// when the rules were done. It fails if that is less than what docs/regimes.md says.
func TestAccuracy(t *testing.T) {
	for _, set := range []struct {
		name              string
		parts, characters int // right when docs/regimes.md was written
	}{{"held-out", 216, 50796}, {"fresh", 70, 21403}} {
		passages := readPassages(t, set.name)
		parts, characters := measure(passages, nil)
		right, all := parts.accuracy()
		rightC, allC := characters.accuracy()
		t.Logf("%s: %d of %d parts (%.1f %%)\n%v", set.name, right, all, 100*float64(right)/float64(all), &parts)
		t.Logf("%d of %d characters (%.1f %%)\n%v", rightC, allC, 100*float64(rightC)/float64(allC), &characters)
		if right < set.parts || rightC < set.characters {
			t.Errorf("%s: %d parts and %d characters are right; docs/regimes.md says %d and %d", set.name, right, rightC, set.parts, set.characters)
		}
		open := measureOpen(passages)
		right, all = open.accuracy()
		t.Logf("%s, parts without a fence: %d of %d (%.1f %%)", set.name, right, all, 100*float64(right)/float64(all))
	}
}

// measureOpen counts the parts that have no fence and are no prose: those that nothing but their text gives away.
func measureOpen(passages []passage) matrix {
	var open matrix
	for _, p := range passages {
		wrong := map[int]Regime{}
		measure([]passage{p}, func(_ passage, part int, found Regime) { wrong[part] = found })
		for i, part := range p.Parts {
			if part.Regime == Prose || part.Regime == Reasoning || strings.Contains(part.Text, "```") || strings.Contains(part.Text, "~~~") {
				continue
			}
			found, ok := wrong[i]
			if !ok {
				found = part.Regime
			}
			open[part.Regime][found]++
		}
	}
	return open
}
