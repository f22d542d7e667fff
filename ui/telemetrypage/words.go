package telemetrypage

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/stream"
	"velo/bench/report"
	"velo/ui/console"
	"velo/ui/look"
)

// Short is how the receiver is, in the few words that the top bar has room for. It says what the
// listeners do, not what was heard.
func Short(s otlp.State) string {
	listening, failed := counted(s)
	switch {
	case !s.Wanted:
		return "off"
	case failed > 0 && listening == 0:
		return "not listening"
	case failed > 0:
		return "partial"
	case listening > 0:
		return "listening"
	case len(s.Polls) > 0:
		return "polling"
	}
	return "not listening"
}

// Tone is the colour that goes with it.
func Tone(s otlp.State) look.Tone {
	listening, failed := counted(s)
	switch {
	case !s.Wanted:
		return look.OnFaint
	case failed > 0 && listening == 0:
		return look.OnRed
	case failed > 0:
		return look.OnAmber
	}
	return look.OnGreen
}

// counted is how many addresses are listened on, and how many cannot be had.
func counted(s otlp.State) (listening, failed int) {
	for _, l := range s.Listeners {
		switch {
		case l.Address != "":
			listening++
		case l.Error != "":
			failed++
		}
	}
	return listening, failed
}

// listeningOn names the addresses that are listened on: "127.0.0.1: gRPC 4317, HTTP 4318, 9381".
func listeningOn(s otlp.State) string {
	var hosts []string
	ports := map[string][]string{}
	last := map[string]string{}
	for _, l := range s.Listeners {
		if l.Address == "" {
			continue
		}
		host, port, err := net.SplitHostPort(l.Address)
		if err != nil {
			host, port = l.Address, ""
		}
		if ports[host] == nil {
			hosts = append(hosts, host)
		}
		if last[host] != l.Protocol {
			port = l.Protocol + " " + port
		}
		last[host] = l.Protocol
		if l.TLS && !overTLS(s) {
			port += " (TLS)"
		}
		ports[host] = append(ports[host], port)
	}
	var parts []string
	for _, h := range hosts {
		parts = append(parts, h+": "+strings.Join(ports[h], ", "))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// overTLS tells whether all that listens speaks TLS.
func overTLS(s otlp.State) bool {
	listening, _ := counted(s)
	n := 0
	for _, l := range s.Listeners {
		if l.Address != "" && l.TLS {
			n++
		}
	}
	return n > 0 && n == listening
}

// ago writes an age; it changes once a second and no sooner.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d/time.Minute))
	}
	return fmt.Sprintf("%d h %d min ago", int(d/time.Hour), int(d/time.Minute)%60)
}

// span writes a bound of time as a setting has it.
func span(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%d min", int(d/time.Minute))
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

func clock(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

func size(n int64) string {
	const kib = 1 << 10
	switch {
	case n >= kib*kib*kib:
		return fmt.Sprintf("%.1f GiB", float64(n)/(kib*kib*kib))
	case n >= 10*kib*kib:
		return fmt.Sprintf("%.0f MiB", float64(n)/(kib*kib))
	case n >= kib*kib:
		return fmt.Sprintf("%.1f MiB", float64(n)/(kib*kib))
	}
	return fmt.Sprintf("%d KiB", (n+kib-1)/kib)
}

// group writes a count with a comma at each thousand.
func group[T int | int64 | uint64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// many writes a count in a few characters.
func many(n uint64) string {
	if n < 1_000_000 {
		return group(n)
	}
	return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) + " M"
}

// came counts what was received; of what never came nothing is said.
func came(records, points, spans uint64) string {
	var parts []string
	for _, p := range []struct {
		n    uint64
		noun string
	}{{records, "record"}, {points, "point"}, {spans, "span"}} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.noun)
		case p.n > 0:
			parts = append(parts, many(p.n)+" "+p.noun+"s")
		}
	}
	return strings.Join(parts, ", ")
}

func plural[T int | int64 | uint64](n T, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return group(n) + " " + noun + "s"
}

