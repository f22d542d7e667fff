package report

import (
	"strconv"

	"velo/bench/measure"
)

// tools: the same events, as other tools define their numbers. They are never compared with Velo's.
func (b *builder) tools() Section {
	s := Section{ID: "tools", Title: "As other tools define it"}
	t := Table{ID: "tools", Columns: []Column{{Title: "Tool"}, {Title: "Name there"}, {Title: "Value", Right: true}, {Title: "Definition there"}}}
	for _, tool := range []struct{ id, name string }{{"vllm", "vLLM"}, {"aiperf", "AIPerf"}, {"guidellm", "GuideLLM"}} {
		for _, f := range measure.As(tool.id, b.run) {
			v := Dash
			if f.Value.Ok() {
				v = strconv.FormatFloat(float64(f.Value), 'f', 3, 64)
			}
			t.Rows = append(t.Rows, []Cell{text(tool.name), text(oneLine(f.Metric, 60)), {Text: v, Raw: f.Value}, text(oneLine(f.Definition, 300))})
		}
	}
	if len(t.Rows) == 0 {
		return s
	}
	s.Text = "Computed from the same raw events by the definitions of those tools, in their units. Numbers of unlike definitions are not to be compared."
	s.Tables = []Table{t}
	return s
}
