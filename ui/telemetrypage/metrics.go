package telemetrypage

import (
	"math"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/series"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/plot"
	"velo/ui/table"
)

// mostLines is how many metrics are listed; the filter finds the others.
const mostLines = 500

// metrics is the explorer: every metric that was seen, and one of them over time.
type metrics struct {
	page   *Page
	view   fyne.CanvasObject
	filter *look.Entry
	count  *look.Text
	table  *table.Table
	scroll *look.Scroll
	chart  *plot.View
	about  *look.Text
	detail *look.Text

	rows    []series.Line // on screen
	filling bool

	line history // of Prepare
}

func newMetrics(g *Page) *metrics {
	v := &metrics{page: g}
	v.filter = look.NewEntry("Filter by service, name or label")
	v.filter.OnChanged = func(text string) {
		g.wanted.set(func(w *wanted) { w.filter[Metrics] = text })
		g.drawAgain()
	}
	v.filter.OnEscape = func() { v.filter.SetText("") }
	v.count = look.NewText("").Sized(look.Small).In(look.Muted).Right().Fixed(160)
	right := func(title string) table.Column { return table.Column{Title: title, Right: true, Least: 48} }
	v.table = table.New(look.Small, table.Column{Title: "Metric", Stretch: true, Least: 160}, table.Column{Title: "Labels", Stretch: true, Least: 96},
		table.Column{Title: "Kind", Least: 64}, right("Value"), right("Total"), right("p50"), right("p99"), right("Resets"), right("Age"))
	v.table.OnSelect = func(row int) {
		if v.filling {
			return
		}
		v.pick(row)
	}
	v.scroll = look.NewScroll(v.table)
	v.scroll.OnScroll = func(top, height float32) { v.table.SetView(top, height) }
	v.table.OnShow, v.table.OnScroll = v.scroll.Reveal, v.scroll.Scrolled
	v.chart = plot.NewView(fyne.NewSize(320, 208))
	v.chart.OnSize = g.drawAgain
	v.about = look.NewText("").Bold().Fixed(200)
	v.detail = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(200)
	head := look.Inset(look.Step, 0, look.Step, 0, look.Trailing(look.Gap, v.filter, v.count))
	low := look.Inset(0, 0, look.Gap, 0, look.Rows(look.Step, look.Rule(), look.Rows(0, v.about, v.detail), v.chart))
	v.view = look.Frame(head, low, nil, v.scroll)
	return v
}

func (v *metrics) content() fyne.CanvasObject { return v.view }

// id names a series.
func id(l *series.Line) string { return l.Service + "\x00" + l.Name + "\x00" + l.Labels }

func (v *metrics) pick(row int) {
	chosen := ""
	if row >= 0 && row < len(v.rows) {
		chosen = id(&v.rows[row])
	}
	v.page.wanted.set(func(w *wanted) { w.metric = chosen })
	v.page.drawAgain()
}

func (v *metrics) query(q *otlp.Query) {
	filter := ""
	v.page.wanted.get(func(w *wanted) { filter = w.filter[Metrics] })
	q.Streams.Limit = 1
	q.Lines = &series.Query{Filter: filter, Limit: mostLines, Points: true}
}

func (v *metrics) prepare(s *console.TelemetrySnapshot, p look.Palette) func() {
	if !v.page.refresh.due(Metrics, s.At, distributionsEvery) {
		return func() {}
	}
	chosen := ""
	v.page.wanted.get(func(w *wanted) { chosen = w.metric })
	lines, matches := s.Lines, s.LinesMatch
	at := -1
	for i := range lines {
		if id(&lines[i]) == chosen {
			at = i
		}
	}
	if at < 0 && len(lines) > 0 {
		at = 0
	}
	turn := false
	about, detail := "", ""
	if at >= 0 {
		l := &lines[at]
		unit, factor := unitOf(l)
		about = l.Name
		detail = strings.Join(nonempty(l.Service, l.Labels, l.Kind, l.Temporality, l.Description), " · ")
		if img, scale := v.chart.Back(); img != nil {
			title := l.Plotted
			if title != "" {
				title = strings.ToUpper(title[:1]) + title[1:]
			}
			v.line.draw(img, scale, p, curve{of: id(l) + unit, title: title, unit: unit, points: l.Points, factor: factor, now: s.At, label: plain(float64(l.Value) * factor)})
			turn = true
		}
	}
	list := v.page.refresh.due("metrics list", s.At, explorerEvery)
	return func() {
		v.about.Set(about)
		v.detail.Set(detail)
		showIf(v.chart, at >= 0)
		if turn {
			v.chart.Turn()
		}
		if list {
			v.fill(lines, matches, at)
		}
	}
}