// dropped says what was not taken, and why. Nothing of it is inferred: each is a counter.
func dropped(s otlp.State) (text, note string, ink look.Ink) {
	c := s.Counters
	refused := c.Malformed + c.TooLarge + c.Unsupported + c.Unauthorized + c.RateLimited + c.Busy + c.Memory + c.Connections + c.Interrupted
	var parts []string
	if c.Dropped > 0 {
		parts = append(parts, plural(c.Dropped, "record"))
	}
	if refused > 0 {
		parts = append(parts, plural(refused, "request"))
	}
	if len(parts) == 0 {
		return "nothing", "", look.Plain
	}
	var why []string
	for _, r := range []struct {
		n    uint64
		word string
	}{{c.RateLimited, "over the rate"}, {c.Busy, "too busy"}, {c.Memory, "no memory"}, {c.Malformed, "malformed"}, {c.TooLarge, "too large"}, {c.Unsupported, "unknown kind"},
		{c.Unauthorized, "no token"}, {c.Connections, "connections"}, {c.Interrupted, "broken off"}} {
		if r.n > 0 {
			why = append(why, r.word+" "+group(r.n))
		}
	}
	return strings.Join(parts, ", "), strings.Join(why, ", "), look.Amber
}

// figure is a number as written.
type figure struct{ value, unit, mark string }

func write(unit measure.Unit, v measure.Num, mark string) figure {
	value, shown := report.FormatNum(measure.Metric{Unit: unit}, v)
	if !v.Ok() {
		mark = ""
	}
	return figure{value, shown, mark}
}

// text is a number with its unit and mark.
func (f figure) text() string {
	return strings.Join(strings.Fields(f.value+" "+f.unit+" "+f.mark), " ")
}

// gaugeUnit is the unit that a gauge's number is written in.
func gaugeUnit(unit string) measure.Unit {
	switch unit {
	case "fraction":
		return measure.Fraction
	case "tok/s":
		return measure.PerSec
	case "s":
		return measure.Seconds
	}
	return measure.Count
}

// OnDisk says what recordings take on disk, what is being written, and how long they stay.
func OnDisk(d console.TelemetryDisk, s console.TelemetrySettings) string {
	var parts []string
	switch {
	case d.Recordings == 1:
		parts = append(parts, "1 recording, "+size(d.Bytes)+" on disk, of "+d.Oldest.Local().Format("2 January 2006")+".")
	case d.Recordings > 1:
		parts = append(parts, plural(d.Recordings, "recording")+", "+size(d.Bytes)+" on disk, the oldest of "+d.Oldest.Local().Format("2 January 2006")+".")
	case d.Writing == 0:
		parts = append(parts, "No recording is on disk.")
	}
	if d.Writing > 0 {
		who := "1 recording is"
		switch {
		case d.Recordings > 0:
			who = group(d.Writing) + " more " + map[bool]string{true: "is", false: "are"}[d.Writing == 1]
		case d.Writing > 1:
			who = group(d.Writing) + " recordings are"
		}
		if d.WritingBytes > 0 {
			parts = append(parts, who+" being written, "+size(d.WritingBytes)+" so far.")
		} else {
			parts = append(parts, who+" going on; nothing came yet that would be written.")
		}
	}
	var bounds []string
	if s.DeleteAfter > 0 {
		bounds = append(bounds, "those older than "+days(s.DeleteAfter))
	}
	if s.DiskBytes > 0 {
		bounds = append(bounds, "the oldest when all take more than "+size(s.DiskBytes))
	}
	switch {
	case len(bounds) > 0:
		parts = append(parts, "Deleted by themselves: "+strings.Join(bounds, ", and ")+". What has a category stays.")
	case d.Recordings+d.Writing == 1:
		parts = append(parts, "It stays until it is deleted.")
	case d.Recordings+d.Writing > 1:
		parts = append(parts, "They stay until they are deleted.")
	}
	return strings.Join(parts, " ")
}

// renewBefore is from when on a certificate is to be renewed soon.
const renewBefore = 14 * 24 * time.Hour

