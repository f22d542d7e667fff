package app

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/otlp"
	"velo/store"
	"velo/ui/console"
)

func TestOutlived(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	one := func(id string, days int, mib int64, told bool) store.Summary {
		return store.Summary{ID: id, Began: now.AddDate(0, 0, -days), Bytes: mib << 20, Told: told, State: store.StateDone}
	}
	list := []store.Summary{one("running", 0, 500, true), one("new", 1, 10, true), one("client", 2, 999, false), one("middle", 10, 10, true),
		one("kept", 40, 10, true), one("old", 50, 10, true), one("cut", 60, 1, true)}
	list[0].State, list[4].Category, list[6].State = store.StateRunning, "Keep", store.StateCutOff
	for _, c := range []struct {
		settings console.TelemetrySettings
		want     string
	}{
		{console.TelemetrySettings{}, ""},
		{console.TelemetrySettings{DeleteAfter: 30 * 24 * time.Hour}, "cut old"},
		{console.TelemetrySettings{DeleteAfter: 5 * 24 * time.Hour}, "cut old middle"},
		{console.TelemetrySettings{DiskBytes: 41 << 20}, ""},
		{console.TelemetrySettings{DiskBytes: 40 << 20}, "cut"},
		{console.TelemetrySettings{DiskBytes: 20 << 20}, "cut old"}, // the one with a category counts, and stays
		{console.TelemetrySettings{DiskBytes: 1 << 20}, "cut old middle new"},
		{console.TelemetrySettings{DeleteAfter: 45 * 24 * time.Hour, DiskBytes: 35 << 20}, "cut old"},
	} {
		var ids []string
		for _, x := range outlived(list, c.settings, now) {
			ids = append(ids, x.ID)
		}
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("after %v and %d MiB: %q go, want %q", c.settings.DeleteAfter, c.settings.DiskBytes>>20, got, c.want)
		}
	}
}

// TestRecordingsThatOutlivedTheirTime are gone after the settings say so, others stay.
func TestRecordingsThatOutlivedTheirTime(t *testing.T) {
	c := opened(t)
	keep := func(age time.Duration, told bool) string {
		h := &bench.Header{Schema: bench.SchemaVersion, ID: bench.NewID(time.Now()), Anchor: time.Now().Add(-age), Title: "One"}
		if told {
			h.Environment.Extra = map[string]string{bench.RecordedFromTelemetry: "yes"}
		}
		r, err := c.store.Record(h)
		if err != nil {
			t.Fatal(err)
		}
		r.Append(&bench.Finish{State: bench.Done})
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return h.ID
	}
	old, young, client := keep(72*time.Hour, true), keep(time.Hour, true), keep(72*time.Hour, false)
	s := c.Telemetry().Settings()
	s.DeleteAfter = 48 * time.Hour
	if err := c.Telemetry().SaveSettings(s, nil); err != nil {
		t.Fatal(err)
	}
	list, err := c.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, x := range list {
		ids = append(ids, x.ID)
	}
	if slices.Contains(ids, old) || !slices.Contains(ids, young) || !slices.Contains(ids, client) {
		t.Errorf("%v are left of %s, %s and %s", ids, old, young, client)
	}
	if d := c.Telemetry().Disk(); d.Recordings != 1 || d.Bytes == 0 {
		t.Errorf("on disk are %+v", d)
	}
	if n := c.Status().Notices; !slices.ContainsFunc(n, func(s string) bool { return strings.Contains(s, "Deleted, as the settings") }) {
		t.Errorf("it is not told: %q", n)
	}
}

// recordingChild is the folder of a process that records telemetry until it is killed.
const recordingChild = "VELO_APP_TEST_RECORDING"

