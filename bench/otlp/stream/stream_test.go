package stream

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/otlp/decode"
)

var update = flag.Bool("update", false, "write the golden files anew")

const noon = int64(1_700_000_000_000_000_000)

// rec is a record for a test.
type rec struct {
	at                time.Duration // after noon; −1 = it has no time
	event             string
	session, gen      string
	index             int // −1 = none
	body              string
	resource, service string
}

func content(s string) string {
	b, _ := json.Marshal(s)
	return `{"choices":[{"delta":{"content":` + string(b) + `}}]}`
}

func (r rec) take(t *Table) bool {
	l := &decode.Log{Body: decode.Text(r.body)}
	if r.at >= 0 {
		l.Time = uint64(noon + int64(r.at))
	}
	add := func(k, v string) {
		if v != "" {
			l.Attributes = append(l.Attributes, decode.Attribute{Key: k, Value: decode.Text(v)})
		}
	}
	add("event", r.event)
	add("request.id", r.session)
	add("generation.id", r.gen)
	if r.index >= 0 {
		add("token.index", fmt.Sprint(r.index))
	}
	o := &decode.Origin{}
	if r.service != "" {
		o.Resource = decode.Attributes{{Key: "service.name", Value: decode.Text(r.service)}}
	}
	return t.Log(clockOf(r.at), noon+int64(time.Hour)+int64(clockOf(r.at)), o, l)
}

// clockOf is when a record comes: 7 ms after its time, on the receiver's monotonic clock.
func clockOf(at time.Duration) time.Duration { return max(at, 0) + 7*time.Millisecond }

func (t *Table) all(now time.Duration, panels ...Key) *View {
	var c Cache
	v := t.View(Query{Limit: 500, Panels: panels}, now, &c)
	v.Complete()
	return v
}

// whole is the records of a generation: start, n tokens 10 ms apart from 100 ms on, end.
func whole(session, gen string, from time.Duration, n int) []rec {
	out := []rec{{from, "stream_start", session, gen, 0, `{"choices":[{"delta":{"role":"assistant"}}]}`, "", ""}}
	for i := 1; i <= n; i++ {
		out = append(out, rec{from + 90*time.Millisecond + time.Duration(i)*10*time.Millisecond, "stream_delta", session, gen, i, content(fmt.Sprintf(" w%d", i)), "", ""})
	}
	return append(out, rec{from + 91*time.Millisecond + time.Duration(n)*10*time.Millisecond, "stream_end", session, gen, n + 1,
		fmt.Sprintf(`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":%d}}`, n), "", ""})
}

// TestAnyOrderGivesTheSameStream: records of several streams, shuffled, repeated and mixed with each
// other, come to what they come to in order.
func TestAnyOrderGivesTheSameStream(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "tokens")
		var all []rec
		for _, g := range []string{"a", "b", "c"} {
			all = append(all, whole("one session", g, 0, n)...)
		}
		doubled := rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 0, 10).Draw(t, "repeated")
		for _, i := range doubled {
			all = append(all, all[i])
		}
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		table := NewTable(Options{})
		for _, x := range all {
			if !x.take(table) {
				t.Fatal("a record was not taken for a stream's")
			}
		}
		v := table.all(time.Second, Key{Conversation: "one session", Generation: "b"})
		if len(v.Streams) != 3 || len(v.Panels) != 1 {
			t.Fatalf("%d streams, %d panels", len(v.Streams), len(v.Panels))
		}
		for _, s := range v.Streams {
			if s.Tokens != n || s.Lost != 0 || s.State != Ended || math.Abs(float64(s.TTFT)-0.1) > 1e-9 {
				t.Fatalf("%+v", s)
			}
		}
		var want strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&want, " w%d", i)
		}
		if v.Panels[0].Text != want.String() {
			t.Fatalf("text is %q, want %q", v.Panels[0].Text, want.String())
		}
		if got := table.Counts(); got.Duplicates > uint64(len(doubled)) {
			t.Fatalf("%d duplicates counted of %d", got.Duplicates, len(doubled))
		}
	})
}

func TestWhatIsMissingIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		drop    []int // positions in whole(…, 10): 0 = start, 11 = end
		lost    int
		started bool
		state   string
	}{
		"nothing": {nil, 0, true, Ended}, "one token": {[]int{4}, 1, true, Ended}, "three in a row": {[]int{4, 5, 6}, 3, true, Ended},
		"the start": {[]int{0}, 1, false, Ended}, "the end": {[]int{11}, 0, true, Running}, "start and tokens": {[]int{0, 1, 2}, 0, false, Ended},
	} {
		table := NewTable(Options{})
	records:
		for i, r := range whole("s", "g", 0, 10) {
			for _, d := range c.drop {
				if i == d {
					continue records
				}
			}
			r.take(table)
		}
		s := table.all(time.Second).Streams[0]
		if s.Lost != c.lost || s.Started != c.started || s.State != c.state || s.TTFT.Ok() != c.started {
			t.Errorf("%s: lost %d, started %v, state %s, TTFT %v; want %+v", name, s.Lost, s.Started, s.State, s.TTFT, c)
		}
	}
	table := NewTable(Options{})
	for _, r := range whole("s", "g", 0, 10)[:5] {
		r.take(table)
	}
	if s := table.all(time.Hour).Streams[0]; s.State != Quiet {
		t.Errorf("after an hour of silence it is %s", s.State)
	}
}

// TestTurnsWithoutGenerationIDs: a start on a conversation that ran is its next turn; its time does not
// fold into the one before.
func TestTurnsWithoutGenerationIDs(t *testing.T) {
	table := NewTable(Options{})
	for turn := range 3 {
		for _, r := range whole("s", "", time.Duration(turn)*time.Second, 5) {
			r.take(table)
		}
	}
	table2 := NewTable(Options{})
	for turn := range 3 { // starts lost: the first delta after an end begins the next turn
		for _, r := range whole("s", "", time.Duration(turn)*time.Second, 5)[1:] {
			r.take(table2)
		}
	}
	for i, tb := range []*Table{table, table2} {
		v := tb.all(5 * time.Second)
		if len(v.Streams) != 3 {
			t.Fatalf("table %d: %d streams", i, len(v.Streams))
		}
		for _, s := range v.Streams {
			if s.Tokens != 5 || s.State != Ended || s.TTFT.Ok() != (i == 0) || math.Abs(float64(s.Rate)-100) > 1e-6 {
				t.Errorf("table %d: %+v", i, s)
			}
		}
	}
}

// TestClocksAreNeverMixed: the receiver's clock is an hour ahead of the emitter's; no number shows it.
func TestClocksAreNeverMixed(t *testing.T) {
	table := NewTable(Options{})
	for _, r := range whole("s", "g", 0, 20) {
		r.take(table)
	}
	for i, r := range whole("no time", "g", 0, 20) {
		r.at = -1
		l := &decode.Log{Body: decode.Text(r.body), Attributes: decode.Attributes{{Key: "event", Value: decode.Text(r.event)}, {Key: "request.id", Value: decode.Text(r.session)}}}
		at := time.Duration(i) * 20 * time.Millisecond
		table.Log(at, noon+int64(at), &decode.Origin{}, l)
	}
	mixed := whole("some without", "g", 0, 20)
	for i := range mixed {
		if i%2 == 1 {
			mixed[i].at = -1
		}
		mixed[i].take(table)
	}
	for _, s := range table.all(time.Second).Streams {
		want := map[string]string{"s": EmitterClock, "no time": ReceiverClock, "some without": EmitterClock}[s.Conversation]
		if s.Clock != want {
			t.Errorf("%s: clock %s", s.Conversation, s.Clock)
		}
		if s.TTFT > 1 || s.MaxGap > 1 || s.E2E > 1 {
			t.Errorf("%s: an hour crept in: %+v", s.Conversation, s)
		}
		if s.Conversation == "no time" && math.Abs(float64(s.TTFT)-0.020) > 1e-9 {
			t.Errorf("%s: TTFT %v", s.Conversation, s.TTFT)
		}
	}
}

