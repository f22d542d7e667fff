package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"velo/bench"
	"velo/bench/measure"
)

// trust: whether the numbers can be believed, line by line.
func (b *builder) trust() Section {
	s := Section{ID: "trust", Title: "Trust"}
	if len(b.run.Trust) > 0 {
		t := Table{ID: "trust", Columns: []Column{{Title: "Check"}, {Title: "Verdict"}, {Title: "Seen"}, {Title: "Green when"}, {Title: "What it means"}}}
		levels := map[measure.Level]int{}
		for _, c := range b.run.Trust {
			levels[c.Level]++
			verdict := text(levelWord(c.Level))
			verdict.Level = c.Level
			detail := "" // of a green line there is nothing more to say
			if c.Level != measure.Green {
				detail = oneLine(c.Detail, 400)
			}
			t.Rows = append(t.Rows, []Cell{text(c.Name), verdict, text(oneLine(orDash(c.Value), 160)), text(oneLine(c.Bound, 120)), text(detail)})
		}
		s.Tables = append(s.Tables, t)
		var parts []string
		for _, l := range []measure.Level{measure.Green, measure.Amber, measure.Red, measure.Unknown} {
			if n := levels[l]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, levelWord(l)))
			}
		}
		s.Text = fmt.Sprintf("%s: %s. A line that could not be measured is unknown, never green.", plural(len(b.run.Trust), "line"), listed(parts))
	}
	if t, ok := b.failures(); ok {
		s.Tables = append(s.Tables, t)
	}
	if t, ok := b.invariants(); ok {
		s.Tables = append(s.Tables, t)
	}
	if t, ok := b.notes(); ok {
		s.Tables = append(s.Tables, t)
	}
	return s
}

func levelWord(l measure.Level) string {
	if l == "" {
		return string(measure.Unknown)
	}
	return string(l)
}

func orDash(s string) string {
	if strings.TrimSpace(s) == "" {
		return Dash
	}
	return s
}

// failures shows each class of error with its number and its first message.
func (b *builder) failures() (Table, bool) {
	t := Table{ID: "failures", Title: "Failures", Columns: []Column{{Title: "Class"}, {Title: "Requests", Right: true}, {Title: "First message"}}}
	type class struct {
		n     int
		first string
	}
	seen := map[string]*class{}
	var order []string
	for i := range b.run.Requests {
		q := &b.run.Requests[i]
		if q.Status == bench.OK || q.Status == bench.Stopped || q.Status == "" {
			continue
		}
		name := q.Class
		if name == "" {
			name = string(q.Status)
		}
		c := seen[name]
		if c == nil {
			c = &class{first: fmt.Sprintf("request %d: %s", q.Number, orDash(oneLine(q.Error, 300)))}
			seen[name] = c
			order = append(order, name)
		}
		c.n++
	}
	for _, name := range order {
		t.Rows = append(t.Rows, []Cell{text(oneLine(name, 60)), count(seen[name].n), text(seen[name].first)})
	}
	return t, len(t.Rows) > 0
}

// invariants shows what does not hold, in words.
func (b *builder) invariants() (Table, bool) {
	const most = 20
	t := Table{ID: "invariants", Title: "Invariants that do not hold", Columns: []Column{{Title: "Where"}, {Title: "What"}}}
	left := 0
	add := func(where string, what []string) {
		for _, w := range what {
			if len(t.Rows) == most {
				left++
				continue
			}
			t.Rows = append(t.Rows, []Cell{text(where), text(oneLine(w, 300))})
		}
	}
	add("run", b.run.Broken)
	for i := range b.run.Requests {
		add(fmt.Sprintf("request %d", b.run.Requests[i].Number), b.run.Requests[i].Broken)
	}
	if left > 0 {
		t.Note = fmt.Sprintf("%s more are not listed", whole(left))
	}
	return t, len(t.Rows) > 0
}

// notes shows what the runner wrote down.
func (b *builder) notes() (Table, bool) {
	const most = 50
	t := Table{ID: "notes", Title: "Notes", Columns: []Column{{Title: "At", Unit: "s", Right: true}, {Title: "Note"}}}
	for _, n := range b.s.Notes {
		if len(t.Rows) == most {
			t.Note = "later notes are in the JSON"
			break
		}
		t.Rows = append(t.Rows, []Cell{noteTime(max(0, n.At-b.began)), text(oneLine(n.Text, 300))})
	}
	return t, len(t.Rows) > 0
}

// noteTime is when a note was written, to a tenth of a second; what came before the first request
// is at 0.
func noteTime(at time.Duration) Cell {
	return Cell{Text: strconv.FormatFloat(at.Seconds(), 'f', 1, 64), Raw: measure.Num(at.Seconds())}
}
