package report

import (
	"fmt"

	"velo/bench/measure"
)

// objectives: the SLOs that were asked for, and how the run did.
func (b *builder) objectives() Section {
	s := Section{ID: "slo", Title: "Objectives"}
	if len(b.run.Objectives) == 0 {
		return s
	}
	t := Table{ID: "slo", Columns: []Column{{Title: "Objective"}, {Title: "Result"}, {Title: "Seen", Right: true}, {Title: "n", Right: true}}}
	for _, o := range b.run.Objectives {
		result := text(o.Result)
		switch o.Result {
		case "met":
			result.Level = measure.Green
		case "missed":
			result.Level = measure.Red
		default:
			result.Level = measure.Unknown
		}
		seen := Cell{Text: Seen(&o), Raw: o.Value}
		t.Rows = append(t.Rows, []Cell{text(oneLine(o.Text, 120)), result, seen, count(o.N)})
	}
	s.Tables = []Table{t}
	s.Tiles = []Tile{
		tileOf(b.scalar("goodput"), "requests that met every objective"),
		tileOf(b.scalar("good_fraction"), fmt.Sprintf("%s of %s attempted, failures included", whole(b.run.Good), whole(b.run.Attempted))),
	}
	return s
}

// Seen is what a run has of an objective's metric, with its unit; a dash where it was not measured.
func Seen(o *measure.Objective) string {
	return quantity(objectiveMetric(o.SLO.Metric), o.Value, measure.Clock)
}

// objectiveMetric is the metric that an SLO's name stands for.
func objectiveMetric(name string) measure.Metric {
	switch name {
	case "rate":
		return metric(name, "decode rate", measure.PerSec)
	case "goodput":
		return metric(name, "goodput", measure.ReqSec)
	case "error_rate":
		return metric(name, "error rate", measure.Fraction)
	}
	return metric(name, name, measure.Seconds)
}
