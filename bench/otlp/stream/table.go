package stream

import (
	"container/list"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/otlp/decode"
)

// Options are the bounds of a Table; the zero value has usual ones.
type Options struct {
	Streams int           // kept at most; 0 = 10,000
	Bytes   int64         // of chunks and text at most; 0 = 256 MiB
	Keep    time.Duration // chunks of a stream that has been quiet for so long are let go; 0 = 15 min
	Tail    int           // bytes of text that a Panel shows; 0 = 8,192
}

func (o Options) complete() Options {
	if o.Streams <= 0 {
		o.Streams = 10_000
	}
	if o.Bytes <= 0 {
		o.Bytes = 256 << 20
	}
	if o.Keep <= 0 {
		o.Keep = 15 * time.Minute
	}
	if o.Tail <= 0 {
		o.Tail = 8192
	}
	return o
}

// Status is what an engine's status record says.
type Status struct {
	Service  string
	Model    string
	Topology string
	Text     string
	Received time.Duration // receiver's monotonic time
}

// Counts are what a Table has taken and let go since it was made. Clear does not touch them.
type Counts struct {
	Records    uint64 // of streams
	Starts     uint64
	Deltas     uint64
	Ends       uint64
	Statuses   uint64
	Unreadable uint64 // records of a stream whose body is no chunk
	Duplicates uint64
	Reordered  uint64
	Orphans    uint64 // streams whose start was not seen
	Folded     uint64 // streams whose chunks were let go
	Evicted    uint64 // streams let go for good
	Cut        uint64 // chunks not kept: too long a stream, or one that had been folded
	Tokens     uint64 // as they came, by usage or estimate
}

// Table holds the streams. It has no lock: its owner serialises all calls.
type Table struct {
	options Options
	streams map[Key]*Stream
	full    *list.List // streams with chunks, quietest first
	folded  *list.List // streams without, quietest first
	bytes   int64
	visible int // streams that are not hidden
	serial  uint64
	counts  Counts
	status  map[string]Status // by service
	started func(*Stream)
	opened  func(*Stream, time.Duration)
	meter   meter
}

// NewTable returns an empty table.
func NewTable(o Options) *Table {
	return &Table{options: o.complete(), streams: map[Key]*Stream{}, full: list.New(), folded: list.New(), status: map[string]Status{}}
}

// OnStart is called for each stream_start with a time of the emitter's.
func (t *Table) OnStart(f func(*Stream)) { t.started = f }

// OnFirst is called with the time from a stream's start to its first chunk, both on the emitter's clock.
func (t *Table) OnFirst(f func(s *Stream, ttft time.Duration)) { t.opened = f }

// Clear empties the view and nothing else: streams stay what they are for tapes, and one that runs
// appears again with its next record, with its numbers and the text from then on.
func (t *Table) Clear() {
	for _, l := range []*list.List{t.full, t.folded} {
		for e := l.Front(); e != nil; e = e.Next() {
			e.Value.(*Stream).hide()
		}
	}
	t.visible = 0
}

// ClearOnly does to these streams what Clear does to all.
func (t *Table) ClearOnly(keys []Key) {
	for _, k := range keys {
		if s := t.streams[k]; s != nil {
			if !s.hidden {
				t.visible--
			}
			s.hide()
		}
	}
}

func (s *Stream) hide() { s.hidden, s.shown, s.tail = true, len(s.chunks), "" }

// Configure changes the bounds; they take effect with the next record or Sweep.
func (t *Table) Configure(o Options) { t.options = o.complete() }

// Counts are what was taken and let go.
func (t *Table) Counts() Counts { return t.counts }

// Len is the number of streams that are kept, and Visible of those that a Clear did not hide.
func (t *Table) Len() int { return len(t.streams) }

// Visible is the number of streams of a view without a filter.
func (t *Table) Visible() int { return t.visible }

// Bytes is the memory that the streams hold, as far as it is theirs.
func (t *Table) Bytes() int64 { return t.bytes }

