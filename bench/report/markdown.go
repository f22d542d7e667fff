package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"velo/bench"
	"velo/bench/measure"
)

// writeMarkdown writes the report as people paste it into a forum: one table of numbers, one of
// steps, and two lines on machine and definitions.
func writeMarkdown(w io.Writer, r *Report) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "## %s\n\n", markdown(r.Title))
	if r.Subtitle != "" {
		fmt.Fprintf(b, "%s\n\n", markdown(r.Subtitle))
	}
	if r.Status != "finished" {
		fmt.Fprintf(b, "**%s**\n\n", markdown(r.Status))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(b, "- %s\n", markdown(f.Text))
	}
	if len(r.Findings) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("| metric | value | |\n|---|--:|---|\n")
	for _, t := range r.Glance {
		fmt.Fprintf(b, "| %s | %s | %s |\n", markdown(t.Label), markdown(valueWords(t)), markdown(t.Note))
	}
	for _, id := range []string{"latencies", "rates"} {
		if t := r.table(id); t != nil {
			b.WriteString("\n")
			markdownTable(b, t, 30)
		}
	}
	if t := r.table("steps"); t != nil && len(t.Rows) > 1 {
		b.WriteString("\n")
		markdownTable(b, t, 60)
	}
	if t := r.table("slo"); t != nil {
		b.WriteString("\n")
		markdownTable(b, t, 30)
	}
	if t := r.table("sides"); t != nil {
		b.WriteString("\n")
		markdownTable(b, t, 30)
	}
	fmt.Fprintf(b, "\n%s  \n", markdown(r.machineLine()))
	fmt.Fprintf(b, "%s\n", markdown(r.definitionLine()))
	return b.Flush()
}

func valueWords(t Tile) string {
	s := t.Value
	if t.Unit != "" {
		s += " " + t.Unit
	}
	if t.Mark != "" {
		s += " " + t.Mark
	}
	return s
}

// table finds a table by its ID.
func (r *Report) table(id string) *Table {
	for i := range r.Sections {
		for k := range r.Sections[i].Tables {
			if t := &r.Sections[i].Tables[k]; t.ID == id {
				return t
			}
		}
	}
	return nil
}

func markdownTable(b *bufio.Writer, t *Table, most int) {
	for _, c := range t.Columns {
		head := c.Title
		if c.Unit != "" {
			head += " (" + c.Unit + ")"
		}
		fmt.Fprintf(b, "| %s ", markdown(head))
	}
	b.WriteString("|\n")
	for _, c := range t.Columns {
		if c.Right {
			b.WriteString("|--:")
		} else {
			b.WriteString("|---")
		}
	}
	b.WriteString("|\n")
	for i, row := range t.Rows {
		if i == most {
			fmt.Fprintf(b, "\n%s more are in the CSV.\n", plural(len(t.Rows)-most, "row"))
			break
		}
		for _, c := range row {
			fmt.Fprintf(b, "| %s ", markdown(cellWords(c)))
		}
		b.WriteString("|\n")
	}
	if t.Note != "" {
		fmt.Fprintf(b, "\n%s\n", markdown(t.Note))
	}
}

// cellWords is a cell with its mark.
func cellWords(c Cell) string {
	if c.Mark != "" {
		return c.Text + " " + c.Mark
	}
	return c.Text
}

// machineLine says in one line where and with what this was measured.
func (r *Report) machineLine() string {
	e := &r.Session.Header.Environment
	parts := []string{"Measured on " + orDash(machine(e))}
	if e.OS != "" {
		parts = append(parts, oneLine(e.OS, 40))
	}
	if r.Session.Header.Endpoint.BuiltIn {
		parts = append(parts, "against the built-in scripted endpoint of Velo, not a real model")
	} else if m := r.Session.Header.Endpoint.Model; m != "" {
		parts = append(parts, "model "+oneLine(m, 80))
	}
	if e.Velo != "" {
		parts = append(parts, "Velo "+oneLine(e.Velo, 40))
	}
	return strings.Join(parts, ", ") + "."
}

// definitionLine defines the two numbers that people compare.
func (r *Report) definitionLine() string {
	s := "TTFT: first chunk of any channel − t0. Decode rate: (N − tokens of the first chunk)/(last − first chunk). Percentiles: type 7. " +
		"Counts: ▪ server, ▫ tokenizer, ~ estimate."
	var kinds []string
	stamps := map[bench.StampKind]bool{}
	for i := range r.Run.Requests {
		if q := &r.Run.Requests[i]; len(q.Arrivals) > 0 {
			stamps[q.Stamp] = true
		}
	}
	for _, k := range []bench.StampKind{bench.KernelStamp, bench.UserStamp, bench.EmitterStamp} {
		if stamps[k] {
			kinds = append(kinds, string(k))
		}
	}
	if len(kinds) > 0 {
		s += " Stamps: " + listed(kinds) + "."
	}
	if w := r.Run.Worst; w != "" && w != measure.Green {
		s += " Trust panel: " + string(w) + "."
	}
	return s
}

// links breaks what some dialects turn into a link without being asked to.
var links = strings.NewReplacer("://", "&#58;//", "www.", "www&#46;")

// markdown escapes text so that nothing in it is markup, a link, an image, HTML or a column.
func markdown(s string) string {
	s = oneLine(s, 400)
	var b strings.Builder
	for _, r := range s {
		switch r {
		case '\\', '`', '*', '_', '[', ']', '|', '#', '!', '~':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		default:
			b.WriteRune(r)
		}
	}
	return links.Replace(b.String())
}
