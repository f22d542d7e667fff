package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"velo/bench/measure"
	"velo/bench/otlp/offset"
)

// Beside is a session that a client measured, lined up with one that was recorded from telemetry.
type Beside struct {
	ID, Title string // of the client's session
	offset.Alignment
}

// mostSides is how many requests measured on both sides a report lists; all of them are in the JSON.
const mostSides = 200

// sides sets the server's time to the first token beside the client's, for a session that was recorded
// from telemetry.
func (b *builder) sides(list []Beside) Section {
	s := Section{ID: "sides", Title: "Server and client"}
	if !b.told {
		return s
	}
	var ps []string
	t := Table{ID: "sides", Title: "Requests measured on both sides", Columns: []Column{{Title: "Session of the request"}, {Title: "Client's session"},
		{Title: "Server TTFT", Unit: "ms", Right: true}, {Title: "Client TTFT", Unit: "ms", Right: true}, {Title: "Difference", Unit: "ms", Right: true},
		{Title: "Client clock − emitter clock, by it alone"}}}
	pairs := 0
	for i := range list {
		x := &list[i]
		title := oneLine(x.Title, 80)
		ps = append(ps, fmt.Sprintf("%s: %s on both sides, %s of the telemetry only. The client saw its first token %s later than the server, in the median. Client clock − emitter clock: %s.",
			title, plural(len(x.Pairs), "request"), whole(x.Unmatched), quantity(measure.Metric{Unit: measure.Seconds}, x.Median, measure.Clock), x.Bounds))
		for j := range x.Pairs {
			if pairs++; pairs > mostSides {
				t.Note = "further ones are in the JSON"
				break
			}
			p := &x.Pairs[j]
			t.Rows = append(t.Rows, []Cell{text(oneLine(p.Session, 60)), text(title), number(p.ServerTTFT, 1e3, measure.Clock), number(p.ClientTTFT, 1e3, measure.Clock),
				number(p.Difference(), 1e3, measure.Clock), text(offset.Signed(p.Low) + " to " + offset.Signed(p.High))})
		}
	}
	if pairs > 0 {
		s.Tables = append(s.Tables, t)
		ps = append(ps, "The server's time to first token is the engine's own, the client's includes the network and every queue on the way; their difference needs no offset. "+
			"A request bounds the offset of the clocks, as its stream began after it was sent and before its first byte came.")
	} else {
		ps = append(ps, "No client of this program measured one of these requests: no session of that time bears the same session id.")
		for _, n := range b.s.Notes { // what the receiver knew of the clock
			if strings.Contains(n.Text, offset.Said) {
				ps = append(ps, capital(oneLine(n.Text, 300)))
			}
		}
	}
	s.Text = strings.Join(ps, "\n\n")
	return s
}

// capital makes a note a sentence.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(r)) + s[n:]
	return strings.TrimSuffix(s, ".") + "."
}

// besideJSON is one of them at full precision: times in seconds, offsets in nanoseconds, client clock minus
// emitter clock.
func besideJSON(x *Beside) map[string]any {
	pairs := make([]map[string]any, len(x.Pairs))
	for i := range x.Pairs {
		p := &x.Pairs[i]
		pairs[i] = map[string]any{"session": p.Session, "service": p.Service, "server_ttft": p.ServerTTFT, "client_ttft": p.ClientTTFT,
			"difference": p.Difference(), "offset_low_ns": int64(p.Low), "offset_high_ns": int64(p.High)}
	}
	m := map[string]any{"id": x.ID, "title": x.Title, "unmatched": x.Unmatched, "median_difference": x.Median, "conflicts": x.Conflicts,
		"offset_low_ns": nil, "offset_high_ns": nil, "pairs": pairs}
	if x.Known() {
		m["offset_low_ns"], m["offset_high_ns"] = int64(x.Low), int64(x.High)
	}
	return m
}