// Statuses are the latest status records, one a service.
func (t *Table) Statuses() map[string]Status { return t.status }

// mostServices bounds the services whose status is kept.
const mostServices = 256

// The names under which emitters send what identifies a stream.
var (
	conversationNames = []string{"request.id", "gen_ai.conversation.id", "session.id", "conversation.id"}
	generationNames   = []string{"generation.id", "gen_ai.response.id"}
	modelNames        = []string{"model.id", "model", "gen_ai.response.model", "gen_ai.request.model"}
)

// Log takes a log record that came at the receiver's monotonic time received; wall is the receiver's
// wall clock then, in nanoseconds since 1970. It tells whether the record belongs to a stream or is a
// status.
func (t *Table) Log(received time.Duration, wall int64, o *decode.Origin, l *decode.Log) bool {
	event := l.Attributes.Text("event", "event.name")
	if event == "" {
		event = l.Event
	}
	conversation := l.Attributes.Text(conversationNames...)
	generation := l.Attributes.Text(generationNames...)
	switch event {
	case "status":
		t.takeStatus(received, o, l)
		return true
	case "":
		event = "stream_delta"
	case "stream_start", "stream_delta", "stream_end":
		// It says that it is of a stream: then its scope or its resource may say of which. Any other record of an
		// application whose resource has a session is none.
		if conversation == "" {
			conversation = o.Find(nil, conversationNames...)
		}
		if generation == "" {
			generation = o.Find(nil, generationNames...)
		}
	}
	if event != "stream_start" && event != "stream_delta" && event != "stream_end" || conversation == "" && generation == "" {
		return false
	}
	body := textOf(l.Body)
	d, ok := parse(body)
	if !ok && event == "stream_delta" && body != "" {
		t.counts.Unreadable++
	}
	if generation == "" {
		generation = d.id
	}
	t.counts.Records++
	key := Key{Service: cut(service(o)), Conversation: cut(conversation), Generation: cut(generation)}
	s := t.find(key, event, received)
	at, own := int64(l.Time), l.Time != 0
	if !own {
		at, own = int64(l.Observed), l.Observed != 0
	}
	t.time(s, at, own, wall, event)
	if s.clock == ReceiverClock {
		at = wall
	} else if !own {
		at = unset
	}
	t.describe(s, o, l, &d)
	t.take(s, event, at, received, indexOf(l), &d)
	t.bound(s, received)
	return true
}

// mostName bounds the names that are kept; longer ones are cut.
const mostName = 256