func recordUntilKilled(dir string) {
	st, err := store.Open(dir, store.Options{})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	c := newConsole(st, dir)
	s := c.Telemetry().Settings()
	s.On, s.GRPC = true, 0
	for port := 21000 + os.Getpid()%20000; ; port++ {
		s.HTTP = []int{c.Telemetry().FreePort(port)}
		if err := c.Telemetry().SaveSettings(s, nil); err == nil && c.Telemetry().State().Listening() {
			break
		}
	}
	if err := c.Telemetry().Record(nil); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("http://" + c.Telemetry().State().Listeners[0].Address)
	for {
		for _, x := range c.Telemetry().Snapshot(otlp.Query{}).Recordings {
			if sum, err := st.Summary(x.ID); err == nil && sum.Chunks > 100 {
				fmt.Println(x.ID)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestARecordingThatACrashCutsOff is there after the next start, as cut off, with what was stored, and with
// stamps that are told as the emitter's.
func TestARecordingThatACrashCutsOff(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), recordingChild+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(out)
	line := func() string {
		if !lines.Scan() || strings.HasPrefix(lines.Text(), "error") {
			t.Fatalf("the child said %q, %v", lines.Text(), lines.Err())
		}
		return lines.Text()
	}
	url := line()
	sendRecords(t, url, 310) // 15 streams of 20 tokens that end, and what has begun
	id := line()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	st, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newConsole(st, dir)
	defer c.Close()
	sum, err := st.Summary(id)
	if err != nil || sum.State != store.StateCutOff || !sum.Told || sum.Chunks <= 100 {
		t.Fatalf("after the crash the recording is %+v, %v", sum, err)
	}
	r, err := c.Report(id)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(r.Status, "cut off") {
		t.Errorf("its status is %q", r.Status)
	}
	chunks := 0
	for i := range r.Run.Requests {
		q := &r.Run.Requests[i]
		chunks += len(q.Arrivals)
		if len(q.Arrivals) > 0 && q.Stamp != bench.EmitterStamp {
			t.Errorf("the stamps of request %d are told as %q", i, q.Stamp)
		}
	}
	if chunks != sum.Chunks {
		t.Errorf("the report has %d chunks of %d", chunks, sum.Chunks)
	}
	for _, f := range r.Facts {
		if f.Label == "Time stamps" && !strings.Contains(f.Value, "emitter") {
			t.Errorf("the time stamps are told as %q", f.Value)
		}
	}
	if d := c.Telemetry().Disk(); d.Recordings != 1 {
		t.Errorf("on disk are %+v", d)
	}
}

// TestDiskTellsOfWhatIsWritten: a recording counts as one that is being written until it is one that is there, and is
// never both or neither.
func TestDiskTellsOfWhatIsWritten(t *testing.T) {
	c, url := receiving(t)
	tel := c.Telemetry()
	if d := tel.Disk(); d.Recordings != 0 || d.Writing != 0 {
		t.Fatalf("before anything was recorded: %+v", d)
	}
	if err := tel.Record(nil); err != nil {
		t.Fatal(err)
	}
	if d := tel.Disk(); d.Recordings != 0 || d.Writing != 1 || d.WritingBytes != 0 {
		t.Errorf("nothing came yet: %+v", d)
	}
	sendRecords(t, url, 3000)
	wait(t, "something on disk", func() bool { return tel.Snapshot(otlp.Query{}).Disk.WritingBytes > 0 })
	if d := tel.Disk(); d.Recordings != 0 || d.Bytes != 0 || d.Writing != 1 {
		t.Errorf("while it is written: %+v", d)
	}
	tel.StopRecording(tel.Snapshot(otlp.Query{}).Recordings[0].ID)
	var last console.TelemetryDisk
	wait(t, "the end", func() bool {
		if last = tel.Disk(); last.Recordings+last.Writing != 1 {
			t.Fatalf("while it ends: %+v", last)
		}
		return last.Recordings == 1
	})
	if last.Bytes == 0 || last.WritingBytes != 0 || last.Oldest.IsZero() {
		t.Errorf("when it has ended: %+v", last)
	}
}
