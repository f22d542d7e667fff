package sessionspage

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// field is a column of the list.
type field struct {
	column table.Column
	cell   func(*console.Session) table.Cell
	less   func(a, b *console.Session) bool
}

func text(title string, least float32, of func(*console.Session) string) field {
	return field{
		column: table.Column{Title: title, Stretch: true, Least: least},
		cell:   func(s *console.Session) table.Cell { return table.Cell{Text: of(s)} },
		less:   func(a, b *console.Session) bool { return strings.ToLower(of(a)) < strings.ToLower(of(b)) },
	}
}

func count(title string, of func(*console.Session) int) field {
	return field{
		column: table.Column{Title: title, Right: true},
		cell: func(s *console.Session) table.Cell {
			n := of(s)
			return table.Cell{Text: group(n), Copy: strconv.Itoa(n)}
		},
		less: func(a, b *console.Session) bool { return of(a) < of(b) },
	}
}

func number(title, unit, stored string, m measure.Metric, scale float64, of func(*console.Session) measure.Num, mark func(*console.Session) string) field {
	return field{
		column: table.Column{Title: title, Unit: unit, CopyUnit: stored, Right: true, Least: 48},
		cell: func(s *console.Session) table.Cell {
			v := of(s)
			if !v.Ok() {
				return table.Cell{Text: report.Dash, Ink: look.Faint}
			}
			// The unit is the column's, whatever the size of the number, so that rows compare.
			value, _ := report.FormatNum(m, v*measure.Num(scale))
			return table.Cell{Text: value, Mark: mark(s), Copy: strconv.FormatFloat(float64(v), 'g', -1, 64)}
		},
		less: func(a, b *console.Session) bool {
			x, y := of(a), of(b)
			return !x.Ok() && y.Ok() || x < y
		},
	}
}

// plain writes a number without choosing a unit.
var plain = measure.Metric{Unit: measure.PerSec}

var fields = []field{
	{
		column: table.Column{Title: "Began", Least: 104},
		cell: func(s *console.Session) table.Cell {
			return table.Cell{Text: s.Began.Local().Format("2006-01-02 15:04"), Copy: s.Began.Format(time.RFC3339)}
		},
		less: func(a, b *console.Session) bool { return a.Began.Before(b.Began) },
	},
	text("Title", 72, func(s *console.Session) string { return s.Title }),
	text("Category", 48, func(s *console.Session) string { return s.Category }),
	text("Model", 96, func(s *console.Session) string { return s.Model }),
	text("Endpoint", 96, func(s *console.Session) string { return s.Endpoint }),
	{
		column: table.Column{Title: "Workers", Right: true},
		cell: func(s *console.Session) table.Cell {
			if s.Workers == 0 { // recorded from telemetry: nobody sent these requests together
				return table.Cell{Text: report.Dash, Ink: look.Faint}
			}
			return table.Cell{Text: group(s.Workers), Copy: strconv.Itoa(s.Workers)}
		},
		less: func(a, b *console.Session) bool { return a.Workers < b.Workers },
	},
	count("Requests", func(s *console.Session) int { return s.Requests }),
	{
		column: table.Column{Title: "Failed", Right: true},
		cell: func(s *console.Session) table.Cell {
			c := table.Cell{Text: strconv.Itoa(s.Failed)}
			if s.Failed > 0 {
				c.Ink = look.Red
			}
			return c
		},
		less: func(a, b *console.Session) bool { return a.Failed < b.Failed },
	},
	count("Tokens", func(s *console.Session) int { return s.Tokens }),
	number("Decode", "tok/s", "", plain, 1, func(s *console.Session) measure.Num { return s.Rate },
		func(s *console.Session) string { return s.Source.Mark() }),
	number("TTFT", "ms", "s", plain, 1e3, func(s *console.Session) measure.Num { return s.TTFT },
		func(*console.Session) string { return "" }),
	{
		column: table.Column{Title: "Time", Right: true},
		cell: func(s *console.Session) table.Cell {
			return table.Cell{Text: clock(s.Duration), Copy: strconv.FormatFloat(s.Duration.Seconds(), 'g', -1, 64)}
		},
		less: func(a, b *console.Session) bool { return a.Duration < b.Duration },
	},
	{
		column: table.Column{Title: "State", Least: 56},
		cell: func(s *console.Session) table.Cell {
			c := table.Cell{Text: s.State}
			switch s.State {
			case "failed":
				c.Ink = look.Red
			case "stopped", "cut off":
				c.Ink = look.Amber
			}
			return c
		},
		less: func(a, b *console.Session) bool { return a.State < b.State },
	},
}

// group writes a count with a comma at each thousand.
func group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func clock(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
