package telemetrypage

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/bench/otlp"
	"velo/ui/console"
	"velo/ui/look"
)

// Widths of fields, in units: of a number, of the name of a file.
const (
	fieldWidth = 168
	wideWidth  = 2*fieldWidth + look.Gap
)

// form is the settings of the receiver. They take effect when they are applied: a port that is half typed
// is none to listen on.
type form struct {
	page   *Page
	scroll *look.Scroll

	grpc, http, host, token *look.Entry
	cert, key               *look.Entry
	pages                   pagesForm
	keep, memory            *look.Entry
	back, length, tokens    *look.Entry
	bytes, after, most      *look.Entry
	forget                  *widget.Check
	apply, undo             *look.PushButton
	hint                    *look.Paragraph
	kept                    *look.Paragraph
	disk, refused           *look.Paragraph
	certificate             *look.Paragraph

	settings console.TelemetrySettings // as they are kept
	sessions int64                     // bytes that all of them take on disk; -1 = not known
	dirty    bool
	filling  bool
}

func (f *form) build(g *Page) {
	f.page, f.sessions = g, -1
	entry := func(placeholder string) *look.Entry {
		e := look.NewEntry(placeholder)
		e.OnChanged = func(string) { f.changed() }
		e.OnSubmitted = func(string) { f.Apply() }
		return e
	}
	f.grpc, f.http, f.host = entry("Empty: not taken"), entry("4318, 9381"), entry("This machine only")
	f.token = look.NewSecret("Empty: none")
	f.token.OnChanged = func(string) { f.changed() }
	f.token.OnSubmitted = func(string) { f.Apply() }
	f.cert, f.key = entry("Empty: plain text"), entry("Empty: plain text")
	f.pages.build(f)
	f.keep, f.memory = entry("15"), entry("256")
	f.back, f.length, f.tokens, f.bytes = entry("1"), entry("10"), entry("1000000"), entry("256")
	f.after, f.most = entry("Empty: never"), entry("Empty: no bound")
	f.forget = widget.NewCheck("Ask for no token any more", func(bool) { f.changed() })
	f.forget.Hide()
	f.apply = look.MainButton("Apply", f.Apply)
	f.undo = look.Button("Undo", func() {
		f.dirty = false
		f.fill(g.Telemetry.Settings())
	})
	f.hint = look.NewParagraph("").In(look.Amber).AtMost(3)
	f.hint.Hide()
	f.disk, f.kept = look.NewParagraph("").In(look.Muted).AtMost(4), look.NewParagraph("").In(look.Muted).AtMost(4)
	f.certificate = look.NewParagraph("").AtMost(4)
	f.certificate.Hide()
	f.refused = look.NewParagraph("").In(look.Amber).AtMost(4)
	f.refused.Hide()
	head := func(text string) fyne.CanvasObject { return look.NewText(text).Sized(look.Head).Bold() }
	field := func(name string, e fyne.CanvasObject) fyne.CanvasObject { return look.Field(name, fieldWidth, e) }
	f.scroll = look.NewScroll(look.Inset(look.Step, look.Gap, look.Gap, 0, look.Rows(look.Gap,
		head("Listen"),
		look.Flow(look.Gap, fieldWidth, field("Port for gRPC", f.grpc), field("Ports for HTTP", f.http), field("Address", f.host), field("Token that senders show", f.token)),
		look.Flow(look.Gap, wideWidth, look.Field("TLS: file of certificates", wideWidth, f.cert), look.Field("TLS: file of the key", wideWidth, f.key)),
		f.forget, f.certificate, f.refused,
		head("Metrics pages of engines that do not push"),
		f.pages.view,
		head("Keep in memory"),
		look.Flow(look.Gap, fieldWidth, field("Streams that are quiet, min", f.keep), field("At most, MiB", f.memory)),
		f.kept,
		head("Record"),
		look.Flow(look.Gap, fieldWidth, field("From before the press, min", f.back), field("At most, min", f.length),
			field("At most, tokens", f.tokens), field("At most, MiB of events", f.bytes)),
		head("Keep on disk"),
		look.Flow(look.Gap, fieldWidth, field("Delete recordings after, days", f.after), field("All of them at most, MiB", f.most)),
		f.disk, f.hint,
		look.Line(look.Step, f.apply, f.undo))))
	f.update()
}

func (f *form) content() fyne.CanvasObject { return f.scroll }
func (f *form) query(q *otlp.Query)        { q.Streams.Limit = 1 }

