package report

import (
	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime/share"
	"velo/bench/report/chart"
)

// Report is everything that a report says, without saying how it looks: the window, PDF, HTML and
// Markdown are views of it.
type Report struct {
	Session  *bench.Session
	Run      *measure.Run
	Title    string
	Subtitle string
	Status   string // "finished", "stopped by the user after 12.3 s", "failed: …", "cut off …"
	Facts    []Fact // what was measured, how, where and when
	Glance   []Tile // the first one is the hero number
	Findings []Finding
	Sections []Section
	Figures  []Figure // the exact figures, which CSV, PDF and JSON share
	Palette  chart.Palette
	Version  string // of the program that wrote the report
	Beside   []Beside
	Regimes  []share.Share // by kind of text, where the session has it
}

// Fact is one line of what was measured: "Model", "qwen3-8b".
type Fact struct{ Label, Value string }

// Finding is one sentence with numbers, derived by a rule. ID names the rule.
type Finding struct{ ID, Text string }

// Tile is one number with its name. Value has three significant digits, or is a dash.
type Tile struct {
	Metric measure.Metric
	Label  string
	Value  string
	Unit   string
	Mark   string // ▪ server, ▫ tokenizer, ~ estimate, nothing for times
	Note   string // one short line below: range, n, what it is a percentile of
	Raw    measure.Num
}

// Section is one part of a report; its parts are shown in the order text, tiles, charts, tables.
type Section struct {
	ID, Title string
	Text      string // paragraphs, separated by an empty line
	Tiles     []Tile
	Tables    []Table
	Charts    []NamedChart
}

// Table is a table with a unit in each column's head where all its cells share one.
type Table struct {
	ID      string
	Title   string
	Columns []Column
	Rows    [][]Cell
	Note    string // one line below: what was left out and where it is
}

// Column is a column's head. Right-aligned columns hold numbers.
type Column struct {
	Title, Unit string
	Right       bool
	Whole       bool // words that must stay on one line
}

// Cell is one cell of a table. Raw is Missing where the cell holds no number.
type Cell struct {
	Text  string
	Mark  string        // source, as in Tile
	Raw   measure.Num   // full precision, SI unit
	Grey  bool          // a quantile that n does not support: "max of 7"
	Level measure.Level // verdict of a line of the trust panel, or of an objective; empty = none
}

// NamedChart is a chart with the words around it. ID is part of the name of its file.
type NamedChart struct {
	ID, Title, Caption string
	Chart              chart.Chart
}

// Section returns the section of that ID, nil if there is none.
func (r *Report) Section(id string) *Section {
	for i := range r.Sections {
		if r.Sections[i].ID == id {
			return &r.Sections[i]
		}
	}
	return nil
}

// Charts returns all charts in the order of the sections.
func (r *Report) Charts() []NamedChart {
	var cs []NamedChart
	for _, s := range r.Sections {
		cs = append(cs, s.Charts...)
	}
	return cs
}