// validity says how long the certificate of the receiver is good for, and what is wrong with newer files.
func validity(c *otlp.CertificateState) (text string, ink look.Ink) {
	of := strings.Join(c.Names, ", ")
	if of == "" {
		of = "no host or address"
	}
	renewed := " A renewed one is taken as soon as it is in its files."
	if c.Problem != "" {
		renewed = ""
	}
	on := " (" + c.Expires.Local().Format("2 January 2006, 15:04") + ")"
	text, ink = "Certificate for "+of, look.Muted
	switch {
	case c.Left <= 0:
		text, ink = text+": expired "+round(-c.Left)+" ago"+on+", and senders refuse it."+renewed, look.Red
	case c.Early:
		text, ink = text+": not valid before "+c.Begins.Local().Format("2 January 2006, 15:04")+", and senders refuse it until then.", look.Red
	case c.Left < renewBefore:
		text, ink = text+": expires in "+round(c.Left)+on+"."+renewed, look.Amber
	default:
		text += ": expires in " + round(c.Left) + on + "."
	}
	if c.Problem != "" {
		text += " Its files have changed and cannot be used; the former certificate stays in use until they can: " + c.Problem + "."
		if ink == look.Muted {
			ink = look.Amber
		}
	}
	return text, ink
}

// round writes a time in its largest unit, whole.
func round(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return plural(int(d/(24*time.Hour)), "day")
	case d >= 2*time.Hour:
		return plural(int(d/time.Hour), "hour")
	}
	return plural(int(d/time.Minute), "minute")
}

// days writes a time of days or hours.
func days(d time.Duration) string {
	if d >= 48*time.Hour {
		return strconv.FormatFloat(d.Hours()/24, 'g', 4, 64) + " days"
	}
	return strconv.FormatFloat(d.Hours(), 'g', 4, 64) + " hours"
}

// bounds says what is known of a clock: an interval where a request was measured on both sides, else a
// sum that cannot be parted.
func bounds(b offset.Bounds) string {
	if s := b.String(); s != "" {
		return s
	}
	return report.Dash
}

// signed writes a difference of clocks.
func signed(d time.Duration) string { return offset.Signed(d) }

// name is what a stream is called: its conversation and its generation.
func name(k stream.Key) string {
	switch {
	case k.Conversation == "":
		return k.Generation
	case k.Generation == "" || k.Generation == k.Conversation:
		return k.Conversation
	}
	return k.Conversation + " " + k.Generation
}

// place says where a stream comes from, and what of its prompt needed no work.
func place(s *stream.Summary) string {
	text := name(s.Key) + " · " + s.Service
	if s.Cached.Ok() && s.Prompt.Ok() {
		text += " · " + write(measure.Tokens, s.Cached, "").value + " prompt tokens from the cache " + measure.Server.Mark()
	}
	return text
}

// at says where a model runs: "model @ topology".
func at(model, topology string) string {
	switch {
	case model == "":
		return topology
	case topology == "":
		return model
	}
	return model + " @ " + topology
}

// streamTone is the colour of a stream's state.
func streamTone(state string) look.Tone {
	switch state {
	case stream.Waiting:
		return look.OnAmber
	case stream.Running:
		return look.OnAccent
	case stream.Ended:
		return look.OnGreen
	case stream.Broken:
		return look.OnRed
	}
	return look.OnFaint
}

// condition is a stream's state in words, with what is missing.
func condition(s *stream.Summary) string {
	parts := []string{s.State}
	if s.Finish != "" && s.State == stream.Ended {
		parts[0] += " (" + s.Finish + ")"
	}
	if !s.Started {
		parts = append(parts, "start not seen")
	}
	if s.Lost > 0 {
		parts = append(parts, plural(s.Lost, "record")+" lost")
	}
	if s.Folded {
		parts = append(parts, "text let go")
	}
	if s.Clock == stream.ReceiverClock {
		parts = append(parts, "times of receipt")
	}
	return strings.Join(parts, ", ")
}

// progress says how far a recording is within its bounds.
func progress(r *otlp.RecordingState) string {
	return fmt.Sprintf("%s of %s · %s · %s of %s tokens · %s of %s", clock(r.Elapsed), clock(r.Bounds.For), plural(r.Streams, "stream"),
		group(r.Tokens), group(r.Bounds.Tokens), size(r.Bytes), size(r.Bounds.Bytes))
}

// outcome says what became of a recording.
func outcome(r *console.TelemetryRecorded) string {
	switch {
	case r.Error != "":
		return r.Error
	case r.Empty:
		return "Nothing came: no session was made."
	}
	text := fmt.Sprintf("%s, %s tokens in %s", plural(r.Streams, "stream"), group(r.Tokens), clock(r.Elapsed))
	if r.Headless > 0 {
		text += ", " + group(r.Headless) + " of them without their start"
	}
	return text + "; it ended: " + r.Reason
}

// sentence makes an error a sentence.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
