package telemetrypage

import (
	"image"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/series"
	"velo/bench/otlp/stream"
	"velo/ui/console"
	"velo/ui/look"
)

// TestPanelsStayWithTheirStreams lets streams come, run and end at random: one that runs never leaves its
// panel, none has two, and no panel stays empty while a stream has none.
// nobody holds a stream.
func nobody(stream.Key) bool { return false }

func TestPanelsStayWithTheirStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var slots [mostPanels]*stream.Key
		var list []stream.Summary
		next := 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.IntRange(0, 2).Draw(t, "new") {
				list = slices.Insert(list, 0, stream.Summary{Key: stream.Key{Conversation: string(rune('A' + next))}, State: rapid.SampledFrom([]string{stream.Running, stream.Waiting, stream.Ended}).Draw(t, "state")})
				next++
			}
			for i := range list {
				if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
					list[i].State = stream.Ended
				}
			}
			if len(list) > 0 && rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
				list = slices.Delete(list, 0, 1)
			}
			was := slots
			slots = assign(slots, list, nobody)
			state := map[stream.Key]string{}
			for _, s := range list {
				state[s.Key] = s.State
			}
			seen := map[stream.Key]bool{}
			empty := 0
			for i, k := range slots {
				if k == nil {
					empty++
				} else if seen[*k] || state[*k] == "" {
					t.Fatalf("panel %d has %v, which is twice there or gone", i, *k)
				} else {
					seen[*k] = true
				}
				if old := was[i]; old != nil && (state[*old] == stream.Running || state[*old] == stream.Waiting) && (k == nil || *k != *old) {
					t.Fatalf("a stream that runs left panel %d", i)
				}
			}
			if empty > 0 && len(seen) < len(list) {
				t.Fatalf("%d panels are empty, and %d of %d streams have one", empty, len(seen), len(list))
			}
			for _, s := range list {
				if (s.State == stream.Running || s.State == stream.Waiting) && !seen[s.Key] {
					for _, k := range slots {
						if state[*k] == stream.Ended {
							t.Fatal("a stream that ended holds a panel that one that runs has need of")
						}
					}
				}
			}
		}
	})
}

