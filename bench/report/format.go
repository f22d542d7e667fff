package report

import (
	"fmt"
	"io"
	"strings"
)

// Format is one way to write a report.
type Format struct {
	ID        string // as --format takes it
	Extension string // of its files, without the dot
	Name      string // as a menu shows it
}

// Formats lists the ways to write a report.
func Formats() []Format {
	return []Format{
		{"pdf", "pdf", "PDF"},
		{"png", "png", "PNG, one file a chart"},
		{"svg", "svg", "SVG, one file a chart"},
		{"html", "html", "HTML, one file"},
		{"md", "md", "Markdown"},
		{"csv", "csv", "CSV, requests and summary"},
		{"json", "json", "JSON with raw events"},
		{"benchstat", "txt", "benchstat lines"},
		{"vllm", "json", "vLLM-style JSON"},
	}
}

// formatByID finds a format.
func formatByID(id string) (Format, bool) {
	for _, f := range Formats() {
		if f.ID == id {
			return f, true
		}
	}
	return Format{}, false
}

// writers are the formats that are one stream of bytes. "csv" is the table of requests; Export
// writes "csv-summary" beside it.
var writers = map[string]func(io.Writer, *Report) error{
	"pdf":         writePDF,
	"html":        writeHTML,
	"md":          writeMarkdown,
	"csv":         writeRequestsCSV,
	"csv-summary": writeSummaryCSV,
	"json":        writeJSON,
	"benchstat":   writeBenchstat,
	"vllm":        writeVLLM,
}

// Write writes a report in one of the formats that are a single file: pdf, html, md, csv (the
// requests), csv-summary, json, benchstat and vllm. Charts (png, svg) are one file each: Export
// writes them.
func Write(w io.Writer, r *Report, format string) error {
	write, ok := writers[format]
	if !ok {
		if _, ok := formatByID(format); ok {
			return fmt.Errorf("cannot write the report as %s to one file: it is one file a chart; export to a folder", format)
		}
		return fmt.Errorf("cannot write the report: %q is none of its formats (%s)", format, formatIDs())
	}
	if err := write(w, r); err != nil {
		return fmt.Errorf("cannot write the report as %s: %w", format, err)
	}
	return nil
}

func formatIDs() string {
	var ids []string
	for _, f := range Formats() {
		ids = append(ids, f.ID)
	}
	return strings.Join(ids, ", ")
}
