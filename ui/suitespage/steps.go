package suitespage

import (
	"strconv"
	"strings"

	"velo/bench/suite"
	"velo/ui/look"
	"velo/ui/table"
)

// describe writes the steps of a suite as rows: number, kind, text, context, prompt, output.
func describe(s *suite.Suite) [][]table.Cell {
	var rows [][]table.Cell
	n := 0
	dash := table.Cell{Text: "—", Ink: look.Faint}
	count := func(v int) table.Cell {
		if v <= 0 {
			return dash
		}
		return table.Cell{Text: strconv.Itoa(v)}
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Type == suite.Section {
			title := table.Cell{Text: st.Title, Ink: look.Accent}
			if st.Reset {
				title.Text += " (new conversation)"
			}
			rows = append(rows, []table.Cell{{}, {Text: "section", Ink: look.Accent}, title, {}, {}, {}})
			continue
		}
		n++
		text := st.Text
		context, prompt, output := dash, dash, count(st.TG)
		switch st.Type {
		case suite.Context:
			prompt = count(st.Fill())
			text = "filler text of a given length"
		case suite.Bench:
			context, prompt = count(st.Depth), count(st.PP)
			text = "filler text of a given length, alone"
			if st.Requests > 1 {
				text += ", " + strconv.Itoa(st.Requests) + " requests a worker, one after another"
			}
		case suite.Image:
			text = strings.TrimSpace(st.Image + " " + st.Prompt)
		}
		if output.Text == "—" && s.MaxTokens != nil {
			output = table.Cell{Text: "≤ " + strconv.Itoa(*s.MaxTokens), Copy: strconv.Itoa(*s.MaxTokens)}
		} else if st.TG > 0 && !st.ExactTG {
			output = table.Cell{Text: "≤ " + strconv.Itoa(st.TG), Copy: strconv.Itoa(st.TG)}
		}
		rows = append(rows, []table.Cell{
			{Text: strconv.Itoa(n)}, {Text: st.Type, Ink: look.Muted}, {Text: text}, context, prompt, output,
		})
	}
	return rows
}
