package livepanel

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"velo/bench/measure"
	"velo/bench/report/chart"
	"velo/ui/look"
	"velo/ui/plot"
)

// sheet is what is exported: the figures, and the drawings as charts on paper.
type sheet struct {
	title  string
	rows   [][3]string // name, number with unit and mark, note
	charts []chart.Chart
}

// sheetOf makes the sheet of what is shown.
func (g *Panel) sheetOf() (sheet, bool) {
	e, has, _ := g.from.get()
	if !has || e.Statistics.Run == nil {
		return sheet{}, false
	}
	f := ofTurns(&e.Statistics, e.Chat)
	s := sheet{title: e.Title}
	for _, x := range f {
		s.rows = append(s.rows, [3]string{x.name, strings.TrimSpace(x.value + " " + x.unit + " " + x.mark), x.note})
	}
	for _, x := range ofKinds(&e.Statistics) {
		s.rows = append(s.rows, [3]string{x.name, strings.TrimSpace(x.value + " " + x.unit + " " + x.mark), x.note})
	}
	st := &e.Statistics
	l := chart.Lines{Title: "Decode rate, rolling", X: chart.Axis{Unit: "s", ZeroBased: true}, Y: chart.Axis{Unit: "tok/s", ZeroBased: true}}
	line := chart.Line{}
	for _, p := range st.Rolling {
		line.Points = append(line.Points, chart.Point{X: p.At.Seconds(), Y: p.Rate})
	}
	l.Lines = []chart.Line{line}
	for i := range st.Requests {
		for _, b := range e.bandsAt(i) {
			l.Bands = append(l.Bands, chart.Band{X0: b.from, X1: b.to, Color: chart.Regime(b.regime), Label: b.regime})
		}
	}
	if m := st.Run.Rolling.Median; m.Ok() {
		l.Markers = []chart.Marker{{Value: float64(m), Axis: chart.Y, Label: "median"}}
	}
	values := make([]float64, len(st.Rolling))
	for i, p := range st.Rolling {
		values[i] = p.Rate
	}
	rate := measure.HistogramOf(values, nil, 0, 0)
	ms := make([]float64, len(st.Gaps))
	for i, v := range st.Gaps {
		ms[i] = v * 1e3
	}
	most := 0.0
	if p90 := st.Run.ICL.Q(0.9).Value; p90.Ok() {
		most = 3e3 * float64(p90)
	}
	gap := measure.HistogramOf(ms, nil, 0, most)
	s.charts = []chart.Chart{l,
		chart.Histogram{Title: "Rates", X: chart.Axis{Unit: "tok/s"}, Edges: rate.Edges, Counts: rate.Counts},
		chart.Histogram{Title: "Gaps between chunks", X: chart.Axis{Unit: "ms"}, Edges: gap.Edges, Counts: gap.Counts}}
	if e.Chat && len(st.Requests) > 1 {
		var names []string
		var ttft, tokens []float64
		for i := range st.Requests {
			names = append(names, fmt.Sprint(i+1))
			ttft = append(ttft, float64(st.Requests[i].TTFT)*1e3)
			tokens = append(tokens, float64(st.Requests[i].N))
		}
		s.charts = append(s.charts, chart.Bars{Title: "TTFT by request", Y: chart.Axis{Unit: "ms", ZeroBased: true}, Labels: names, Values: ttft},
			chart.Bars{Title: "Output tokens by request", Y: chart.Axis{ZeroBased: true, Format: func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }}, Labels: names, Values: tokens})
	}
	return s, true
}

const marks = "▪ counted by the server, ▫ by the model's tokenizer, ~ estimate; times by this program's clock"

// png draws the sheet as a picture on light ground, scale pixels a unit.
func (s *sheet) png(scale float64) ([]byte, error) {
	const width, row, big, small = 800, 22, 248, 200
	height := 64 + row*((len(s.rows)+1)/2) + 40 + big
	for i := 1; i < len(s.charts); i += 2 {
		height += small
	}
	img := image.NewRGBA(image.Rect(0, 0, int(width*scale), int(float64(height)*scale)))
	p := look.Light
	draw.Draw(img, img.Rect, image.NewUniform(p.Background), image.Point{}, draw.Src)
	r := &plot.Raster{}
	r.On(img)
	px := func(v float64) int { return int(v*scale + 0.5) }
	text := func(mono bool, size float64, t string, x, y float64, c color.NRGBA) {
		r.Text(plot.TypeOf(mono, size*scale), t, px(x), px(y), c)
	}
	text(false, look.Head, oneLine(s.title, 70), 24, 16, p.Text)
	for i, f := range s.rows {
		x, y := 24.0, 56+float64(row*(i/2))
		if i%2 == 1 {
			x = 412
		}
		text(false, look.Body, f[0], x, y, p.Muted)
		text(true, look.Body, strings.TrimSpace(f[1]+"  "+f[2]), x+140, y, p.Text)
	}
	y := 64 + row*((len(s.rows)+1)/2)
	text(false, look.Small, marks, 24, float64(y), p.Muted)
	y += 32
	for i, c := range s.charts {
		x, w, h := 16, width-32, big
		if i > 0 {
			w, h = width/2-24, small
			if i%2 == 0 {
				x = width/2 + 8
			}
		}
		drawn, err := chart.Image(c, w, h, scale, chart.Light)
		if err != nil {
			return nil, err
		}
		at := image.Pt(px(float64(x)), px(float64(y)))
		draw.Draw(img, drawn.Rect.Add(at), drawn, image.Point{}, draw.Src)
		if i == 0 || i%2 == 0 {
			y += h
		}
	}
	var out bytes.Buffer
	err := png.Encode(&out, img)
	return out.Bytes(), err
}