func nonempty(list ...string) []string {
	var out []string
	for _, x := range list {
		if x != "" {
			out = append(out, x)
		}
	}
	return out
}

// larger are the units for large values of a unit, the largest first.
var larger = map[string][]struct {
	unit string
	of   float64
}{
	"B":  {{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}},
	"Hz": {{"GHz", 1e9}, {"MHz", 1e6}, {"kHz", 1e3}},
}

// unitOf is the unit that a line is drawn in, and the factor into it: that of the metric, as people write it
// and as large as its value now, a second where it is a rate, and milliseconds for seconds below one.
func unitOf(l *series.Line) (unit string, factor float64) {
	unit, factor = strings.Trim(l.Unit, "{}"), 1
	switch {
	case unit == "1":
		unit = ""
	case unit == "s" && l.Plotted != "rate per second":
		unit, factor = "ms", 1e3
	case unit == "By":
		unit = "B"
	case unit == "Cel":
		unit = "°C"
	}
	for _, u := range larger[unit] {
		if l.Value.Ok() && math.Abs(float64(l.Value)) >= u.of {
			unit, factor = u.unit, 1/u.of
			break
		}
	}
	if l.Plotted == "rate per second" {
		unit = strings.TrimSpace(unit) + "/s"
	}
	return unit, factor
}

// plain writes a number without choosing a unit.
func plain(v float64) string {
	if n := measure.Num(v); n.Ok() {
		return write(measure.PerSec, n, "").value
	}
	return "—"
}

// with puts a unit behind a number that is there: each row of the table has its own.
func with(c table.Cell, unit string) table.Cell {
	if unit != "" && c.Copy != "" {
		c.Text += " " + unit
	}
	return c
}

func (v *metrics) fill(lines []series.Line, matches, at int) {
	v.rows = lines
	v.filling = true
	defer func() { v.filling = false }()
	number := func(x measure.Num, factor float64) table.Cell {
		if !x.Ok() {
			return table.Cell{Text: "—", Ink: look.Faint}
		}
		return table.Cell{Text: plain(float64(x) * factor), Copy: strconv.FormatFloat(float64(x), 'g', -1, 64)}
	}
	v.table.SetRows(len(lines), func(r, c int) table.Cell {
		l := &lines[r]
		unit, factor := unitOf(l)
		quantile := func(p series.Percentile) table.Cell {
			x := number(p.Value, factor)
			if p.Bound != "" {
				x.Text, x.Copy = p.Bound+" "+x.Text, p.Bound+" "+x.Copy
			}
			if p.Source == measure.Estimate {
				x.Mark = p.Source.Mark()
			}
			return x
		}
		switch c {
		case 0:
			return table.Cell{Text: l.Name, Copy: l.Service + " " + l.Name}
		case 1:
			return table.Cell{Text: l.Labels, Ink: look.Muted}
		case 2:
			return table.Cell{Text: l.Kind, Ink: look.Muted}
		case 3:
			return with(number(l.Value, factor), unit)
		case 4:
			if v := float64(l.Total); v == math.Trunc(v) && math.Abs(v) < 1e15 { // a count
				return table.Cell{Text: group(int64(v)), Copy: strconv.FormatFloat(v, 'f', -1, 64)}
			}
			return number(l.Total, 1)
		case 5:
			return with(quantile(l.P50), unit)
		case 6:
			return with(quantile(l.P99), unit)
		case 7:
			return table.Cell{Text: strconv.Itoa(l.Resets)}
		}
		return table.Cell{Text: strings.TrimSuffix(ago(l.Age), " ago"), Copy: strconv.FormatFloat(l.Age.Seconds(), 'g', -1, 64)}
	})
	if v.table.Selected() != at {
		v.table.Select(at)
	}
	text := plural(len(lines), "metric")
	if matches > len(lines) {
		text = group(len(lines)) + " of " + plural(matches, "metric")
	}
	v.count.Set(text)
	v.scroll.Settle()
}