func (f *form) prepare(s *console.TelemetrySnapshot, _ look.Palette) func() {
	st := s.State
	return func() {
		text := fmt.Sprintf("Now %s in %s, of %s at most. What is quiet for %s lets its text go and keeps its numbers.",
			plural(st.Kept, "stream"), size(st.KeptBytes), size(st.KeptBound), span(st.KeptFor))
		for _, x := range []struct {
			n    uint64
			what string
		}{{st.Streams.Folded, "let its text go"}, {st.Streams.Evicted, "went for good"}} {
			if x.n > 0 {
				text += " So far " + plural(x.n, "stream") + " " + strings.Replace(x.what, "its", map[bool]string{true: "its", false: "their"}[x.n == 1], 1) + "."
			}
		}
		if n := st.Series.Refused; n > 0 {
			text += " There was no room for " + plural(n, "point") + " of further metrics."
		}
		if text != f.kept.Text() {
			f.kept.Set(text)
			f.scroll.Settle()
		}
		if n, why, _ := dropped(st); n != "nothing" {
			if why != "" {
				n += " (" + why + ")"
			}
			if n = "Not taken since the program began: " + n + "."; n != f.refused.Text() {
				f.refused.Set(n)
				f.refused.Show()
				f.scroll.Settle()
			}
		}
		text, ink := "", look.Muted
		if st.Certificate != nil {
			if text, ink = validity(st.Certificate); ink != look.Muted && st.Wanted {
				text = "" // it stands above all parts
			}
		}
		if showIf(f.certificate, text != "") || text != f.certificate.Text() {
			f.certificate.SetIn(text, ink)
			f.scroll.Settle()
		}
		f.pages.tell(st.Polls)
		f.tellDisk(s.Disk)
	}
}

// tellDisk says what recordings take, beside what all sessions do.
func (f *form) tellDisk(d console.TelemetryDisk) {
	if f.sessions < 0 {
		return // nobody has looked yet
	}
	if text := OnDisk(d, f.settings) + " All sessions take " + size(f.sessions) + " on disk."; text != f.disk.Text() {
		f.disk.Set(text)
		f.scroll.Settle()
	}
}

// reload reads what the sessions take on disk.
func (f *form) reload() {
	if f.page.Store == nil {
		return
	}
	f.page.Thread.Work(func() func() {
		n := f.page.Store()
		return func() {
			f.sessions = n
			f.tellDisk(f.page.Telemetry.Disk())
		}
	})
}

// fill shows settings.
func (f *form) fill(s console.TelemetrySettings) {
	f.filling = true
	defer func() { f.filling = false; f.update() }()
	f.settings = s
	port := ""
	if s.GRPC > 0 {
		port = strconv.Itoa(s.GRPC)
	}
	f.grpc.SetText(port)
	ports := make([]string, len(s.HTTP))
	for i, p := range s.HTTP {
		ports[i] = strconv.Itoa(p)
	}
	f.http.SetText(strings.Join(ports, ", "))
	f.host.SetText(s.Host)
	f.cert.SetText(s.Certificate)
	f.key.SetText(s.Key)
	f.token.SetText("")
	f.token.SetPlaceHolder("Empty: none")
	if s.HasToken {
		f.token.SetPlaceHolder("A token is kept")
	}
	f.forget.SetChecked(false)
	showIf(f.forget, s.HasToken)
	f.pages.fill(s.Pages)
	minutes := func(e *look.Entry, d time.Duration) { e.SetText(strconv.FormatFloat(d.Minutes(), 'g', 6, 64)) }
	minutes(f.keep, s.Keep)
	minutes(f.back, s.Back)
	minutes(f.length, s.For)
	f.memory.SetText(strconv.FormatInt(s.KeepBytes>>20, 10))
	f.bytes.SetText(strconv.FormatInt(s.Bytes>>20, 10))
	f.tokens.SetText(strconv.Itoa(s.Tokens))
	orEmpty := func(e *look.Entry, v float64) {
		text := ""
		if v > 0 {
			text = strconv.FormatFloat(v, 'g', 6, 64)
		}
		e.SetText(text)
	}
	orEmpty(f.after, s.DeleteAfter.Hours()/24)
	orEmpty(f.most, float64(s.DiskBytes>>20))
	f.dirty = false
}