// pdf writes the sheet as one page with vectors.
func (s *sheet) pdf() ([]byte, error) {
	doc := fpdf.New("P", "mm", "A4", "")
	chart.RegisterFonts(doc)
	doc.SetTitle(s.title, true)
	doc.SetAutoPageBreak(false, 0)
	doc.AddPage()
	ink := func(c color.NRGBA) { doc.SetTextColor(int(c.R), int(c.G), int(c.B)) }
	p := look.Light
	ink(p.Text)
	doc.SetFont("text", "B", 13)
	doc.Text(15, 20, chart.Printable(oneLine(s.title, 80)))
	y := 30.0
	for i, f := range s.rows {
		x := 15.0
		if i%2 == 1 {
			x = 107
		}
		ink(p.Muted)
		doc.SetFont("text", "", 9)
		doc.Text(x, y, chart.Printable(f[0]))
		ink(p.Text)
		doc.SetFont("mono", "", 9)
		doc.Text(x+36, y, chart.Printable(strings.TrimSpace(f[1]+"  "+f[2])))
		if i%2 == 1 {
			y += 5.5
		}
	}
	ink(p.Muted)
	doc.SetFont("text", "", 8)
	doc.Text(15, y+4, chart.Printable(marks))
	y += 9
	for i, c := range s.charts {
		x, w, h := 15.0, 180.0, 62.0
		if i > 0 {
			w, h = 88, 50
			if i%2 == 0 {
				x = 107
			}
		}
		if err := chart.PDF(doc, c, x, y, w, h, chart.Light); err != nil {
			return nil, err
		}
		if i == 0 || i%2 == 0 {
			y += h + 4
		}
	}
	var out bytes.Buffer
	if err := doc.Output(&out); err != nil {
		return nil, fmt.Errorf("cannot write the PDF: %w", err)
	}
	return out.Bytes(), nil
}

const nothingYet = "Nothing was written: no turn has ended yet. Send a message, and wait for the answer's end."

// SavePNG writes the figures and drawings as a picture.
func (g *Panel) SavePNG() {
	g.save("png", func(s *sheet) ([]byte, error) { return s.png(2) })
}

// SavePDF writes them as a page.
func (g *Panel) SavePDF() { g.save("pdf", (*sheet).pdf) }

func (g *Panel) save(extension string, encode func(*sheet) ([]byte, error)) {
	if _, has, _ := g.from.get(); !has {
		g.Say(look.OnAmber, nothingYet)
		return
	}
	g.Save(func(dir string) (string, error) {
		s, ok := g.sheetOf()
		if !ok {
			return "", fmt.Errorf("%s", nothingYet)
		}
		data, err := encode(&s)
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, "velo-chat-"+time.Now().Format("20060102-150405")+"."+extension)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return "", fmt.Errorf("cannot write %s: %w", path, err)
		}
		if _, err = f.Write(data); err == nil {
			err = f.Sync()
		}
		if again := f.Close(); err == nil {
			err = again
		}
		if err != nil {
			return "", fmt.Errorf("cannot write %s: %w", path, err)
		}
		return path, nil
	})
}

// CopyFigures puts the figures on the clipboard, at full precision, as tab-separated text.
func (g *Panel) CopyFigures() {
	var b strings.Builder
	for _, f := range g.shown {
		fmt.Fprintf(&b, "%s\t%s\n", f.name, f.exact)
	}
	if e, has, _ := g.from.get(); has && !g.streams {
		for _, f := range ofKinds(&e.Statistics) {
			fmt.Fprintf(&b, "%s\t%s\n", f.name, f.exact)
		}
	}
	g.Copy(b.String())
	g.Say(look.OnAccent, "Copied the figures, with all their digits.")
}

// oneLine cuts a title to n letters.
func oneLine(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > n {
		return string(r[:n]) + "…"
	}
	return string(r)
}
