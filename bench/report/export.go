package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"velo/bench/report/chart"
)

// Size of exported charts: logical pixels, and how many pixels of a PNG each of them is.
const (
	chartWidth  = 960
	chartHeight = 480
	chartScale  = 2
)

// Export writes a report into a folder, which it makes if need be, and returns the files in the
// order written. A file appears under its name only when it is whole. Names are made of the title
// and the last eight digits of the session's ID, so that two exports of one session replace each
// other and those of two sessions do not. After an error the files written so far are returned.
func Export(dir string, r *Report, formats []string) (files []string, err error) {
	for _, id := range formats {
		if _, ok := formatByID(id); !ok {
			return nil, fmt.Errorf("cannot export the report: %q is none of its formats (%s)", id, formatIDs())
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot export the report to %s: %w", dir, err)
	}
	base := filepath.Join(dir, FileName(r))
	put := func(name string, write func(io.Writer) error) error {
		if err := writeFile(name, write); err != nil {
			return fmt.Errorf("cannot export the report: %w", err)
		}
		files = append(files, name)
		return nil
	}
	done := map[string]bool{}
	for _, id := range formats {
		if done[id] {
			continue
		}
		done[id] = true
		f, _ := formatByID(id)
		switch id {
		case "png", "svg":
			for _, c := range r.Charts() {
				name := base + "-" + c.ID + "." + f.Extension
				if err := put(name, func(w io.Writer) error { return picture(w, r, c, id) }); err != nil {
					return files, err
				}
			}
		case "csv":
			if err := put(base+".csv", func(w io.Writer) error { return Write(w, r, "csv") }); err != nil {
				return files, err
			}
			if err := put(base+"-summary.csv", func(w io.Writer) error { return Write(w, r, "csv-summary") }); err != nil {
				return files, err
			}
		default:
			suffix := ""
			if id == "vllm" || id == "benchstat" {
				suffix = "-" + id
			}
			if err := put(base+suffix+"."+f.Extension, func(w io.Writer) error { return Write(w, r, id) }); err != nil {
				return files, err
			}
		}
	}
	return files, nil
}

// picture writes one chart with its title.
func picture(w io.Writer, r *Report, c NamedChart, format string) error {
	titled := withTitle(c.Chart, r.Title+" · "+c.Title)
	if format == "svg" {
		return chart.SVG(w, titled, chartWidth, chartHeight, r.Palette)
	}
	return chart.PNG(w, titled, chartWidth, chartHeight, chartScale, r.Palette)
}

// withTitle gives a chart that leaves its page a title of its own.
func withTitle(c chart.Chart, title string) chart.Chart {
	switch c := c.(type) {
	case chart.Lines:
		c.Title = title
		return c
	case chart.Histogram:
		c.Title = title
		return c
	case chart.Bars:
		c.Title = title
		return c
	}
	return c
}

// writeFile writes to a temporary file beside the target and renames it, so that no reader ever
// sees half a file.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".velo-export-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing of that name
	buffered := bufio.NewWriterSize(f, 1<<16)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// FileName is the name of a report's files, without extension: letters, digits and hyphens of the
// title, and the last eight characters of the session's ID.
func FileName(r *Report) string {
	var b strings.Builder
	for _, c := range strings.ToLower(r.Title) {
		switch {
		case c < 128 && (unicode.IsLetter(c) || unicode.IsDigit(c)):
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 48 {
			break
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" {
		name = "report"
	}
	var id strings.Builder
	for _, c := range r.Session.Header.ID {
		if c < 128 && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
			id.WriteRune(c)
		}
	}
	if s := id.String(); s != "" {
		name += "-" + s[max(0, len(s)-8):]
	}
	return name
}
