package report

import (
	"fmt"
	"net/url"
	"sort"
	"strings"
	"time"

	"velo/bench"
)

// facts says what was measured, how, where and when.
func (b *builder) facts(version string) []Fact {
	h := &b.s.Header
	var fs []Fact
	add := func(label, value string) {
		if value = oneLine(value, 200); value == "" {
			value = Dash
		}
		fs = append(fs, Fact{label, value})
	}
	if h.Endpoint.BuiltIn {
		add("Endpoint", "built-in scripted endpoint of Velo, not a real model")
	} else {
		add("Endpoint", joinNotes(oneLine(h.Endpoint.Name, 60), withoutUser(h.Endpoint.URL), h.Plan.Protocol))
	}
	add("Model", h.Endpoint.Model)
	if s := joinNotes(oneLine(h.Endpoint.Server, 80), oneLine(h.Endpoint.OwnedBy, 80)); s != "" {
		add("Server", s)
	}
	suite := b.suite.Title
	if suite == "" {
		suite = b.suite.ID
	}
	add("Suite", suite)
	add("Load", b.load())
	add("Repetitions", repetitions(h.Plan))
	add("Prompts", prefixWord(h.Plan.Prefix))
	add("Warm-up", b.warmup())
	if h.Plan.Channel == "think-tags" {
		add("Reasoning", "inline <think> is split off")
	}
	if h.Anchor.IsZero() {
		add("Date", "")
	} else {
		add("Date", h.Anchor.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	add("Duration", b.duration())
	add("Machine", machine(&h.Environment))
	add("System", joinNotes(h.Environment.Host, h.Environment.OS, h.Environment.Kernel, governor(h.Environment.Governor)))
	for _, k := range sortedKeys(h.Environment.Extra) {
		add(oneLine(k, 40), h.Environment.Extra[k])
	}
	add("Window", drawing(h.Drawing))
	add("Time stamps", b.stampWords())
	measured := h.Environment.Velo
	if measured == "" {
		measured = Dash
	}
	if version != "" && version != measured {
		measured += ", reported by " + version
	}
	add("Velo", measured)
	add("Session", h.ID)
	return fs
}

func (b *builder) load() string {
	p := &b.s.Header.Plan
	switch {
	case p.Rate > 0:
		return fmt.Sprintf("open loop, %s req/s, at most %s at a time", significant(p.Rate), plural(max(p.Workers, 1), "request"))
	case p.Workers == 1:
		return "closed loop, one stream"
	case p.Workers > 1:
		return fmt.Sprintf("closed loop, %s", plural(p.Workers, "worker"))
	}
	return ""
}

func (b *builder) warmup() string {
	if n := b.run.Warm; n > 0 {
		return plural(n, "request") + ", not in the numbers"
	}
	return "none"
}

func (b *builder) duration() string {
	if len(b.s.Exchanges) == 0 {
		return ""
	}
	return durationText(b.ended - b.began)
}

func (b *builder) stampWords() string {
	k, u, e := b.stamps[bench.KernelStamp], b.stamps[bench.UserStamp], b.stamps[bench.EmitterStamp]
	switch {
	case e > 0 && k+u == 0:
		return "the emitter's clock, as its telemetry says (emitter), all requests"
	case e > 0:
		return fmt.Sprintf("the emitter's clock, as its telemetry says (emitter), in %s, of this machine in %s", plural(e, "request"), whole(k+u))
	case k > 0 && u == 0:
		return "kernel receive time, all requests"
	case u > 0 && k == 0:
		return "return of the socket read (user), all requests"
	case k > 0:
		return fmt.Sprintf("kernel receive time in %s, return of the socket read (user) in %s", plural(k, "request"), whole(u))
	}
	return ""
}

func machine(e *bench.Environment) string {
	var parts []string
	if s := oneLine(e.CPU, 80); s != "" {
		parts = append(parts, s)
	}
	if e.Cores > 0 {
		parts = append(parts, plural(e.Cores, "core"))
	}
	if e.MemoryGB > 0 {
		parts = append(parts, significant(e.MemoryGB)+" GiB")
	}
	return strings.Join(parts, " · ")
}

func governor(g string) string {
	if g == "" {
		return ""
	}
	return "governor " + oneLine(g, 40)
}

func drawing(d string) string {
	switch d {
	case bench.DrawingNone:
		return "none (command line)"
	case bench.DrawingQuiet:
		return "quiet, at most one redraw a second"
	case bench.DrawingLive:
		return "live, drawn as it came"
	}
	return d
}

func prefixWords(p string) string {
	switch p {
	case bench.PrefixSalted:
		return "salted: each begins with its own nonce, so that no prefix cache helps"
	case bench.PrefixShared:
		return "shared prefix: prompts of a step begin alike (warm prefix cache)"
	}
	return p
}

// prefixWord is prefixWords in short.
func prefixWord(p string) string {
	switch p {
	case bench.PrefixSalted:
		return "salted: no prefix cache can help"
	case bench.PrefixShared:
		return "shared prefix: warm prefix cache"
	}
	return p
}

func repetitions(p bench.Plan) string {
	if p.Repeat <= 0 {
		return ""
	}
	return fmt.Sprintf("%s, seed %d", whole(p.Repeat), p.Seed)
}

// withoutUser removes user and password from a URL. Those that record a session do so already; a
// report leaves the machine, so it is made sure of here.
func withoutUser(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		if i := strings.LastIndexByte(s, '@'); i >= 0 {
			return s[i+1:]
		}
		return s
	}
	u.User = nil
	return u.String()
}

func sortedKeys(m map[string]string) []string {
	ks := make([]string, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	return ks
}

// seconds is a session time in seconds.
func seconds(d time.Duration) float64 { return d.Seconds() }