// cut is the beginning of a name, as valid UTF-8 and mostly as part of the text that it is in.
func cut(s string) string {
	if len(s) > mostName {
		n := mostName
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// service is the service's name, and its instance behind a slash.
func service(o *decode.Origin) string {
	name, instance := o.Service()
	if instance != "" {
		return name + "/" + instance
	}
	return name
}

func indexOf(l *decode.Log) int32 {
	v, ok := l.Attributes.Get("token.index")
	if !ok {
		return -1
	}
	if n, ok := v.Int(); ok && n >= 0 && n < 1<<31-1 {
		return int32(n)
	}
	return -1
}

func (t *Table) takeStatus(received time.Duration, o *decode.Origin, l *decode.Log) {
	t.counts.Statuses++
	name := cut(service(o))
	if _, ok := t.status[name]; !ok && len(t.status) >= mostServices {
		return
	}
	t.status[strings.Clone(name)] = Status{Service: strings.Clone(name), Model: decode.Short(o.Find(l.Attributes, modelNames...), mostName),
		Topology: decode.Short(o.Find(l.Attributes, "topology"), mostName), Text: decode.Short(l.Body.String(), mostName), Received: received}
}

// find is the stream that a record belongs to; it is made if there is none. Where the emitter gives
// no generation, a start after something came, and a delta after the end, begin the next turn.
func (t *Table) find(key Key, event string, received time.Duration) *Stream {
	s := t.streams[key]
	if s != nil && key.Generation == "" && (event == "stream_start" && (s.started || len(s.chunks) > 0 || s.done) || event == "stream_delta" && s.done) {
		delete(t.streams, s.key)
		old := s.key
		old.Generation = fmt.Sprintf("#%d", s.serial)
		s.key = old
		t.streams[old] = s
		s = nil
	}
	if s != nil {
		return s
	}
	key = Key{strings.Clone(key.Service), strings.Clone(key.Conversation), strings.Clone(key.Generation)}
	t.serial++
	s = &Stream{key: key, serial: t.serial, start: unset, first: unset, latest: unset, ended: unset, gotFirst: received, got: received}
	t.streams[key] = s
	s.place = t.full.PushBack(s)
	t.visible++
	t.bytes += s.bytes()
	if event != "stream_start" {
		t.counts.Orphans++
	}
	return s
}

// time settles which clock the stream's times are of, and takes note of this one.
func (t *Table) time(s *Stream, at int64, own bool, wall int64, event string) {
	if s.clock == "" {
		s.clock = ReceiverClock
		if own {
			s.clock = EmitterClock
		}
	}
	if s.clock == ReceiverClock {
		at, own = wall, true
	}
	if !own {
		return
	}
	if s.first == unset || at < s.first {
		s.first = at
	}
	if s.latest == unset || at > s.latest {
		s.latest = at
	}
}

func (t *Table) describe(s *Stream, o *decode.Origin, l *decode.Log, d *delta) {
	if s.model == "" {
		s.model = decode.Short(o.Find(l.Attributes, modelNames...), mostName)
		if s.model == "" {
			s.model = decode.Short(d.model, mostName)
		}
	}
	if s.topology == "" {
		s.topology = decode.Short(o.Find(l.Attributes, "topology"), mostName)
	}
}

// take applies a record to its stream.
func (t *Table) take(s *Stream, event string, at int64, received time.Duration, index int32, d *delta) {
	if s.hidden {
		s.hidden = false
		t.visible++
	}
	before := s.bytes()
	s.version++
	s.got = max(s.got, received)
	duplicates, reordered, cut, tokens, inserts, chunks := s.duplicates, s.reordered, s.cut, s.tokens, s.inserts, len(s.chunks)
	switch event {
	case "stream_start":
		t.counts.Starts++
		if s.started {
			s.duplicates++
			break
		}
		s.started, s.start, s.startGot = true, at, received
		s.seen(index)
		if t.started != nil && at != unset && s.clock == EmitterClock {
			t.started(s)
		}
	case "stream_end":
		t.counts.Ends++
		if s.done {
			s.duplicates++
			break
		}
		s.seen(index)
		s.done, s.ended = true, at
	default:
		t.counts.Deltas++
		if !s.seen(index) {
			t.counts.Duplicates++
			return
		}
	}
	if d.finish != "" {
		s.finish = decode.Short(d.finish, mostName)
	}
	if d.failure != "" {
		s.failed = decode.Short(d.failure, 2*mostName)
	}
	if d.usage != nil {
		s.usage = d.usage
	}
	t.chunks(s, at, index, d)
	if t.opened != nil && s.started && s.start != unset && s.clock == EmitterClock && (chunks == 0 || event == "stream_start") && len(s.chunks) > 0 && s.chunks[0].at != unset {
		t.opened(s, time.Duration(s.chunks[0].at-s.start))
	}
	t.counts.Duplicates += uint64(s.duplicates - duplicates)
	t.counts.Reordered += uint64(s.reordered - reordered)
	t.counts.Cut += uint64(s.cut - cut)
	t.counts.Tokens += uint64(max(0, s.tokens-tokens))
	t.meter.add(received, max(0, s.tokens-tokens))
	t.bytes += s.bytes() - before
	if added := len(s.chunks) - chunks; added > 0 && s.done {
		for _, p := range s.tapes {
			p.missed(s, added)
		}
	}
	s.feed(inserts != s.inserts, chunks)
}

// chunks adds a chunk for each channel of the delta.
func (t *Table) chunks(s *Stream, at int64, index int32, d *delta) {
	usage := int32(-1)
	if d.usage != nil && d.usage.Completion >= 0 && d.choices {
		usage = int32(min(d.usage.Completion, 1<<31-1))
	}
	for _, part := range []struct {
		channel bench.Channel
		text    string
	}{{bench.Content, d.content}, {bench.Reasoning, d.reasoning}, {bench.Refusal, d.refusal}, {bench.Tool, d.tools}} {
		if part.text == "" {
			continue
		}
		s.add(chunk{at: at, index: index, usage: usage, exact: d.exact, channel: part.channel}, part.text)
		d.exact = min(d.exact, 0) // of the event, not of each of its channels
	}
}

// bound keeps the table within its limits after a record of s.
func (t *Table) bound(s *Stream, now time.Duration) {
	if s.folded != nil {
		t.folded.MoveToBack(s.place)
	} else {
		t.full.MoveToBack(s.place)
	}
	for len(t.streams) > t.options.Streams {
		t.evict()
	}
	for t.bytes > t.options.Bytes && t.foldOne(true) {
	}
}

func (t *Table) evict() {
	l := t.folded
	if l.Len() == 0 {
		l = t.full
	}
	s := l.Remove(l.Front()).(*Stream)
	delete(t.streams, s.key)
	t.bytes -= s.bytes()
	s.place = nil
	if !s.hidden {
		t.visible--
	}
	t.counts.Evicted++
	if s.folded == nil && s.held > 0 {
		return // a recording still has it
	}
	s.chunks, s.text, s.live = nil, nil, nil
}

// foldOne folds the quietest stream that no recording needs; with need, one that is needed if there
// is no other.
func (t *Table) foldOne(need bool) bool {
	var s *Stream
	for e := t.full.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*Stream); c.held == 0 {
			s = c
			break
		}
	}
	if s == nil {
		if !need || t.full.Len() == 0 {
			return false
		}
		s = t.full.Front().Value.(*Stream)
	}
	t.fold(s)
	return true
}