// read is the settings as the form has them. The token is nil where it stays as it is.
func (f *form) read() (s console.TelemetrySettings, token *string, err error) {
	s = f.settings
	number := func(e *look.Entry, name string, least float64) float64 {
		text := strings.ReplaceAll(strings.TrimSpace(e.Text), ",", ".")
		v, bad := strconv.ParseFloat(text, 64)
		if (bad != nil || !(v >= least) || v > 1e12) && err == nil {
			err = fmt.Errorf("%s: %q is no number from %g on", name, e.Text, least)
		}
		return v
	}
	s.GRPC, s.HTTP = 0, nil
	port := func(text, name string) int {
		p, bad := strconv.Atoi(text)
		if (bad != nil || p < 1 || p > 65535) && err == nil {
			err = fmt.Errorf("%s: %q is no port from 1 to 65535", name, text)
		}
		return p
	}
	if text := strings.TrimSpace(f.grpc.Text); text != "" {
		s.GRPC = port(text, "Port for gRPC")
	}
	for _, text := range strings.FieldsFunc(f.http.Text, func(r rune) bool { return r == ',' || r == ' ' || r == ';' }) {
		p := port(text, "Ports for HTTP")
		if (slices.Contains(s.HTTP, p) || p == s.GRPC) && err == nil {
			err = fmt.Errorf("Ports for HTTP: %d is named twice", p)
		}
		s.HTTP = append(s.HTTP, p)
	}
	s.Host = strings.TrimSpace(f.host.Text)
	if s.Host != "" && net.ParseIP(s.Host) == nil && err == nil {
		err = fmt.Errorf("Address: %q is no IP address of this machine; 0.0.0.0 stands for all of them", s.Host)
	}
	s.Certificate, s.Key = strings.TrimSpace(f.cert.Text), strings.TrimSpace(f.key.Text)
	if (s.Certificate == "") != (s.Key == "") && err == nil {
		err = errors.New("TLS: name both the file of the certificates and that of the key, or neither")
	}
	var wrong error
	if s.Pages, wrong = f.pages.read(); err == nil {
		err = wrong
	}
	s.Keep = time.Duration(number(f.keep, "Streams that are quiet", 1) * float64(time.Minute))
	s.KeepBytes = int64(number(f.memory, "MiB in memory", 16)) << 20
	s.Back = time.Duration(number(f.back, "From before the press", 0) * float64(time.Minute))
	s.For = time.Duration(number(f.length, "Minutes of a recording", 0.1) * float64(time.Minute))
	s.Tokens = int(number(f.tokens, "Tokens of a recording", 1))
	s.Bytes = int64(number(f.bytes, "MiB of a recording", 1)) << 20
	s.DeleteAfter, s.DiskBytes = 0, 0
	if strings.TrimSpace(f.after.Text) != "" {
		s.DeleteAfter = time.Duration(min(number(f.after, "Delete recordings after", 0), 100*365) * 24 * float64(time.Hour))
	}
	if strings.TrimSpace(f.most.Text) != "" {
		s.DiskBytes = int64(min(number(f.most, "MiB of recordings on disk", 0), 1<<30)) << 20
	}
	if s.Back > s.Keep && err == nil {
		err = errors.New("From before the press: streams are not kept so long; let them be kept longer")
	}
	if text := strings.TrimSpace(f.token.Text); text != "" {
		token = &text
	} else if f.forget.Checked {
		none := ""
		token = &none
	}
	return s, token, err
}

func (f *form) changed() {
	if f.filling {
		return
	}
	f.dirty = true
	f.update()
}

// local tells whether a host is this machine by its name alone.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// exposed says what others on the network could do; "" where nothing comes over it.
func exposed(s console.TelemetrySettings, token *string) string {
	for _, p := range s.Pages {
		if u, err := url.Parse(p.URL); err == nil && u.Scheme == "http" && !local(u.Hostname()) && (p.Token == nil && p.HasToken || p.Token != nil && *p.Token != "") {
			return "The token for " + p.URL + " goes over the network in plain text: use https where the server has it."
		}
	}
	ip := net.ParseIP(s.Host)
	if ip == nil || ip.IsLoopback() {
		return ""
	}
	asked := s.HasToken
	if token != nil {
		asked = *token != ""
	}
	switch {
	case !asked:
		return "Whoever reaches this machine over the network can send records, which hold what users asked and models answered: ask for a token, or leave the address empty."
	case s.Certificate == "":
		return "Records and the token come over the network in plain text: name a certificate for TLS, or leave the address empty."
	}
	return ""
}

func (f *form) update() {
	s, token, err := f.read()
	text, ink := "", look.Amber
	switch {
	case err != nil:
		text, ink = sentence(err.Error()), look.Red
	default:
		text = exposed(s, token)
	}
	f.hint.SetIn(text, ink)
	f.apply.SetEnabled(f.dirty && err == nil)
	f.undo.SetEnabled(f.dirty)
	if showIf(f.hint, text != "") || text != "" {
		f.scroll.Settle()
	}
}

// Apply keeps the settings and makes them so.
func (f *form) Apply() {
	s, token, err := f.read()
	if err != nil {
		f.page.Say(look.OnRed, sentence(err.Error()))
		return
	}
	if !f.dirty {
		return
	}
	f.page.Thread.Work(func() func() {
		f.page.changing.Lock()
		s.On = f.page.Telemetry.Settings().On // the switch is elsewhere
		err := f.page.Telemetry.SaveSettings(s, token)
		f.page.changing.Unlock()
		return func() {
			if err != nil {
				f.page.Say(look.OnRed, sentence(err.Error()))
				return
			}
			f.dirty = false
			f.fill(f.page.Telemetry.Settings())
			f.reload()
			f.page.Redraw()
		}
	})
}
