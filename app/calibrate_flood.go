package app

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"time"

	"velo/bench/otlp"
)

// mostOfAnEmitter is the most records a second that one process of velo sim sends.
const mostOfAnEmitter = 10_000

// flood is telemetry that this process takes while it is calibrated, as the window does during a run.
type flood struct {
	receiver *otlp.Receiver
	senders  []*exec.Cmd
	from     otlp.Counters
	began    time.Time
}

// startFlood receives so many records a second, from processes of their own, until stop is called. Records get
// the share of a core that they get during a run.
func startFlood(ctx context.Context, records float64) (*flood, error) {
	f := &flood{receiver: otlp.New(otlp.Options{})}
	c := otlp.Config{Enabled: true, HTTP: []string{"127.0.0.1:0"}}
	c.Limits.Core = shareWhileMeasuring
	if err := f.receiver.Configure(c); err != nil {
		return nil, err
	}
	l := f.receiver.State().Listeners[0]
	if l.Address == "" {
		f.receiver.Close()
		return nil, fmt.Errorf("cannot receive telemetry: %s", l.Error)
	}
	self, err := ownFile()
	if err != nil {
		f.receiver.Close()
		return nil, fmt.Errorf("cannot send telemetry: %w", err)
	}
	n := int(math.Ceil(records / mostOfAnEmitter))
	for i := range n {
		cmd := exec.CommandContext(ctx, self, "sim", "--with-parent", "--otlp", "http://"+l.Address, "--otlp-encoding", "protobuf", "--otlp-streams", "16",
			"--otlp-rate", strconv.FormatFloat(records/float64(n), 'f', -1, 64), "--otlp-seed", strconv.Itoa(i+1))
		cmd.SysProcAttr = apart()
		_, err := cmd.StdinPipe() // it ends with this process, whatever ends that
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			f.stop()
			return nil, fmt.Errorf("cannot send telemetry: %w", err)
		}
		f.senders = append(f.senders, cmd)
	}
	for end := time.Now().Add(10 * time.Second); f.receiver.State().Counters.Logs == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			f.stop()
			return nil, fmt.Errorf("cannot send telemetry: nothing came within 10 s")
		}
	}
	f.from, f.began = f.receiver.State().Counters, time.Now()
	return f, nil
}

// stop ends it, and tells how many records a second were taken, and how many requests were refused in all.
func (f *flood) stop() (taken float64, refused uint64) {
	c := f.receiver.State().Counters
	if !f.began.IsZero() {
		taken = float64(c.Logs-f.from.Logs) / time.Since(f.began).Seconds()
	}
	for _, cmd := range f.senders {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	f.receiver.Close()
	return taken, c.Busy + c.Memory + c.RateLimited + c.Dropped - f.from.Busy - f.from.Memory - f.from.RateLimited - f.from.Dropped
}