func TestBodiesOfEveryKind(t *testing.T) {
	str := func(s string) decode.Value { return decode.Text(s) }
	for name, c := range map[string]struct {
		body    decode.Value
		text    string
		channel bench.Channel
		tokens  int
	}{
		"content":               {str(`{"choices":[{"delta":{"content":"hi"}}]}`), "hi", bench.Content, 1},
		"reasoning_content":     {str(`{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`), "hm", bench.Reasoning, 1},
		"reasoning":             {str(`{"choices":[{"delta":{"reasoning_content":null,"reasoning":"hm"}}]}`), "hm", bench.Reasoning, 1},
		"refusal":               {str(`{"choices":[{"delta":{"refusal":"no"}}]}`), "no", bench.Refusal, 1},
		"tool calls":            {str(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}`), `f{"a":1}`, bench.Tool, 2},
		"a completion":          {str(`{"choices":[{"text":"hi"}]}`), "hi", bench.Content, 1},
		"token ids":             {str(`{"choices":[{"delta":{"content":"hi"},"token_ids":[1,2,3]}]}`), "hi", bench.Content, 3},
		"logprobs":              {str(`{"choices":[{"delta":{"content":"hi"},"logprobs":{"content":[{},{}]}}]}`), "hi", bench.Content, 2},
		"continuous usage":      {str(`{"choices":[{"delta":{"content":"hi"}}],"usage":{"completion_tokens":4}}`), "hi", bench.Content, 4},
		"a map of JSON strings": {decode.MapOf(decode.Attribute{Key: "choices", Value: str(`[{"delta":{"content":"hi"}}]`)}, decode.Attribute{Key: "id", Value: str("x")}), "hi", bench.Content, 1},
	} {
		table := NewTable(Options{})
		l := &decode.Log{Time: 5, Body: c.body, Attributes: decode.Attributes{{Key: "request.id", Value: str("s")}}}
		if !table.Log(0, 5, &decode.Origin{}, l) {
			t.Errorf("%s: not taken", name)
			continue
		}
		v := table.all(0, Key{Conversation: "s", Generation: "x"}, Key{Conversation: "s"})
		if len(v.Panels) != 1 {
			t.Errorf("%s: %d panels", name, len(v.Panels))
			continue
		}
		p := v.Panels[0]
		if p.Text != c.text || p.Tokens != c.tokens || len(p.Request.Arrivals) != 1 || p.Request.Arrivals[0].Channel != c.channel {
			t.Errorf("%s: %q, %d tokens, %+v", name, p.Text, p.Tokens, p.Request.Arrivals)
		}
	}
	table := NewTable(Options{})
	for _, body := range []string{"not JSON", `{"choices":`, `{}`, `[]`} {
		(rec{0, "stream_delta", "s", "g", -1, body, "", ""}).take(table)
	}
	if c := table.Counts(); c.Unreadable != 4 {
		t.Errorf("%d of 4 unreadable bodies counted", c.Unreadable)
	}
}

// TestUsageIsReadWhereverItSays: counts of drafted tokens stand among the details, or beside them.
func TestUsageIsReadWhereverItSays(t *testing.T) {
	for name, text := range map[string]string{
		"details": `{"prompt_tokens":9,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":7},"completion_tokens_details":{"reasoning_tokens":3,"accepted_prediction_tokens":5,"rejected_prediction_tokens":2}}`,
		"beside":  `{"prompt_tokens":9,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":7},"completion_tokens_details":{"reasoning_tokens":3},"accepted_prediction_tokens":5,"rejected_prediction_tokens":2}`,
	} {
		d, ok := parse(`{"choices":[],"usage":` + text + `}`)
		if want := (bench.Usage{Prompt: 9, Completion: 8, Reasoning: 3, Cached: 7, Accepted: 5, Rejected: 2}); !ok || d.usage == nil || *d.usage != want {
			t.Errorf("%s: %+v, want %+v", name, d.usage, want)
		}
	}
}

// TestWhoseRecordItIsMayBeSaidOnce: scope and resource name the conversation of records that say that they are
// of a stream; records of other kinds do not become streams by that.
func TestWhoseRecordItIsMayBeSaidOnce(t *testing.T) {
	named := func(key, value string) decode.Attribute { return decode.Attribute{Key: key, Value: decode.Text(value)} }
	o := &decode.Origin{Resource: decode.Attributes{named("service.name", "e"), named("session.id", "s")}, Scope: decode.Attributes{named("generation.id", "g"), named("model.id", "m")}}
	table := NewTable(Options{})
	body := decode.Text(`{"choices":[{"delta":{"content":"hi"}}]}`)
	if table.Log(0, 5, o, &decode.Log{Time: 5, Body: decode.Text("an application says something")}) {
		t.Error("a record of another kind became a stream")
	}
	if !table.Log(0, 5, o, &decode.Log{Time: 5, Body: body, Attributes: decode.Attributes{named("event", "stream_delta")}}) {
		t.Fatal("a record of a stream is not taken")
	}
	v := table.all(0, Key{Service: "e", Conversation: "s", Generation: "g"})
	if len(v.Panels) != 1 || v.Panels[0].Text != "hi" || v.Panels[0].Model != "m" {
		t.Errorf("it became %+v", v.Streams)
	}
}

// TestTheSumIsThatOfTheStreams: the tokens that the table counts while they come are those that its streams show.
func TestTheSumIsThatOfTheStreams(t *testing.T) {
	table := NewTable(Options{})
	for i := range 40 {
		for _, gen := range []string{"a", "b"} {
			(rec{time.Duration(i) * 20 * time.Millisecond, "stream_delta", "s", gen, i, content([]string{" index", "=", " of", "\n\tfor"}[i%4]), "", ""}).take(table)
		}
	}
	v := table.all(0, Key{Conversation: "s", Generation: "a"}, Key{Conversation: "s", Generation: "b"})
	sum := 0
	for _, p := range v.Panels {
		sum += p.Tokens
		if p.Source != measure.Estimate {
			t.Errorf("%v is counted by %q", p.Key, p.Source)
		}
	}
	if got := table.Counts().Tokens; len(v.Panels) != 2 || got != uint64(sum) {
		t.Errorf("%d tokens came, and the %d streams show %d", got, len(v.Panels), sum)
	}
}

func TestEndsAreTold(t *testing.T) {
	for finish, want := range map[string]bench.Status{`"stop"`: bench.OK, `"length"`: bench.OK, `"error"`: bench.Failed, `"abort"`: bench.Stopped} {
		table := NewTable(Options{})
		all := whole("s", "g", 0, 3)
		all[4].body = `{"choices":[{"delta":{},"finish_reason":` + finish + `}]}`
		for _, r := range all {
			r.take(table)
		}
		v := table.all(0, Key{Conversation: "s", Generation: "g"})
		if got := v.Panels[0].Request.Status; got != want {
			t.Errorf("finish %s: %s, want %s", finish, got, want)
		}
	}
	table := NewTable(Options{})
	(rec{0, "stream_end", "s", "g", -1, `{"error":{"message":"out of memory"}}`, "", ""}).take(table)
	if s := table.all(0).Streams[0]; s.State != Broken || s.Error != "out of memory" {
		t.Errorf("%+v", s)
	}
}

// TestMemoryIsBounded: bytes and streams stay within their bounds whatever comes, numbers of folded
// streams stay what they were, and what was let go is counted.
func TestMemoryIsBounded(t *testing.T) {
	table := NewTable(Options{Streams: 100, Bytes: 300_000})
	before := measure.Num(0)
	for i := range 500 {
		for _, r := range whole(fmt.Sprintf("s%d", i), "g", time.Duration(i)*time.Second, 100) {
			r.take(table)
			if table.Bytes() > 300_000+50_000 || table.Len() > 100 {
				t.Fatalf("%d bytes in %d streams", table.Bytes(), table.Len())
			}
		}
		if i == 450 {
			before = table.all(0).Streams[0].Rate
		}
	}
	c := table.Counts()
	if c.Evicted != 400 || c.Folded < 400 {
		t.Errorf("counts are %+v", c)
	}
	sum := int64(0)
	v := table.all(time.Hour)
	for _, s := range v.Streams {
		sum += s.Bytes
		if s.Conversation == "s450" && (!s.Folded || s.Rate != before || s.Tokens != 100 || math.Abs(float64(s.TTFT)-0.1) > 1e-9) {
			t.Errorf("the folded stream is %+v, its rate was %v", s, before)
		}
	}
	if sum != table.Bytes() || len(v.Streams) != 100 {
		t.Errorf("%d streams hold %d bytes, the table says %d", len(v.Streams), sum, table.Bytes())
	}
	table.Sweep(24 * time.Hour)
	if table.full.Len() != 0 {
		t.Errorf("%d streams still have chunks a day later", table.full.Len())
	}
}

// TestViewsOfRunningStreamsFollow: a panel's line falls while nothing comes, and its text grows.
func TestViewsOfRunningStreamsFollow(t *testing.T) {
	table := NewTable(Options{})
	k := Key{Conversation: "s", Generation: "g"}
	all := whole("s", "g", 0, 200)
	var c Cache
	rate := func(now time.Duration) measure.Num {
		v := table.View(Query{Panels: []Key{k}}, now, &c)
		v.Complete()
		return v.Panels[0].Live.Rate
	}
	for _, r := range all[:150] {
		r.take(table)
		if r.index > 0 && r.index%10 == 0 {
			rate(clockOf(r.at))
		}
	}
	if got := rate(clockOf(all[149].at)); !(got > 50) {
		t.Errorf("rate is %v while it runs", got)
	}
	if got := rate(clockOf(all[149].at) + 3*time.Second); got != 0 {
		t.Errorf("rate is %v three seconds into a stall", got)
	}
	table.Sweep(time.Hour)
	if table.streams[k].live != nil {
		t.Error("it is followed although nobody looks")
	}
}

// TestGolden: the records of a file come to the sessions of another.
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.json")
	if len(files) < 2 {
		t.Fatal("the records are missing")
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		table := NewTable(Options{})
		tape := table.Tape(nil, 0)
		n := time.Duration(0)
		if _, err := decode.Logs(string(body), decode.JSON, func(o *decode.Origin, l *decode.Log) bool {
			n += time.Millisecond
			table.Log(n, noon, o, l)
			return true
		}); err != nil {
			t.Fatal(err)
		}
		events, _ := tape.Close(n)
		var out strings.Builder
		for _, e := range events {
			b, _ := json.Marshal(e)
			fmt.Fprintf(&out, "%T %s\n", e, b)
		}
		for _, s := range table.Statuses() {
			fmt.Fprintf(&out, "status %+v\n", s)
		}
		name := strings.TrimSuffix(f, ".json") + ".golden"
		if *update {
			if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, _ := os.ReadFile(name)
		if string(want) != out.String() {
			t.Errorf("%s comes to\n%s\nwant\n%s", f, out.String(), want)
		}
	}
}

func FuzzChunks(f *testing.F) {
	f.Add(`{"choices":[{"delta":{"content":"hi","tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"stop"}],"usage":{"completion_tokens":4}}`)
	f.Add(`{"choices":7,"usage":[],"error":null}`)
	f.Add(`{"error":{"message":5}}`)
	f.Fuzz(func(t *testing.T, body string) {
		table := NewTable(Options{Streams: 2, Bytes: 4000})
		for i, event := range []string{"stream_delta", "stream_start", "stream_delta", "stream_end", "stream_delta"} {
			(rec{time.Duration(i), event, "s", "g", i % 3, body, "", ""}).take(table)
		}
		d, _ := parse(body)
		if d.usage != nil && (d.usage.Completion < -1 || d.usage.Prompt < -1) || d.exact < -1 {
			t.Fatalf("%+v", d)
		}
		table.all(time.Second, Key{Conversation: "s", Generation: "g"})
		tape := table.Tape(nil, 0)
		tape.Pull(0, false)
		tape.Close(0)
	})
}

// BenchmarkRecords is one generation record into a table that holds 10,000 streams.
func BenchmarkRecords(b *testing.B) {
	table := NewTable(Options{})
	body := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`
	const streams = 10_000
	keys := make([]string, streams)
	for i := range keys {
		keys[i] = fmt.Sprintf("sess-%d", i)
	}
	l := &decode.Log{Body: decode.Text(body), Attributes: make(decode.Attributes, 6)}
	o := &decode.Origin{Resource: decode.Attributes{{Key: "service.name", Value: decode.Text("gb10_inference")}}}
	b.ReportAllocs()
	for i := range b.N {
		l.Time = uint64(noon + int64(i)*1000)
		l.Attributes = append(l.Attributes[:0], decode.Attribute{Key: "model.id", Value: decode.Text("m")}, decode.Attribute{Key: "topology", Value: decode.Text("single")},
			decode.Attribute{Key: "request.id", Value: decode.Text(keys[i%streams])}, decode.Attribute{Key: "event", Value: decode.Text("stream_delta")},
			decode.Attribute{Key: "generation.id", Value: decode.Text("g")})
		table.Log(time.Duration(i)*1000, noon, o, l)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(table.Bytes())/(1<<20), "MiB-kept")
}

// TestTapesAreTheSameHoweverOftenTheyArePulled: what is written bit by bit while records come is what one
// look at the end would have written, up to records that came too late.
func TestTapesAreTheSameHoweverOftenTheyArePulled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable(Options{})
		often, once := table.Tape(nil, 0), table.Tape(nil, 0)
		var all []rec
		for g := range rapid.IntRange(1, 4).Draw(t, "streams") {
			all = append(all, whole("s", fmt.Sprint("g", g), time.Duration(g)*30*time.Millisecond, rapid.IntRange(1, 30).Draw(t, "tokens"))...)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		for range len(all) / 4 { // neighbours change places
			i := r.IntN(len(all) - 1)
			all[i], all[i+1] = all[i+1], all[i]
		}
		if rapid.Bool().Draw(t, "cut off") {
			all = all[:len(all)/2+1]
		}
		var a, b bench.Session
		for i, x := range all {
			x.take(table)
			if r.IntN(5) == 0 {
				for _, e := range often.Pull(time.Duration(i)*time.Millisecond, false) {
					a.Append(e)
				}
			}
			if r.IntN(30) == 0 {
				table.Clear()
			}
		}
		late := 0
		for _, p := range []struct {
			tape *Tape
			to   *bench.Session
		}{{often, &a}, {once, &b}} {
			events, end := p.tape.Close(time.Hour)
			for _, e := range events {
				p.to.Append(e)
			}
			if c := p.tape.Counts(); c.Running != 0 || c.Streams != len(p.to.Exchanges) || end == bench.Unset {
				t.Fatalf("counts are %+v, the end is %v", c, end)
			}
			late += p.tape.Counts().Late
		}
		count := func(s *bench.Session) (chunks, ends int) {
			for _, x := range s.Exchanges {
				chunks += len(x.Chunks)
				if x.End != nil {
					ends++
				}
				for i := 1; i < len(x.Chunks); i++ {
					if x.Chunks[i].User < x.Chunks[i-1].User || x.Chunks[i].Read != x.Chunks[i-1].Read+1 && late == 0 {
						t.Fatalf("chunks of request %d are not in order: %+v", x.Request.Number, x.Chunks)
					}
				}
			}
			return chunks, ends
		}
		c1, e1 := count(&a)
		c2, e2 := count(&b)
		if len(a.Exchanges) != len(b.Exchanges) || e1 != e2 || c1+late != c2 {
			t.Fatalf("often: %d requests, %d chunks, %d ends, %d late; once: %d, %d, %d", len(a.Exchanges), c1, e1, late, len(b.Exchanges), c2, e2)
		}
		for _, s := range table.streams {
			if s.held != 0 || len(s.tapes) != 0 {
				t.Fatal("a stream is still held")
			}
		}
	})
}