// TestPanelsOfAnEngineThatWentAway are free for streams that run.
func TestPanelsOfAnEngineThatWentAway(t *testing.T) {
	var list []stream.Summary
	for i := range mostPanels {
		list = append(list, stream.Summary{Key: stream.Key{Conversation: string(rune('a' + i))}, State: stream.Running})
	}
	slots := assign([mostPanels]*stream.Key{}, list, nobody)
	for i := range list {
		list[i].Age = heldFor
	}
	young := stream.Summary{Key: stream.Key{Conversation: "z"}, State: stream.Running}
	slots = assign(slots, append([]stream.Summary{young}, list...), nobody)
	if !slices.ContainsFunc(slots[:], func(k *stream.Key) bool { return *k == young.Key }) {
		t.Error("streams that say nothing keep all panels")
	}
	slots = assign(slots, list, nobody)
	was := *slots[1]
	more := append([]stream.Summary{{Key: stream.Key{Conversation: "x"}, State: stream.Running}, {Key: stream.Key{Conversation: "y"}, State: stream.Running}}, list...)
	if slots = assign(slots, more, func(k stream.Key) bool { return k == was }); *slots[1] != was {
		t.Error("a stream that is held lost its panel")
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		lines   int
		want    []string
	}{
		{"", 10, 3, []string{""}},
		{"one two three", 7, 3, []string{"one two", "three"}},
		{"one two three", 7, 1, []string{"three"}},
		{"abcdefghij", 4, 9, []string{"abcd", "efgh", "ij"}},
		{"a\n\nb", 10, 9, []string{"a", "", "b"}},
		{"日本語テキスト", 6, 9, []string{"日本語", "テキス", "ト"}},
		{"a\tb\x1b[0m", 10, 9, []string{"a    b [0m"}},
		{"x", 0, 3, nil},
	} {
		if got := tail(c.text, c.columns, c.lines); !slices.Equal(got, c.want) {
			t.Errorf("tail(%q, %d, %d) = %q, want %q", c.text, c.columns, c.lines, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab é日\n🙂"))).Draw(t, "text") + strings.Repeat(rapid.StringN(0, 8, 32).Draw(t, "part"), rapid.IntRange(0, 200).Draw(t, "times"))
		columns, lines := rapid.IntRange(8, 60).Draw(t, "columns"), rapid.IntRange(1, 8).Draw(t, "lines")
		got := tail(text, columns, lines)
		if len(got) > lines {
			t.Fatalf("%d lines of %d", len(got), lines)
		}
		for _, l := range got {
			w := 0
			for _, c := range l {
				w += cells(c)
			}
			if w > columns || !utf8.ValidString(l) || strings.ContainsAny(l, "\n\t\x1b") {
				t.Fatalf("%q is %d wide, there are %d", l, w, columns)
			}
		}
	})
}

// TestLinesThatAreFullStay: a text that grows never moves what stands above its last line, but up.
func TestLinesThatAreFullStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,12}`), 2, 60).Draw(t, "words")
		columns := rapid.IntRange(8, 40).Draw(t, "columns")
		text := ""
		var before []string
		for _, w := range words {
			text += w + " "
			now := wrap(text, columns)
			for i := 0; i < len(before)-1; i++ {
				if before[i] != now[i] {
					t.Fatalf("line %d was %q and is %q", i, before[i], now[i])
				}
			}
			before = now
		}
	})
}

func TestHistoryDrawsAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		img := image.NewRGBA(image.Rect(0, 0, rapid.IntRange(1, 500).Draw(t, "w"), rapid.IntRange(1, 200).Draw(t, "h")))
		var d history
		var points []series.Sample
		at := time.Duration(0)
		for range rapid.IntRange(0, 40).Draw(t, "points") {
			at += time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "gap"))
			points = append(points, series.Sample{At: at, Value: rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e300})).Draw(t, "value")})
		}
		d.draw(img, rapid.SampledFrom([]float64{1, 1.5, 2}).Draw(t, "scale"), look.Dark, curve{of: "x", title: "Value", unit: "s", points: points, now: at, bare: rapid.Bool().Draw(t, "bare")})
	})
}

// accented counts the columns between two moments that a line crosses.
func accented(img *image.RGBA, from, to float64) int {
	c, n := look.Dark.Accent, 0
	w := float64(img.Rect.Dx())
	for x := int(from * w); x < int(to*w); x++ {
		for y := range img.Rect.Dy() {
			if p := img.RGBAAt(x, y); int(p.B) > int(c.B)-60 && int(p.R) < int(c.R)+60 && p.B > p.R+40 {
				n++
				break
			}
		}
	}
	return n
}

// TestHistoryShowsSilence: where no point came there is no line.
func TestHistoryShowsSilence(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 300, 60))
	var points []series.Sample
	for s := range 300 {
		if s < 100 || s > 200 {
			points = append(points, series.Sample{At: time.Duration(s) * time.Second, Value: 10 + float64(s%3)})
		}
	}
	var d history
	d.draw(img, 1, look.Dark, curve{of: "x", points: points, now: 300 * time.Second, bare: true})
	if n := accented(img, 0.05, 0.3); n < 70 {
		t.Errorf("%d columns of 75 hold the line", n)
	}
	if n := accented(img, 0.36, 0.64); n != 0 {
		t.Errorf("%d columns hold a line where nothing came", n)
	}
}

func TestWordsOfTheReceiver(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999_999: "999,999", 1_075_312: "1.08 M"} {
		if got := many(n); got != want {
			t.Errorf("%d is written as %s", n, got)
		}
	}
	on := func(l ...otlp.Listener) otlp.State { return otlp.State{Wanted: true, Listeners: l} }
	good, bad := otlp.Listener{Protocol: "HTTP", Address: "127.0.0.1:4318"}, otlp.Listener{Protocol: "HTTP", Error: "taken"}
	for _, c := range []struct {
		s    otlp.State
		want string
		tone look.Tone
	}{
		{otlp.State{}, "off", look.OnFaint},
		{otlp.State{Data: true, LastData: time.Second}, "off", look.OnFaint},
		{on(good), "listening", look.OnGreen},
		{on(good, bad), "partial", look.OnAmber},
		{on(bad), "not listening", look.OnRed},
		{otlp.State{Wanted: true, Polls: []otlp.Polled{{}}}, "polling", look.OnGreen},
	} {
		if got := Short(c.s); got != c.want || Tone(c.s) != c.tone {
			t.Errorf("%+v is %q, %v; want %q, %v", c.s, got, Tone(c.s), c.want, c.tone)
		}
	}
	if got := listeningOn(on(good, otlp.Listener{Protocol: "HTTP", Address: "127.0.0.1:9381"}, otlp.Listener{Protocol: "gRPC", Address: "[::1]:4317"}, bad)); got != "127.0.0.1: HTTP 4318, 9381; ::1: gRPC 4317" {
		t.Errorf("it listens on %q", got)
	}
	sum := offset.Bounds{LeastSum: -1500 * time.Microsecond, Records: 3}
	if got := bounds(sum); got != "offset plus least delay −1.5 ms" {
		t.Errorf("without a request on both sides: %q", got)
	}
	sum.Pairs, sum.Low, sum.High = 1, -2*time.Millisecond, 3*time.Millisecond
	if got := bounds(sum); got != "between −2.0 ms and +3.0 ms" {
		t.Errorf("with one: %q", got)
	}
	s := stream.Summary{State: stream.Running, Lost: 2, Clock: stream.ReceiverClock}
	if got := condition(&s); got != "running, start not seen, 2 records lost, times of receipt" {
		t.Errorf("the stream is %q", got)
	}
	if got := write(measure.Seconds, measure.Missing, "▪").text(); got != "—" {
		t.Errorf("what is missing is written %q", got)
	}
}

// TestOnDiskSaysWhatIsWritten: that nothing is there is said only when nothing is, and nothing is being written.
func TestOnDiskSaysWhatIsWritten(t *testing.T) {
	oldest := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	for _, c := range []struct {
		disk console.TelemetryDisk
		set  console.TelemetrySettings
		want string
	}{
		{console.TelemetryDisk{}, console.TelemetrySettings{}, "No recording is on disk."},
		{console.TelemetryDisk{Writing: 1}, console.TelemetrySettings{}, "1 recording is going on; nothing came yet that would be written. It stays until it is deleted."},
		{console.TelemetryDisk{Writing: 1, WritingBytes: 300 << 10}, console.TelemetrySettings{}, "1 recording is being written, 300 KiB so far. It stays until it is deleted."},
		{console.TelemetryDisk{Writing: 2, WritingBytes: 3 << 20}, console.TelemetrySettings{DeleteAfter: 72 * time.Hour}, "2 recordings are being written, 3.0 MiB so far. Deleted by themselves: those older than 3 days. What has a category stays."},
		{console.TelemetryDisk{Recordings: 1, Bytes: 5 << 20, Oldest: oldest}, console.TelemetrySettings{}, "1 recording, 5.0 MiB on disk, of 30 November 2026. It stays until it is deleted."},
		{console.TelemetryDisk{Recordings: 2, Bytes: 5 << 20, Oldest: oldest, Writing: 1, WritingBytes: 1 << 20}, console.TelemetrySettings{}, "2 recordings, 5.0 MiB on disk, the oldest of 30 November 2026. 1 more is being written, 1.0 MiB so far. They stay until they are deleted."},
		{console.TelemetryDisk{Recordings: 1, Bytes: 5 << 20, Oldest: oldest, Writing: 2}, console.TelemetrySettings{}, "1 recording, 5.0 MiB on disk, of 30 November 2026. 2 more are going on; nothing came yet that would be written. They stay until they are deleted."},
	} {
		if got := OnDisk(c.disk, c.set); got != c.want {
			t.Errorf("of %+v it says\n%s\nwant\n%s", c.disk, got, c.want)
		}
	}
}

func TestValidityOfACertificate(t *testing.T) {
	day := 24 * time.Hour
	for _, c := range []struct {
		state otlp.CertificateState
		want  string
		ink   look.Ink
	}{
		{otlp.CertificateState{Left: 90 * day}, "expires in 90 days", look.Muted},
		{otlp.CertificateState{Left: renewBefore}, "expires in 14 days", look.Muted},
		{otlp.CertificateState{Left: renewBefore - time.Second}, "expires in 13 days", look.Amber},
		{otlp.CertificateState{Left: 30 * time.Hour}, "expires in 30 hours", look.Amber},
		{otlp.CertificateState{Left: 5 * time.Minute}, "expires in 5 minutes", look.Amber},
		{otlp.CertificateState{}, "expired 0 minutes ago", look.Red},
		{otlp.CertificateState{Left: -3 * day}, "expired 3 days ago", look.Red},
		{otlp.CertificateState{Left: 90 * day, Early: true}, "not valid before", look.Red},
		{otlp.CertificateState{Left: 90 * day, Problem: "cert.pem ends within a block"}, "the former certificate stays in use until they can: cert.pem ends within a block.", look.Amber},
		{otlp.CertificateState{Left: -day, Problem: "x"}, "expired 24 hours ago", look.Red},
	} {
		c.state.Names = []string{"velo.lan", "10.0.0.7"}
		if text, ink := validity(&c.state); !strings.Contains(text, c.want) || !strings.Contains(text, "velo.lan, 10.0.0.7") || ink != c.ink {
			t.Errorf("%+v: %q in %v, want %q in %v", c.state, text, ink, c.want, c.ink)
		}
	}
}

// TestListeningOverTLS: what all addresses have in common is said once, and what only some have at each.
func TestListeningOverTLS(t *testing.T) {
	l := []otlp.Listener{{Protocol: "gRPC", Address: "127.0.0.1:4317", TLS: true}, {Protocol: "HTTP", Address: "127.0.0.1:4318", TLS: true}, {Protocol: "HTTP", Error: "x"}}
	s := otlp.State{Listeners: l}
	if got := listeningOn(s); got != "127.0.0.1: gRPC 4317, HTTP 4318" || !overTLS(s) {
		t.Errorf("all over TLS: %q, %v", got, overTLS(s))
	}
	l[1].TLS = false
	if got := listeningOn(s); got != "127.0.0.1: gRPC 4317 (TLS), HTTP 4318" || overTLS(s) {
		t.Errorf("one over TLS: %q, %v", got, overTLS(s))
	}
	if overTLS(otlp.State{}) {
		t.Error("nothing listens, and it is over TLS")
	}
}