func (t *Table) fold(s *Stream) {
	t.full.Remove(s.place)
	t.bytes -= s.bytes()
	s.fold()
	t.bytes += s.bytes()
	s.place = t.folded.PushBack(s)
	t.counts.Folded++
}

// Sweep lets go of what has been quiet for longer than Options.Keep, and of charts that nobody looks at.
// It is to be called about once a second; now is the receiver's monotonic time.
func (t *Table) Sweep(now time.Duration) {
	for n := 0; n < 1000; n++ {
		e := t.full.Front()
		if e == nil {
			break
		}
		s := e.Value.(*Stream)
		if now-s.got < t.options.Keep || s.held > 0 {
			break
		}
		t.fold(s)
	}
	for e := t.full.Back(); e != nil; e = e.Prev() {
		s := e.Value.(*Stream)
		if s.live != nil && now-s.liveAsked > liveFor {
			s.live = nil
		}
	}
}

// liveFor is how long a stream is followed closely after it was last asked for.
const liveFor = 5 * time.Second

// feed gives the followed stream's Live what is new; known is how many chunks it had before.
func (s *Stream) feed(inserted bool, known int) {
	if s.live == nil {
		return
	}
	if inserted || s.done {
		s.follow() // from the beginning, in order
		return
	}
	if new := s.chunks[min(known, len(s.chunks)):]; len(new) > 0 {
		s.live.Append(convert(new, s.text, 0, s.liveBase))
	}
}

// follow begins to compute the stream while it runs.
func (s *Stream) follow() {
	s.live = measure.NewLive(measure.Options{})
	s.liveBase = s.base()
	x := s.exchange(0, s.liveBase, nil)
	s.live.Append(x.Request)
	s.live.Append(x.Chunks)
	if x.End != nil {
		s.live.Append(x.End)
	}
}

// Options are the bounds in force.
func (t *Table) Options() Options { return t.options }
